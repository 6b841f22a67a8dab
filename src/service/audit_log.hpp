// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"
#include "base/core/name_watch.hpp"

#include <catena/core/status.hpp>

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace catena::service {

/// A request for a change, or an act of the service by itself, with the outcome.
struct AuditRecord {
  std::string operation;       ///< of the route, or "own-" and a word
  std::string chain;           ///< empty: of no chain
  std::string revision;        ///< of its spec; empty: it has none in the history
  uid_t uid = 0;               ///< of the client
  pid_t pid = 0;               ///< the same; 0: it is not known
  unsigned status = 0;         ///< of HTTP; of an act of the service the one that a request would have got
  std::string error;           ///< short; empty: done
  std::string_view role = {};  ///< of the client; empty: an act of the service
};

/// Writes each record as one line of the log, and to a file of root's as a line of JSON. Any thread. No other mutex is
/// locked with its mutex.
class AuditLog {
 public:
  /// `file`: appended to, created with mode 0600, and opened again when its name was rotated (NameWatch); empty: the
  /// log alone. Errors: as open_named_file().
  static Result<std::unique_ptr<AuditLog>> open(std::string const& file);

  /// Lines missing in the file are counted; the log reports the first one, and the end of such a time.
  void add(AuditRecord const& record);
  /// With uid and pid of the service; `status` is OK after an act that was done. An act refused again for the same
  /// reason has no line until the chain has another one: failed chains are started again for ever.
  void add_own(std::string_view operation, std::string const& chain, std::string const& revision, Status const& status);
  /// Lines missing in the file.
  std::uint64_t lost() const;

 private:
  AuditLog() = default;
  bool is_repeated(AuditRecord const& record, std::string refusal);
  void append(AuditRecord const& record);
  Status write(std::string_view line);

  mutable std::mutex mutex_;
  std::string path_;  ///< empty: no file
  FileDescriptor fd_;
  std::optional<NameWatch> name_;
  std::map<std::string, std::string> refusals_;  ///< by chain, if its last line is a refused act of the service
  std::uint64_t lost_ = 0;
  bool is_failing_ = false;
  bool is_cut_ = false;  ///< the last line in the file has no end
};

}  // namespace catena::service
