// SPDX-License-Identifier: Apache-2.0
#include "chain/option_keys.hpp"

#include "chain/chain_file.hpp"
#include "chain/diagnostics.hpp"

#include <catena/core/text.hpp>

#include <absl/strings/str_replace.h>
#include <absl/strings/str_split.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <vector>

namespace catena::chain {
namespace {

constexpr std::array kOptions{
    OptionKey{.name = "rx", .key = "rx", .parse = parse_rx_option, .port = &ChainConfig::rx},
    OptionKey{.name = "tx", .key = "tx", .parse = parse_tx_option, .port = &ChainConfig::tx},
    OptionKey{.name = "device", .key = "device", .is_of_gpu = true},
    OptionKey{.name = "record", .key = "outputs.record"},
    OptionKey{.name = "eve", .key = "outputs.eve"},
    OptionKey{.name = "trace", .key = "outputs.trace", .is_of_gpu = true},
    OptionKey{.name = "sync", .key = "transfers.mode", .is_of_gpu = true},
    OptionKey{.name = "pushdown", .key = "transfers.pushdown", .is_of_gpu = true},
    OptionKey{.name = "methods", .key = "transfers.methods", .is_of_gpu = true},
    OptionKey{.name = "profile", .key = "transfers.profile", .is_of_gpu = true},
    OptionKey{.name = "share", .key = "sharing.mode", .is_of_gpu = true},
    OptionKey{.name = "parts", .key = "sharing.parts", .is_of_gpu = true},
    OptionKey{.name = "compute_units", .key = "sharing.compute_units", .is_of_gpu = true},
    OptionKey{.name = "device_servers", .key = "device_servers", .is_of_gpu = true},
    OptionKey{.name = "workers", .key = "workers"},
    OptionKey{.name = "cores", .key = "cores"},
};

using Path = std::vector<std::string>;

/// Of the key in `spec`: {"sharing", "parts"}.
Path path_of(OptionKey const& option) { return absl::StrSplit(std::string(option.key), '.'); }

Key const& row_named(std::span<const Key> keys, std::string_view name) {
  return *std::ranges::find(keys, name, &Key::name);
}

Key const& key_in_spec(std::string_view name) { return row_named(row_named(chain_keys(), "spec").keys, name); }

/// "pcap:FILE", "generator" or "null" as the value of a key.
YAML::Node port_value(std::string const& text) {
  YAML::Node value(YAML::NodeType::Map);
  const std::size_t colon = text.find(':');
  if (colon != std::string::npos) {
    value[text.substr(0, colon)] = text.substr(colon + 1);
  } else if (text != "null") {
    value[text] = YAML::Node(YAML::NodeType::Map);
  }
  return text == "null" ? YAML::Node(YAML::NodeType::Null) : value;
}

YAML::Node value_of(OptionKey const& option, std::string const& text) {
  if (option.port != nullptr) {
    return port_value(text);
  }
  const KeyKind kind = key_of(option).kind;
  const bool is_list = kind == KeyKind::kTexts || kind == KeyKind::kDevices;
  if (!is_list || text.find(',') == std::string::npos) {
    return YAML::Node(text);
  }
  YAML::Node list(YAML::NodeType::Sequence);
  for (std::string const& each : std::vector<std::string>(absl::StrSplit(text, ','))) {
    list.push_back(each);
  }
  return list;
}

/// A copy of the mapping `node` with `value` at `path`: what an alias shares stays as it is.
YAML::Node with_value(YAML::Node const& node, std::span<const std::string> path, YAML::Node const& value) {
  if (path.empty()) {
    return value;
  }
  YAML::Node copy(YAML::NodeType::Map);
  YAML::Node inner;
  for (auto const& entry : node) {
    if (entry.first.Scalar() == path.front()) {
      inner = entry.second;
    } else {
      copy[entry.first] = entry.second;
    }
  }
  copy[path.front()] = with_value(inner.IsMap() ? inner : YAML::Node(YAML::NodeType::Map), path.subspan(1), value);
  return copy;
}

/// `spec` with this key alone, accepted by check_keys().
Result<FileSection> section_of(OptionKey const& option, std::string const& text) {
  const Path path = path_of(option);
  const std::span<const Key> keys(&key_in_spec(path.front()), 1);
  nf::Config config =
      nf::Config::of(with_value(YAML::Node(YAML::NodeType::Map), path, value_of(option, text)), flag_of(option.name));
  CATENA_RETURN_IF_ERROR(check_keys(config, keys));
  return FileSection(std::move(config), keys, FileSection::Missing::kLeft);
}

Status put_over(OptionKey const& option, std::string const& text, ChainConfig& chain) {
  if (option.port != nullptr) {
    CATENA_ASSIGN_OR_RETURN(chain.*option.port, option.parse(text));
    (chain.*option.port).position = flag_of(option.name);
    return absl::OkStatus();
  }
  CATENA_ASSIGN_OR_RETURN(FileSection section, section_of(option, text));
  CATENA_RETURN_IF_ERROR(section.read_into(chain));
  return section.read_into(chain.run);
}

}  // namespace

std::span<const OptionKey> option_keys() { return kOptions; }

OptionKey const* find_option(std::string_view name) {
  const auto* const found = std::ranges::find(kOptions, name, &OptionKey::name);
  return found == kOptions.end() ? nullptr : found;
}

std::string flag_of(std::string_view name) {
  return concat("--", absl::StrReplaceAll(std::string(name), {{"_", "-"}}));
}

Key const& key_of(OptionKey const& option) {
  const Path path = path_of(option);
  Key const* key = &key_in_spec(path.front());
  for (std::size_t i = 1; i < path.size(); ++i) {
    key = &row_named(key->keys, path[i]);
  }
  return *key;
}

std::optional<std::string_view> file_of(OptionKey const& option, std::string_view text) {
  if (option.port != nullptr) {
    return file_of_port_option(text);
  }
  return key_of(option).kind == KeyKind::kFile ? std::optional(text) : std::nullopt;
}

Status check_option(OptionKey const& option, std::string const& text) {
  return option.port != nullptr ? option.parse(text).status() : section_of(option, text).status();
}

Status put_over(GivenOptions const& options, ChainConfig& chain) {
  Diagnostics diagnostics;
  for (auto const& [name, text] : options) {
    diagnostics.add(put_over(*find_option(name), text, chain));
  }
  return diagnostics.status();
}

void put_over(GivenOptions const& options, YAML::Node& document) {
  for (auto const& [name, text] : options) {
    OptionKey const& option = *find_option(name);
    Path path = path_of(option);
    path.insert(path.begin(), "spec");
    document.reset(with_value(document, path, value_of(option, text)));
  }
}

}  // namespace catena::chain
