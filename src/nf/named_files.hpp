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

/// A key that no two NFs may encrypt with.
struct NamedKey {
  std::string id;    ///< the same for the same key, and no secret
  std::string what;  ///< has it, for people: "the association with SPI 4096"
};

/// Collects what Config::path(), Config::output_path() and the like give in this thread as long as it lives; one inside
/// another takes over meanwhile. So whoever makes an NF knows the NF's files and keys, without a word from the NF.
class NamedFiles {
 public:
  NamedFiles();
  ~NamedFiles();
  NamedFiles(NamedFiles const&) = delete;
  NamedFiles& operator=(NamedFiles const&) = delete;

  std::vector<NamedFile> const& files() const { return files_; }
  std::vector<NamedOutput> const& outputs() const { return outputs_; }
  std::vector<NamedKey> const& keys() const { return keys_; }

 private:
  friend class Config;
  /// To the innermost collector of this thread, if there is one.
  static void add(NamedFile file);
  static void add(NamedOutput output);
  static void add(NamedKey key);

  std::vector<NamedFile> files_;
  std::vector<NamedOutput> outputs_;
  std::vector<NamedKey> keys_;
  NamedFiles* outer_;
};

}  // namespace catena::nf
