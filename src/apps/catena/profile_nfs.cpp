// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/commands.hpp"
#include "apps/catena/fail.hpp"
#include "apps/catena/known_nfs.hpp"
#include "apps/catena/progress_line.hpp"
#include "apps/catena/style.hpp"
#include "chain/cost_profile.hpp"
#include "profile/nf_measure.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace catena::cli {
namespace {

using Json = nlohmann::ordered_json;
using profile::CpuMeasurement;
using profile::NfMeasurement;
using profile::NfModel;

constexpr double kUs = 1e3;
constexpr double kMega = 1e6;

/// What was measured, and where it is kept.
struct Measured {
  profile::NfMeasurements results;
  chain::CostProfile profile;
  std::string file;
};

// ---- as text

void print_line(std::string_view name, std::string_view over, profile::LineFit const& line) {
  std::cout << fmt::format(
      "  {:<9} {:>10.4f} ns per packet of {} + {:.2f} us   R2 {:.4f}   off by {:+.1f} % at worst, at {:.0f} packets\n",
      name, line.fit.line.slope, over, line.fit.line.intercept / kUs, line.fit.r_squared, line.worst_percent,
      line.worst_at);
}

void print_comparison(NfModel const& model, profile::NfTimes const& times) {
  std::cout << fmt::format("\n  {:>8}  {:>10} {:>10}   {:>10} {:>10} {:>8}   {:>9} {:>9} {:>8}\n", "packets",
                           "kernel us", "transf. us", "trip us", "predicted", "error", "Mpps", "predicted", "error");
  const std::vector<profile::Comparison> rows = profile::compare(model, times);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    profile::Comparison const& row = rows[i];
    profile::LaunchPoint const& launch = times.launches[i];
    std::cout << fmt::format(
        "  {:>8}  {:>10.2f} {:>10.2f}   {:>10.2f} {:>10.2f} {:>+6.1f} %   {:>9.3f} {:>9.3f} {:>+6.1f} %\n", row.packets,
        launch.kernel_ns / kUs, launch.transfer_ns / kUs, row.measured_ns / kUs, row.predicted_ns / kUs,
        row.latency_error_percent, row.measured_per_s / kMega, row.predicted_per_s / kMega,
        row.throughput_error_percent);
  }
}

/// The kernel's time over packets, a column for each part of the device.
void print_parts(profile::NfTimes const& times) {
  std::set<std::uint32_t> parts;
  std::map<std::uint32_t, std::map<std::uint32_t, double>> ns;
  for (profile::KernelPoint const& point : times.kernels) {
    parts.insert(point.sms);
    ns[point.packets][point.sms] = point.kernel_ns;
  }
  if (parts.empty()) {
    return;
  }
  std::cout << fmt::format("\n  {:>8}  kernel us by number of SMs\n  {:>8}", "packets", "");
  for (const std::uint32_t sms : parts) {
    std::cout << fmt::format("  {:>9}", sms);
  }
  for (auto const& [packets, row] : ns) {
    std::cout << fmt::format("\n  {:>8}", packets);
    for (const std::uint32_t sms : parts) {
      const auto found = row.find(sms);
      std::cout << (found == row.end() ? fmt::format("  {:>9}", "-") : fmt::format("  {:>9.2f}", found->second / kUs));
    }
  }
  std::cout << '\n';
}

/// What an NF takes on the device, under the line of its CPU time.
void print(NfMeasurement const& nf) {
  if (!nf.why_not.empty()) {
    std::cout << "  not measured on the device: " << nf.why_not << '\n';
    return;
  }
  const NfModel model = profile::model_of(nf.times);
  print_line("kernel", fmt::format("one of {} SMs", model.kernel_sms), model.kernel);
  print_line("transfers", "a launch", model.transfer);
  std::cout << fmt::format(
      "  host      {:>10.4f} ns per packet of a launch; C {:.2f} us; up to {} packets per SM; its cores work {:.2f} ns "
      "per packet\n",
      model.host_ns_per_packet, model.cost.overhead_ns / kUs, model.cost.max_packets_per_sm,
      model.cost.cpu_ns_per_packet);
  if (nf.host_alone_ns.value_or(0) > 0) {
    std::cout << fmt::format("            {:>10.2f} ns per packet where the NFs beside it are on the CPU\n",
                             *nf.host_alone_ns);
  }
  print_comparison(model, nf.times);
  print_parts(nf.times);
}

void print(CpuMeasurement const& nf) {
  std::cout << fmt::format("\n{} ({}, {}), packets of {} bytes\n", nf.name, nf.key.type, nf.key.configuration,
                           nf.packet_bytes);
  std::cout << (nf.why_not.empty() ? fmt::format("  cpu       {:>10.2f} ns per packet on one core, {:.1f} % from the "
                                                 "fastest run to the slowest\n",
                                                 nf.ns_per_packet, nf.spread_percent)
                                   : concat("  not measured on the CPU: ", nf.why_not, "\n"));
  if (nf.why_not.empty() && nf.after_gpu_ns > 0) {
    std::cout << fmt::format("            {:>10.2f} where the NF before it is on the device\n", nf.after_gpu_ns);
  }
}

