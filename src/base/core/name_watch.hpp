// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"
#include "base/core/open_file.hpp"

#include <sys/types.h>

#include <chrono>
#include <string>

namespace catena {

/// Every NameWatch checks its name at the next renewed(), without waiting for a second to end. Any thread, and handlers
/// of signals.
void check_names_of_outputs();

/// The name of an open file that only grows, such as a log. After a rotation of logs the name is free, or belongs to
/// another file; the writer continues in the file with the name. One thread at a time.
class NameWatch {
 public:
  /// `file` was opened for writing by `path`. A name of no regular file is never checked.
  NameWatch(std::string path, OpenedFile const& file);

  /// The file that has the name now, opened to be appended to and created if need be; empty if it is still the same
  /// one. Checks once a second. A name that cannot be opened is reported to the log, and the old file stays.
  FileDescriptor renewed();

 private:
  using Clock = std::chrono::steady_clock;
  void note(struct stat const& status);
  bool is_due();

  std::string path_;
  bool is_regular_;
  bool is_reported_ = false;  ///< that the name cannot be opened
  dev_t device_ = 0;
  ino_t inode_ = 0;
  mode_t mode_ = 0;
  unsigned wishes_;  ///< of check_names_of_outputs(), when it was checked last
  Clock::time_point checked_;
};

}  // namespace catena
