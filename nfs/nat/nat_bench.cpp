// SPDX-License-Identifier: Apache-2.0
// The NAT with a million mappings on one core, beside DPDK's rte_hash with the same keys.
//   nat_lookup      outbound packets of known flows in random order: find, refresh, rewrite
//   nat_answers     inbound packets to known mappings in random order: find, rewrite
//   nat_create      a new flow with each datagram, until a million live
//                   UDP; /tcp: each flow is a connection with its state
//   rte_hash_*      the same endpoints out of the same packets, looked up (in bulks of 64) or added; nothing is
//   rewritten,
//                   no port is taken, no time-out is kept, and one table where the NAT has two
// Packets arrive at 10 Mpps by their stamps, so a flow is used every 0.1 s. Only the work on packets is timed; headers
// are put back in between.
#include "nat.hpp"

#include <benchmark/benchmark.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <catena/nf/testing/bench.hpp>
#include <catena/nf/testing/harness.hpp>
#include <catena/nf/testing/packet_store.hpp>
#include <catena/packet/headers.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <random>
#include <stdexcept>

#include "io/eal/eal.hpp"

namespace {

namespace nf = catena::nf;
namespace packet = catena::packet;

constexpr std::uint8_t kTcp = packet::kProtocolTcp;
constexpr std::uint8_t kUdp = packet::kProtocolUdp;
constexpr std::uint32_t kFlows = 1'000'000;
constexpr std::uint32_t kPackets = 65536;
constexpr std::uint32_t kBatch = 256;
constexpr std::uint32_t kFlowsPerHost = 50;
constexpr std::uint32_t kBulk = 64;
constexpr std::uint64_t kNsPerPacket = 100;

struct Ends {
  std::uint32_t source;
  std::uint32_t destination;
  std::uint16_t source_port;
  std::uint16_t destination_port;
};

/// Flow number `flow`: 20,000 hosts with 50 ports each, the same ports on all of them.
Ends flow_ends(std::uint32_t flow) {
  return {0x0A000000 + flow / kFlowsPerHost, 0x08080808, static_cast<std::uint16_t>(5000 + flow % kFlowsPerHost), 53};
}

/// The packets of the benchmarks of a protocol: one pool, whose headers are written before each round.
class Pool {
 public:
  explicit Pool(std::uint8_t protocol)
      : store_(std::vector<nf::testing::Frame>(kPackets, nf::testing::make_frame(protocol, 1, 2, 3, 4, "0123456789"))) {
  }

