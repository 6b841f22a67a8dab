// SPDX-License-Identifier: Apache-2.0
#include "service/apply_record.hpp"

#include "chain/chain_file.hpp"
#include "nf/integer.hpp"

#include <catena/core/text.hpp>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace catena::service {
namespace {

using Json = nlohmann::ordered_json;

Status wrong(std::string_view name, std::string_view allowed) {
  return absl::InvalidArgumentError(concat("options: '", name, "': allowed: ", allowed));
}

Status take_new_keys(std::string_view name, Json const& value, RequestOptions& options) {
  const auto is_spi = [](Json const& spi) {
    return spi.is_number_unsigned() && spi.get<std::uint64_t>() <= std::numeric_limits<std::uint32_t>::max();
  };
  if (!value.is_array() || !std::ranges::all_of(value, is_spi)) {
    return wrong(name, "a list of SPIs, as [4096, 4097]");
  }
  options.new_keys = value.get<std::set<std::uint32_t>>();
  return absl::OkStatus();
}

Status take_accept_loss(std::string_view name, Json const& value, RequestOptions& options) {
  if (!value.is_boolean()) {
    return wrong(name, "true, false");
  }
  options.accepts_loss = value.get<bool>();
  return absl::OkStatus();
}

/// An option of one request that is no key of a chain file.
struct Consent {
  std::string_view name;
  Status (*take)(std::string_view name, Json const& value, RequestOptions& options);
};

constexpr Consent kConsents[] = {
    {"new_keys", &take_new_keys},
    {"accept_loss", &take_accept_loss},
};

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

/// Keys that a state file may lack.
template <typename Record>
auto revisions_of(Record& applied) {
  return std::array{std::pair("revision", &applied.revision), std::pair("unconfirmed", &applied.unconfirmed)};
}

std::string all_names() {
  std::vector<std::string_view> names;
  std::ranges::transform(chain::option_keys(), std::back_inserter(names), &chain::OptionKey::name);
  std::ranges::transform(kConsents, std::back_inserter(names), &Consent::name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Result<RequestOptions> options_from(Json const& object) {
  if (!object.is_object()) {
    return absl::InvalidArgumentError("'options' must be an object");
  }
  RequestOptions options;
  for (auto const& [name, value] : object.items()) {
    if (auto const* const consent = std::ranges::find(kConsents, name, &Consent::name);
        consent != std::end(kConsents)) {
      CATENA_RETURN_IF_ERROR(consent->take(name, value, options));
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
  Json state = {{"name", applied.name},
                {"tenant", applied.tenant},
                {"tenant_uid", applied.tenant_uid},
                {"file", applied.file},
                {"options", to_json(applied.options)},
                {"uid", applied.caller.uid},
                {"gid", applied.caller.gid},
                {"groups", applied.caller.groups},
                {"stopped", applied.is_stopped}};
  for (auto const& [key, revision] : revisions_of(applied)) {
    if (!revision->empty()) {
      state[key] = *revision;
    }
  }
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
    for (auto const& [key, revision] : revisions_of(applied)) {
      if (state.contains(key)) {
        *revision = state[key].get<std::string>();
      }
    }
    CATENA_ASSIGN_OR_RETURN(RequestOptions options, options_from(state.at("options")));
    applied.options = std::move(options.over_file);
    return applied;
  } catch (Json::exception const& error) {
    return absl::DataLossError(error.what());
  }
}

}  // namespace catena::service
