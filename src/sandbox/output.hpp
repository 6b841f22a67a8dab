// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace catena::sandbox {

/// Cuts what a process writes into lines: at most kMaxLineBytes of each (the rest of it is dropped), with '?' for what
/// is not printable ASCII, so that a line can be logged as it is.
class LineSplitter {
 public:
  /// `on_line` may be null.
  explicit LineSplitter(std::function<void(std::string_view)> on_line) : on_line_(std::move(on_line)) {}

  void add(std::string_view bytes);
  /// Hands over the last line, which has no end.
  void finish();

 private:
  std::function<void(std::string_view)> on_line_;
  std::string line_;
};

}  // namespace catena::sandbox
