// SPDX-License-Identifier: Apache-2.0
#include "dataplane/io/flow_templates.hpp"
#include "dataplane/io/source.hpp"
#include "dataplane/io/token_bucket.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <utility>

namespace catena::dataplane {
namespace {

/// Arrival times are those of an even stream, so that they do not depend on how fast the chain is; this is its rate
/// where the configuration gives none.
constexpr std::uint64_t kNominalPacketsPerSecond = 10'000'000;
constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

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

class Generator final : public Source {
 public:
  explicit Generator(GeneratorConfig const& config)
      : config_(config),
        random_(config.seed),
        templates_(config.flows, sizes(config), random_),
        size_order_(config.packet_bytes == 0, random_),
        ns_per_packet_(kNsPerSecond / (config.packets_per_s != 0 ? config.packets_per_s : kNominalPacketsPerSecond)) {
    if (config.packets_per_s != 0) {
      rate_.emplace(config.packets_per_s, kDefaultUnitPackets, TokenBucket::Clock::now());
    }
  }

  Status receive(PacketPool& pool, Unit& unit, std::uint64_t next_index, bool& starved) override {
    std::uint64_t allowed = pool.unit_packets();
    if (config_.count != 0) {
      allowed = std::min(allowed, config_.count - made_);
    }
    if (rate_.has_value()) {
      allowed = std::min(allowed, rate_->available(TokenBucket::Clock::now()));
    }
    if (allowed == 0) {
      return absl::OkStatus();
    }
    const auto packets = static_cast<std::uint32_t>(allowed);
    if (!pool.acquire_slots(unit, packets)) {
      starved = true;
      return absl::OkStatus();
    }
    for (std::uint32_t i = 0; i < packets; ++i) {
      const std::uint32_t slot = unit.slots[i];
      const std::uint32_t length = templates_.write(flow_, size_order_.next(), static_cast<std::uint16_t>(made_),
                                                    pool.slot(slot) + packet::kSlotHeadroom);
      pool.set_arrived(slot, length, next_index + i, made_ * ns_per_packet_);
      flow_ = flow_ + 1 == config_.flows ? 0 : flow_ + 1;
      ++made_;
    }
    unit.count = packets;
    if (rate_.has_value()) {
      rate_->take(packets);
    }
    return absl::OkStatus();
  }

  bool finished() const override { return config_.count != 0 && made_ == config_.count; }
  std::uint64_t seen() const override { return made_; }
  std::vector<NamedCount> drops() const override { return {}; }
  std::string describe() const override {
    std::string text = config_.packet_bytes == 0 ? "generator IMIX" : concat("generator ", config_.packet_bytes, " B");
    text += concat(", ", config_.flows, config_.flows == 1 ? " flow" : " flows");
    if (config_.packets_per_s != 0) {
      text += concat(", ", config_.packets_per_s, " packets/s");
    }
    if (config_.count != 0) {
      text += concat(", ", config_.count, config_.count == 1 ? " packet" : " packets");
    }
    return text + concat(", seed ", config_.seed);
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
  std::optional<TokenBucket> rate_;
  std::uint64_t ns_per_packet_;
  std::uint32_t flow_ = 0;
  std::uint64_t made_ = 0;
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

}  // namespace catena::dataplane
