// SPDX-License-Identifier: Apache-2.0
// The tables of classification and of routes on one core: what libnca searches on the CPU, the kernels' tables searched
// on the CPU, and DPDK's libraries. Bare keys, no packets: items_per_second are lookups. `build_*` measure building;
// their counter `bytes` says what the table takes. Keys are near the borders of rules, addresses within routes; 65536
// of them, in an order that no branch predictor learns.
#include <benchmark/benchmark.h>
#include <catena/core/testing/test_data.hpp>
#include <catena/nf/testing/harness.hpp>

#include <algorithm>
#include <array>
#include <random>
#include <stdexcept>

#include "functions/classify/dpdk/acl.hpp"
#include "functions/classify/key_search.hpp"
#include "functions/classify/rule_generator.hpp"
#include "functions/classify/rule_parser.hpp"
#include "functions/classify/rule_tree.hpp"
#include "functions/lpm/dir24_8.hpp"
#include "functions/lpm/dpdk/fib.hpp"
#include "functions/lpm/lookup.kernel.hpp"
#include "functions/lpm/prefix_generator.hpp"
#include "functions/lpm/range_table.hpp"

namespace {

namespace classify = catena::classify;
namespace packet = catena::packet;
namespace lpm = catena::lpm;

constexpr std::size_t kKeys = 65536;
constexpr std::size_t kBatch = 256;

template <typename T>
T value_of(catena::Result<T> result) {
  if (!result.ok()) {
    throw std::runtime_error(std::string(result.status().message()));
  }
  return std::move(result).value();
}

struct Rules {
  explicit Rules(std::uint32_t count) {
    classify::testing::RuleGenerator generator(count);
    rules = value_of(classify::parse_rules(generator.text(), "generated")).rules;
    while (keys.size() < kKeys) {
      if (const classify::testing::Tuple tuple = generator.tuple(); tuple.has_ports) {
        flows.push_back(classify::testing::flow_key_of(tuple));
        keys.push_back(classify::key_of({flows.back(), true}));
      }
    }
  }
  std::vector<classify::Rule> rules;
  std::vector<packet::FlowKey> flows;
  std::vector<classify::Key> keys;  ///< of the flows
};

/// Gives `find` the elements of `all` in batches.
template <typename T, typename Find>
void look_up(benchmark::State& state, std::vector<T>& all, Find find) {
  std::size_t first = 0;
  for (auto _ : state) {
    find(std::span(all).subspan(first, kBatch));
    first = (first + kBatch) % all.size();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(kBatch));
}

Rules rules_of(benchmark::State const& state) { return Rules(static_cast<std::uint32_t>(state.range(0))); }

void classify_tree(benchmark::State& state) {
  Rules all = rules_of(state);
  const classify::RuleTree tree = value_of(classify::RuleTree::create(all.rules));
  look_up(state, all.keys, [&](auto keys) {
    for (classify::Key const& key : keys) {
      benchmark::DoNotOptimize(tree.find(key));
    }
  });
}

void classify_bit_vector(benchmark::State& state) {
  Rules all = rules_of(state);
  const classify::testing::HostTables tables(classify::build_bit_vector(all.rules));
  look_up(state, all.keys, [&](auto keys) {
    for (classify::Key const& key : keys) {
      benchmark::DoNotOptimize(classify::find_rule(tables, key));
    }
  });
}

void classify_rte_acl(benchmark::State& state) {
  const Rules all = rules_of(state);
  const classify::Acl acl = value_of(classify::Acl::create(all.rules));
  std::vector<classify::AclKey> keys;
  for (packet::FlowKey const& flow : all.flows) {
    classify::write_acl_key(flow, keys.emplace_back());
  }
  std::vector<const std::uint8_t*> pointers;
  for (classify::AclKey const& key : keys) {
    pointers.push_back(&key.protocol);
  }
  std::array<std::uint32_t, kBatch> matches{};
  look_up(state, pointers, [&](auto batch) {
    acl.find_with_ports(batch.data(), matches.data(), kBatch);
    benchmark::DoNotOptimize(matches);
  });
}

void build_tree(benchmark::State& state) {
  const Rules all = rules_of(state);
  for (auto _ : state) {
    state.counters["bytes"] = static_cast<double>(value_of(classify::RuleTree::create(all.rules)).bytes());
  }
}

std::vector<lpm::Route> const& routes() {
  static const std::vector<lpm::Route> kRoutes = lpm::testing::internet_routes(catena::shared_data(), 64);
  return kRoutes;
}

std::vector<std::uint32_t> addresses() {
  std::mt19937 random(1);
  std::vector<std::uint32_t> all;
  while (all.size() < kKeys) {
    lpm::Route const& route = routes()[random() % routes().size()];
    all.push_back(route.address | static_cast<std::uint32_t>(random() & (0xFFFFFFFFULL >> route.length)));
  }
  return all;
}

void route_ranges(benchmark::State& state) {
  std::vector<std::uint32_t> all = addresses();
  const lpm::RangeTable table = value_of(lpm::RangeTable::create(routes()));
  look_up(state, all, [&](auto batch) {
    for (const std::uint32_t address : batch) {
      benchmark::DoNotOptimize(table.find(address));
    }
  });
}

void route_dir24_8(benchmark::State& state) {
  using catena::u16;
  std::vector<std::uint32_t> all = addresses();
  const auto table = lpm::build_dir24_8<u16>(routes(), lpm::PortNumbers(routes()));
  look_up(state, all, [&](auto batch) {
    for (const std::uint32_t address : batch) {
      benchmark::DoNotOptimize(lpm::find_hop<u16>(
          address, [&](std::uint64_t i) { return table.tbl24[i]; }, [&](std::uint64_t i) { return table.tbl8[i]; }));
    }
  });
}

void route_rte_fib(benchmark::State& state) {
  std::vector<std::uint32_t> all = addresses();
  const lpm::Fib fib = value_of(lpm::Fib::create(routes(), lpm::PortNumbers(routes())));
  std::array<std::uint64_t, kBatch> hops{};
  look_up(state, all, [&](auto batch) {
    fib.lookup(batch.data(), hops.data(), kBatch);
    benchmark::DoNotOptimize(hops);
  });
}

void build_ranges(benchmark::State& state) {
  state.counters["routes"] = static_cast<double>(routes().size());
  for (auto _ : state) {
    state.counters["bytes"] = static_cast<double>(value_of(lpm::RangeTable::create(routes())).bytes());
  }
}

BENCHMARK(classify_tree)->Arg(188)->Arg(1000)->Arg(10000);
BENCHMARK(classify_bit_vector)->Arg(188)->Arg(1000)->Arg(10000);
BENCHMARK(classify_rte_acl)->Arg(188)->Arg(1000)->Arg(10000);
BENCHMARK(build_tree)->Arg(188)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);
BENCHMARK(route_ranges);
BENCHMARK(route_dir24_8);
BENCHMARK(route_rte_fib);
BENCHMARK(build_ranges)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
