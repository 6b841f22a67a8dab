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

/// Keys of `spec` that a chain keeps from its start: the ports, the open files, and whom it shares its device with.
constexpr std::array<std::string_view, 5> kOfEnds{"'rx'", "'tx'", "'outputs'", "'sharing'", "'device_servers'"};

/// Text that is the same for the same keys and values, however they are written.
std::string canonical(YAML::Node const& node, std::string const& file) {
  YAML::Node wrapped(YAML::NodeType::Map);
  wrapped["it"] = node;
  const Result<nf::Config> config = nf::Config::parse(YAML::Dump(wrapped), file);
  return config.ok() ? config->canonical() : YAML::Dump(node);
}

/// "'a', 'b'": keys of two mappings whose values are not the same.
std::vector<std::string> different_keys(YAML::Node const& one, YAML::Node const& other, std::string const& file,
                                        std::set<std::string, std::less<>> const& but = {}) {
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

/// Relative names of files begin there.
std::filesystem::path folder_of(ChainConfig const& chain) {
  return std::filesystem::path(chain.source.file).parent_path();
}

/// The entry called `name` of the list `nfs`, which is not in topological order.
YAML::Node entry_of(YAML::Node const& nfs, std::string const& name) {
  for (std::size_t i = 0; i < nfs.size(); ++i) {
    if (nfs[i]["name"].as<std::string>("") == name) {
      return nfs[i];
    }
  }
  return {};
}

/// Whether all but `spec` is the same. Both files were read before, so they are valid.
Status is_of_same_chain(ChainConfig const& now, ChainConfig const& next) {
  if (folder_of(now) != folder_of(next)) {
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
  for (std::string const& key : different_keys(before, after, next.source.file)) {
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

bool is_same_spec(ChainConfig const& now, ChainConfig const& next) {
  return is_of_same_chain(now, next).ok() &&
         different_keys(effective_document(now)["spec"], effective_document(next)["spec"], next.source.file).empty();
}

std::vector<std::string> changed_keys(ChainConfig const& now, ChainConfig const& next) {
  return different_keys(effective_document(now)["spec"], effective_document(next)["spec"], next.source.file, {"nfs"});
}

std::vector<std::optional<std::size_t>> same_nfs(ChainConfig const& now, ChainConfig const& next) {
  std::vector<std::optional<std::size_t>> same(next.nfs.size());
  if (folder_of(now) != folder_of(next)) {
    return same;
  }
  const YAML::Node before = effective_document(now)["spec"]["nfs"];
  const YAML::Node after = effective_document(next)["spec"]["nfs"];
  for (std::size_t i = 0; i < next.nfs.size(); ++i) {
    const auto found = std::ranges::find(now.nfs, next.nfs[i].name, &NfConfig::name);
    const YAML::Node entry = entry_of(after, next.nfs[i].name);
    // both may be defaults of `spec`, and NFs read them
    const bool is_alike = found != now.nfs.end() && found->on_unsupported == next.nfs[i].on_unsupported &&
                          found->link_local == next.nfs[i].link_local;
    if (is_alike && different_keys(entry_of(before, found->name), entry, next.source.file).empty()) {
      same[i] = static_cast<std::size_t>(found - now.nfs.begin());
    }
  }
  return same;
}

}  // namespace catena::chain
