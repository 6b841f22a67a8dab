// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/nf_costs.hpp"
#include "chain/run_options.hpp"
#include "core/open_file.hpp"
#include "nf/instance.hpp"

#include <catena/nf/alert.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

/// What a session does with each NF that it makes, at its start and later.
namespace catena::runtime {

inline bool wants_records(chain::RunOptions const& options) {
  return options.with_records || !options.record_path.empty();
}

inline void keep_alerts(nf::Instance& instance) {
  if (auto* alerting = dynamic_cast<nf::Alerting*>(&instance.nf()); alerting != nullptr) {
    alerting->keep_alerts();
  }
}

/// What an NF says against going on beside a session that runs. Most likely it needs what that one still has:
/// FailedPrecondition. What it says of its configuration or its keys, InvalidArgument, is so whatever runs.
inline Status as_not_beside(Status const& of_nf) {
  return of_nf.ok() || absl::IsInvalidArgument(of_nf) ? of_nf : absl::FailedPreconditionError(of_nf.message());
}

/// What an NF was made of: its configuration with what was in the files that it reads, and which plug-in.
struct Content {
  chain::NfKey key;
  std::uint64_t plugin_bytes = 0;
  std::pair<std::int64_t, std::int64_t> plugin_written = {};  ///< seconds, nanoseconds
  bool operator==(Content const&) const = default;
};

/// `files`: that it named when it was made. None: one cannot be read, or they are too long.
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
