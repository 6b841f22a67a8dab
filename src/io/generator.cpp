// SPDX-License-Identifier: Apache-2.0
#include "io/flow_templates.hpp"
#include "io/paced_source.hpp"

#include <catena/core/text.hpp>

#include <array>
#include <random>
#include <utility>

namespace catena::io {
namespace {

/// Frame sizes in the proportion 7 : 4 : 1, exact in every 12 packets.
constexpr std::array<std::uint32_t, 3> kImixBytes{64, 594, 1518};
constexpr std::array<std::uint8_t, 12> kImixDozen{0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2};

/// Which size comes next: a position in the list of sizes. Every dozen is in a random order of its own, else a flow
/// would see some sizes only.
class SizeOrder {
 public:
  SizeOrder(bool imix, std::mt19937_64& random) : imix_(imix) {
    if (!imix) {
      return;
    }
    for (auto& dozen : dozens_) {
      dozen = kImixDozen;
      for (std::size_t left = dozen.size(); left > 1; --left) {
        std::swap(dozen[left - 1], dozen[random() % left]);
      }
    }
    order_.seed(random());
    dozen_ = &dozens_[order_() % dozens_.size()];
  }
  SizeOrder(SizeOrder const&) = delete;
  SizeOrder& operator=(SizeOrder const&) = delete;

  std::uint32_t next() {
    if (!imix_) {
      return 0;
    }
    if (at_ == dozen_->size()) {
      at_ = 0;
      dozen_ = &dozens_[order_() % dozens_.size()];
    }
    return (*dozen_)[at_++];
  }

 private:
  bool imix_;
  std::array<std::array<std::uint8_t, 12>, 256> dozens_{};
  std::mt19937_64 order_;
  std::array<std::uint8_t, 12> const* dozen_ = nullptr;
  std::size_t at_ = 0;
};

class Generator final : public PacedSource {
 public:
  explicit Generator(GeneratorConfig const& config)
      : PacedSource(config.packets_per_s, config.count),
        config_(config),
        random_(config.seed),
        templates_(config.flows, sizes(config), random_),
        size_order_(config.packet_bytes == 0, random_) {}

  std::string describe() const override {
    const std::string size = config_.packet_bytes == 0 ? "IMIX" : concat(config_.packet_bytes, " B");
    return concat("generator ", size, describe_traffic(config_.flows, config_.seed));
  }

 protected:
  void fill(memory::PacketPool& pool, memory::Unit const& unit, std::uint64_t next_index) override {
    for (std::uint32_t i = 0; i < unit.count; ++i) {
      const std::uint64_t number = made() + i;
      const std::uint32_t slot = unit.slots()[i];
      const std::uint32_t length = templates_.write(flow_, size_order_.next(), static_cast<std::uint16_t>(number),
                                                    pool.slot(slot) + packet::kSlotHeadroom);
      pool.set_arrived(slot, length, next_index + i, next_arrival_ns());
      flow_ = flow_ + 1 == config_.flows ? 0 : flow_ + 1;
    }
  }

 private:
  static std::vector<std::uint32_t> sizes(GeneratorConfig const& config) {
    if (config.packet_bytes == 0) {
      return {kImixBytes.begin(), kImixBytes.end()};
    }
    return {config.packet_bytes};
  }

  GeneratorConfig config_;
  std::mt19937_64 random_;
  FlowTemplates templates_;
  SizeOrder size_order_;
  std::uint32_t flow_ = 0;
};

}  // namespace

Result<std::unique_ptr<Source>> make_generator(GeneratorConfig const& config) {
  if (config.packet_bytes != 0 &&
      (config.packet_bytes < kMinGeneratedBytes || config.packet_bytes > packet::kMaxFrameBytes)) {
    return absl::InvalidArgumentError(concat("generator: packets of ", config.packet_bytes, " bytes: write ",
                                             kMinGeneratedBytes, " to ", packet::kMaxFrameBytes, ", or imix"));
  }
  if (config.flows == 0 || config.flows > kMaxGeneratedFlows) {
    return absl::InvalidArgumentError(concat("generator: ", config.flows, " flows: write 1 to ", kMaxGeneratedFlows));
  }
  return std::make_unique<Generator>(config);
}

}  // namespace catena::io
