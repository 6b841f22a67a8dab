// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/flags.hpp"

#include "io/source.hpp"

#include "chain/chain_file.hpp"
#include "gpu/device/device.hpp"
#include "nf/integer.hpp"
#include "stack/copy/engine_table.hpp"

#include <catena/core/decimal.hpp>
#include <catena/core/text.hpp>

#include <absl/strings/ascii.h>
#include <absl/strings/str_split.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace catena::cli {
namespace {

std::string decimal_error(std::string const& value) {
  const std::string_view digits = std::string_view(value).substr(value.starts_with('-') ? 1 : 0);
  return parse_decimal(digits) ? std::string()
                               : concat("'", value, "' is no decimal number", leading_zeros_advice(value));
}

/// Empty if the option takes the text, or if the text is empty, which check_values() refuses.
std::string error_of(chain::OptionKey const& option, std::string const& text) {
  if (text.empty()) {
    return {};
  }
  chain::Key const& key = chain::key_of(option);
  const bool is_number = key.kind == chain::KeyKind::kInteger && std::ranges::find(key.words, text) == key.words.end();
  if (std::string error = is_number ? decimal_error(text) : std::string(); !error.empty()) {
    return error;
  }
  Status status = chain::check_option(option, text);
  if (status.ok() && key.kind != chain::KeyKind::kFile) {  // a file is the chain's to look at
    chain::ChainConfig scratch;
    status = chain::put_over({{std::string(option.name), text}}, scratch);
  }
  const std::string message(status.message());
  const std::string prefix = concat(chain::flag_of(option.name), ": ");  // which is printed anyway
  return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
}

std::string help_of(chain::OptionKey const& option) {
  if (option.port != nullptr) {
    return concat("Instead of the file's ", option.name, ": ",
                  option.name == "rx" ? chain::rx_option_help() : chain::tx_option_help());
  }
  if (option.name == "device") {
    return fmt::format("Instead of the file's device: auto, {} (or cuda:1 ...) or none; several: cuda:0,cuda:1",
                       fmt::join(device::backend_names(), ", "));
  }
  std::string help(chain::key_of(option).help);
  help.front() = absl::ascii_toupper(static_cast<unsigned char>(help.front()));
  return help;
}

/// "4096,4097"; numbers as in an SA file. InvalidArgument.
Result<std::set<std::uint32_t>> read_spis(std::string const& text) {
  std::set<std::uint32_t> spis;
  const std::vector<std::string> words = absl::StrSplit(text, ',');
  for (std::string const& word : words) {
    const std::optional<std::int64_t> spi = nf::parse_integer(word);
    if (!spi || *spi < 0 || *spi > std::numeric_limits<std::uint32_t>::max()) {
      return absl::InvalidArgumentError(concat("'", word, "' is no SPI; write the SPIs of the new keys, as 4096,4097"));
    }
    spis.insert(static_cast<std::uint32_t>(*spi));
  }
  return spis;
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

void add_option_key(CLI::App& command, std::string_view name, chain::GivenOptions& options) {
  chain::OptionKey const& option = *chain::find_option(name);
  const bool is_number = chain::key_of(option).kind == chain::KeyKind::kInteger;
  CLI::Option* added = command.add_option_function<std::string>(
      chain::flag_of(name), [&options, &option](std::string const& text) { options[std::string(option.name)] = text; },
      help_of(option));
  added->type_name(is_number ? "NUMBER" : "TEXT")
      ->check(CLI::Validator([&option](std::string const& text) { return error_of(option, text); }, ""));
  if (option.is_of_gpu) {
    added->group(kGpuGroup);
  }
}

void add_share_options(CLI::App& command, chain::GivenOptions& sharing) {
  for (const std::string_view name : {"share", "parts", "compute_units"}) {
    add_option_key(command, name, sharing);
  }
}

void add_device_servers(CLI::App& command, std::string& servers) {
  command
      .add_option("--device-servers", servers,
                  "Sharing of a device server: by all users of the device (default), by the chains of one tenant, or "
                  "not at all; chains of different servers share no GPU memory, and use the GPU in turn")
      ->group(kGpuGroup)
      ->check(CLI::IsMember({"device", "tenant", "process"}));
}

void add_chain_options(CLI::App& command, RunArguments& arguments) {
  command.add_option("chain", arguments.chain_file, "Chain file (YAML)")->required();
  for (chain::OptionKey const& option : chain::option_keys()) {
    add_option_key(command, option.name, arguments.options);
  }
}

void add_run_options(CLI::App& command, RunArguments& arguments) {
  add_chain_options(command, arguments);
  add_consents(command, arguments);
}

void add_consents(CLI::App& command, Consents& consents) {
  command
      .add_option_function<std::string>(
          "--new-keys", [&consents](std::string const& text) { consents.new_keys = read_spis(text).value(); },
          "The keys of these SPIs are unused, as 4096,4097: their associations may start without a state")
      ->type_name("SPI,...")
      ->check(
          CLI::Validator([](std::string const& text) { return std::string(read_spis(text).status().message()); }, ""));
  command.add_flag("--accept-loss", consents.accepts_loss,
                   "Replace a running chain even if packets or NF state are lost; without it such a change is refused");
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
