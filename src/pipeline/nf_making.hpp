// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/open_file.hpp"
#include "chain/nf_costs.hpp"
#include "nf/instance.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

/// Common steps for each NF of a session, created at its start or later.
namespace catena::runtime {

/// An NF's refusal to start beside a running session. Most likely it needs a resource of that session:
/// FailedPrecondition. InvalidArgument, about its configuration or its keys, does not depend on a running session and
/// stays.
inline Status as_not_beside(Status const& of_nf) {
  return of_nf.ok() || absl::IsInvalidArgument(of_nf) ? of_nf : absl::FailedPreconditionError(of_nf.message());
}

/// Inputs of an NF: its configuration with the content of the files read by it, and the plug-in.
struct Content {
  chain::NfKey key;
  std::uint64_t plugin_bytes = 0;
  std::pair<std::int64_t, std::int64_t> plugin_written = {};  ///< seconds, nanoseconds
  bool operator==(Content const&) const = default;
};

/// `files`: named by the NF at its creation. nullopt if one cannot be read, or they are too long.
inline std::optional<Content> content_of(chain::NfConfig const& config, std::span<const nf::NamedFile> files) {
  Result<chain::NfKey> key = chain::key_of_unmade(config, files);
  if (!key.ok()) {
    return std::nullopt;
  }
  Content content{*std::move(key)};
  if (!config.plugin.empty()) {
    const Result<OpenedFile> plugin = open_named_file(config.plugin_here(), O_PATH, kRegularFile);
    if (!plugin.ok()) {
      return std::nullopt;
    }
    content.plugin_bytes = static_cast<std::uint64_t>(plugin->status.st_size);
    content.plugin_written = {plugin->status.st_mtim.tv_sec, plugin->status.st_mtim.tv_nsec};
  }
  return content;
}

}  // namespace catena::runtime
