// SPDX-License-Identifier: Apache-2.0
#include "bench/simmer/run.hpp"

#include "base/core/own_program.hpp"
#include "bench/chains/launches.hpp"
#include "bench/chains/measure.hpp"
#include "bench/chains/unit_source.hpp"
#include "bench/common/forwarding_device.hpp"
#include "bench/common/machine.hpp"
#include "chain/chain_file.hpp"
#include "pipeline/device_servers.hpp"
#include "pipeline/session.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <functional>
#include <future>
#include <thread>
#include <utility>

namespace catena::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// Of a run, at which memory is looked at.
constexpr int kLooks = 8;
/// Of chains and of the servers that their processes have.
constexpr const char* kChainName = "simmer";
/// Compute units of the first, second and third NF of a chain, in the proportions that the paper gives MIG instances.
constexpr std::array<std::uint32_t, 3> kPartUnits{16, 48, 32};

double resident_mb() {
  std::ifstream in("/proc/self/statm");
  double all = 0;
  double resident = 0;
  in >> all >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
}

Status check_overloaded(runtime::Report const& report) {
  CATENA_RETURN_IF_ERROR(check_report(report));
  for (runtime::NfReport const& nf : report.nfs) {
    if (nf.isolation.restarts > 0) {
      return absl::DataLossError(concat("NF ", nf.name, ": its process began again ", nf.isolation.restarts, " times"));
    }
    if (nf.packets.in > 0 && nf.device.launches == 0) {
      return absl::UnavailableError(concat("NF ", nf.name, " worked without the device"));
    }
    for (io::NamedCount const& drop : nf.packets.drops) {
      if (drop.count > 0) {
        return absl::DataLossError(concat("NF ", nf.name, " dropped packets: ", drop.name));
      }
    }
  }
  return absl::OkStatus();
}

/// What happened between two moments of a run.
SimmerRun between(runtime::Report const& before, runtime::Report const& after, double seconds) {
  SimmerRun run;
  const auto rate = [seconds](std::uint64_t from, std::uint64_t to) {
    return static_cast<double>(to - from) / seconds;
  };
  run.packets_per_s = rate(before.tx.sent, after.tx.sent);
  run.received_per_s = rate(before.rx.received, after.rx.received);
  for (std::size_t i = 0; i < after.nfs.size(); ++i) {
    runtime::NfReport const& from = before.nfs[i];
    runtime::NfReport const& to = after.nfs[i];
    run.nfs.push_back({to.name, rate(from.packets.in, to.packets.in), rate(from.queue.drops, to.queue.drops),
                       rate(from.device.launches, to.device.launches)});
  }
  for (std::size_t i = 0; i < after.work.stages.size(); ++i) {
    run.busy.push_back({after.work.stages[i].name,
                        (after.work.stages[i].busy_seconds - before.work.stages[i].busy_seconds) / seconds});
  }
  std::ranges::stable_sort(run.busy, std::greater<>(), &BusyShare::share);
  return run;
}

/// Until the first packet is done, or the run ended.
void wait_for_first_packet(runtime::Session const& session, std::future<Status> const& outcome) {
  constexpr std::chrono::microseconds kPeriod{100};
  const auto until = Clock::now() + std::chrono::seconds(60);
  while (session.progress().sent == 0 && Clock::now() < until &&
         outcome.wait_for(kPeriod) != std::future_status::ready) {
  }
}

std::optional<double> kernel_us_of(std::vector<LaunchTimes> const& launches) {
  if (launches.empty() || launches.front().packets == 0) {
    return std::nullopt;
  }
  return launches.front().total_us[kKernel] / static_cast<double>(launches.front().packets);
}

}  // namespace

std::string_view to_string(GpuSharedAs shared_as) {
  switch (shared_as) {
    case GpuSharedAs::kProcess:
      return "process";
    case GpuSharedAs::kPartitioned:
      return "partitioned";
    case GpuSharedAs::kOneContext:
      return "one context";
  }
  return "";
}

std::string SimmerChain::title() const {
  std::string text;
  for (PaperNf const& nf : nfs) {
    text += concat(text.empty() ? "" : " -> ", nf.type);
  }
  return concat(text, has_two_flows ? "; half of the packets start at the second" : "");
}

std::vector<SimmerChain> const& simmer_chains() {
  const auto three = [](PaperNf const& nf, std::array<const char*, 3> names) {
    std::vector<PaperNf> nfs(names.size(), nf);
    for (std::size_t i = 0; i < names.size(); ++i) {
      nfs[i].name = names[i];
    }
    return nfs;
  };
  static const std::vector<SimmerChain> kChains{
      {"heterogeneous", {kGpuRouter, kGpuVpn, kGpuIds}},
      {"3 ipsec", three(kGpuVpn, {"vpn", "vpn2", "vpn3"})},
      {"3 nids", three(kGpuIds, {"ids", "ids2", "ids3"})},
      {"3 router", three(kGpuRouter, {"rt", "rt2", "rt3"})},
      {"dynamic heterogeneous", {kGpuRouter, kGpuVpn, kGpuIds}, true},
      {"dynamic 3 ipsec", three(kGpuVpn, {"vpn", "vpn2", "vpn3"}), true},
  };
  return kChains;
}

