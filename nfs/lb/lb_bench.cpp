// SPDX-License-Identifier: Apache-2.0
// The load balancer on one core with a million flows, visited in random order, beside rte_hash called directly with the
// same keys.
//   lb_nf/N        N flows; every packet belongs to a known flow. The whole NF: prepare(), compute(), complete().
//   lb_new_flows   every packet starts a flow, and one of long ago expires.
//   rte_hash/N     rte_hash_lookup_bulk() alone, of the two keys that each of N flows has, in bursts of 32.
// Packets are written anew, unmeasured, before each batch: a batch rewrites them.
#include "lb.hpp"

#include <benchmark/benchmark.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <catena/core/text.hpp>
#include <catena/nf/testing/bench.hpp>
#include <catena/nf/testing/harness.hpp>
#include <catena/nf/testing/packet_store.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <random>

#include "io/eal/eal.hpp"

namespace {

using catena::concat;
namespace lb = catena::lb;
namespace nf = catena::nf;
namespace packet = catena::packet;

constexpr std::uint32_t kBatch = 256;
constexpr std::uint32_t kService = 0xCB00710A;
constexpr std::uint64_t kNsBetweenPackets = 100;  // 10 Mpps

struct Client {
  std::uint32_t address;
  std::uint16_t port;
};
/// Clients 0, 1, 2 ... differ in address and port as those of a large site do.
Client client(std::uint32_t number) {
  return {0x64000000 + number / 4, static_cast<std::uint16_t>(1024 + number % 50000)};
}

std::unique_ptr<nf::Nf> make_lb(std::uint32_t max_flows) {
  std::string yaml =
      concat("{max_flows: ", max_flows,
             ", timeouts: {udp: 1}, services: [{address: 203.0.113.10, port: 80, protocol: udp, backends: [");
  for (std::uint32_t i = 0; i < 20; ++i) {
    yaml += concat("{name: web", i, ", address: 10.0.0.", i + 1, ", port: 8080},");
  }
  return nf::testing::value_or_throw(nf::testing::make_nf(catena_nf_lb(), yaml + "]}]}"));
}

/// A batch of UDP packets to the service, of whatever clients are wanted next.
class Traffic {
 public:
  Traffic()
      : frame_(nf::testing::make_frame(packet::kProtocolUdp, 0, kService, 0, 80, "0123456789abcdef01")),
        store_(std::vector(kBatch, frame_)) {
    // 0 would be left alone; any other checksum costs the same
    packet::store_be16(frame_.data() + 40, 0x1234);
  }
  /// The batch, with packet i of client `next(i)`.
  template <typename Next>
  packet::Batch write(Next next) {
    const packet::Batch batch = store_.all();
    for (std::uint32_t i = 0; i < kBatch; ++i) {
      std::uint8_t* frame = batch[i].frame();
      const Client from = client(next());
      std::copy(frame_.begin(), frame_.end(), frame);
      packet::store_be32(frame + 26, from.address);
      packet::store_be16(frame + 34, from.port);
      batch.meta().arrival_ns[batch.slots()[i]] = now_ns_;
      now_ns_ += kNsBetweenPackets;
    }
    return batch;
  }

