// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace catena::sandbox {

/// Splits the output of a process into lines that can be logged unchanged: at most kMaxLineBytes of a line are kept,
/// and escaped.
class LineSplitter {
 public:
  /// `on_line` may be null.
  explicit LineSplitter(std::function<void(std::string_view)> on_line) : on_line_(std::move(on_line)) {}

  void add(std::string_view bytes);
  /// Delivers the last line, which has no line end.
  void finish();

 private:
  std::function<void(std::string_view)> on_line_;
  std::string line_;
};

}  // namespace catena::sandbox
