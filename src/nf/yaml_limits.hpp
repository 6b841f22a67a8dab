// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <mutex>

namespace catena::nf {

/// What a YAML file may take. A node is a mapping, a list, a key or a value; an alias counts as all that it stands for.
/// Nodes take some 400 bytes of memory each, and the parser up to 150 for each byte of the file while it is at work.
struct YamlLimits {
  std::size_t bytes = std::size_t{16} << 20U;  ///< a chain or SA file; larger ones are a mistake
  std::size_t nodes = std::size_t{16} << 20U;  ///< no file of so many bytes has more, but for aliases
  std::mutex* turn = nullptr;                  ///< held while a file is parsed; null: none
};

/// The limits of files that the calling thread reads by Config::load() and parse(), as long as this lives; one inside
/// another takes over meanwhile. Without one there are those of YamlLimits{}.
class YamlScope {
 public:
  explicit YamlScope(YamlLimits limits);
  ~YamlScope();
  YamlScope(YamlScope const&) = delete;
  YamlScope& operator=(YamlScope const&) = delete;

  /// Those that hold in this thread now.
  static YamlLimits limits();
  /// Their turn, waited for; of none, nothing.
  static std::unique_lock<std::mutex> take_turn();

 private:
  YamlLimits outer_;
};

}  // namespace catena::nf
