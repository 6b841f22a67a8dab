// SPDX-License-Identifier: Apache-2.0
#include "bench/nca.hpp"
#include "bench/paper.hpp"
#include "cli/commands.hpp"
#include "cli/fail.hpp"
#include "cli/known_nfs.hpp"

#include <cstdlib>
#include <iostream>
#include <string>

namespace catena::cli {

int bench_paper(PaperArguments const& arguments, std::string const& nf_path) {
  const Result<device::DevicePreference> device = device::parse_preference(arguments.device);
  if (!device.ok()) {
    return fail(device.status());
  }
  const Result<nf::Registry> registry = known_nfs(nf_path);
  if (!registry.ok()) {
    return fail(registry.status());
  }
  bench::PaperOptions options;
  options.device = *device;
  options.chains = arguments.chains;
  options.wire_bytes = arguments.sizes;
  options.parts = arguments.parts;
  options.seconds = arguments.seconds;
  options.repeats = arguments.repeats;
  options.replicas = arguments.replicas == "auto" ? 0 : static_cast<std::uint32_t>(std::stoul(arguments.replicas));
  options.output = arguments.output;
  options.data = arguments.data;
  options.tuning = arguments.tuning;
  options.quick = arguments.quick;
  options.command = arguments.command;
  const Result<bench::Results> results =
      bench::run_paper(options, *registry, [](std::string const& line) { std::cerr << line << std::endl; });
  if (!results.ok()) {
    return fail(results.status());
  }
  std::cout << arguments.output << "/README.md: " << results->cells.size() << " measurements, "
            << results->failed_cells() << " failed; " << results->samples_compared()
            << " packets compared with the CPU's, " << results->samples_different() << " different" << std::endl;
  const int exit_status = results->failed_cells() == 0 && results->samples_different() == 0 ? kExitOk : kExitFailed;
  if (results->abandoned) {
    // a kernel that never ended would keep the driver's own clean-up waiting for ever
    std::_Exit(exit_status);
  }
  return exit_status;
}

int bench_nca(NcaArguments const& arguments) {
  bench::NcaOptions options;
  options.device = arguments.device;
  options.parts = arguments.parts;
  options.seconds = arguments.seconds;
  options.repeats = arguments.repeats;
  options.streams = arguments.streams;
  options.threads = arguments.threads;
  options.queues = arguments.queues;
  options.output = arguments.output;
  options.data = arguments.data;
  options.quick = arguments.quick;
  options.command = arguments.command;
  const Result<bench::NcaResults> results =
      bench::run_nca_bench(options, [](std::string const& line) { std::cerr << line << std::endl; });
  if (!results.ok()) {
    return fail(results.status());
  }
  std::cout << arguments.output << "/README.md: " << results->cells.size() << " measurements, "
            << results->failed_cells() << " failed" << std::endl;
  return results->failed_cells() == 0 ? kExitOk : kExitFailed;
}

}  // namespace catena::cli
