// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace catena::nf {

/// A file named by a key of a YAML file.
struct NamedFile {
  std::string key;
  std::string path;      ///< as returned by Config::path() or Config::output_path()
  std::string position;  ///< "file:line:column" of the name
  bool is_written;
};

/// An output of an NF, named by any key.
struct NamedOutput {
  enum class Kind : std::uint8_t { kFile, kFolder, kReceiver };
  Kind kind;
  std::string name;  ///< as returned by Config::output_path(), output_folder() or receiver()
  bool operator==(NamedOutput const&) const = default;
};

/// A key of an association. Two NFs must not encrypt with the same one.
struct NamedKey {
  std::string id;         ///< equal for equal keys, and no secret; empty for a key that only decrypts
  std::string what;       ///< owner of the key, for messages: "the association with SPI 4096"; empty likewise
  std::uint32_t spi = 0;  ///< of the association
};

/// Collects the results of Config::path(), Config::output_path() and similar calls of this thread during its lifetime.
/// A nested collector takes over meanwhile. So the creator of an NF gets the NF's files and keys without help from the
/// NF.
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
  /// Adds to the innermost collector of this thread, if it has one.
  static void add(NamedFile file);
  static void add(NamedOutput output);
  static void add(NamedKey key);

  std::vector<NamedFile> files_;
  std::vector<NamedOutput> outputs_;
  std::vector<NamedKey> keys_;
  NamedFiles* outer_;
};

}  // namespace catena::nf
