// SPDX-License-Identifier: Apache-2.0
#include "chain/change.hpp"

#include "chain/effective.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>

namespace catena::chain {
namespace {

/// Keys of an entry of `nfs` that are about what the NF decides, and not about where it is.
constexpr std::array<const char*, 3> kOfDecisions{"config", "on_unsupported", "link_local"};

/// Keys of `spec` that a chain keeps from its start: the ports, the open files, and whom it shares its device with.
constexpr std::array<std::string_view, 5> kOfEnds{"'rx'", "'tx'", "'outputs'", "'sharing'", "'device_servers'"};

/// Text that is the same for the same keys and values, however they are written.
std::string canonical(YAML::Node const& node, std::string const& file) {
  YAML::Node wrapped(YAML::NodeType::Map);
  wrapped["it"] = node;
  const Result<nf::Config> config = nf::Config::parse(YAML::Dump(wrapped), file);
  return config.ok() ? config->canonical() : YAML::Dump(node);
}

/// What the file says of an NF besides where it is.
std::string decisions_of(YAML::Node const& entry, std::string const& file) {
  YAML::Node own(YAML::NodeType::Map);
  for (const char* key : kOfDecisions) {
    if (entry[key]) {
      own[key] = entry[key];
    }
  }
  return canonical(own, file);
}

/// "'a', 'b'": keys of two mappings whose values are not the same.
std::vector<std::string> different_keys(YAML::Node const& one, YAML::Node const& other, std::string const& file,
                                        std::set<std::string, std::less<>> const& but) {
  std::set<std::string, std::less<>> keys;
  for (YAML::Node const& node : {one, other}) {
    for (auto const& pair : node) {
      keys.insert(pair.first.as<std::string>(""));
    }
  }
  std::vector<std::string> different;
  for (std::string const& key : keys) {
    const YAML::Node a = one[key];
    const YAML::Node b = other[key];
    const bool is_same = a.IsDefined() == b.IsDefined() && (!a.IsDefined() || canonical(a, file) == canonical(b, file));
    if (!but.contains(key) && !is_same) {
      different.push_back(concat("'", key, "'"));
    }
  }
  return different;
}

Status is_another(std::string const& file, std::string_view what) {
  return absl::FailedPreconditionError(concat(file, ": ", what));
}

/// Whether all but `spec` is the same. Both files were read before, so they are valid.
Status is_of_same_chain(ChainConfig const& now, ChainConfig const& next) {
  // names of files begin there
  if (std::filesystem::path(now.source.file).parent_path() != std::filesystem::path(next.source.file).parent_path()) {
    return is_another(next.source.file, "the file is in another folder");
  }
  const auto keys =
      different_keys(effective_document(now), effective_document(next), next.source.file, {"spec", "vars"});
  return keys.empty() ? absl::OkStatus()
                      : is_another(next.source.file, fmt::format("{} has changed", fmt::join(keys, ", ")));
}

}  // namespace

Status has_same_ends(ChainConfig const& now, ChainConfig const& next) {
  CATENA_RETURN_IF_ERROR(is_of_same_chain(now, next));
  const YAML::Node before = effective_document(now)["spec"];
  const YAML::Node after = effective_document(next)["spec"];
  for (std::string const& key : different_keys(before, after, next.source.file, {})) {
    if (std::ranges::find(kOfEnds, key) != kOfEnds.end()) {
      return is_another(next.source.file, concat(key, " of 'spec' has changed"));
    }
  }
  if (next.tuning.says_pool_slots && next.tuning.pool_slots != now.tuning.pool_slots) {
    return is_another(next.source.file, fmt::format("'pool_slots' is {}, and the running chain has {}",
                                                    next.tuning.pool_slots, now.tuning.pool_slots));
  }
  return absl::OkStatus();
}

Result<std::vector<std::size_t>> changed_nfs(ChainConfig const& now, ChainConfig const& next) {
  CATENA_RETURN_IF_ERROR(is_of_same_chain(now, next));
  const YAML::Node before = effective_document(now);
  const YAML::Node after = effective_document(next);
  if (const auto keys = different_keys(before["spec"], after["spec"], next.source.file, {"nfs"}); !keys.empty()) {
    return is_another(next.source.file, fmt::format("{} of 'spec' has changed", fmt::join(keys, ", ")));
  }
  const auto names_of = [](ChainConfig const& config) {
    std::vector<std::string> names;
    std::ranges::transform(config.nfs, std::back_inserter(names), &NfConfig::name);
    return names;
  };
  if (names_of(now) != names_of(next)) {
    return is_another(next.source.file, fmt::format("the NFs are {} instead of {}", fmt::join(names_of(next), ", "),
                                                    fmt::join(names_of(now), ", ")));
  }
  std::vector<std::size_t> changed;
  const auto entry_of = [](YAML::Node const& file, std::string const& name) {
    const YAML::Node nfs = file["spec"]["nfs"];
    for (std::size_t i = 0; i < nfs.size(); ++i) {
      if (nfs[i]["name"].as<std::string>("") == name) {
        return nfs[i];
      }
    }
    return YAML::Node();
  };
  for (std::size_t i = 0; i < next.nfs.size(); ++i) {
    const YAML::Node a = entry_of(before, next.nfs[i].name);
    const YAML::Node b = entry_of(after, next.nfs[i].name);
    if (const auto keys = different_keys(a, b, next.source.file, {kOfDecisions.begin(), kOfDecisions.end()});
        !keys.empty()) {
      return absl::FailedPreconditionError(
          fmt::format("{}: {} of NF '{}' has changed", next.nfs[i].position, fmt::join(keys, ", "), next.nfs[i].name));
    }
    if (decisions_of(a, now.source.file) != decisions_of(b, next.source.file)) {
      changed.push_back(i);
    }
  }
  return changed;
}

}  // namespace catena::chain
