// SPDX-License-Identifier: Apache-2.0
// What the data path itself costs: an empty chain, and hops through NFs that do nothing, on one core and with a core
// for each stage.
#include "base/sched/workers.hpp"
#include "pipeline/flow.hpp"
#include "pipeline/host_stages.hpp"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstring>
#include <deque>

#include "io/eal/eal.hpp"

namespace catena::runtime {
namespace {

constexpr std::uint32_t kPoolSlots = 16384;
constexpr std::uint64_t kPackets = 4'000'000;

/// Slots that were filled before the run: receiving costs what the pool and the metadata cost, nothing else.
class PrefilledSource final : public io::Source {
 public:
  PrefilledSource(memory::PacketPool& pool, std::uint32_t bytes) : bytes_(bytes) {
    for (std::uint32_t slot = 0; slot < pool.slots(); ++slot) {
      std::uint8_t* frame = pool.slot(slot) + packet::kSlotHeadroom;
      std::memset(frame, 0, bytes);
      frame[12] = 0x08;
      frame[14] = 0x45;
      packet::store_be16(frame + 16, static_cast<std::uint16_t>(bytes - packet::kEthernetBytes));
      frame[23] = packet::kProtocolUdp;
      packet::store_be16(frame + 38, static_cast<std::uint16_t>(bytes - 34));
    }
  }
  Status receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index, bool& starved) override {
    if (!pool.acquire_slots(unit, pool.unit_packets())) {
      starved = true;
      return absl::OkStatus();
    }
    for (std::uint32_t i = 0; i < pool.unit_packets(); ++i) {
      pool.set_arrived(unit.slots()[i], bytes_, next_index++, 0);
    }
    unit.count = pool.unit_packets();
    seen_ += pool.unit_packets();
    return absl::OkStatus();
  }
  bool finished() const override { return seen_ >= kPackets; }
  io::SourceCounts counts() const override { return {seen_, {}}; }
  std::string describe() const override { return "prefilled"; }

