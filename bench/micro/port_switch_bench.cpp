// SPDX-License-Identifier: Apache-2.0
// What a shared port costs: to find whose a frame is, to copy it, and both in the port's thread.
#include "io/frame_queue.hpp"
#include "io/shared_port_registry.hpp"
#include "io/traffic_match.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/testing/harness.hpp>
#include <catena/packet/headers.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace catena::io {
namespace {

constexpr std::size_t kBurst = FrameQueue::kBurst;
constexpr std::uint32_t kPoolSlots = 16384;
constexpr int kRepeats = 5;

/// A UDP frame of `bytes` bytes in VLAN `chain` + 1, to 10.`chain`.0.1.
std::vector<std::uint8_t> frame_for(std::uint32_t chain, std::size_t bytes) {
  constexpr std::size_t kHeaders = 42 + 4;  // with the tag
  std::vector<std::uint8_t> frame =
      packet::testing::make_frame(packet::kProtocolUdp, 0xC0A80001, 0x0A000001 | chain << 16, 1000, 53,
                                  std::string(bytes - std::min(bytes, kHeaders), 'x'));
  const auto vlan = static_cast<std::uint16_t>(chain + 1);
  const std::array<std::uint8_t, 4> tag{0x81, 0, static_cast<std::uint8_t>(vlan >> 8), static_cast<std::uint8_t>(vlan)};
  frame.insert(frame.begin() + 12, tag.begin(), tag.end());
  return frame;
}

TrafficMatch match_of(std::uint32_t chain, bool by_vlan) {
  TrafficMatch match;
  if (by_vlan) {
    match.vlan = static_cast<std::uint16_t>(chain + 1);
  } else {
    match.destination = packet::Ipv4Prefix{0x0A000000 | chain << 16, 16};
  }
  return match;
}

/// range(0): chains, of which each frame is of the next.
void lookup(benchmark::State& state, bool by_vlan) {
  const auto chains = static_cast<std::uint32_t>(state.range(0));
  std::vector<TrafficTable::Entry> entries;
  std::vector<std::vector<std::uint8_t>> frames;
  for (std::uint32_t chain = 0; chain < chains; ++chain) {
    entries.push_back({match_of(chain, by_vlan), chain});
    frames.push_back(frame_for(chain, 64));
  }
  const TrafficTable table(std::move(entries));
  for (auto _ : state) {
    for (std::vector<std::uint8_t> const& frame : frames) {
      benchmark::DoNotOptimize(table.owner_of(frame.data(), static_cast<std::uint32_t>(frame.size())));
    }
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * chains);
}

std::unique_ptr<memory::PacketPool> make_pool() {
  auto pool = memory::PacketPool::create(kPoolSlots);
  if (!pool.ok()) {
    throw std::runtime_error(pool.status().ToString());
  }
  return *std::move(pool);
}

/// range(0): bytes of a frame.
void copy(benchmark::State& state) {
  const auto from = make_pool();
  const auto to = make_pool();
  std::vector<SlotFrame> frames(kBurst);
  for (auto _ : state) {
    std::array<std::uint32_t, kBurst> slots;
    from->acquire_slots(slots);
    for (std::size_t i = 0; i < kBurst; ++i) {
      frames[i] = {slots[i], packet::kSlotHeadroom, static_cast<std::uint16_t>(state.range(0))};
    }
    benchmark::DoNotOptimize(copy_frames(*from, *to, frames));
    from->release_slots(slots);
    release_frames(*to, frames);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kBurst));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kBurst) * state.range(0));
}

