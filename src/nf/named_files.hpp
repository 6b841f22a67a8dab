// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace catena::nf {

/// A file that a key of a YAML file names.
struct NamedFile {
  std::string key;
  std::string path;      ///< as Config::path() or Config::output_path() gave it
  std::string position;  ///< "file:line:column" of the name
  bool is_written;
};

/// Collects what Config::path() and Config::output_path() give in this thread as long as it lives; one inside another
/// takes over meanwhile. So whoever makes an NF knows the NF's files, without a word from the NF.
class NamedFiles {
 public:
  NamedFiles();
  ~NamedFiles();
  NamedFiles(NamedFiles const&) = delete;
  NamedFiles& operator=(NamedFiles const&) = delete;

  std::vector<NamedFile> const& files() const { return files_; }

 private:
  friend class Config;
  /// To the innermost collector of this thread, if there is one.
  static void add(NamedFile file);

  std::vector<NamedFile> files_;
  NamedFiles* outer_;
};

}  // namespace catena::nf
