// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/flags.hpp"

#include "io/source.hpp"

#include "chain/chain_file.hpp"
#include "chain/planning.hpp"
#include "chain/workers.hpp"
#include "gpu/device/device.hpp"
#include "stack/copy/engine_table.hpp"

#include <catena/core/decimal.hpp>
#include <catena/core/text.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace catena::cli {
namespace {

/// For CLI11: what a parser of the library says of a value, empty if it takes it.
template <typename Parse>
CLI::Validator taken_by(Parse parse) {
  return CLI::Validator([parse](std::string& value) { return std::string(parse(value).status().message()); }, "");
}

std::string decimal_error(std::string const& value) {
  const std::string_view digits = std::string_view(value).substr(value.starts_with('-') ? 1 : 0);
  return parse_decimal(digits) ? std::string()
                               : concat("'", value, "' is no decimal number", leading_zeros_advice(value));
}

std::string empty_error(std::string const& value) {
  return value.empty() ? "the value is empty; leave the option out for its default" : "";
}

}  // namespace

void check_values(CLI::App& command) {
  for (CLI::Option* const option : command.get_options()) {
    if (option->nonpositional() && option->get_items_expected_min() > 0) {
      option->check(CLI::Validator(empty_error, ""));
    }
    if (const std::string type = option->get_type_name(); type.starts_with("UINT") || type.starts_with("INT")) {
      option->check(CLI::Validator(decimal_error, ""));
    }
  }
  for (CLI::App* const below : command.get_subcommands([](CLI::App*) { return true; })) {
    check_values(*below);
  }
}

std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  for (hostcopy::EngineKind const& kind : stack::engine_table()) {
    names.emplace_back(kind.name);
  }
  return names;
}

std::string device_texts() {
  return fmt::format("auto, {} (or cuda:1 ...) or none", fmt::join(device::backend_names(), ", "));
}

CLI::Validator device_names() { return taken_by(chain::parse_devices); }

void add_methods_option(CLI::App& command, RunArguments& arguments) {
  command
      .add_option("--methods", arguments.methods,
                  concat("Transfer methods allowed in plans, besides staged: ",
                         chain::method_names(std::span(kTransferMethods).subspan<1>()), "; default: all"))
      ->group(kGpuGroup)
      ->check(taken_by(chain::parse_methods_option));
}

void add_share_options(CLI::App& command, std::string& share, std::string& parts, std::uint32_t& compute_units) {
  CLI::Option* given =
      command
          .add_option(
              "--share", share,
              "How NFs on the gpu share it: scheduled, fair, uncoordinated or temporal; without it each takes all")
          ->group(kGpuGroup)
          ->check(CLI::IsMember({"scheduled", "fair", "uncoordinated", "temporal"}));
  command.add_option("--parts", parts, "With --share: kind of SM partition: green (contexts), blocks or none")
      ->group(kGpuGroup)
      ->check(CLI::IsMember({"green", "blocks", "none"}))
      ->needs(given);
  command.add_option("--compute-units", compute_units, "With --share: number of compute units to share; default: all")
      ->group(kGpuGroup)
      ->check(CLI::Range(1, 65536))
      ->needs(given);
}

void add_device_servers(CLI::App& command, std::string& servers) {
  command
      .add_option("--device-servers", servers,
                  "Sharing of a device server: by all users of the device (default), by the chains of one tenant, or "
                  "not at all; chains of different servers share no GPU memory, and use the GPU in turn")
      ->group(kGpuGroup)
      ->check(CLI::IsMember({"device", "tenant", "process"}));
}

void add_run_options(CLI::App& command, RunArguments& arguments) {
  command.add_option("chain", arguments.chain_file, "Chain file (YAML)")->required();
  command.add_option("--rx", arguments.rx, concat("Instead of the file's rx: ", chain::rx_option_help()))
      ->check(taken_by(chain::parse_rx_option));
  command.add_option("--tx", arguments.tx, concat("Instead of the file's tx: ", chain::tx_option_help()))
      ->check(taken_by(chain::parse_tx_option));
  command
      .add_option("--device", arguments.device,
                  concat("Instead of the file's device: ", device_texts(), "; several: cuda:0,cuda:1"))
      ->group(kGpuGroup)
      ->check(device_names());
  command.add_option("--record", arguments.record, "Write one JSON line per packet and NF decision to this file");
  command.add_option("--eve", arguments.eve, "Write alerts to this file, as JSON lines in the form of Suricata's EVE");
  command
      .add_option("--trace", arguments.trace,
                  "Write a time line of the launches on the device to this file, for chrome://tracing or Perfetto")
      ->group(kGpuGroup);
  command.add_option("--sync", arguments.sync, "Transfers between host and device: adaptive (default), shared or copy")
      ->group(kGpuGroup)
      ->check(CLI::IsMember({"copy", "shared", "adaptive"}));
  command
      .add_option("--pushdown", arguments.pushdown, "Whether --sync adaptive may move packets ahead of need: on, off")
      ->group(kGpuGroup)
      ->check(CLI::IsMember({"on", "off"}));
  add_methods_option(command, arguments);
  command.add_option("--profile", arguments.profile, "Cost profile (file of `catena profile`) instead of the device's")
      ->group(kGpuGroup);
  add_share_options(command, arguments.share, arguments.parts, arguments.compute_units);
  command
      .add_option("--workers", arguments.workers,
                  "Threads that poll the stages; default: one per core, at most one per stage")
      ->check(CLI::Range(1, 256));
  command.add_option("--cores", arguments.cores, "Cores for the workers, used in turn: 0,2-5")
      ->check(taken_by(chain::parse_cores));
  command.add_flag("--new-keys", arguments.new_keys,
                   "All keys of the chain are unused: associations may start without a state");
}

CLI::App* add_profile_command(CLI::App& app, ProfileArguments& arguments) {
  constexpr double kMaxSeconds = 3600;
  CLI::App* profile = app.add_subcommand(
      "profile",
      "Measure the costs of moving packets, or of a chain's NFs, on this machine; runs and plans then use them");
  std::vector<std::string> devices = device::preference_names();
  std::erase(devices, "none");
  profile->add_option("--device", arguments.device, fmt::format("{}", fmt::join(devices, ", ")))
      ->check(CLI::IsMember(devices));
  profile->add_option("--output", arguments.output,
                      "Write the profile to this file instead of keeping it for this user");
  CLI::Option* nf =
      profile->add_option("--nf", arguments.chain_file,
                          "Measure the NFs of this chain file on the CPU, with `on: gpu` or `on: auto` also "
                          "on the device, and add them to the profile");
  profile->add_option("--packet-bytes", arguments.packet_bytes, "With --nf: sizes of frames, without FCS: 64,512,1518")
      ->delimiter(',')
      ->check(CLI::Range(io::kMinGeneratedBytes, std::uint32_t{packet::kMaxFrameBytes}))
      ->needs(nf);
  profile->add_option("--seconds", arguments.seconds, "With --nf: approximate duration in seconds; default: 60")
      ->check(CLI::Range(0.0, kMaxSeconds))
      ->needs(nf);
  CLI::Option* copies =
      profile
          ->add_flag("--copies", arguments.copies,
                     "Measure the engines that copy within host memory; `catena stack run` then uses their costs")
          ->excludes(nf);
  profile->add_option("--engine", arguments.engine, "With --copies: measure this one and the CPU; default: all")
      ->check(CLI::IsMember(engine_names()))
      ->needs(copies);
  profile->add_flag("--json", arguments.json, "Result as one JSON object");
  return profile;
}

}  // namespace catena::cli
