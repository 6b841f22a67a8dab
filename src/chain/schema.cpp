// SPDX-License-Identifier: Apache-2.0
#include "chain/schema.hpp"

#include "chain/keys.hpp"
#include "gpu/device/device.hpp"

#include <absl/strings/ascii.h>
#include <absl/strings/str_split.h>
#include <fmt/ranges.h>
#include <catena/core/text.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <regex>
#include <string>
#include <vector>

namespace catena::chain {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kNamePattern = "^[A-Za-z0-9._-]+$";
constexpr std::string_view kVariablePattern = "^[A-Za-z_][A-Za-z0-9_]*$";

Json integer(std::int64_t minimum, std::int64_t maximum) {
  return {{"type", "integer"}, {"minimum", minimum}, {"maximum", maximum}};
}

Json schema_of(std::span<const Key> keys);

/// A section that `key` stands for.
Json section_of(Key const& key) {
  Json section = schema_of(key.keys);
  for (const std::string_view sample : key.alternatives) {
    section["oneOf"].push_back({{"required", Json::array({sample.substr(0, sample.find(':'))})}});
  }
  return section;
}

/// The value alone.
Json value_of(Key const& key) {
  switch (key.kind) {
    case KeyKind::kText:
    case KeyKind::kFile:
      // YAML takes what looks like a number for one, and Catena takes it for the text that it is
      return {{"type", Json::array({"string", "number"})}, {"minLength", 1}};
    case KeyKind::kName:
      return {{"type", Json::array({"string", "number"})}, {"pattern", kNamePattern}, {"maxLength", kMaxNameLength}};
    case KeyKind::kTexts: {
      const Json text =
          key.words.empty() ? Json{{"type", Json::array({"string", "number"})}} : Json{{"enum", key.words}};
      return {{"anyOf", Json::array({text, Json{{"type", "array"},
                                                {"items", text},
                                                {"minItems", key.minimum},
                                                {"maxItems", key.maximum},
                                                {"uniqueItems", true}}})}};
    }
    case KeyKind::kWord:
      return {{"enum", key.words}};
    case KeyKind::kDevices: {
      const std::string device = fmt::format("({})(:[0-9]+)?", fmt::join(device::backend_names(), "|"));
      return {{"anyOf", Json::array({Json{{"type", "string"}, {"pattern", concat("^(auto|none|", device, ")$")}},
                                     Json{{"type", "array"},
                                          {"items", {{"type", "string"}, {"pattern", concat("^", device, "$")}}},
                                          {"minItems", key.minimum},
                                          {"maxItems", key.maximum},
                                          {"uniqueItems", true}}})}};
    }
    case KeyKind::kInteger:
      return key.words.empty()
                 ? integer(key.minimum, key.maximum)
                 : Json{{"anyOf", Json::array({integer(key.minimum, key.maximum), Json{{"enum", key.words}}})}};
    case KeyKind::kNumber:
      return {{"type", "number"}, {"minimum", key.minimum}, {"maximum", key.maximum}};
    case KeyKind::kIntegers: {
      const Json number = integer(key.minimum, key.maximum);
      return {
          {"anyOf",
           Json::array({number, Json{{"type", "array"}, {"items", number}, {"minItems", 1}, {"maxItems", key.most}}})}};
    }
    case KeyKind::kOfNf:
      return {{"type", "object"}};
    case KeyKind::kVariables:
      return {{"type", "object"},
              {"propertyNames", {{"pattern", kVariablePattern}}},
              {"additionalProperties", {{"type", Json::array({"string", "number", "boolean"})}}}};
    case KeyKind::kSection: {
      const Json section = section_of(key);
      if (key.takes_text) {
        return {{"anyOf", Json::array({Json{{"type", Json::array({"string", "number"})}}, section})}};
      }
      return key.words.empty() ? section : Json{{"anyOf", Json::array({Json{{"enum", key.words}}, section})}};
    }
    case KeyKind::kSections:
      return {{"type", "array"}, {"items", section_of(key)}, {"maxItems", key.maximum}};
  }
  return Json::object();
}

Json schema_of(std::span<const Key> keys) {
  Json schema = {{"type", "object"}, {"additionalProperties", false}, {"properties", Json::object()}};
  for (Key const& key : keys) {
    Json value = key.is_nullable
                     ? Json{{"anyOf", Json::array({Json{{"enum", Json::array({nullptr, "null"})}}, value_of(key)})}}
                     : value_of(key);
    value["description"] = key.help;
    if (!key.fallback.empty()) {
      const bool is_text =
          key.kind == KeyKind::kDevices || std::ranges::find(key.words, key.fallback) != key.words.end();
      value["default"] = is_text ? Json(key.fallback) : Json::parse(key.fallback);
    }
    schema["properties"][std::string(key.name)] = std::move(value);
    if (key.is_required && key.stands_in.empty()) {
      schema["required"].push_back(key.name);
    } else if (key.is_required) {
      schema["anyOf"] =
          Json::array({{{"required", Json::array({key.name})}}, {{"required", Json::array({key.stands_in})}}});
    }
  }
  return schema;
}

/// What the text of a ConfigKey says: "integer 1..65535" and "drop | pass" are exact, all else is only described.
Json value_of(nf::ConfigKey const& key) {
  static const std::regex kInteger(R"(^integer (-?\d+)\.\.(-?\d+)$)");
  const std::string type(key.type);
  std::smatch part;
  if (std::regex_match(type, part, kInteger)) {
    return integer(std::stoll(part[1].str()), std::stoll(part[2].str()));
  }
  if (type == "file") {
    return {{"type", "string"}, {"minLength", 1}};
  }
  static const std::regex kWords(R"(^[a-z0-9_-]+( \| [a-z0-9_-]+)+$)");
  if (std::regex_match(type, kWords)) {
    return {{"enum", std::vector<std::string>(absl::StrSplit(type, " | "))}};
  }
  return Json::object();
}

Json config_of(nf::Descriptor const& nf) {
  Json config = {{"type", "object"}, {"additionalProperties", false}, {"properties", Json::object()}};
  for (nf::ConfigKey const& key : nf.config) {
    Json value = value_of(key);
    value["description"] =
        concat(key.help, " (", key.type, key.fallback.empty() ? "" : "; default: ", key.fallback, ")");
    config["properties"][std::string(key.name)] = std::move(value);
  }
  return config;
}

}  // namespace

std::string chain_schema(nf::Registry const& registry) {
  Json schema = schema_of(chain_keys());
  Json& entry = schema["properties"]["spec"]["properties"]["nfs"]["items"];
  for (nf::Descriptor const* descriptor : registry.all()) {
    entry["properties"]["type"]["examples"].push_back(descriptor->type);
    entry["allOf"].push_back(
        {{"if", {{"properties", {{"type", {{"const", descriptor->type}}}}}, {"required", Json::array({"type"})}}},
         {"then", {{"properties", {{"config", config_of(*descriptor)}}}}}});
  }
  Json whole = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                {"title", "Catena chain file"},
                {"description", "A service chain of network functions; docs/chain-file.md"}};
  whole.update(schema);
  return whole.dump(2);
}

}  // namespace catena::chain
