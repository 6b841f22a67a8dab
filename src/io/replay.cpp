// SPDX-License-Identifier: Apache-2.0
#include "io/cache_line.hpp"
#include "io/flow_templates.hpp"
#include "io/paced_source.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/headers.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <span>
#include <utility>

namespace catena::io {
namespace {

/// One line: Ethernet, IPv4 and TCP, none with options, as the flows have them.
constexpr std::uint32_t kHeadBytes = packet::kCacheLineBytes;
/// How many packets ahead lines are fetched: what memory takes for one line divided by what a packet takes.
constexpr std::uint32_t kAhead = 16;
constexpr std::uint32_t kIpv4Identification = 4;
constexpr std::uint32_t kIpv4Checksum = 10;

/// What else is known of a frame before it is replayed.
struct FrameFacts {
  packet::Layers layers;
  std::uint32_t length;
  std::uint32_t ipv4_sum;  ///< of the IPv4 header without identification and checksum
};

/// What all sources of one replay share. Any thread, once made.
class ReplayFrames {
 public:
  explicit ReplayFrames(ReplayConfig const& config)
      : random_(config.seed),
        sizes_(static_cast<std::uint32_t>(config.packet_bytes.size())),
        flow_frames_(config.flows, config.packet_bytes, random_) {
    std::vector<std::uint8_t> frame(packet::kMaxFrameBytes);
    const std::size_t templates = std::size_t{config.flows} * sizes_;
    heads_.reserve(templates);
    facts_.reserve(templates);
    for (std::uint32_t flow = 0; flow < config.flows; ++flow) {
      for (std::uint32_t size = 0; size < sizes_; ++size) {
        const std::uint32_t length = flow_frames_.write(flow, size, 0, frame.data());
        const packet::Layers layers = packet::parse(frame.data(), length);
        std::uint8_t* l3 = frame.data() + packet::kEthernetBytes;
        packet::store_be16(l3 + kIpv4Checksum, 0);
        const std::uint64_t sum = packet::checksum_add(l3, packet::kIpv4MinBytes);
        facts_.push_back({layers, length, static_cast<std::uint32_t>(sum)});
        CacheLine& head = heads_.emplace_back();
        std::memcpy(head.bytes.data(), frame.data(), std::min(length, kHeadBytes));
      }
    }
  }

  /// Number of a frame of `flow`: [flow][size].
  std::uint32_t number(FlowTurns::Turn const& turn) const {
    // each round of the flows starts one size further, so that no flow is tied to a size
    return turn.flow * sizes_ + static_cast<std::uint32_t>((turn.round + turn.flow) % sizes_);
  }
  FrameFacts const& facts(std::uint32_t frame) const { return facts_[frame]; }
  std::uint8_t const* head(std::uint32_t frame) const { return heads_[frame].bytes.data(); }
  void write(std::uint32_t frame, std::uint8_t* to) const { flow_frames_.write(frame / sizes_, frame % sizes_, 0, to); }
  /// Templates are in no near cache where there are many.
  void fetch(std::uint32_t frame) const {
    __builtin_prefetch(&facts_[frame]);
    __builtin_prefetch(heads_[frame].bytes.data());
  }
  FlowTemplates const& flow_frames() const { return flow_frames_; }

 private:
  std::mt19937_64 random_;
  std::uint32_t sizes_;
  FlowTemplates flow_frames_;
  std::vector<CacheLine> heads_;
  std::vector<FrameFacts> facts_;
};

class FlowReplay final : public PacedSource {
 public:
  FlowReplay(ReplayConfig const& config, std::shared_ptr<const ReplayFrames> frames, FlowTurns turns)
      : PacedSource(config.packets_per_s, config.count, turns),
        config_(config),
        frames_(std::move(frames)),
        turns_(std::move(turns)) {
    for (std::uint32_t i = 0; i < kAhead && !turns_.empty(); ++i) {
      take_next();
    }
  }

  std::string describe() const override {
    std::string text = "replay of ";
    for (const std::uint32_t bytes : config_.packet_bytes) {
      text += concat(bytes, ", ");
    }
    text.resize(text.size() - 2);
    return text + " B" + describe_traffic(config_.flows, config_.packets_per_s, config_.count, config_.seed);
  }

 protected:
  void fill(memory::PacketPool& pool, std::span<const std::uint32_t> slots) override {
    good_for_.resize(pool.slots());
    for (const std::uint32_t slot : slots) {
      const Next next = take_next();
      put(pool, slot, next.number, next.frame);
    }
    finish_lines();
  }