std::vector<SimmerChain> const& single_nfs() {
  static const std::vector<SimmerChain> kChains{{"router", {kGpuRouter}}, {"ipsec", {kGpuVpn}}, {"nids", {kGpuIds}}};
  return kChains;
}

SimmerChain const& simmer_chain(std::string_view name) {
  for (auto const* const chains : {&simmer_chains(), &single_nfs()}) {
    const auto found = std::ranges::find_if(*chains, [name](SimmerChain const& chain) { return name == chain.name; });
    if (found != chains->end()) {
      return *found;
    }
  }
  return simmer_chains().front();
}

std::string simmer_text(SimmerSpec const& spec, std::string const& device, std::vector<std::string> const& sa_files) {
  std::string text = fmt::format(
      "apiVersion: catena/v1\nkind: Chain\nmetadata: {{name: {}}}\nspec:\n"
      "  rx: {{replay: {{packet: {}, flows: {}, rate: {}}}}}\n  tx: null\n  device: {}\n  tuning: {{{}}}\n",
      kChainName, spec.wire_bytes - kFcsBytes, kFlows, spec.packets_per_s, device, spec.tuning);
  if (spec.mode != chain::FlowMode::kPool) {
    text += fmt::format("  flow: {{mode: {}, qt: {}}}\n",
                        spec.mode == chain::FlowMode::kVanilla ? "vanilla" : "backpressure", spec.qt);
  }
  text += "  nfs:\n";
  std::vector<PaperNf> const& nfs = spec.chain->nfs;
  for (std::size_t i = 0; i < nfs.size(); ++i) {
    text += fmt::format("    - {{name: {}, type: {}, on: gpu{}, config: {}}}\n", nfs[i].name, nfs[i].type,
                        spec.shared_as == GpuSharedAs::kProcess ? ", isolation: process" : "",
                        config_text(nfs[i], sa_files[i]));
  }
  if (spec.chain->has_two_flows) {
    // of the replay's flows every second one is UDP
    text += fmt::format(
        "  graph:\n    - {{from: rx, match: {{protocol: udp}}, to: {0}}}\n    - {{from: rx, to: {1}}}\n"
        "    - {{from: {0}, to: {1}}}\n    - {{from: {1}, to: {2}}}\n    - {{from: {2}, to: tx}}\n",
        nfs[0].name, nfs[1].name, nfs[2].name);
  }
  return text;
}

Result<std::unique_ptr<SimmerRunner>> SimmerRunner::create(device::DevicePreference const& preference,
                                                           Workplace const& workplace) {
  std::unique_ptr<SimmerRunner> runner(new SimmerRunner(preference, workplace));
  std::string why_not;
  CATENA_ASSIGN_OR_RETURN(runner->real_, device::open(preference, &why_not));
  if (!runner->real_) {
    return absl::UnavailableError(concat("there is no device that kernels could run on: ", why_not));
  }
  CATENA_ASSIGN_OR_RETURN(const std::string program, find_own_program("catena-device-server"));
  runner->servers_ = std::make_unique<device::remote::ServerPool>(device::remote::ServerPool::Options{program, {}});
  return runner;
}

/// The NFs have these parts of the device, in launches as large as the chain's.
Status SimmerRunner::give(std::span<const std::uint32_t> units, share::Mode mode, chain::ChainConfig const& config,
                          runtime::RunOptions& options) {
  const bool is_apart = share::is_apart(mode);
  CATENA_RETURN_IF_ERROR(real_->divide(is_apart ? units : units.first(1)).status());
  const std::uint32_t batch = config.tuning.units_per_launch * config.tuning.unit_packets;
  std::vector<share::Part> parts;
  std::uint32_t first = 0;
  for (const std::uint32_t of_nf : units) {
    parts.push_back({first, {of_nf, (batch + of_nf - 1) / of_nf}});
    first += is_apart ? of_nf : 0;
  }
  options.sharing =
      chain::SharingOptions{.mode = mode, .parts = share::Parts::kGreen, .compute_units = is_apart ? 0 : units.front()};
  options.partitions.given = runtime::GivenParts{[parts] { return parts; }, [](std::vector<share::Part> const&) {}};
  return absl::OkStatus();
}

