// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <mutex>

namespace catena::nf {

/// Limits of a YAML file. A node is a mapping, a list, a key or a value; an alias counts as its whole target. Nodes
/// take some 400 bytes of memory each, and the parser up to 150 per byte of the file during parsing.
struct YamlLimits {
  std::size_t bytes = std::size_t{16} << 20U;  ///< a chain or SA file; larger ones are a mistake
  std::size_t nodes = std::size_t{16} << 20U;  ///< no file of this size has more, except by aliases
  std::mutex* turn = nullptr;                  ///< held while a file is parsed; null: no mutex
};

/// The limits of files read by the calling thread with Config::load() and parse(), during its lifetime. A nested scope
/// takes over meanwhile. Without a scope the limits are YamlLimits{}.
class YamlScope {
 public:
  explicit YamlScope(YamlLimits limits);
  ~YamlScope();
  YamlScope(YamlScope const&) = delete;
  YamlScope& operator=(YamlScope const&) = delete;

  /// The current limits of this thread.
  static YamlLimits limits();
  /// Waits for and locks the mutex of these limits; an empty lock without a mutex.
  static std::unique_lock<std::mutex> take_turn();

 private:
  YamlLimits outer_;
};

}  // namespace catena::nf
