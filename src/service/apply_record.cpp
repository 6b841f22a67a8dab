// SPDX-License-Identifier: Apache-2.0
#include "service/apply_record.hpp"

#include "chain/chain_file.hpp"

#include <catena/core/text.hpp>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

namespace catena::service {
namespace {

using Json = nlohmann::ordered_json;
using chain::OptionTexts;

enum class Names { kNothing, kFile, kPort };

struct TextOption {
  std::string_view name;
  std::string OptionTexts::*text;
  Names names = Names::kNothing;
};

constexpr std::array kTexts{
    TextOption{"rx", &OptionTexts::rx, Names::kPort},
    TextOption{"tx", &OptionTexts::tx, Names::kPort},
    TextOption{"device", &OptionTexts::device},
    TextOption{"record", &OptionTexts::record, Names::kFile},
    TextOption{"eve", &OptionTexts::eve, Names::kFile},
    TextOption{"trace", &OptionTexts::trace, Names::kFile},
    TextOption{"sync", &OptionTexts::sync},
    TextOption{"pushdown", &OptionTexts::pushdown},
    TextOption{"methods", &OptionTexts::methods},
    TextOption{"profile", &OptionTexts::profile, Names::kFile},
    TextOption{"share", &OptionTexts::share},
    TextOption{"parts", &OptionTexts::parts},
    TextOption{"cores", &OptionTexts::cores},
};
constexpr std::uint32_t kMaxWorkers = 256;
constexpr std::uint32_t kMaxComputeUnits = 65536;

Status wrong(std::string_view name, std::string_view allowed) {
  return absl::InvalidArgumentError(concat("options: '", name, "': allowed: ", allowed));
}

Status check_file(TextOption const& option, std::string_view text) {
  if (option.names == Names::kPort) {
    const std::optional<std::string_view> file = chain::file_of_port_option(text);
    if (!file) {
      return absl::OkStatus();
    }
    text = *file;
  }
  return option.names == Names::kNothing || text.starts_with('/')
             ? absl::OkStatus()
             : wrong(option.name, concat("a file with its whole path, and not ", text));
}

Status read_option(std::string const& name, Json const& value, OptionTexts& options) {
  if (name == "workers") {
    // one beyond what 64 bits hold with a sign is a negative one here
    if (!value.is_number_integer() || value.get<std::int64_t>() < 1 || value.get<std::int64_t>() > kMaxWorkers) {
      return wrong(name, concat("a whole number from 1 to ", kMaxWorkers));
    }
    options.workers = value.get<std::uint32_t>();
    return absl::OkStatus();
  }
  if (name == "compute_units") {
    if (!value.is_number_integer() || value.get<std::int64_t>() < 1 || value.get<std::int64_t>() > kMaxComputeUnits) {
      return wrong(name, concat("a whole number from 1 to ", kMaxComputeUnits));
    }
    options.compute_units = value.get<std::uint32_t>();
    return absl::OkStatus();
  }
  if (name == "new_keys") {
    if (!value.is_boolean()) {
      return wrong(name, "true, false");
    }
    options.new_keys = value.get<bool>();
    return absl::OkStatus();
  }
  const auto* option =
      std::find_if(kTexts.begin(), kTexts.end(), [&name](TextOption const& known) { return known.name == name; });
  if (option == kTexts.end()) {
    std::vector<std::string_view> allowed;
    std::transform(kTexts.begin(), kTexts.end(), std::back_inserter(allowed),
                   [](auto const& each) { return each.name; });
    return absl::InvalidArgumentError(fmt::format(
        "options: unknown '{}'; allowed: {}, workers, compute_units, new_keys", name, fmt::join(allowed, ", ")));
  }
  if (!value.is_string()) {
    return wrong(name, "a string");
  }
  options.*option->text = value.get<std::string>();
  return check_file(*option, options.*option->text);
}

}  // namespace

Result<OptionTexts> options_from(Json const& object) {
  if (!object.is_object()) {
    return absl::InvalidArgumentError("'options' must be an object");
  }
  OptionTexts options;
  for (auto const& [name, value] : object.items()) {
    CATENA_RETURN_IF_ERROR(read_option(name, value, options));
  }
  if (!options.pushdown.empty() && options.pushdown != "on" && options.pushdown != "off") {
    return wrong("pushdown", "on, off");
  }
  return options;
}

Json to_json(OptionTexts const& options) {
  Json object = Json::object();
  for (TextOption const& option : kTexts) {
    if (std::string const& text = options.*option.text; !text.empty()) {
      object[std::string(option.name)] = text;
    }
  }
  if (options.workers != 0) {
    object["workers"] = options.workers;
  }
  if (options.compute_units != 0) {
    object["compute_units"] = options.compute_units;
  }
  if (options.new_keys) {
    object["new_keys"] = true;
  }
  return object;
}

std::string to_state(ApplyRecord const& applied) {
  OptionTexts options = applied.options;
  options.new_keys = false;
  const Json state = {
      {"name", applied.name},      {"tenant", applied.tenant},        {"tenant_uid", applied.tenant_uid},
      {"file", applied.file},      {"options", to_json(options)},     {"uid", applied.caller.uid},
      {"gid", applied.caller.gid}, {"groups", applied.caller.groups}, {"stopped", applied.is_stopped}};
  // what somebody named in bytes that are no UTF-8 must not end the process
  return state.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<ApplyRecord> from_state(std::string const& text) {
  try {
    const Json state = Json::parse(text);
    ApplyRecord applied;
    applied.name = state.at("name").get<std::string>();
    applied.tenant = state.at("tenant").get<std::string>();
    applied.tenant_uid = state.at("tenant_uid").get<uid_t>();
    applied.file = state.at("file").get<std::string>();
    applied.caller.uid = state.at("uid").get<uid_t>();
    applied.caller.gid = state.at("gid").get<gid_t>();
    applied.caller.groups = state.at("groups").get<std::vector<gid_t>>();
    applied.is_stopped = state.at("stopped").get<bool>();
    CATENA_ASSIGN_OR_RETURN(applied.options, options_from(state.at("options")));
    return applied;
  } catch (Json::exception const& error) {
    return absl::DataLossError(error.what());
  }
}

}  // namespace catena::service
