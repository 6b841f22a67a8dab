// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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

/// What an NF writes, under whichever key it is named.
struct NamedOutput {
  enum class Kind : std::uint8_t { kFile, kFolder, kReceiver };
  Kind kind;
  std::string name;  ///< as Config::output_path(), output_folder() or receiver() gave it
  bool operator==(NamedOutput const&) const = default;
};

/// Collects what Config::path(), Config::output_path() and the like give in this thread as long as it lives; one inside
/// another takes over meanwhile. So whoever makes an NF knows the NF's files, without a word from the NF.
class NamedFiles {
 public:
  NamedFiles();
  ~NamedFiles();
  NamedFiles(NamedFiles const&) = delete;
  NamedFiles& operator=(NamedFiles const&) = delete;

  std::vector<NamedFile> const& files() const { return files_; }
  std::vector<NamedOutput> const& outputs() const { return outputs_; }

 private:
  friend class Config;
  /// To the innermost collector of this thread, if there is one.
  static void add(NamedFile file);
  static void add(NamedOutput output);

  std::vector<NamedFile> files_;
  std::vector<NamedOutput> outputs_;
  NamedFiles* outer_;
};

}  // namespace catena::nf
