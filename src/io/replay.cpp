// SPDX-License-Identifier: Apache-2.0
#include "io/flow_templates.hpp"
#include "io/paced_source.hpp"

#include <emmintrin.h>
#include <catena/core/text.hpp>
#include <catena/packet/headers.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <utility>

namespace catena::io {
namespace {

/// One line: Ethernet, IPv4 and TCP, none with options, as the flows have them.
constexpr std::uint32_t kHeadBytes = packet::kCacheLineBytes;
/// How many packets ahead lines are fetched: what memory takes for one line divided by what a packet takes.
constexpr std::uint32_t kAhead = 12;
constexpr std::uint32_t kIpv4Identification = 4;
constexpr std::uint32_t kIpv4Checksum = 10;

/// The first bytes of a frame.
struct alignas(packet::kCacheLineBytes) Head {
  std::array<std::uint8_t, kHeadBytes> bytes;
};

/// Writes a whole line past the caches, as a network card does: what stood there, in no cache since the device wrote
/// it, is not read first. `to` begins a line.
void write_line(std::uint8_t* to, Head const& head) {
  for (std::size_t at = 0; at < kHeadBytes; at += sizeof(__m128i)) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at),
                     _mm_load_si128(reinterpret_cast<const __m128i*>(head.bytes.data() + at)));
  }
}
/// Other threads see the lines after this.
void finish_lines() { _mm_sfence(); }

/// What else is known of a frame before it is replayed.
struct FrameFacts {
  packet::Layers layers;
  std::uint32_t length;
  std::uint32_t ipv4_sum;  ///< of the IPv4 header without identification and checksum
};

class FlowReplay final : public PacedSource {
 public:
  explicit FlowReplay(ReplayConfig const& config)
      : PacedSource(config.packets_per_s, config.count),
        config_(config),
        random_(config.seed),
        flow_frames_(config.flows, config.packet_bytes, random_) {
    std::vector<std::uint8_t> frame(packet::kMaxFrameBytes);
    const std::size_t templates = std::size_t{config.flows} * config.packet_bytes.size();
    heads_.reserve(templates);
    facts_.reserve(templates);
    for (std::uint32_t flow = 0; flow < config.flows; ++flow) {
      for (std::uint32_t size = 0; size < config.packet_bytes.size(); ++size) {
        const std::uint32_t length = flow_frames_.write(flow, size, 0, frame.data());
        const packet::Layers layers = packet::parse(frame.data(), length);
        std::uint8_t* l3 = frame.data() + packet::kEthernetBytes;
        packet::store_be16(l3 + kIpv4Checksum, 0);
        const std::uint64_t sum = packet::checksum_add(l3, packet::kIpv4MinBytes);
        facts_.push_back({layers, length, static_cast<std::uint32_t>(sum)});
        Head& head = heads_.emplace_back();
        std::memcpy(head.bytes.data(), frame.data(), std::min(length, kHeadBytes));
      }
    }
  }

  std::string describe() const override {
    std::string text = "replay of ";
    for (const std::uint32_t bytes : config_.packet_bytes) {
      text += concat(bytes, ", ");
    }
    text.resize(text.size() - 2);
    return text + " B" + describe_traffic(config_.flows, config_.seed);
  }