Status SimmerRunner::share(SimmerSpec const& spec, chain::ChainConfig const& config, runtime::RunOptions& options) {
  if (spec.shared_as == GpuSharedAs::kPartitioned && config.nfs.size() > 1) {
    CATENA_RETURN_IF_ERROR(give(kPartUnits, share::Mode::kFair, config, options));
  } else if (spec.compute_units != 0) {
    const std::vector<std::uint32_t> units(config.nfs.size(), spec.compute_units);
    CATENA_RETURN_IF_ERROR(give(units, share::Mode::kUncoordinated, config, options));
  }
  if (spec.shared_as == GpuSharedAs::kProcess) {
    CATENA_ASSIGN_OR_RETURN(options.processes.program, find_own_program("catena-nf"));
    for (chain::NfConfig const& nf : config.nfs) {
      const std::string client = concat(kChainName, "/", nf.name);
      groups_[client] = servers_->group(client);
    }
    groups_[kChainName] = servers_->group(kChainName);
    runtime::use_servers(*servers_, {kChainName, kChainName, runtime::ServersFor::kProcess}, options);
    options.device_returns = false;
    return absl::OkStatus();
  }
  options.open_device = [this](device::DevicePreference const&,
                               std::string*) -> Result<std::unique_ptr<device::Device>> {
    return std::make_unique<ForwardingDevice>(*real_);
  };
  return absl::OkStatus();
}

Result<SimmerRun> SimmerRunner::run(SimmerSpec const& spec) {
  std::vector<std::string> sa_files;
  for (std::uint32_t i = 0; i < spec.chain->nfs.size(); ++i) {
    CATENA_ASSIGN_OR_RETURN(sa_files.emplace_back(), write_sa(workplace_->data, workplace_->folder, spi_of(i), 1));
  }
  CATENA_ASSIGN_OR_RETURN(chain::ChainConfig config,
                          chain::parse_chain(simmer_text(spec, device::to_string(preference_), sa_files),
                                             (workplace_->data / "simmer.yaml").string()));
  runtime::RunOptions options;
  options.trace = spec.trace;
  const std::size_t stages = config.nfs.size() + (spec.chain->has_two_flows ? 3 : 2);
  options.workers = std::clamp(usable_cores(), 1U, static_cast<std::uint32_t>(stages));
  options.profiles = chain::ProfileStore::from_environment();
  // units are full whoever waits for whom: small ones cost an NF in a process more, which is not what is compared
  if (spec.packets_per_s > 0) {
    options.make_source = [replay = config.rx.as<io::ReplayConfig>()]() mutable -> Result<std::unique_ptr<io::Source>> {
      const std::uint64_t packets_per_s = std::exchange(replay.packets_per_s, 0);
      CATENA_ASSIGN_OR_RETURN(std::unique_ptr<io::Source> source, io::make_replay(replay));
      return make_whole_units(std::move(source), packets_per_s);
    };
  }
  CATENA_RETURN_IF_ERROR(share(spec, config, options));
  CATENA_ASSIGN_OR_RETURN(const std::unique_ptr<runtime::Session> session,
                          runtime::Session::create(std::move(config), options, *workplace_->registry));
  std::future<Status> outcome = std::async(std::launch::async, [&session] { return session->run(); });
  wait_for_first_packet(*session, outcome);
  const auto wait = [](double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); };
  wait(spec.seconds * kWarmUpShare);
  const runtime::Report before = session->report();
  const double processor_before = processor_seconds();
  const Clock::time_point from = Clock::now();
  std::vector<double> memory_mb;
  std::vector<double> slots_in_use;
  for (int look = 0; look < kLooks; ++look) {
    wait(spec.seconds * (1 - kWarmUpShare) / kLooks);
    memory_mb.push_back(resident_mb());
    slots_in_use.push_back(static_cast<double>(session->report().rx.slots_in_use));
  }
  const runtime::Report after = session->report();
  const double seconds = std::chrono::duration<double>(Clock::now() - from).count();
  const double processor_after = processor_seconds();
  session->stop();
  const Status status = outcome.get();
  abandoned_ = abandoned_ || session->abandoned_device();
  CATENA_RETURN_IF_ERROR(status);
  const runtime::Report end = session->report();
  CATENA_RETURN_IF_ERROR(check_overloaded(end));
  SimmerRun run = between(before, after, seconds);
  run.process_cores = (processor_after - processor_before) / seconds;
  if (run.packets_per_s <= 0) {
    return absl::DataLossError("no packet left the chain");
  }
  for (runtime::NfReport const& nf : end.nfs) {
    run.dropped_inside += nf.queue.drops;
  }
  run.memory_mb = std::move(memory_mb);
  run.slots_in_use = std::move(slots_in_use);
  run.kernel_us = kernel_us_of(launch_times(session->traces()));
  return run;
}

}  // namespace catena::bench
