// SPDX-License-Identifier: Apache-2.0
// catena-bench: measures whole chains, how NFs share a GPU, what overload costs, the checks of kernels and the C
// library on this machine, and writes a page for each.
#include <CLI/CLI.hpp>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include "bench/adaptchain/adaptchain.hpp"
#include "bench/gnet/gnet.hpp"
#include "bench/isoptr/isoptr.hpp"
#include "bench/nca/nca.hpp"
#include "bench/simmer/simmer.hpp"
#include "nf/registry.hpp"

namespace catena::bench {
namespace {

enum ExitStatus : int { kOk = 0, kFailed = 1, kUsage = 2 };

int fail(Status const& status) {
  std::cerr << "catena-bench: " << status.message() << '\n';
  return kFailed;
}

void say(std::string const& line) { std::cerr << line << std::endl; }

/// The exit status of chains that were measured, after a line about them.
template <typename ChainResults>
int finish(ChainResults const& results, std::string const& output) {
  std::cout << output << "/README.md: " << results.cells.size() << " measurements, " << results.failed_cells()
            << " failed; " << results.samples_compared() << " packets compared with the CPU's, "
            << results.samples_different() << " different" << std::endl;
  const int status = results.failed_cells() == 0 && results.samples_different() == 0 ? kOk : kFailed;
  if (results.abandoned) {
    // a kernel that never ended would keep the driver's own clean-up waiting for ever
    std::_Exit(status);
  }
  return status;
}

/// Fails where a measurement failed, or where a device made other packets than the CPU.
int run(PaperOptions options, std::string const& device, std::string const& replicas) {
  const Result<device::DevicePreference> preference = device::parse_preference(device);
  if (!preference.ok()) {
    return fail(preference.status());
  }
  options.device = *preference;
  options.replicas = replicas == "best" ? kBestReplicas : static_cast<std::uint32_t>(std::stoul(replicas));
  nf::Registry const& registry = nf::builtin_nfs();
  const Result<Results> results = run_paper(options, registry, say);
  if (!results.ok()) {
    return fail(results.status());
  }
  return finish(*results, options.output);
}

/// Fails where a measurement failed, or where a kernel made other packets than the CPU.
int run(IsoPtrOptions options, std::string const& device) {
  const Result<device::DevicePreference> preference = device::parse_preference(device);
  if (!preference.ok()) {
    return fail(preference.status());
  }
  options.device = *preference;
  nf::Registry const& registry = nf::builtin_nfs();
  const Result<IsoPtrResults> results = run_isoptr(options, registry, say);
  if (!results.ok()) {
    return fail(results.status());
  }
  return finish(*results, options.output);
}

/// Fails where a measurement failed, or where a way to share made other packets than the CPU.
int run(GnetOptions options, std::string const& device) {
  const Result<device::DevicePreference> preference = device::parse_preference(device);
  if (!preference.ok()) {
    return fail(preference.status());
  }
  options.device = *preference;
  const Result<GnetResults> results = run_gnet(options, nf::builtin_nfs(), say);
  if (!results.ok()) {
    return fail(results.status());
  }
  return finish(*results, options.output);
}

/// Fails where a measurement failed.
int run(SimmerOptions options, std::string const& device) {
  const Result<device::DevicePreference> preference = device::parse_preference(device);
  if (!preference.ok()) {
    return fail(preference.status());
  }
  options.device = *preference;
  const Result<SimmerResults> results = run_simmer(options, nf::builtin_nfs(), say);
  if (!results.ok()) {
    return fail(results.status());
  }
  std::cout << options.output << "/README.md: " << results->cells.size() << " measurements of chains, "
            << results->failed_cells() << " failed" << std::endl;
  const int status = results->failed_cells() == 0 ? kOk : kFailed;
  if (results->abandoned) {
    // a kernel that never ended would keep the driver's own clean-up waiting for ever
    std::_Exit(status);
  }
  return status;
}

/// Fails where a measurement failed, or where the library found other matches than Hyperscan.
int run(NcaOptions const& options) {
  const Result<NcaResults> results = run_nca_bench(options, say);
  if (!results.ok()) {
    return fail(results.status());
  }
  std::cout << options.output << "/README.md: " << results->cells.size() << " measurements, " << results->failed_cells()
            << " failed" << std::endl;
  return results->failed_cells() == 0 ? kOk : kFailed;
}

/// What all benchmarks take.
template <typename Options>
void add_common_options(CLI::App& command, Options& options) {
  command.add_option("--parts", options.parts, "Parts of the benchmark, with commas; default: all")->delimiter(',');
  command.add_option("--seconds", options.seconds, "Length of a run, of which a quarter is warm-up")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  command.add_option("--repeats", options.repeats, "Runs of each measurement")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command.add_option("--output", options.output, "Folder for results.json, README.md and figures")
      ->capture_default_str();
  command.add_option("--data", options.data, "Folder of the benchmark's files; default: that of the source tree");
}

int bench(int argc, char** argv) {
  CLI::App app{"Measures whole chains, the checks of kernels, and the C library, on this machine."};
  app.require_subcommand(1);
  std::string typed;
  for (int i = 0; i < argc; ++i) {
    typed += (i == 0 ? "" : " ") + std::string(argv[i]);
  }
  int status = kOk;

  PaperOptions paper;
  paper.output = "bench-adaptchain";
  paper.command = typed;
  std::string device = "auto";
  std::string replicas = "best";
  CLI::App* adaptchain =
      app.add_subcommand("adaptchain", "The comparisons of the AdaptChain paper, as a page with figures");
  adaptchain->add_option("--device", device, "auto, cuda or opencl")
      ->check(CLI::IsMember({"auto", "cuda", "opencl"}))
      ->capture_default_str();
  adaptchain->add_option("--chains", paper.chains, "Of C1 to C5, C1-decrypt ..., IPsec, F ...; default: all")
      ->delimiter(',');
  adaptchain->add_option("--modes", paper.modes, "Of the page's modes, with ';' in between; default: all")
      ->delimiter(';');
  adaptchain->add_option("--sizes", paper.wire_bytes, "Frames in bytes with FCS; default: 64,128,256,512,1024,1518")
      ->delimiter(',');
  adaptchain->add_option("--replicas", replicas, "Copies of the chain side by side, or best: the fastest of 1, 2 and 3")
      ->check(CLI::Range(1, 64) | CLI::IsMember({"best"}))
      ->capture_default_str();
  adaptchain->add_option("--tuning", paper.tuning, "Instead of the benchmark's tuning: \"pool_slots: 65536, ...\"");
  adaptchain->add_flag("--resume", paper.resume, "Keep the tables that the output folder has as a whole");
  adaptchain->add_flag("--quick", paper.quick, "One short repeat of two sizes");
  add_common_options(*adaptchain, paper);
  adaptchain->callback([&] { status = run(paper, device, replicas); });

  IsoPtrOptions isoptr;
  isoptr.output = "bench-isoptr";
  isoptr.command = typed;
  CLI::App* checks = app.add_subcommand(
      "isoptr", "What the checks of pointers in kernels cost: kernels and chains of G-NET, as a page with figures");
  checks->add_option("--device", device, "auto, cuda or opencl")
      ->check(CLI::IsMember({"auto", "cuda", "opencl"}))
      ->capture_default_str();
  checks->add_option("--names", isoptr.names, "Of firewall, ipsec-encrypt ... and S_a to S_d; default: all")
      ->delimiter(',');
  checks->add_option("--sizes", isoptr.wire_bytes, "Frames in bytes with FCS; default: 64,512,1518")->delimiter(',');
  checks->add_option("--packets", isoptr.packets, "Of a kernel's launch; default: 4096,65536")->delimiter(',');
  checks->add_option("--kernel-seconds", isoptr.kernel_seconds, "Length of a run of a kernel")
      ->check(CLI::Range(0.0001, 60.0))
      ->capture_default_str();
  checks->add_option("--tuning", isoptr.tuning, "Instead of the benchmark's tuning: \"pool_slots: 65536, ...\"");
  checks->add_flag("--quick", isoptr.quick, "One short repeat and smaller launches");
  add_common_options(*checks, isoptr);
  checks->callback([&] { status = run(isoptr, device); });

  GnetOptions gnet;
  gnet.output = "bench-gnet";
  gnet.command = typed;
  CLI::App* sharing = app.add_subcommand("gnet", "How the NFs of a chain share a GPU, as the G-NET paper measures it");
  sharing->add_option("--device", device, "auto, cuda or opencl")
      ->check(CLI::IsMember({"auto", "cuda", "opencl"}))
      ->capture_default_str();
  sharing->add_option("--chains", gnet.chains, "Of S_a to S_d; default: all")->delimiter(',');
  sharing->add_option("--sizes", gnet.wire_bytes, "Frames in bytes with FCS; default: 64,128,256,512,1024,1518")
      ->delimiter(',');
  sharing->add_option("--compute-units", gnet.units, "That are shared, 0 for all; default: 32,0")->delimiter(',');
  sharing->add_option("--profile-seconds", gnet.profile_seconds, "About how long the NFs are measured first")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  sharing->add_option("--tuning", gnet.tuning, "Instead of the benchmark's tuning: \"pool_slots: 65536, ...\"");
  sharing->add_flag("--resume", gnet.resume, "Keep the cells that the output folder has");
  sharing->add_flag("--quick", gnet.quick, "One short repeat of one size");
  add_common_options(*sharing, gnet);
  sharing->callback([&] { status = run(gnet, device); });

  SimmerOptions simmer;
  simmer.output = "bench-simmer";
  simmer.command = typed;
  CLI::App* overload = app.add_subcommand(
      "simmer", "Back-pressure beside rings that drop, in chains that share a GPU, as the Simmer paper measures it");
  overload->add_option("--device", device, "auto, cuda or opencl")
      ->check(CLI::IsMember({"auto", "cuda", "opencl"}))
      ->capture_default_str();
  overload->add_option("--sizes", simmer.wire_bytes, "Frames in bytes with FCS; default: 128,256,512,1024,1472")
      ->delimiter(',');
  overload->add_option("--qt", simmer.qts, "Batches that may wait for an NF; default: 1.5,2,2.4,2.8,3.2,3.6,4")
      ->delimiter(',');
  overload->add_option("--compute-units", simmer.compute_units, "That NFs without parts share; default: all");
  overload->add_option("--tuning", simmer.tuning, "Instead of the benchmark's tuning: \"pool_slots: 65536, ...\"");
  overload->add_flag("--quick", simmer.quick, "One short repeat of less");
  add_common_options(*overload, simmer);
  overload->callback([&] { status = run(simmer, device); });

  NcaOptions nca;
  nca.output = "bench-nca";
  nca.command = typed;
  CLI::App* draft = app.add_subcommand(
      "nca", "The C library, as the NFV Compute Acceleration draft measures it, as a page with figures");
  draft->add_option("--device", nca.device, "auto, cuda, opencl or cpu")
      ->check(CLI::IsMember({"auto", "cuda", "opencl", "cpu"}))
      ->capture_default_str();
  draft->add_option("--streams", nca.streams, "Streams of the application; default: 4 with CUDA, else 1")
      ->check(CLI::Range(1, 64));
  draft->add_option("--threads", nca.threads, "Threads that add packets, a stream; default: 2 with CUDA, else 1")
      ->check(CLI::Range(1, 64));
  draft->add_option("--queues", nca.queues, "Queues of a stream")->check(CLI::Range(1, 62))->capture_default_str();
  draft->add_option("--packets", nca.packets, "Packets of a buffer")
      ->check(CLI::Range(64, 65536))
      ->capture_default_str();
  draft->add_flag("--quick", nca.quick, "One short repeat of fewer and smaller buffers");
  add_common_options(*draft, nca);
  draft->callback([&] { status = run(nca); });

  try {
    app.parse(argc, argv);
  } catch (CLI::ParseError const& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  } catch (std::exception const& error) {
    // libraries below may throw (out of memory); nothing of ours does
    std::cerr << "catena-bench: " << error.what() << '\n';
    return kFailed;
  }
  return status;
}

}  // namespace
}  // namespace catena::bench

int main(int argc, char** argv) { return catena::bench::bench(argc, argv); }
