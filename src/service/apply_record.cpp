// SPDX-License-Identifier: Apache-2.0
#include "service/apply_record.hpp"

#include "chain/chain_file.hpp"
#include "nf/integer.hpp"

#include <catena/core/text.hpp>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

namespace catena::service {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kNewKeys = "new_keys";

Status wrong(std::string_view name, std::string_view allowed) {
  return absl::InvalidArgumentError(concat("options: '", name, "': allowed: ", allowed));
}

bool is_number(chain::OptionKey const& option) { return chain::key_of(option).kind == chain::KeyKind::kInteger; }

/// A number, or one of the words in its place; else a text.
Result<std::string> text_of(chain::OptionKey const& option, Json const& value) {
  chain::Key const& key = chain::key_of(option);
  if (value.is_string()) {
    auto text = value.get<std::string>();
    if (!is_number(option) || std::ranges::find(key.words, text) != key.words.end()) {
      return text;
    }
  }
  if (is_number(option)) {
    return value.is_number_integer()
               ? Result<std::string>(value.dump())
               : wrong(option.name, fmt::format("a whole number from {} to {}, or {}", key.minimum, key.maximum,
                                                fmt::join(key.words, ", ")));
  }
  return wrong(option.name, "a string");
}

/// Standard streams are the service's, and its working folder is another one.
Status check_file(chain::OptionKey const& option, std::string_view text) {
  const std::optional<std::string_view> file = chain::file_of(option, text);
  const bool is_whole = !file || (file->starts_with('/') && file->find('\0') == std::string_view::npos);
  return is_whole ? absl::OkStatus() : wrong(option.name, concat("a file with its whole path, and not ", *file));
}

std::string all_names() {
  std::string names;
  for (chain::OptionKey const& option : chain::option_keys()) {
    names += concat(option.name, ", ");
  }
  return concat(names, kNewKeys);
}

}  // namespace

Result<RequestOptions> options_from(Json const& object) {
  if (!object.is_object()) {
    return absl::InvalidArgumentError("'options' must be an object");
  }
  RequestOptions options;
  for (auto const& [name, value] : object.items()) {
    if (name == kNewKeys) {
      if (!value.is_boolean()) {
        return wrong(name, "true, false");
      }
      options.new_keys = value.get<bool>();
      continue;
    }
    chain::OptionKey const* const option = chain::find_option(name);
    if (option == nullptr) {
      return absl::InvalidArgumentError(concat("options: unknown '", name, "'; allowed: ", all_names()));
    }
    CATENA_ASSIGN_OR_RETURN(std::string text, text_of(*option, value));
    CATENA_RETURN_IF_ERROR(check_file(*option, text));
    CATENA_RETURN_IF_ERROR(chain::check_option(*option, text));
    options.over_file[name] = std::move(text);
  }
  return options;
}

Json to_json(chain::GivenOptions const& options) {
  Json object = Json::object();
  for (chain::OptionKey const& option : chain::option_keys()) {
    const auto given = options.find(option.name);
    if (given == options.end()) {
      continue;
    }
    const std::optional<std::int64_t> number = is_number(option) ? nf::parse_integer(given->second) : std::nullopt;
    object[std::string(option.name)] = number ? Json(*number) : Json(given->second);
  }
  return object;
}

std::string to_state(ApplyRecord const& applied) {
  const Json state = {{"name", applied.name},
                      {"tenant", applied.tenant},
                      {"tenant_uid", applied.tenant_uid},
                      {"file", applied.file},
                      {"options", to_json(applied.options)},
                      {"uid", applied.caller.uid},
                      {"gid", applied.caller.gid},
                      {"groups", applied.caller.groups},
                      {"stopped", applied.is_stopped}};
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
    CATENA_ASSIGN_OR_RETURN(RequestOptions options, options_from(state.at("options")));
    applied.options = std::move(options.over_file);
    return applied;
  } catch (Json::exception const& error) {
    return absl::DataLossError(error.what());
  }
}

}  // namespace catena::service
