// SPDX-License-Identifier: Apache-2.0
// Every kernel alone: packets already on the device, no copies. CATENA_BENCH_DEVICE=cuda|opencl chooses the device,
// CATENA_BENCH_DATA the folder of the chain's files (examples/branch-office by default).
#include "bench/common/kernel_alone.hpp"
#include "bench/micro/open_device.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/testing/harness.hpp>

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <iostream>

#include "nf/registry.hpp"

namespace catena {
namespace {

constexpr int kLaunchesPerSample = 20;
constexpr int kRepeats = 7;

struct Case {
  const char* name;
  const char* type;
  std::string config;
};

std::string data(std::string const& file) {
  const char* folder = std::getenv("CATENA_BENCH_DATA");
  return concat(folder != nullptr ? folder : CATENA_SOURCE_DIR "/examples/branch-office", "/", file);
}

/// UDP frames of `bytes` bytes (without FCS) from the test chain's addresses.
std::vector<packet::testing::Frame> frames(std::uint32_t count, std::uint32_t bytes) {
  std::vector<packet::testing::Frame> result;
  const std::string text(bytes - 42, 'a');
  for (std::uint32_t i = 0; i < count; ++i) {
    std::string payload = text;
    for (std::size_t at = 0; at < payload.size(); ++at) {
      payload[at] = static_cast<char>('a' + (at * 7 + i * 13) % 26);
    }
    result.push_back(packet::testing::make_frame(
        packet::kProtocolUdp, 0x0A000000 + i, 0x0A000000 + i * 2654435761U % 0x1000000,
        static_cast<std::uint16_t>(1024 + i % 5000), static_cast<std::uint16_t>(i % 3000), payload));
  }
  return result;
}

void kernel_alone(benchmark::State& state, device::Device* device, Case const& test) {
  const auto count = static_cast<std::uint32_t>(state.range(0));
  const auto bytes = static_cast<std::uint32_t>(state.range(1));
  const auto fail = [&](Status const& status) { state.SkipWithError(status.ToString().c_str()); };
  const auto descriptor = nf::builtin_nfs().find(test.type);
  auto nf = nf::testing::make_nf(**descriptor, test.config);
  if (!nf.ok()) {
    return fail(nf.status());
  }
  const auto kernel = bench::KernelAlone::create(*device, **descriptor, *std::move(nf), frames(count, bytes));
  if (!kernel.ok()) {
    return fail(kernel.status());
  }
  for (auto _ : state) {
    if (Status status = (*kernel)->run(kLaunchesPerSample); !status.ok()) {
      return fail(status);
    }
  }
  const double packets =
      static_cast<double>(state.iterations()) * kLaunchesPerSample * static_cast<double>((*kernel)->packets());
  state.counters["packets_per_second"] = benchmark::Counter(packets, benchmark::Counter::kIsRate);
  state.counters["bits_per_second"] = benchmark::Counter(packets * bytes * 8, benchmark::Counter::kIsRate);
  state.counters["us_per_launch"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * kLaunchesPerSample * 1e-6,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

}  // namespace
}  // namespace catena

int main(int argc, char** argv) {
  using namespace catena;
  const Result<std::unique_ptr<device::Device>> device = open_device();
  if (!device.ok()) {
    std::cerr << device.status() << '\n';
    return 1;
  }
  benchmark::AddCustomContext("device", (*device)->info().name);
  benchmark::AddCustomContext("driver", (*device)->info().driver);
  const std::vector<Case> cases{
      {"router", "router", concat("{routes: ", data("routes.txt"), "}")},
      {"firewall", "firewall", concat("{rules: ", data("fw.rules"), ", default: allow}")},
      {"nids", "nids", concat("{rules: ", data("ids.rules"), ", variables: {HOME_NET: 10.0.0.0/8}}")},
      {"ipsec_encrypt", "ipsec", concat("{direction: encrypt, sa: ", data("sa.yaml"), ", mtu: 1600}")}};
  for (Case const& test : cases) {
    benchmark::RegisterBenchmark(
        concat("kernel/", test.name).c_str(),
        [device = device->get(), test](benchmark::State& state) { kernel_alone(state, device, test); })
        ->ArgNames({"packets", "bytes"})
        ->ArgsProduct({{4096, 16384}, {60, 508, 1514}})
        ->Repetitions(kRepeats)
        ->ReportAggregatesOnly()
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
