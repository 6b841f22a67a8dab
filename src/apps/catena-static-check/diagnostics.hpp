// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

/// Findings in the source of one kernel, and their output format for the calling program.
namespace catena::checker {

enum class Severity {
  kRefused,  ///< the source could reach foreign memory, or cannot be checked
  kCaution,  ///< the caller must limit it at run time
};

struct Finding {
  Severity severity;
  std::string file;
  unsigned line;
  unsigned column;
  std::string rule;
  std::string message;  ///< one line: the problem, and the replacement to write
};

/// Findings in order of detection, each text once per line. Templates are checked once per instantiation, and a kernel
/// once per dialect.
class Diagnostics {
 public:
  /// More findings are of no use.
  static constexpr std::size_t kMost = 100;

  void add(Finding finding);
  bool full() const { return diagnostics_.size() == kMost; }
  /// One line each: severity, file, line, column, rule and message, separated by tabs; then "end".
  std::string lines() const;

 private:
  std::vector<Finding> diagnostics_;
  std::set<std::tuple<std::string, unsigned, std::string>> seen_;  ///< file, line, message
};

/// Names as written by an author: without the words inserted by C++ for OpenCL, and by the framework for its sake.
std::string as_written(std::string text);

/// as_written() `text` on one line, cut to a readable length: types of templates can be of any length.
std::string shown(std::string_view text);

}  // namespace catena::checker
