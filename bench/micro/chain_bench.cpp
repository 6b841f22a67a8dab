// SPDX-License-Identifier: Apache-2.0
// Whole chains end to end: generator -> NFs -> null, one worker a stage. S_d of G-NET is firewall, IPsec, NIDS, router.
// CATENA_BENCH_DEVICE=cuda|opencl chooses the device, CATENA_BENCH_DATA the folder of the chain's files.
#include "chain/workers.hpp"
#include "pipeline/session.hpp"

#include <catena/core/text.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>

#include "nf/registry.hpp"

namespace catena {
namespace {

constexpr std::uint64_t kPackets = 1'000'000;
constexpr int kRepeats = 5;

std::string environment(const char* name, std::string const& fallback) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : fallback;
}

std::string chain_text(std::int64_t bytes, std::uint64_t packets, std::string const& on, std::string const& nfs) {
  std::string text = fmt::format(
      "apiVersion: catena/v1\nkind: Chain\nmetadata: {{name: bench}}\nspec:\n"
      "  rx: {{generator: {{packet: {}, flows: 1024, count: {}}}}}\n  tx: null\n  device: {}\n"
      "  tuning: {{pool_slots: 65536, units_per_launch: 16}}\n  nfs:\n",
      bytes, packets, on == "gpu" ? environment("CATENA_BENCH_DEVICE", "auto") : "none");
  for (const char nf : nfs) {
    const char* entry = nf == 'f'   ? "{name: fw, type: firewall, config: {rules: fw.rules, default: allow}"
                        : nf == 'i' ? "{name: vpn, type: ipsec, config: {direction: encrypt, sa: sa.yaml, mtu: 1600}"
                        : nf == 'n'
                            ? "{name: ids, type: nids, config: {rules: ids.rules, variables: {HOME_NET: 10.0.0.0/8}}"
                            : "{name: rt, type: router, config: {routes: routes.txt}";
    text += concat("    - ", entry, ", on: ", on, "}\n");
  }
  return text.append(nfs.empty() ? "    []\n" : "");
}

/// `nfs`: a letter for each NF. range(0): bytes of a frame without FCS.
void chain(benchmark::State& state, std::string const& on, std::string const& nfs, plan::Mode mode) {
  const std::string folder = environment("CATENA_BENCH_DATA", CATENA_SOURCE_DIR "/examples/branch-office");
  const std::uint64_t packets = on == "gpu" || nfs.empty() ? kPackets : kPackets / 4;
  double p50_us = 0;
  double to_device = 0;
  double to_host = 0;
  for (auto _ : state) {
    auto config = chain::parse_chain(chain_text(state.range(0), packets, on, nfs), folder + "/bench.yaml");
    if (!config.ok()) {
      return state.SkipWithError(config.status().ToString().c_str());
    }
    runtime::RunOptions options;
    options.sync.mode = mode;
    options.workers = static_cast<std::uint32_t>(std::min(chain::usable_cores().size(), nfs.size() + 2));
    auto made = runtime::Session::create(*std::move(config), options, nf::builtin_nfs());
    if (!made.ok()) {
      return state.SkipWithError(made.status().ToString().c_str());
    }
    if (const Status status = (*made)->run(); !status.ok()) {
      return state.SkipWithError(status.ToString().c_str());
    }
    const runtime::Report report = (*made)->report();
    if (!report.accounted() || report.tx.sent == 0) {
      return state.SkipWithError("the chain lost packets");
    }
    state.SetIterationTime(report.seconds);
    p50_us = static_cast<double>(report.tx.latency.percentile(50)) / 1e3;
    to_device = to_host = 0;
    for (runtime::NfReport const& nf : report.nfs) {
      to_device += nf.device.bytes_to_device_per_packet;
      to_host += nf.device.bytes_to_host_per_packet;
    }
  }
  const double count = static_cast<double>(state.iterations()) * static_cast<double>(packets);
  state.counters["packets_per_second"] = benchmark::Counter(count, benchmark::Counter::kIsRate);
  state.counters["bits_per_second"] =
      benchmark::Counter(count * static_cast<double>(state.range(0)) * 8, benchmark::Counter::kIsRate);
  state.counters["p50_us"] = p50_us;
  state.counters["bytes_to_device"] = to_device;
  state.counters["bytes_to_host"] = to_host;
}

void add(std::string const& name, std::string const& on, std::string const& nfs,
         plan::Mode mode = plan::Mode::kAdaptive) {
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) { chain(state, on, nfs, mode); })
      ->ArgName("bytes")
      ->Arg(60)
      ->Arg(508)
      ->Arg(1514)
      ->Iterations(1)
      ->Repetitions(kRepeats)
      ->ReportAggregatesOnly()
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace catena

int main(int argc, char** argv) {
  catena::add("chain/generator_alone", "cpu", "");
  for (const char* nf : {"f", "i", "n", "r"}) {
    catena::add(catena::concat("chain/", nf, "/gpu"), "gpu", nf);
    catena::add(catena::concat("chain/", nf, "/cpu"), "cpu", nf);
  }
  for (const auto mode : {catena::plan::Mode::kCopy, catena::plan::Mode::kShared, catena::plan::Mode::kAdaptive}) {
    catena::add(catena::concat("chain/Sd/gpu/", catena::plan::to_string(mode)), "gpu", "finr", mode);
  }
  catena::add("chain/Sd/cpu", "cpu", "finr");
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
