// SPDX-License-Identifier: Apache-2.0
// The monitor with N flows in its table, packets in random order over them, beside DPDK's rte_hash that only looks the
// same keys up. items_per_second is packets per second on one core.
//   meter/N                 observations that lie in memory -> table
//   monitor_nf/N            frames in a pool of 64 Ki slots -> table
//   after_kernel/N          the same with what the kernel says of them: what is left for the host with `on: gpu`
//   rte_hash_lookup_bulk/N  what a monitor on top of it pays before it counts anything
//   new_flows/N             every packet begins a flow in a full table: eviction, top talkers, IPFIX to a null device
#include "monitor.hpp"

#include <benchmark/benchmark.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <rte_memory.h>
#include <catena/core/text.hpp>
#include <catena/nf/testing/bench.hpp>
#include <catena/nf/testing/harness.hpp>
#include <catena/nf/testing/packet_store.hpp>
#include <catena/packet/headers.hpp>

#include <map>
#include <random>

#include "io/eal/eal.hpp"

namespace {

using catena::concat;
namespace monitor = catena::monitor;
namespace nf = catena::nf;
namespace packet = catena::packet;

constexpr std::uint32_t kBatch = 256;
constexpr std::uint32_t kSlots = 65'536;
constexpr std::int64_t kMillion = 1'000'000;

/// Key of flow number `flow`, as clients of a few servers make them.
packet::FlowKey key_of(std::uint32_t flow) {
  return packet::FlowKey::of_v4(0x0A000000 + flow / 16, 0xC0A80000 + flow % 7, static_cast<std::uint16_t>(flow * 7919),
                                443, packet::kProtocolTcp);
}

/// `count` flow numbers below `flows`, in random order.
std::vector<std::uint32_t> random_flows(std::size_t count, std::uint32_t flows) {
  std::mt19937 random(1);
  std::vector<std::uint32_t> result(count);
  for (std::uint32_t& flow : result) {
    flow = static_cast<std::uint32_t>(random()) % flows;
  }
  return result;
}

class NoSink final : public monitor::RecordSink {
 public:
  void add(monitor::FlowRecord const& /*record*/, std::uint64_t /*clock_ns*/) override {}
  void second_passed(std::uint64_t /*clock_ns*/) override {}
};

monitor::Observation observation_of(std::uint32_t flow) {
  return {packet::Ipv4FlowKey::of(key_of(flow)), 1'000'000, 500, 0x10, 0};
}

void meter(benchmark::State& state) {
  const auto flows = static_cast<std::uint32_t>(state.range(0));
  NoSink sink;
  monitor::Meter meter(std::move(*monitor::FlowTable::create(flows)), {15'000'000'000, 0}, sink);
  for (std::uint32_t flow = 0; flow < flows; ++flow) {
    meter.observe({{observation_of(flow)}});
  }
  std::vector<monitor::Observation> packets;
  for (const std::uint32_t flow : random_flows(std::size_t{4} << 20, flows)) {
    packets.push_back(observation_of(flow));
  }
  std::size_t first = 0;
  for (auto _ : state) {
    meter.observe(std::span(packets).subspan(first, kBatch));
    first = (first + kBatch) % packets.size();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * kBatch);
  state.counters["bytes_per_flow"] = static_cast<double>(meter.memory_bytes()) / flows;
}

std::unique_ptr<nf::Nf> make_monitor(std::string_view yaml) {
  return nf::testing::value_or_throw(nf::testing::make_nf(catena_nf_monitor(), yaml));
}

/// Makes the packet in `frame` one of this flow; checksums are of no interest here.
void set_flow(std::uint8_t* frame, std::uint32_t flow) {
  const packet::FlowKey key = key_of(flow);
  packet::store_be32(frame + 26, key.source.v4());
  packet::store_be32(frame + 30, key.destination.v4());
  packet::store_be16(frame + 34, key.source_port);
  packet::store_be16(frame + 36, key.destination_port);
}

/// A monitor on the CPU.
class OnCpu {
 public:
  explicit OnCpu(std::string_view yaml) : nf_(catena_nf_monitor(), make_monitor(yaml)) {}
  void look_at(packet::Batch const& /*packets*/) {}
  void process(packet::Batch const& batch, std::size_t /*first*/) { nf_.process(batch); }

 private:
  nf::testing::CpuNf nf_;
};

/// The host's part of one on a device.
class AfterKernel {
 public:
  explicit AfterKernel(std::string_view yaml) : nf_(make_monitor(yaml)) {}
  /// Does what the kernel does, with packets that are a launch.
  void look_at(packet::Batch const& packets) {
    results_.assign(packets.size(), {});
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> first_of;  // of the group
    for (std::uint32_t i = 0; i < packets.size(); ++i) {
      if (i % monitor::kGroupPackets == 0) {
        first_of.clear();
      }
      const monitor::Observation packet = monitor::observe(packets[i]);
      const auto [found, is_first] = first_of.emplace(std::pair(packet.key.addresses, packet.key.transport), i);
      results_[i] = {packet.length, packet.tcp_flags, 0, static_cast<catena::u8>(i - found->second)};
      if (monitor::FlowResult& first = results_[found->second]; !is_first) {
        first.bytes += packet.length;
        first.tcp_flags = static_cast<catena::u16>(first.tcp_flags | packet.tcp_flags);
        ++first.others;
        first.distance = static_cast<catena::u8>(i - found->second);
      }
    }
  }
  void process(packet::Batch const& batch, std::size_t first) {
    const auto results = std::as_bytes(std::span(results_).subspan(first, batch.size()));
    nf_->complete({batch, {}, results, outcome_, &no_spill_});
  }

 private:
  class NoSpill final : public nf::SpillRows {
    std::span<const std::byte> row(std::uint32_t /*row*/) const override { return {}; }
  };
  std::unique_ptr<nf::Nf> nf_;
  nf::Outcome outcome_{0, false};
  NoSpill no_spill_;
  std::vector<monitor::FlowResult> results_;
};

/// Runs the NF over the pool, which gets the flows that `next_flow` gives, unmeasured, before each pass.
template <typename Runner, typename NextFlow>
void run_nf(benchmark::State& state, std::string_view yaml, std::uint32_t warm_up_passes, NextFlow next_flow) {
  const std::vector<nf::testing::Frame> frames(kSlots,
                                               nf::testing::make_frame(packet::kProtocolTcp, 1, 2, 3, 4, "0123456"));
  const std::vector<std::uint64_t> arrivals_ns(kSlots, 1'000'000);
  nf::testing::PacketStore store(frames, arrivals_ns);
  Runner runner(yaml);
  const auto refill = [&] {
    for (std::uint32_t i = 0; i < kSlots; ++i) {
      set_flow(store.all()[i].frame(), next_flow());
    }
    runner.look_at(store.all());
  };
  for (std::uint32_t pass = 0; pass < warm_up_passes; ++pass) {
    refill();
    runner.process(store.all(), 0);
  }
  std::size_t first = 0;
  for (auto _ : state) {
    if (first == 0) {
      state.PauseTiming();
      refill();
      state.ResumeTiming();
    }
    runner.process(store.batch(first, kBatch), first);
    first = (first + kBatch) % kSlots;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * kBatch);
}

template <typename Runner>
void count_flows(benchmark::State& state) {
  const auto flows = static_cast<std::uint32_t>(state.range(0));
  const std::vector<std::uint32_t> order = random_flows(std::size_t{4} << 20, flows);
  const std::uint32_t warm_up_passes = flows / kSlots + 1;
  std::uint32_t started = 0;
  std::size_t at = 0;
  run_nf<Runner>(state, concat("{max_flows: ", std::max(flows, kBatch), ", active_timeout_s: 0}"), warm_up_passes, [&] {
    if (started < flows) {
      return started++;
    }
    at = (at + 1) % order.size();
    return order[at];
  });
}

void monitor_nf(benchmark::State& state) { count_flows<OnCpu>(state); }
void after_kernel(benchmark::State& state) { count_flows<AfterKernel>(state); }

void new_flows(benchmark::State& state) {
  const auto flows = static_cast<std::uint32_t>(state.range(0));
  std::uint32_t flow = 0;
  run_nf<OnCpu>(state, concat("{max_flows: ", flows, ", export: [{format: ipfix, file: /dev/null}]}"),
                flows / kSlots + 1, [&] { return flow++; });
}

void rte_hash_lookup_bulk(benchmark::State& state) {
  const auto flows = static_cast<std::uint32_t>(state.range(0));
  rte_hash_parameters parameters{};
  parameters.name = "flows";
  parameters.entries = flows + flows / 4;
  parameters.key_len = sizeof(packet::Ipv4FlowKey);
  parameters.hash_func = rte_hash_crc;
  parameters.socket_id = SOCKET_ID_ANY;
  rte_hash* hash = rte_hash_create(&parameters);
  if (hash == nullptr) {
    state.SkipWithError("rte_hash_create failed");
    return;
  }
  for (std::uint32_t flow = 0; flow < flows; ++flow) {
    const auto key = packet::Ipv4FlowKey::of(key_of(flow));
    if (rte_hash_add_key(hash, &key) < 0) {
      state.SkipWithError("rte_hash_add_key failed");
      break;
    }
  }
  std::vector<packet::Ipv4FlowKey> keys;
  for (const std::uint32_t flow : random_flows(std::size_t{4} << 20, flows)) {
    keys.push_back(packet::Ipv4FlowKey::of(key_of(flow)));
  }
  constexpr std::uint32_t kBurst = 64;
  const void* pointers[kBurst];
  std::int32_t positions[kBurst];
  std::size_t first = 0;
  for (auto _ : state) {
    for (std::uint32_t burst = 0; burst < kBatch; burst += kBurst) {
      for (std::uint32_t i = 0; i < kBurst; ++i) {
        pointers[i] = &keys[first + burst + i];
      }
      ::rte_hash_lookup_bulk(hash, pointers, kBurst, positions);
      benchmark::DoNotOptimize(positions);
    }
    first = (first + kBatch) % keys.size();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * kBatch);
  rte_hash_free(hash);
}

BENCHMARK(rte_hash_lookup_bulk)->Arg(kMillion)->Arg(10'000);
BENCHMARK(meter)->Arg(kMillion)->Arg(10'000);
BENCHMARK(monitor_nf)->Arg(kMillion)->Arg(10'000)->Arg(1000)->Arg(100)->Arg(10);
BENCHMARK(after_kernel)->Arg(kMillion)->Arg(10'000)->Arg(1000)->Arg(100)->Arg(10);
BENCHMARK(new_flows)->Arg(kMillion);

}  // namespace

int main(int argc, char** argv) { return catena::nf::testing::run_benchmarks(argc, argv, catena::eal::start()); }
