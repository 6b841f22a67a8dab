// SPDX-License-Identifier: Apache-2.0
// The time to plan a chain: AdaptChain's five, and one of 10 NFs, in every mode. "nodes" are those of the search.
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

void plan_chain(benchmark::State& state, std::vector<plan::PlacedNf> const& nfs) {
  plan::PlanInput input;
  input.nfs = nfs;
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
BENCHMARK_CAPTURE(plan_chain, c1, plan::testing::chain_c(1))->Apply(modes);
BENCHMARK_CAPTURE(plan_chain, c2, plan::testing::chain_c(2))->Apply(modes);
BENCHMARK_CAPTURE(plan_chain, c3, plan::testing::chain_c(3))->Apply(modes);
BENCHMARK_CAPTURE(plan_chain, c4, plan::testing::chain_c(4))->Apply(modes);
BENCHMARK_CAPTURE(plan_chain, c5, plan::testing::chain_c(5))->Apply(modes);
BENCHMARK_CAPTURE(plan_chain, ten_nfs, ten_nfs())->Apply(modes);

}  // namespace