 private:
  nf::testing::Frame frame_;
  nf::testing::PacketStore store_;
  std::uint64_t now_ns_ = 0;
};

std::vector<std::uint32_t> shuffled(std::uint32_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  return order;
}

void measure(benchmark::State& state, nf::testing::CpuNf& runner, packet::Batch const& batch) {
  const auto start = std::chrono::steady_clock::now();
  runner.process(batch);
  state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

void lb_nf(benchmark::State& state) {
  const auto flows = static_cast<std::uint32_t>(state.range(0));
  const std::vector<std::uint32_t> order = shuffled(flows);
  Traffic traffic;
  nf::testing::CpuNf runner(catena_nf_lb(), make_lb(flows));
  std::size_t at = 0;
  const auto next = [&] {
    at = at + 1 < order.size() ? at + 1 : 0;
    return order[at];
  };
  for (std::uint32_t i = 0; i < flows; i += kBatch) {
    runner.process(traffic.write(next));
  }
  for (auto _ : state) {
    measure(state, runner, traffic.write(next));
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * kBatch);
  for (nf::Statistic const& statistic : runner.nf().statistics()) {
    if (statistic.name == "flows" || statistic.name == "flows_not_tracked" || statistic.name == "memory_bytes") {
      state.counters[statistic.name] = static_cast<double>(statistic.value);
    }
  }
}

void lb_new_flows(benchmark::State& state) {
  Traffic traffic;
  // twice what two seconds bring, so that those of the second before always have expired in time
  nf::testing::CpuNf runner(catena_nf_lb(), make_lb(1U << 24));
  std::uint32_t number = 0;
  for (auto _ : state) {
    measure(state, runner, traffic.write([&] { return number++; }));
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * kBatch);
}

/// What a load balancer on rte_hash would have for a key: the 5-tuple, padded.
struct Key {
  std::uint32_t source;
  std::uint32_t destination;
  std::uint16_t source_port;
  std::uint16_t destination_port;
  std::uint32_t protocol;
};
static_assert(sizeof(Key) == 16);

void rte_hash_alone(benchmark::State& state) {
  constexpr std::uint32_t kBurst = 32;
  const auto flows = static_cast<std::uint32_t>(state.range(0));
  rte_hash_parameters parameters{};
  parameters.name = "bench";
  parameters.entries = 2 * flows;  // both directions, as the NF finds them
  parameters.key_len = sizeof(Key);
  parameters.hash_func = rte_hash_crc;
  rte_hash* table = rte_hash_create(&parameters);
  if (table == nullptr) {
    return state.SkipWithError("rte_hash_create failed");
  }
  std::vector<Key> keys;
  for (const std::uint32_t number : shuffled(flows)) {
    const Client from = client(number);
    keys.push_back({from.address, kService, from.port, 80, packet::kProtocolUdp});
    const Key answer{0x0A000001 + number % 20, from.address, 8080, from.port, packet::kProtocolUdp};
    if (rte_hash_add_key(table, &keys.back()) < 0 || rte_hash_add_key(table, &answer) < 0) {
      rte_hash_free(table);
      return state.SkipWithError("rte_hash_add_key failed");
    }
  }
  std::shuffle(keys.begin(), keys.end(), std::mt19937(2));
  std::size_t at = 0;
  std::uint64_t found = 0;
  for (auto _ : state) {
    for (std::uint32_t burst = 0; burst < kBatch; burst += kBurst) {
      at = at + kBurst <= keys.size() ? at : 0;
      const void* pointers[kBurst];
      std::int32_t positions[kBurst];
      for (std::uint32_t i = 0; i < kBurst; ++i) {
        pointers[i] = &keys[at + i];
      }
      at += kBurst;
      rte_hash_lookup_bulk(table, pointers, kBurst, positions);
      for (const std::int32_t position : positions) {
        found += position >= 0 ? 1U : 0U;
      }
    }
  }
  rte_hash_free(table);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * kBatch);
  if (found != static_cast<std::uint64_t>(state.iterations()) * kBatch) {
    state.SkipWithError("keys were not found");
  }
}

BENCHMARK(lb_nf)->Arg(1000)->Arg(1000000)->UseManualTime();
BENCHMARK(lb_new_flows)->UseManualTime();
BENCHMARK(rte_hash_alone)->Arg(1000)->Arg(1000000);

/// What update() costs: a Maglev table of 100 backends.
void build_table(benchmark::State& state) {
  std::vector<std::string> names;
  std::vector<lb::MaglevMember> members;
  for (std::uint16_t i = 0; i < 100; ++i) {
    names.push_back(concat("web", i));
  }
  for (std::uint16_t i = 0; i < 100; ++i) {
    members.push_back({names[i], 1, i});
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(lb::MaglevTable(members, static_cast<std::uint32_t>(state.range(0))));
  }
}
BENCHMARK(build_table)->Arg(65537)->Arg(655373)->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> memory{"-m", "1024"};
  return catena::nf::testing::run_benchmarks(argc, argv, catena::eal::start(memory));
}