 private:
  struct Next {
    std::uint64_t number = 0;
    std::uint32_t frame = 0;
  };
  /// The next packet; the one kAhead behind it is fetched, be it of this unit or of a later one.
  Next take_next() {
    const FlowTurns::Turn turn = turns_.next();
    const Next next = std::exchange(ahead_[at_], {turn.number, frames_->number(turn)});
    frames_->fetch(ahead_[at_].frame);
    at_ = (at_ + 1) % kAhead;
    return next;
  }
  void put(memory::PacketPool& pool, std::uint32_t slot, std::uint64_t number, std::uint32_t which) {
    FrameFacts const& facts = frames_->facts(which);
    std::uint8_t* frame = pool.slot(slot) + packet::kSlotHeadroom;
    if (facts.length > good_for_[slot] || is_replay_sample(number, config_.sample_every)) {
      frames_->write(which, frame);
      good_for_[slot] = std::max(good_for_[slot], static_cast<std::uint16_t>(facts.length));
    }
    CacheLine fresh;
    std::memcpy(fresh.bytes.data(), frames_->head(which), kHeadBytes);
    const auto identification = static_cast<std::uint16_t>(number);
    std::uint8_t* l3 = fresh.bytes.data() + packet::kEthernetBytes;
    packet::store_be16(l3 + kIpv4Identification, identification);
    packet::store_be16(l3 + kIpv4Checksum, packet::checksum_finish(std::uint64_t{facts.ipv4_sum} + identification));
    write_line(frame, fresh);
    pool.set_arrived(slot, facts.length, facts.layers, index_of(number), arrival_ns(number));
  }

  ReplayConfig config_;
  std::shared_ptr<const ReplayFrames> frames_;
  FlowTurns turns_;
  std::array<Next, kAhead> ahead_{};  ///< packets that come next, from at_ on
  std::uint32_t at_ = 0;
  std::vector<std::uint16_t> good_for_;  ///< by slot: how long a frame its bytes are good for
};

class FrameReplay final : public PacedSource {
 public:
  FrameReplay(std::vector<std::vector<std::uint8_t>> frames, std::uint64_t packets_per_s, std::uint64_t count)
      : PacedSource(packets_per_s, count), frames_(std::move(frames)) {
    for (auto const& frame : frames_) {
      layers_.push_back(packet::parse(frame.data(), static_cast<std::uint32_t>(frame.size())));
    }
  }
  std::string describe() const override { return concat("replay of ", frames_.size(), " captured frames"); }

 protected:
  void fill(memory::PacketPool& pool, std::span<const std::uint32_t> slots) override {
    for (const std::uint32_t slot : slots) {
      std::vector<std::uint8_t> const& frame = frames_[turn_];
      std::memcpy(pool.slot(slot) + packet::kSlotHeadroom, frame.data(), frame.size());
      pool.set_arrived(slot, static_cast<std::uint32_t>(frame.size()), layers_[turn_], index_of(number_),
                       arrival_ns(number_));
      ++number_;
      turn_ = turn_ + 1 == frames_.size() ? 0 : turn_ + 1;
    }
  }

 private:
  std::vector<std::vector<std::uint8_t>> frames_;
  std::vector<packet::Layers> layers_;
  std::size_t turn_ = 0;
  std::uint64_t number_ = 0;
};

Status check(ReplayConfig const& config) {
  if (config.packet_bytes.empty() || config.packet_bytes.size() > kMaxReplaySizes) {
    return absl::InvalidArgumentError(
        concat("replay: ", config.packet_bytes.size(), " sizes: write 1 to ", kMaxReplaySizes));
  }
  for (const std::uint32_t bytes : config.packet_bytes) {
    if (bytes < kMinGeneratedBytes || bytes > packet::kMaxFrameBytes) {
      return absl::InvalidArgumentError(
          concat("replay: packets of ", bytes, " bytes: write ", kMinGeneratedBytes, " to ", packet::kMaxFrameBytes));
    }
  }
  const std::uint64_t most = kMaxReplayTemplates / config.packet_bytes.size();
  if (config.flows == 0 || config.flows > most) {
    return absl::InvalidArgumentError(concat("replay: ", config.flows, " flows: write 1 to ", most));
  }
  if (config.sample_every == 0) {
    return absl::InvalidArgumentError("replay: sample_every is 0: write at least 1");
  }
  return absl::OkStatus();
}

}  // namespace

Result<std::unique_ptr<Source>> make_replay(ReplayConfig const& config) {
  CATENA_RETURN_IF_ERROR(check(config));
  return std::make_unique<FlowReplay>(config, std::make_shared<const ReplayFrames>(config), FlowTurns(config.flows));
}

Result<std::vector<std::unique_ptr<Source>>> make_replays(ReplayConfig const& config, std::uint32_t parts,
                                                          PartOf const& part_of) {
  CATENA_RETURN_IF_ERROR(check(config));
  const auto frames = std::make_shared<const ReplayFrames>(config);
  CATENA_ASSIGN_OR_RETURN(std::vector<FlowTurns> turns,
                          divide_flows(frames->flow_frames(), config.flows, parts, part_of));
  std::vector<std::unique_ptr<Source>> sources;
  for (FlowTurns& of_part : turns) {
    sources.push_back(std::make_unique<FlowReplay>(config, frames, std::move(of_part)));
  }
  return sources;
}

Result<std::unique_ptr<Source>> make_frame_replay(std::vector<std::vector<std::uint8_t>> frames,
                                                  std::uint64_t packets_per_s, std::uint64_t count) {
  if (frames.empty()) {
    return absl::InvalidArgumentError("replay: no frame to replay");
  }
  for (auto const& frame : frames) {
    if (frame.empty() || frame.size() > packet::kMaxFrameBytes) {
      return absl::InvalidArgumentError(
          concat("replay: a frame of ", frame.size(), " bytes; allowed: 1 to ", packet::kMaxFrameBytes));
    }
  }
  return std::make_unique<FrameReplay>(std::move(frames), packets_per_s, count);
}

}  // namespace catena::io
