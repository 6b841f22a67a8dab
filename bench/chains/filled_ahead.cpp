// SPDX-License-Identifier: Apache-2.0
#include "bench/chains/filled_ahead.hpp"

#include "io/cache_line.hpp"

#include <catena/core/counter.hpp>
#include <catena/core/text.hpp>
#include <catena/packet/headers.hpp>
#include <catena/packet/slot.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

namespace catena::bench {
namespace {

constexpr std::uint32_t kLine = packet::kCacheLineBytes;
constexpr std::uint32_t kChunksAhead = 16;  ///< of each thread
constexpr std::uint64_t kNsPerPacket = 100;
constexpr std::chrono::microseconds kRest{20};
static_assert(packet::kSlotHeadroom % kLine == 0, "frames begin a line");

/// A frame in whole lines.
struct Template {
  std::vector<io::CacheLine> lines;
  std::uint32_t length;
  packet::Layers layers;
};

Template template_of(std::vector<std::uint8_t> const& frame) {
  const auto length = static_cast<std::uint32_t>(frame.size());
  Template made{{}, length, packet::parse(frame.data(), length)};
  made.lines.resize((frame.size() + kLine - 1) / kLine);
  std::memcpy(made.lines.data(), frame.data(), frame.size());
  return made;
}

/// Slots that are filled together, by the thread whose turn it is.
struct alignas(kLine) Chunk {
  enum State : std::uint32_t { kFree, kToFill, kFilled };
  std::atomic<std::uint32_t> state = kFree;
  std::uint32_t count = 0;
  std::uint64_t first = 0;        ///< number of the first packet
  std::uint64_t first_index = 0;  ///< the same as the chain counts
  std::array<std::uint32_t, memory::kMaxUnitPackets> slots{};
};

class FilledAhead final : public io::Source {
 public:
  FilledAhead(std::vector<std::vector<std::uint8_t>> const& frames, std::uint32_t threads, std::uint64_t count)
      : count_(count), fillers_(threads), chunks_(std::size_t{threads} * kChunksAhead) {
    for (auto const& frame : frames) {
      templates_.push_back(template_of(frame));
    }
    threads_.reserve(threads);
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
      threads_.emplace_back([this, thread] { fill_turns_of(thread); });
    }
  }

  ~FilledAhead() override {
    stop_ = true;
    for (std::thread& thread : threads_) {
      thread.join();
    }
    for (Chunk const& chunk : chunks_) {
      if (chunk.state.load(std::memory_order_acquire) != Chunk::kFree) {
        pool_->release_slots(std::span(chunk.slots).first(chunk.count));
      }
    }
  }
  FilledAhead(FilledAhead const&) = delete;
  FilledAhead& operator=(FilledAhead const&) = delete;

  Status receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index, bool& starved) override {
    pool_ = &pool;
    if (ordered_ == 0) {
      first_index_ = next_index;
    }
    order();
    Chunk& oldest = chunks_[received_chunks_ % chunks_.size()];
    switch (oldest.state.load(std::memory_order_acquire)) {
      case Chunk::kFree:
        starved = !finished();
        return absl::OkStatus();
      case Chunk::kToFill:
        return absl::OkStatus();
      default:
        break;
    }
    std::copy_n(oldest.slots.begin(), oldest.count, unit.slots());
    unit.count = oldest.count;
    made_ += oldest.count;
    next_index = first_index_ + made_;
    oldest.state.store(Chunk::kFree, std::memory_order_relaxed);
    ++received_chunks_;
    return absl::OkStatus();
  }

  bool finished() const override { return count_ != 0 && made_ == count_; }
  io::SourceCounts counts() const override { return {made_, {}}; }
  std::string describe() const override {
    return concat("replay of ", templates_.size(), " whole frames by ", fillers_, " threads");
  }

 private:
  /// Takes slots for as many chunks as are free.
  void order() {
    for (Chunk* chunk = &chunks_[ordered_chunks_ % chunks_.size()];
         chunk->state.load(std::memory_order_relaxed) == Chunk::kFree;
         chunk = &chunks_[ordered_chunks_ % chunks_.size()]) {
      std::uint64_t packets = pool_->unit_packets();
      packets = count_ != 0 ? std::min(packets, count_ - ordered_) : packets;
      chunk->count = static_cast<std::uint32_t>(packets);
      if (packets == 0 || !pool_->acquire_slots(std::span(chunk->slots).first(chunk->count))) {
        return;
      }
      chunk->first = ordered_;
      chunk->first_index = first_index_ + ordered_;
      ordered_ += packets;
      chunk->state.store(Chunk::kToFill, std::memory_order_release);
      ++ordered_chunks_;
    }
  }

  void fill_turns_of(std::uint32_t thread) {
    for (std::size_t turn = thread; !stop_.load(std::memory_order_relaxed);) {
      Chunk& chunk = chunks_[turn % chunks_.size()];
      if (chunk.state.load(std::memory_order_acquire) != Chunk::kToFill) {
        std::this_thread::sleep_for(kRest);
        continue;
      }
      fill(chunk);
      chunk.state.store(Chunk::kFilled, std::memory_order_release);
      turn += fillers_;
    }
  }

  void fill(Chunk const& chunk) {
    for (std::uint32_t i = 0; i < chunk.count; ++i) {
      Template const& frame = templates_[(chunk.first + i) % templates_.size()];
      const std::uint32_t slot = chunk.slots[i];
      std::uint8_t* to = pool_->slot(slot) + packet::kSlotHeadroom;
      for (io::CacheLine const& line : frame.lines) {
        io::write_line(to, line);
        to += kLine;
      }
      pool_->set_arrived(slot, frame.length, frame.layers, chunk.first_index + i, (chunk.first + i) * kNsPerPacket);
    }
    io::finish_lines();
  }

  std::vector<Template> templates_;
  std::uint64_t count_;
  std::uint32_t fillers_;
  std::vector<Chunk> chunks_;  ///< thread t fills those whose turn is t modulo the number of threads
  std::atomic<bool> stop_ = false;
  memory::PacketPool* pool_ = nullptr;
  std::uint64_t first_index_ = 0;
  std::uint64_t ordered_ = 0;  ///< packets
  std::size_t ordered_chunks_ = 0;
  std::size_t received_chunks_ = 0;
  Counter made_;
  std::vector<std::thread> threads_;
};

}  // namespace

Result<std::unique_ptr<io::Source>> make_filled_ahead(std::vector<std::vector<std::uint8_t>> const& frames,
                                                      std::uint32_t threads, std::uint64_t count) {
  if (frames.empty() || threads == 0) {
    return absl::InvalidArgumentError("replay: there is no frame to replay, or no thread for it");
  }
  for (auto const& frame : frames) {
    if (frame.empty() || frame.size() > packet::kMaxFrameBytes) {
      return absl::InvalidArgumentError(
          concat("replay: a frame of ", frame.size(), " bytes; allowed: 1 to ", packet::kMaxFrameBytes));
    }
  }
  return std::make_unique<FilledAhead>(frames, threads, count);
}

}  // namespace catena::bench
