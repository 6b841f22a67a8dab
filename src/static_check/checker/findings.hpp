// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

/// What is found in the source of one kernel, and how the program that asked is told.
namespace catena::checker {

enum class Severity {
  kRefused,  ///< the source could reach memory that is not its own, or cannot be checked
  kCaution,  ///< the caller has to bound it at run time
};

struct Finding {
  Severity severity;
  std::string file;
  unsigned line;
  unsigned column;
  std::string rule;
  std::string message;  ///< one line: what was found, and what to write instead
};

/// Findings in the order in which they were found, each text once a line. Templates are checked once for each
/// instantiation, and a kernel once for each dialect.
class Findings {
 public:
  /// More than these help nobody.
  static constexpr std::size_t kMost = 100;

  void add(Finding finding);
  bool full() const { return findings_.size() == kMost; }
  /// A line each: severity, file, line, column, rule and message with tabs between them; then "end".
  std::string lines() const;

 private:
  std::vector<Finding> findings_;
  std::set<std::tuple<std::string, unsigned, std::string>> seen_;  ///< file, line, message
};

/// Names as an author writes them: without the words that C++ for OpenCL and the framework for its sake put in.
std::string as_written(std::string text);

/// as_written() `text` on one line, cut to what a reader takes in: types of templates can be of any length.
std::string shown(std::string_view text);

}  // namespace catena::checker