/// Gives frames that are in its slots already, for each chain in turn, as fast as they are asked for.
class EndlessPort final : public Port {
 public:
  EndlessPort(memory::PacketPool& pool, std::uint32_t chains, std::size_t bytes) : pool_(&pool) {
    for (std::uint32_t slot = 0; slot < pool.slots(); ++slot) {
      const std::vector<std::uint8_t> frame = frame_for(slot % chains, bytes);
      std::copy(frame.begin(), frame.end(), pool.slot(slot) + packet::kSlotHeadroom);
      bytes_ = static_cast<std::uint16_t>(frame.size());
    }
  }
  void stop() { is_stopped_ = true; }
  std::size_t receive(std::span<SlotFrame> frames) override {
    std::array<std::uint32_t, kBurst> slots;
    if (is_stopped_ || !pool_->acquire_slots(slots)) {
      return 0;
    }
    std::transform(slots.begin(), slots.end(), frames.begin(), [this](std::uint32_t slot) {
      return SlotFrame{slot, packet::kSlotHeadroom, bytes_};
    });
    return kBurst;
  }
  std::size_t send(std::span<const SlotFrame> frames) override {
    release_frames(*pool_, frames);
    return frames.size();
  }
  PortCounters counters() const override { return {}; }
  std::uint32_t max_tx_bytes() const override { return packet::kMaxFrameBytes; }
  std::string const& interface() const override { return interface_; }
  Status check_interface() override { return absl::OkStatus(); }
  std::string describe() const override { return "endless"; }

 private:
  memory::PacketPool* pool_;
  std::string interface_;
  std::uint16_t bytes_ = 0;
  std::atomic<bool> is_stopped_{false};
};

/// range(0): chains, each with a VLAN; range(1): bytes of a frame. Chains give their frames back as soon as they have
/// them, in one thread.
void shared_port(benchmark::State& state) {
  const auto chains = static_cast<std::uint32_t>(state.range(0));
  std::shared_ptr<EndlessPort> endless;
  const auto switches = std::make_shared<SharedPortRegistry>(
      [&](std::string const& /*device*/, memory::PacketPool& pool) -> Result<std::shared_ptr<Port>> {
        endless = std::make_shared<EndlessPort>(pool, chains, static_cast<std::size_t>(state.range(1)));
        return std::shared_ptr<Port>(endless);
      });
  std::vector<std::unique_ptr<memory::PacketPool>> pools;
  std::vector<std::shared_ptr<Port>> ports;
  for (std::uint32_t chain = 0; chain < chains; ++chain) {
    auto port =
        switches->attach("endless", {concat("c", chain), {match_of(chain, true)}}, *pools.emplace_back(make_pool()));
    if (!port.ok()) {
      return state.SkipWithError(port.status().ToString().c_str());
    }
    ports.push_back(*std::move(port));
    ports.back()->start_receiving();
  }
  const SharedPort before = switches->list().front();
  std::uint64_t taken = 0;
  for (auto _ : state) {
    std::array<SlotFrame, kBurst> frames;
    for (std::size_t chain = 0; chain < chains; ++chain) {
      const std::size_t count = ports[chain]->receive(frames);
      release_frames(*pools[chain], std::span(frames).first(count));
      taken += count;
    }
  }
  endless->stop();
  const SharedPort after = switches->list().front();
  const auto frames = static_cast<double>(after.received - before.received);
  state.counters["ns_of_port_per_frame"] = static_cast<double>(after.busy_ns - before.busy_ns) / frames;
  state.counters["frames_per_second"] = benchmark::Counter(static_cast<double>(taken), benchmark::Counter::kIsRate);
  state.counters["lost"] = 1 - static_cast<double>(taken) / frames;
}

BENCHMARK_CAPTURE(lookup, vlan, true)->Arg(1)->Arg(16)->Arg(256)->Repetitions(kRepeats);
BENCHMARK_CAPTURE(lookup, prefix, false)->Arg(1)->Arg(16)->Arg(256)->Repetitions(kRepeats);
BENCHMARK(copy)->Arg(64)->Arg(512)->Arg(1518)->Repetitions(kRepeats);
BENCHMARK(shared_port)->ArgsProduct({{1, 4, 16}, {64, 512, 1518}})->UseRealTime()->Repetitions(kRepeats);

}  // namespace
}  // namespace catena::io
