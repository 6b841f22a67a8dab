// SPDX-License-Identifier: Apache-2.0
// The time to plan a chain: AdaptChain's five, one of 10 NFs and a graph of as many, in every mode. "nodes" are those
// of the search.
#include "plan/testing/chains.hpp"

#include <benchmark/benchmark.h>

namespace {

namespace plan = catena::plan;
using plan::Processor;

std::vector<plan::PlacedNf> ten_nfs() {
  namespace nf = plan::testing;
  constexpr Processor kGpu = Processor::kGpu;
  return {nf::firewall(kGpu), nf::decrypt(kGpu), nf::nids(kGpu),     nf::lb(kGpu),      nf::nat(kGpu),
          nf::router(kGpu),   nf::monitor(kGpu), nf::firewall(kGpu), nf::encrypt(kGpu), nf::nids(kGpu)};
}

/// Between ten_nfs(): two ways twice, and a copy's two.
std::vector<plan::PlanEdge> six_paths() {
  using plan::kRx;
  using plan::kTx;
  return {{kRx, 0}, {0, 1}, {1, 2}, {0, 3}, {0, 4, true}, {2, 5}, {3, 5},
          {4, 5},   {5, 6}, {5, 7}, {7, 8}, {6, 9},       {8, 9}, {9, kTx}};
}

void plan_chain(benchmark::State& state, std::vector<plan::PlacedNf> const& nfs,
                std::vector<plan::PlanEdge> const& edges) {
  plan::PlanInput input;
  input.nfs = nfs;
  input.edges = edges;
  input.mode = static_cast<plan::Mode>(state.range(0));
  std::uint64_t nodes = 0;
  for (auto _ : state) {
    const catena::Result<plan::Plan> made = plan::make_plan(input);
    if (!made.ok()) {
      state.SkipWithError(std::string(made.status().message()).c_str());
      return;
    }
    nodes = made->visited;
  }
  state.SetLabel(std::string(to_string(input.mode)));
  state.counters["nodes"] = static_cast<double>(nodes);
}

void modes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("mode")->DenseRange(0, 2)->Unit(benchmark::kMicrosecond);
}
BENCHMARK_CAPTURE(plan_chain, c1, plan::testing::chain_c(1), std::vector<plan::PlanEdge>())->Apply(modes);
BENCHMARK_CAPTURE(plan_chain, c2, plan::testing::chain_c(2), std::vector<plan::PlanEdge>())->Apply(modes);
BENCHMARK_CAPTURE(plan_chain, c3, plan::testing::chain_c(3), std::vector<plan::PlanEdge>())->Apply(modes);
BENCHMARK_CAPTURE(plan_chain, c4, plan::testing::chain_c(4), std::vector<plan::PlanEdge>())->Apply(modes);
BENCHMARK_CAPTURE(plan_chain, c5, plan::testing::chain_c(5), std::vector<plan::PlanEdge>())->Apply(modes);
BENCHMARK_CAPTURE(plan_chain, ten_nfs, ten_nfs(), std::vector<plan::PlanEdge>())->Apply(modes);
BENCHMARK_CAPTURE(plan_chain, ten_nfs_on_six_paths, ten_nfs(), six_paths())->Apply(modes);

}  // namespace