 protected:
  void fill(memory::PacketPool& pool, memory::Unit const& unit, std::uint64_t next_index) override {
    filled_.resize(pool.slots());
    const auto frame_of = [&](std::uint32_t i) { return pool.slot(unit.slots()[i]) + packet::kSlotHeadroom; };
    std::array<std::uint32_t, memory::kMaxUnitPackets> turns;
    for (std::uint32_t i = 0; i < unit.count; ++i) {
      turns[i] = flow_ * sizes() + size_;
      advance();
    }
    // templates are in no near cache where there are many
    const auto fetch = [&](std::uint32_t i) {
      __builtin_prefetch(&facts_[turns[i]]);
      __builtin_prefetch(heads_[turns[i]].bytes.data());
    };
    for (std::uint32_t i = 0; i < std::min(kAhead, unit.count); ++i) {
      fetch(i);
    }
    for (std::uint32_t i = 0; i < unit.count; ++i) {
      if (i + kAhead < unit.count) {
        fetch(i + kAhead);
      }
      const std::uint64_t number = made() + i;
      const std::uint32_t slot = unit.slots()[i];
      FrameFacts const& facts = facts_[turns[i]];
      const std::uint8_t* head = heads_[turns[i]].bytes.data();
      std::uint8_t* frame = frame_of(i);
      if (facts.length > filled_[slot] || is_replay_sample(number, config_.sample_every)) {
        flow_frames_.write(turns[i] / sizes(), turns[i] % sizes(), 0, frame);
        filled_[slot] = std::max(filled_[slot], static_cast<std::uint16_t>(facts.length));
      }
      Head fresh;
      std::memcpy(fresh.bytes.data(), head, kHeadBytes);
      const auto identification = static_cast<std::uint16_t>(number);
      std::uint8_t* l3 = fresh.bytes.data() + packet::kEthernetBytes;
      packet::store_be16(l3 + kIpv4Identification, identification);
      packet::store_be16(l3 + kIpv4Checksum, packet::checksum_finish(std::uint64_t{facts.ipv4_sum} + identification));
      write_line(frame, fresh);
      pool.set_arrived(slot, facts.length, facts.layers, next_index + i, next_arrival_ns());
    }
    finish_lines();
  }

 private:
  std::uint32_t sizes() const { return static_cast<std::uint32_t>(config_.packet_bytes.size()); }
  void advance() {
    const auto after = [this](std::uint32_t size) { return size + 1 == sizes() ? 0 : size + 1; };
    if (flow_ + 1 < config_.flows) {
      ++flow_;
      size_ = after(size_);
    } else {
      // each turn of the flows starts one size further, so that no flow is tied to a size
      flow_ = 0;
      first_size_ = after(first_size_);
      size_ = first_size_;
    }
  }

  ReplayConfig config_;
  std::mt19937_64 random_;
  FlowTemplates flow_frames_;
  std::vector<Head> heads_;            ///< [flow][size]
  std::vector<FrameFacts> facts_;      ///< [flow][size]
  std::vector<std::uint16_t> filled_;  ///< by slot: how long a frame its bytes are good for
  std::uint32_t flow_ = 0;
  std::uint32_t size_ = 0;
  std::uint32_t first_size_ = 0;
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
  void fill(memory::PacketPool& pool, memory::Unit const& unit, std::uint64_t next_index) override {
    for (std::uint32_t i = 0; i < unit.count; ++i) {
      const std::uint32_t slot = unit.slots()[i];
      std::vector<std::uint8_t> const& frame = frames_[turn_];
      std::memcpy(pool.slot(slot) + packet::kSlotHeadroom, frame.data(), frame.size());
      pool.set_arrived(slot, static_cast<std::uint32_t>(frame.size()), layers_[turn_], next_index + i,
                       next_arrival_ns());
      turn_ = turn_ + 1 == frames_.size() ? 0 : turn_ + 1;
    }
  }

 private:
  std::vector<std::vector<std::uint8_t>> frames_;
  std::vector<packet::Layers> layers_;
  std::size_t turn_ = 0;
};

}  // namespace

Result<std::unique_ptr<Source>> make_replay(ReplayConfig const& config) {
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
  return std::make_unique<FlowReplay>(config);
}

Result<std::unique_ptr<Source>> make_frame_replay(std::vector<std::vector<std::uint8_t>> frames,
                                                  std::uint64_t packets_per_s, std::uint64_t count) {
  if (frames.empty()) {
    return absl::InvalidArgumentError("replay: there is no frame to replay");
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