  template <typename EndsOf>
  void refill(EndsOf ends_of) {
    const packet::Batch all = store_.all();
    for (std::uint32_t i = 0; i < kPackets; ++i) {
      const Ends ends = ends_of(i);
      packet::store_be32(all[i].l3() + 12, ends.source);
      packet::store_be32(all[i].l3() + 16, ends.destination);
      packet::store_be16(all[i].l4(), ends.source_port);
      packet::store_be16(all[i].l4() + 2, ends.destination_port);
      all.meta().arrival_ns[i] = now_ns_ += kNsPerPacket;
      all.meta().verdict[i] = 0;
    }
  }
  /// Seconds that `decide` took for the first `count` packets.
  template <typename Decide>
  double time(Decide decide, std::uint32_t count = kPackets) {
    const auto start = std::chrono::steady_clock::now();
    for (std::uint32_t first = 0; first < count; first += kBatch) {
      decide(store_.batch(first, std::min(kBatch, count - first)));
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  packet::Batch all() { return store_.all(); }

 private:
  nf::testing::PacketStore store_;
  std::uint64_t now_ns_ = 0;
};
template <std::uint8_t Number>
Pool& pool() {
  static Pool pool(Number);
  return pool;
}

std::unique_ptr<nf::testing::CpuNf> make_nat() {
  auto nat =
      nf::testing::value_or_throw(nf::testing::make_nf(catena_nf_nat(),
                                                       "inside: [10.0.0.0/8]\nexternal: [203.0.113.1-203.0.113.32]\n"
                                                       "max_half_open: 1000000\n"));
  return std::make_unique<nf::testing::CpuNf>(catena_nf_nat(), std::move(nat));
}

/// Calls `round(count)` for every pool of packets that has flows 0 .. kFlows - 1 in turn.
template <std::uint8_t Number, typename Round>
void for_every_flow(Round round) {
  for (std::uint32_t first = 0; first < kFlows; first += kPackets) {
    pool<Number>().refill([first](std::uint32_t i) { return flow_ends(std::min(first + i, kFlows - 1)); });
    round(first, std::min(kPackets, kFlows - first));
  }
}

/// A NAT that knows every flow, and the external endpoint of each. Connections of TCP are established.
template <std::uint8_t Number>
struct FullNat {
  std::unique_ptr<nf::testing::CpuNf> nat = make_nat();
  std::vector<Ends> answers = std::vector<Ends>(kFlows);

  FullNat() {
    for_every_flow<Number>([this](std::uint32_t first, std::uint32_t count) {
      process(count);
      for (std::uint32_t i = 0; i < count; ++i) {
        const packet::Packet packet = pool<Number>().all()[i];
        answers[first + i] = {0x08080808, packet::load_be32(packet.l3() + 12), 53, packet::load_be16(packet.l4())};
      }
    });
    for (std::uint32_t first = 0; first < kFlows; first += kPackets) {
      pool<Number>().refill([&](std::uint32_t i) { return answers[std::min(first + i, kFlows - 1)]; });
      process(std::min(kPackets, kFlows - first));
    }
    for_every_flow<Number>([this](std::uint32_t, std::uint32_t count) { process(count); });
  }
  void process(std::uint32_t count) {
    pool<Number>().time([this](packet::Batch const& batch) { nat->process(batch); }, count);
  }
};

template <std::uint8_t Number, typename EndsOf, typename Decide>
void measure(benchmark::State& state, EndsOf ends_of, Decide decide) {
  for (auto _ : state) {
    pool<Number>().refill(ends_of);
    state.SetIterationTime(pool<Number>().time(decide));
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * kPackets);
}

void check_drops(benchmark::State& state, nf::testing::CpuNf const& nat) {
  if (nat.drops() > 0) {
    state.SkipWithError("packets were dropped");
  }
}

template <std::uint8_t Number>
void nat_lookup(benchmark::State& state) {
  FullNat<Number> full;
  std::mt19937 random(1);
  measure<Number>(
      state, [&](std::uint32_t) { return flow_ends(static_cast<std::uint32_t>(random() % kFlows)); },
      [&](packet::Batch const& batch) { full.nat->process(batch); });
  check_drops(state, *full.nat);
  for (nf::Statistic const& statistic : full.nat->nf().statistics()) {
    if (statistic.name == "mappings" || statistic.name == "memory_bytes") {
      state.counters[statistic.name] = static_cast<double>(statistic.value);
    }
  }
}

template <std::uint8_t Number>
void nat_answers(benchmark::State& state) {
  FullNat<Number> full;
  std::mt19937 random(1);
  measure<Number>(
      state, [&](std::uint32_t) { return full.answers[random() % kFlows]; },
      [&](packet::Batch const& batch) { full.nat->process(batch); });
  check_drops(state, *full.nat);
}

template <std::uint8_t Number>
void nat_create(benchmark::State& state) {
  for (auto _ : state) {
    const std::unique_ptr<nf::testing::CpuNf> nat = make_nat();
    double seconds = 0;
    for_every_flow<Number>([&](std::uint32_t, std::uint32_t count) {
      seconds += pool<Number>().time([&](packet::Batch const& batch) { nat->process(batch); }, count);
    });
    state.SetIterationTime(seconds);
    check_drops(state, *nat);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * kFlows);
}

/// DPDK's hash table over internal endpoints: address, port and protocol in eight bytes.
class Table {
 public:
  Table() {
    rte_hash_parameters parameters{};
    parameters.name = "nat_bench";
    parameters.entries = kFlows * 5 / 4;
    parameters.key_len = sizeof(std::uint64_t);
    parameters.hash_func = rte_hash_crc;
    parameters.socket_id = SOCKET_ID_ANY;
    parameters.extra_flag = RTE_HASH_EXTRA_FLAGS_EXT_TABLE;
    table_ = rte_hash_create(&parameters);
    if (table_ == nullptr) {
      throw std::runtime_error("rte_hash_create failed");
    }
  }
  ~Table() { rte_hash_free(table_); }
  Table(Table const&) = delete;
  Table& operator=(Table const&) = delete;

  static std::uint64_t key_of(packet::Packet const& packet) {
    const std::uint8_t* ip = packet.l3();
    return std::uint64_t{packet::load_be32(ip + 12)} << 32 | std::uint64_t{packet::load_be16(packet.l4())} << 8 | ip[9];
  }
  void add(packet::Batch const& batch) {
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      const std::uint64_t key = key_of(batch[i]);
      missing_ += rte_hash_add_key(table_, &key) < 0 ? 1U : 0U;
    }
  }
  void look_up(packet::Batch const& batch) {
    std::array<std::uint64_t, kBulk> keys;
    std::array<const void*, kBulk> pointers;
    std::array<std::int32_t, kBulk> positions;
    for (std::uint32_t first = 0; first < batch.size(); first += kBulk) {
      for (std::uint32_t i = 0; i < kBulk; ++i) {
        keys[i] = key_of(batch[first + i]);
        pointers[i] = &keys[i];
      }
      rte_hash_lookup_bulk(table_, pointers.data(), kBulk, positions.data());
      for (const std::int32_t position : positions) {
        missing_ += position < 0 ? 1U : 0U;
      }
    }
  }
  void check(benchmark::State& state) const {
    if (missing_ > 0) {
      state.SkipWithError("keys were missing");
    }
  }

 private:
  rte_hash* table_;
  std::uint64_t missing_ = 0;
};

void rte_hash_lookup_of_flows(benchmark::State& state) {
  Table table;
  for_every_flow<kUdp>([&](std::uint32_t, std::uint32_t count) {
    pool<kUdp>().time([&](packet::Batch const& batch) { table.add(batch); }, count);
  });
  std::mt19937 random(1);
  measure<kUdp>(
      state, [&](std::uint32_t) { return flow_ends(static_cast<std::uint32_t>(random() % kFlows)); },
      [&](packet::Batch const& batch) { table.look_up(batch); });
  table.check(state);
}

void rte_hash_add_of_flows(benchmark::State& state) {
  for (auto _ : state) {
    Table table;
    double seconds = 0;
    for_every_flow<kUdp>([&](std::uint32_t, std::uint32_t count) {
      seconds += pool<kUdp>().time([&](packet::Batch const& batch) { table.add(batch); }, count);
    });
    state.SetIterationTime(seconds);
    table.check(state);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * kFlows);
}

BENCHMARK(nat_lookup<kUdp>)->Name("nat_lookup")->UseManualTime();
BENCHMARK(nat_answers<kUdp>)->Name("nat_answers")->UseManualTime();
BENCHMARK(nat_lookup<kTcp>)->Name("nat_lookup/tcp")->UseManualTime();
BENCHMARK(nat_answers<kTcp>)->Name("nat_answers/tcp")->UseManualTime();
BENCHMARK(rte_hash_lookup_of_flows)->UseManualTime();
BENCHMARK(nat_create<kUdp>)->Name("nat_create")->UseManualTime()->Iterations(3)->Unit(benchmark::kMillisecond);
BENCHMARK(nat_create<kTcp>)->Name("nat_create/tcp")->UseManualTime()->Iterations(3)->Unit(benchmark::kMillisecond);
BENCHMARK(rte_hash_add_of_flows)->UseManualTime()->Iterations(3)->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) { return catena::nf::testing::run_benchmarks(argc, argv, catena::eal::start()); }