 private:
  std::uint32_t bytes_;
  std::uint64_t seen_ = 0;
};

class NothingNf final : public nf::Nf {
 public:
  nf::Hints hints() const override { return {}; }
  void compute(packet::Batch const& /*batch*/, std::span<const std::byte> /*aux*/,
               std::span<std::byte> /*results*/) override {}
};

/// range(0): hops (NFs that do nothing) between rx and tx. range(1): packets of a unit. range(2): workers. range(3):
/// whether rings have monitors, and stages rate controllers, as with back-pressure; none is ever congested.
void empty_chain(benchmark::State& state) {
  if (const Status status = eal::start(); !status.ok()) {
    state.SkipWithError(status.ToString().c_str());
    return;
  }
  const auto hops = static_cast<std::uint32_t>(state.range(0));
  nf::Descriptor descriptor;
  descriptor.type = "nothing";
  for (auto _ : state) {
    state.PauseTiming();
    auto pool = memory::PacketPool::create(kPoolSlots, static_cast<std::uint32_t>(state.range(1)));
    if (!pool.ok()) {
      state.SkipWithError(pool.status().ToString().c_str());
      return;
    }
    PrefilledSource source(**pool, 64);
    const std::unique_ptr<io::Sink> sink = io::make_null_sink();
    std::atomic<bool> stop{false};
    std::vector<memory::UnitQueue> rings;
    for (std::uint32_t i = 0; i <= hops; ++i) {
      rings.emplace_back((*pool)->arena(), i);
    }
    std::vector<std::unique_ptr<nf::Instance>> instances;
    std::vector<std::unique_ptr<PacketStage>> owned;
    owned.push_back(std::make_unique<RxStage>(source, **pool, rings.front(), stop));
    for (std::uint32_t i = 0; i < hops; ++i) {
      instances.push_back(std::make_unique<nf::Instance>("nothing", descriptor, std::make_unique<NothingNf>(),
                                                         nf::OnUnsupported::kPass, false));
      owned.push_back(std::make_unique<CpuStage>(*instances.back(), i, **pool, rings[i], rings[i + 1]));
    }
    owned.push_back(std::make_unique<TxStage>(*sink, **pool, rings.back()));
    std::deque<CongestionMonitor> monitors;
    std::deque<FlowGate> gates;
    for (std::uint32_t i = 0; i < hops && state.range(3) != 0; ++i) {
      const chain::FlowLimits limits{kPoolSlots, kPoolSlots, kPoolSlots / 2, kPoolSlots, 0};
      monitors.emplace_back("nothing", rings[i], limits, 1, std::chrono::microseconds(chain::FlowConfig().period_us));
    }
    for (std::size_t i = 0; i <= monitors.size() && !monitors.empty(); ++i) {
      const std::vector<CongestionMonitor const*> behind = i < monitors.size()
                                                               ? std::vector<CongestionMonitor const*>{&monitors[i]}
                                                               : std::vector<CongestionMonitor const*>();
      owned[i]->control(gates.emplace_back(i == 0 ? nullptr : &monitors[i - 1], RateController(behind)));
    }
    std::vector<sched::Stage*> stages;
    for (auto const& stage : owned) {
      stages.push_back(stage.get());
    }
    state.ResumeTiming();
    if (const Status status = sched::run_stages(stages, static_cast<std::uint32_t>(state.range(2))); !status.ok()) {
      state.SkipWithError(status.ToString().c_str());
      return;
    }
  }
  state.counters["ns_per_packet"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * static_cast<double>(kPackets) * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(kPackets));
}
BENCHMARK(empty_chain)
    ->ArgNames({"hops", "unit", "workers", "flow"})
    ->ArgsProduct({{0, 1, 2, 4, 8}, {256}, {1}, {0, 1}})
    ->ArgsProduct({{0, 4}, {16, 64, 1024}, {1, 2}, {0, 1}})
    ->ArgsProduct({{4}, {16, 64, 256, 1024}, {6}, {0, 1}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

/// What one poll of an NF's stage pays for back-pressure: a look at its ring, where the period has passed, and at the
/// state of the NF behind it. range(0): whether the ring is looked at each time.
void flow_gate(benchmark::State& state) {
  if (const Status status = eal::start(); !status.ok()) {
    state.SkipWithError(status.ToString().c_str());
    return;
  }
  auto pool = memory::PacketPool::create(kPoolSlots);
  if (!pool.ok()) {
    state.SkipWithError(pool.status().ToString().c_str());
    return;
  }
  memory::UnitQueue ring((*pool)->arena(), 0);
  memory::UnitQueue next_ring((*pool)->arena(), 1);
  const chain::FlowLimits limits{kPoolSlots, kPoolSlots, kPoolSlots / 2, kPoolSlots, 0};
  const std::chrono::microseconds period(state.range(0) != 0 ? 0 : chain::FlowConfig().period_us);
  CongestionMonitor monitor("nothing", ring, limits, 1, period);
  const CongestionMonitor behind("behind", next_ring, limits, 1, period);
  FlowGate gate(&monitor, RateController({&behind}));
  for (auto _ : state) {
    benchmark::DoNotOptimize(gate.may_take());
  }
}
BENCHMARK(flow_gate)->ArgName("each_time")->Arg(0)->Arg(1);

/// A source alone, on slots that have left the caches when they come again. range(0): frame bytes. range(1): packets of
/// a unit.
void receive(benchmark::State& state, Result<std::unique_ptr<io::Source>> source) {
  constexpr std::uint32_t kLargePool = 1U << 16;  // 128 MiB of slots
  auto pool = memory::PacketPool::create(kLargePool, static_cast<std::uint32_t>(state.range(1)));
  if (!pool.ok() || !source.ok()) {
    state.SkipWithError((pool.ok() ? source.status() : pool.status()).ToString().c_str());
    return;
  }
  memory::Unit* unit = (*pool)->acquire_unit();
  std::uint64_t packets = 0;
  const auto once = [&] {
    bool starved = false;
    static_cast<void>((*source)->receive(**pool, *unit, packets, starved));
    (*pool)->release_slots(*unit, 0, unit->count);
    unit->count = 0;
  };
  while (packets < kLargePool) {
    once();
  }
  for (auto _ : state) {
    once();
  }
  (*pool)->release_unit(unit);
  state.counters["ns_per_packet"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * static_cast<double>(state.range(1)) * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void generator(benchmark::State& state) {
  static_cast<void>(eal::start());
  receive(state, io::make_generator({.packet_bytes = static_cast<std::uint32_t>(state.range(0))}));
}
void replay(benchmark::State& state) {
  static_cast<void>(eal::start());
  receive(state, io::make_replay({.packet_bytes = {static_cast<std::uint32_t>(state.range(0))}}));
}
BENCHMARK(generator)->ArgNames({"bytes", "unit"})->ArgsProduct({{60, 508, 1514}, {16, 256}})->UseRealTime();
BENCHMARK(replay)->ArgNames({"bytes", "unit"})->ArgsProduct({{60, 508, 1514}, {16, 256}})->UseRealTime();

}  // namespace
}  // namespace catena::runtime