void print(profile::EndsMeasurement const& ends) {
  std::cout << fmt::format("\nends, packets of {} bytes\n  rx        {:>10.2f} ns per packet on one core, tx {:.2f}\n",
                           ends.packet_bytes, ends.times.rx_ns, ends.times.tx_ns);
}

void print(Measured const& measured) {
  profile::NfMeasurements const& results = measured.results;
  std::cout << concat("device    ", measured.profile.device, " (", measured.profile.backend, "), ",
                      measured.profile.driver, "\npackets   ", results.traffic,
                      " (and the other sizes), through the chain's NFs in their order\ncosts     ",
                      chain::describe(measured.profile), "\n");
  if (!results.why_no_parts.empty()) {
    std::cout << "SMs       kernels were measured on all of the device alone: " << results.why_no_parts << '\n';
  }
  for (std::string const& note : results.notes) {
    std::cout << "note      " << note << '\n';
  }
  for (CpuMeasurement const& nf : results.on_cpu) {
    print(nf);
    const auto on_device = std::ranges::find_if(results.nfs, [&nf](NfMeasurement const& other) {
      return other.name == nf.name && other.packet_bytes == nf.packet_bytes;
    });
    if (on_device != results.nfs.end()) {
      print(*on_device);
    }
  }
  for (profile::EndsMeasurement const& ends : results.ends) {
    print(ends);
  }
}

// ---- as JSON

Json line_as_json(profile::LineFit const& line) {
  return {{"fixed_ns", line.fit.line.intercept},
          {"per_packet_ns", line.fit.line.slope},
          {"r_squared", line.fit.r_squared},
          {"worst_percent", line.worst_percent},
          {"worst_at_packets", line.worst_at}};
}

Json if_measured(double ns) { return ns > 0 ? Json(ns) : Json(); }

/// Whose measurement it is, and why there is none.
template <typename Measurement>
Json whose_as_json(Measurement const& nf) {
  Json json{{"name", nf.name},
            {"type", nf.key.type},
            {"configuration", nf.key.configuration},
            {"packet_bytes", nf.packet_bytes}};
  if (!nf.why_not.empty()) {
    json["not_measured"] = nf.why_not;
  }
  return json;
}

Json as_json(CpuMeasurement const& nf) {
  Json json = whose_as_json(nf);
  if (nf.why_not.empty()) {
    json["ns_per_packet"] = nf.ns_per_packet;
    json["spread_percent"] = nf.spread_percent;
    json["after_gpu_ns_per_packet"] = if_measured(nf.after_gpu_ns);
  }
  return json;
}

Json as_json(NfMeasurement const& nf) {
  Json json = whose_as_json(nf);
  if (!nf.why_not.empty()) {
    return json;
  }
  const NfModel model = profile::model_of(nf.times);
  json["kernel"] = line_as_json(model.kernel);
  json["kernel"]["sms"] = model.kernel_sms;
  json["transfer"] = line_as_json(model.transfer);
  json["host_ns_per_packet"] = model.host_ns_per_packet;
  json["cpu_ns_per_packet"] = model.cost.cpu_ns_per_packet;
  json["cpu_alone_ns_per_packet"] = if_measured(nf.host_alone_ns.value_or(0));
  json["overhead_ns"] = model.cost.overhead_ns;
  json["max_packets_per_sm"] = model.cost.max_packets_per_sm;
  json["launches"] = Json::array();
  const std::vector<profile::Comparison> rows = profile::compare(model, nf.times);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    json["launches"].push_back({{"packets", rows[i].packets},
                                {"kernel_ns", nf.times.launches[i].kernel_ns},
                                {"transfer_ns", nf.times.launches[i].transfer_ns},
                                {"round_trip_ns", rows[i].measured_ns},
                                {"predicted_ns", rows[i].predicted_ns},
                                {"latency_error_percent", rows[i].latency_error_percent},
                                {"packets_per_s", rows[i].measured_per_s},
                                {"predicted_packets_per_s", rows[i].predicted_per_s},
                                {"throughput_error_percent", rows[i].throughput_error_percent}});
  }
  json["kernel_by_sms"] = Json::array();
  for (profile::KernelPoint const& point : nf.times.kernels) {
    json["kernel_by_sms"].push_back({{"sms", point.sms}, {"packets", point.packets}, {"kernel_ns", point.kernel_ns}});
  }
  return json;
}

