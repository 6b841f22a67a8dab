// SPDX-License-Identifier: Apache-2.0
#include "chain/effective.hpp"

#include "chain/includes.hpp"
#include "chain/keys.hpp"
#include "nf/yaml_limits.hpp"
#include "nf/yaml_texts.hpp"

#include <catena/core/text.hpp>

#include <yaml-cpp/yaml.h>

#include <mutex>
#include <string>

namespace catena::chain {
namespace {

YAML::Node value_in(YAML::Node const& section, std::string_view name) {
  for (auto const& entry : section) {
    if (entry.first.Scalar() == name) {
      return entry.second;
    }
  }
  return YAML::Node(YAML::NodeType::Undefined);
}

YAML::Node with_defaults(YAML::Node const& section, std::span<const Key> keys, bool has_alternatives);

/// A value of `key`, with the defaults below it.
YAML::Node complete(YAML::Node const& value, Key const& key) {
  const bool has_alternatives = !key.alternatives.empty();
  if (key.kind == KeyKind::kSection) {
    return with_defaults(value, key.keys, has_alternatives);
  }
  if (key.kind != KeyKind::kSections) {
    return value;
  }
  YAML::Node entries(YAML::NodeType::Sequence);
  for (YAML::Node const& entry : value) {
    entries.push_back(with_defaults(entry, key.keys, has_alternatives));
  }
  return entries;
}

/// The section in the order of the table. Of one that has alternatives only the given keys: others go with another one.
YAML::Node with_defaults(YAML::Node const& section, std::span<const Key> keys, bool has_alternatives) {
  if (!section.IsMap()) {
    return section;  // a word in its place
  }
  YAML::Node whole(YAML::NodeType::Map);
  for (Key const& key : keys) {
    const std::string name(key.name);
    if (const YAML::Node value = value_in(section, name); value.IsDefined()) {
      whole[name] = complete(value, key);
    } else if (!key.fallback.empty() && !has_alternatives) {
      whole[name] = complete(YAML::Load(std::string(key.fallback)), key);
    }
  }
  return whole;
}

}  // namespace

YAML::Node effective_document(ChainConfig const& config) {
  const std::unique_lock<std::mutex> turn = nf::YamlScope::take_turn();
  nf::YamlFiles files;
  Result<YAML::Node> parsed = files.parse(config.source.text, config.source.file);
  YAML::Node document = parsed.ok() ? *std::move(parsed) : YAML::Node(YAML::NodeType::Map);
  merge_included(config.source, document, files).IgnoreError();  // as when it was read
  replace_variables(document, files, config.source.environment).IgnoreError();
  put_over(config.source.options, document);
  return document;
}

std::string effective_text(ChainConfig const& config) {
  YAML::Node document = effective_document(config);
  // defaults that depend on other keys
  YAML::Node spec = document["spec"];
  spec["tenant"] = config.tenant;
  spec["shards"] = config.shards == kAutoShards ? "auto" : std::to_string(config.shards);
  document.remove("vars");  // they are in the values
  nf::ReplacedTexts replaced;
  nf::replace_texts(document, replaced, [](std::string const& text, YAML::Mark const& /*mark*/) -> Result<std::string> {
    return without_variables(text);
  }).IgnoreError();
  return concat(YAML::Dump(with_defaults(document, chain_keys(), false)), "\n");
}

}  // namespace catena::chain
