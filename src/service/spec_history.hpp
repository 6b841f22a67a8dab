// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_source.hpp"
#include "chain/named_files.hpp"

#include <catena/core/status.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace catena::service {

/// A file read by a chain, by its content.
struct HashedFile {
  std::string path;
  std::string sha256;  ///< 64 hexadecimal digits
  bool operator==(HashedFile const&) const = default;
};

/// The SHA-256 of the regular files read by a chain, except for rx, the cost profile, and the texts of `source`. With
/// the rights of the calling thread. Errors: as read_file(). Thread rule: any thread.
Result<std::vector<HashedFile>> hash_files(chain::ChainSource const& source, std::span<const chain::NamedFile> files);

/// FailedPrecondition if a file has another content now, or cannot be read: it is named.
Status check_unchanged(std::span<const HashedFile> files);

/// A spec of the past: the texts of a chain and its files, enough to run it again.
struct SpecRevision {
  std::string id;  ///< 12 hexadecimal digits of the SHA-256 of uid, source and files
  std::chrono::system_clock::time_point applied;
  uid_t uid = 0;              ///< of the caller
  chain::ChainSource source;  ///< with its options
  std::vector<HashedFile> files;
};

/// A revision of now, with its id.
SpecRevision make_revision(chain::ChainSource source, std::vector<HashedFile> files, uid_t uid);
/// "2026-11-30T10:20:30Z".
std::string time_text(std::chrono::system_clock::time_point time);

/// In the format of the history folder.
std::string to_text(SpecRevision const& revision);
/// DataLoss for any text not written by to_text(), and for a text whose content does not have its id.
Result<SpecRevision> revision_from(std::string const& text);

/// What to apply: a chain file, which is read, or an earlier spec.
struct SpecSource {
  std::string file;
  std::optional<SpecRevision> kept = std::nullopt;
};

/// A row of a history.
struct RevisionInfo {
  std::string id;
  std::chrono::system_clock::time_point applied;
  uid_t uid = 0;
  std::string file;
};

/// The last specs of each chain, in a folder of the service: one folder per chain, one file per
/// revision, readable by the service's user only. The content of files of NFs is not kept, since these may hold keys.
/// Any thread; one at a time for save() and remove() of a chain.
class SpecHistory {
 public:
  /// `folder`: created with the first revision.
  explicit SpecHistory(std::string folder) : folder_(std::move(folder)) {}

  /// Revisions kept of a chain, and their bytes; the oldest is removed first, the newest never.
  static constexpr std::size_t kMaxRevisions = 16;
  static constexpr std::size_t kMaxBytes = std::size_t{8} << 20;

  /// Makes it the newest revision of chain `name`, whatever the clock has been. Does not remove `spared`, an id. The
  /// system's error.
  Status save(std::string const& name, SpecRevision revision, std::string_view spared = {}) const;
  /// The newest first. Leaves out damaged files.
  std::vector<RevisionInfo> list(std::string const& name) const;
  /// NotFound without this revision; the system's error; DataLoss.
  Result<SpecRevision> load(std::string const& name, std::string const& id) const;
  /// OK without any.
  Status remove(std::string const& name) const;

 private:
  std::string folder_of(std::string const& name) const;

  std::string folder_;
};

}  // namespace catena::service
