// SPDX-License-Identifier: Apache-2.0
// catena-bench-sender DEVICE PACKETS_PER_S RING WARM_UP_S: sends 60-byte frames of 1,024 flows to a DPDK device until
// SIGINT. It keeps its schedule as a wire does: a due packet that finds no free place in the device's ring of RING
// places is lost. It writes "started" to standard error once the device is open, and at the end what was lost since the
// warm-up to standard output, as JSON.
#include <catena/core/decimal.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "io/dpdk/ethdev_port.hpp"
#include "io/source.hpp"

namespace catena::bench {
namespace {

constexpr std::uint32_t kSlots = 8192;
constexpr std::uint32_t kFrameBytes = 60;
constexpr std::uint32_t kMaxRing = 1U << 14;
constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
constexpr double kNsPerUs = 1e3;
/// The receiver loses the packets that are in the ring when the device is closed.
constexpr std::chrono::milliseconds kTimeToDrain{300};

std::atomic<bool> is_to_end{false};
static_assert(std::atomic<bool>::is_always_lock_free, "used in a signal handler");

std::uint64_t now_ns() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

struct Load {
  std::string_view device;
  std::uint64_t packets_per_s = 0;
  std::uint32_t ring = 0;  ///< places
  std::uint64_t warm_up_s = 0;
};

/// Counts since the warm-up.
struct Counts {
  std::uint64_t offered = 0;
  std::uint64_t lost = 0;
  std::uint64_t longest_pause_ns = 0;  ///< age of the oldest packet in a full ring; 0: the ring was never full
  std::uint64_t longest_late_ns = 0;   ///< by which the sender itself was behind its schedule
};

class Sender {
 public:
  Sender(Load const& load, memory::PacketPool& pool, io::Port& port, io::Source& source)
      : ring_(load.ring), pool_(&pool), port_(&port), source_(&source), put_ns_(load.ring) {}

  Status run(std::uint64_t warm_up_ns) {
    const std::uint64_t counts_from = now_ns() + warm_up_ns;
    bool is_warm = false;
    while (!is_to_end) {
      if (!is_warm && now_ns() >= counts_from) {
        is_warm = true;
        counts_ = {};
      }
      CATENA_RETURN_IF_ERROR(send_due());
    }
    return absl::OkStatus();
  }
  Counts const& counts() const { return counts_; }
  /// Packets that the ring has taken since the start.
  std::uint64_t taken() const { return taken_; }

 private:
  Status send_due() {
    memory::Unit* unit = pool_->acquire_unit();
    bool starved = false;
    CATENA_RETURN_IF_ERROR(source_->receive(*pool_, *unit, next_index_, starved));
    if (starved) {
      return absl::ResourceExhaustedError("the device keeps the slots of packets that it has taken");
    }
    if (unit->count == 0) {
      pool_->release_unit(unit);
      std::this_thread::yield();
      return absl::OkStatus();
    }
    const std::uint64_t now = now_ns();
    counts_.longest_late_ns = std::max(counts_.longest_late_ns, now - std::min(now, unit->arrival_ns));
    frames_.clear();
    for (const std::uint32_t slot : unit->used_slots()) {
      frames_.push_back({slot, packet::kSlotHeadroom, kFrameBytes});
    }
    std::size_t taken = 0;
    for (std::size_t step = 1; step != 0 && taken < frames_.size(); taken += step) {
      step = port_->send(std::span(frames_).subspan(taken));
    }
    counts_.offered += frames_.size();
    counts_.lost += frames_.size() - taken;
    for (std::size_t i = 0; i < taken; ++i) {
      put_ns_[taken_++ % ring_] = now;
    }
    if (taken < frames_.size() && taken_ >= ring_) {  // the oldest one has the place that the next one would get
      counts_.longest_pause_ns = std::max(counts_.longest_pause_ns, now - put_ns_[taken_ % ring_]);
    }
    pool_->release_slots(*unit, static_cast<std::uint32_t>(taken), static_cast<std::uint32_t>(frames_.size() - taken));
    pool_->release_unit(unit);
    return absl::OkStatus();
  }

  std::uint32_t ring_;
  memory::PacketPool* pool_;
  io::Port* port_;
  io::Source* source_;
  std::vector<io::SlotFrame> frames_;
  std::vector<std::uint64_t> put_ns_;  ///< by place of the ring
  std::uint64_t taken_ = 0;
  std::uint64_t next_index_ = 0;
  Counts counts_;
};

Status send(Load const& load) {
  CATENA_ASSIGN_OR_RETURN(const auto pool, memory::PacketPool::create(kSlots));
  std::array<memory::PacketPool*, 1> pools{pool.get()};
  CATENA_ASSIGN_OR_RETURN(const auto ports, io::EthdevPort::open(std::string(load.device), pools));
  io::ReplayConfig replay;
  replay.packet_bytes = {kFrameBytes};
  replay.packets_per_s = load.packets_per_s;
  CATENA_ASSIGN_OR_RETURN(const auto source, io::make_replay(replay));
  std::cerr << "started" << std::endl;
  Sender sender(load, *pool, *ports.front(), *source);
  CATENA_RETURN_IF_ERROR(sender.run(load.warm_up_s * kNsPerSecond));
  std::this_thread::sleep_for(kTimeToDrain);
  Counts const& counts = sender.counts();
  std::cout
      << fmt::format(
             R"({{"taken": {}, "offered": {}, "lost": {}, "longest_pause_us": {:.1f}, "longest_late_us": {:.1f}}})",
             sender.taken(), counts.offered, counts.lost, static_cast<double>(counts.longest_pause_ns) / kNsPerUs,
             static_cast<double>(counts.longest_late_ns) / kNsPerUs)
      << std::endl;
  return absl::OkStatus();
}

int run(std::span<char*> words) {
  Load load;
  if (words.size() == 5) {
    const auto number = [&words](std::size_t at) { return parse_decimal(words[at]).value_or(0); };
    load = {words[1], number(2), static_cast<std::uint32_t>(number(3)), number(4)};
  }
  if (load.packets_per_s == 0 || load.ring == 0 || load.ring > kMaxRing) {
    std::cerr << "usage: catena-bench-sender DEVICE PACKETS_PER_S RING WARM_UP_S\n";
    return 2;
  }
  std::signal(SIGINT, [](int /*signal*/) { is_to_end = true; });
  if (const Status status = send(load); !status.ok()) {
    std::cerr << "catena-bench-sender: " << status.message() << '\n';
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace catena::bench

int main(int argc, char** argv) { return catena::bench::run({argv, static_cast<std::size_t>(argc)}); }
