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
  /// `random`: as the templates left it.
  Generator(GeneratorConfig const& config, std::shared_ptr<const FlowTemplates> templates, std::mt19937_64 random,
            FlowTurns turns)
      : PacedSource(config.packets_per_s, config.count, turns),
        config_(config),
        templates_(std::move(templates)),
        random_(random),
        size_order_(config.packet_bytes == 0, random_),
        turns_(std::move(turns)) {}

  std::string describe() const override {
    const std::string size = config_.packet_bytes == 0 ? "IMIX" : concat(config_.packet_bytes, " B");
    return concat("generator ", size,
                  describe_traffic(config_.flows, config_.packets_per_s, config_.count, config_.seed));
  }

 protected:
  void fill(memory::PacketPool& pool, std::span<const std::uint32_t> slots) override {
    for (const std::uint32_t slot : slots) {
      const FlowTurns::Turn turn = turns_.next();
      const std::uint32_t length =
          templates_->write(turn.flow, size_of(turn.number), static_cast<std::uint16_t>(turn.number),
                            pool.slot(slot) + packet::kSlotHeadroom);
      pool.set_arrived(slot, length, index_of(turn.number), arrival_ns(turn.number));
    }
  }

 private:
  std::uint32_t size_of(std::uint64_t number) {
    for (; sized_ < number; ++sized_) {
      size_order_.next();  // of another source's packet
    }
    ++sized_;
    return size_order_.next();
  }

  GeneratorConfig config_;
  std::shared_ptr<const FlowTemplates> templates_;
  std::mt19937_64 random_;
  SizeOrder size_order_;
  FlowTurns turns_;
  std::uint64_t sized_ = 0;  ///< packets that have a size, those of other sources too
};

std::vector<std::uint32_t> sizes_of(GeneratorConfig const& config) {
  if (config.packet_bytes == 0) {
    return {kImixBytes.begin(), kImixBytes.end()};
  }
  return {config.packet_bytes};
}

Status check(GeneratorConfig const& config) {
  if (config.packet_bytes != 0 &&
      (config.packet_bytes < kMinGeneratedBytes || config.packet_bytes > packet::kMaxFrameBytes)) {
    return absl::InvalidArgumentError(concat("generator: packets of ", config.packet_bytes, " bytes: write ",
                                             kMinGeneratedBytes, " to ", packet::kMaxFrameBytes, ", or imix"));
  }
  if (config.flows == 0 || config.flows > kMaxGeneratedFlows) {
    return absl::InvalidArgumentError(concat("generator: ", config.flows, " flows: write 1 to ", kMaxGeneratedFlows));
  }
  return absl::OkStatus();
}

}  // namespace

Result<std::unique_ptr<Source>> make_generator(GeneratorConfig const& config) {
  CATENA_RETURN_IF_ERROR(check(config));
  std::mt19937_64 random(config.seed);
  auto templates = std::make_shared<const FlowTemplates>(config.flows, sizes_of(config), random);
  return std::make_unique<Generator>(config, std::move(templates), random, FlowTurns(config.flows));
}

Result<std::vector<std::unique_ptr<Source>>> make_generators(GeneratorConfig const& config, std::uint32_t parts,
                                                             PartOf const& part_of) {
  CATENA_RETURN_IF_ERROR(check(config));
  std::mt19937_64 random(config.seed);
  const auto templates = std::make_shared<const FlowTemplates>(config.flows, sizes_of(config), random);
  CATENA_ASSIGN_OR_RETURN(std::vector<FlowTurns> turns, divide_flows(*templates, config.flows, parts, part_of));
  std::vector<std::unique_ptr<Source>> sources;
  for (FlowTurns& of_part : turns) {
    sources.push_back(std::make_unique<Generator>(config, templates, random, std::move(of_part)));
  }
  return sources;
}

}  // namespace catena::io