Json as_json(Measured const& measured, bool saved) {
  profile::NfMeasurements const& results = measured.results;
  Json json{
      {"device",
       {{"backend", measured.profile.backend}, {"name", measured.profile.device}, {"driver", measured.profile.driver}}},
      {"cost_profile", chain::describe(measured.profile)},
      {"packets", results.traffic},
      {"file", saved ? measured.file : ""},
      {"notes", results.notes},
      {"nfs", Json::array()}};
  if (!results.why_no_parts.empty()) {
    json["kernel_by_sms_left_out"] = results.why_no_parts;
  }
  for (NfMeasurement const& nf : results.nfs) {
    json["nfs"].push_back(as_json(nf));
  }
  json["nfs_on_cpu"] = Json::array();
  for (CpuMeasurement const& nf : results.on_cpu) {
    json["nfs_on_cpu"].push_back(as_json(nf));
  }
  json["ends"] = Json::array();
  for (profile::EndsMeasurement const& ends : results.ends) {
    json["ends"].push_back({{"packet_bytes", ends.packet_bytes},
                            {"rx_ns_per_packet", ends.times.rx_ns},
                            {"tx_ns_per_packet", ends.times.tx_ns}});
  }
  return json;
}

// ---- the measurement

/// The profile that NFs are added to: what is in `file`, else what this user has of the device, else a new one.
Result<chain::CostProfile> profile_of(device::Device& device, std::string const& file) {
  device::DeviceInfo const& info = device.info();
  Result<chain::CostProfile> there = chain::load_profile(file);
  if (!absl::IsNotFound(there.status())) {
    CATENA_RETURN_IF_ERROR(there.status());
    return there->is_of(info)
               ? there
               : absl::InvalidArgumentError(concat(file, ": of another device, '", there->device, "' with '",
                                                   there->driver, "'; write to another file with --output"));
  }
  chain::CostProfile kept = chain::ProfileStore::from_environment().find(info);
  if (!kept.measured.empty()) {
    return kept;
  }
  std::cerr << "this device has no profile: measuring the costs of moving packets first\n";
  ProgressLine line;
  CATENA_ASSIGN_OR_RETURN(
      const plan::CostModel costs,
      profile::measure(device, [&line](profile::MeasureProgress const& progress) { line.show(progress); }));
  return chain::CostProfile::of(info, costs);
}

Result<Measured> measure(ProfileArguments const& arguments, std::string const& nf_path) {
  CATENA_ASSIGN_OR_RETURN(const chain::ChainConfig config,
                          chain::load_chain(arguments.chain_file, {}, chain::environment_variables()));
  CATENA_ASSIGN_OR_RETURN(const nf::Registry registry, known_nfs(nf_path));
  // what is wrong with the chain is said before anything is measured
  CATENA_RETURN_IF_ERROR(chain::plan_chain(config, {}, registry).status());
  CATENA_ASSIGN_OR_RETURN(const device::DevicePreference choice, device::parse_preference(arguments.device));
  std::string why;
  CATENA_ASSIGN_OR_RETURN(const std::unique_ptr<device::Device> device, device::open(choice, &why));
  if (!device) {
    return absl::UnavailableError(concat("no device to measure:\n", why));
  }
  device::DeviceInfo const& info = device->info();
  Measured measured;
  measured.file =
      arguments.output.empty() ? chain::ProfileStore::from_environment().file_of(info).string() : arguments.output;
  if (measured.file.empty()) {
    return absl::UnavailableError("no folder for the profile: set HOME, or use --output FILE");
  }
  std::cerr << fmt::format("measuring NFs on {} ({}): about {:.0f} seconds, in which nothing else should run\n",
                           info.name, info.backend, arguments.seconds)
            << (why.empty() ? "" : concat("not used: ", why, "\n"));
  CATENA_ASSIGN_OR_RETURN(measured.profile, profile_of(*device, measured.file));
  profile::NfMeasureOptions options;
  options.packet_bytes = arguments.packet_bytes;
  options.limit =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(arguments.seconds));
  chain::SyncOptions sync;
  sync.profile = measured.profile;
  ProgressLine line;
  CATENA_ASSIGN_OR_RETURN(measured.results, profile::measure_nfs(*device, config, registry, sync, options,
                                                                 [&line](profile::MeasureProgress const& progress) {
                                                                   line.show(progress);
                                                                 }));
  profile::keep(measured.results, measured.profile);
  return measured;
}

}  // namespace

int profile_nfs(ProfileArguments const& arguments, std::string const& nf_path) {
  const Result<Measured> measured = measure(arguments, nf_path);
  if (!measured.ok()) {
    return fail(measured.status(), arguments.json);
  }
  const Status saved = chain::save_profile(measured->profile, measured->file);
  if (arguments.json) {
    print_json(std::cout, as_json(*measured, saved.ok()));
  } else {
    print(*measured);
    if (saved.ok()) {
      std::cout << concat("\nsaved     ", measured->file, "\n");
    }
  }
  return saved.ok() ? kExitOk : fail(saved);
}

}  // namespace catena::cli
