// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace catena::chain {

/// All that is wrong, a line each, so that a user sees it at once. One thread at a time.
class Findings {
 public:
  /// Adds the lines of an error. What was said of an unknown key before is not said again.
  void add(Status const& status);
  /// The value, or `otherwise` and the error is added.
  template <typename T>
  T take(Result<T> result, T otherwise = T()) {
    add(result.status());
    return result.ok() ? std::move(result).value() : std::move(otherwise);
  }
  bool empty() const { return text_.empty(); }
  /// OK, or all lines with the code of the first error.
  Status status() const { return {code_, text_}; }

 private:
  void add_line(std::string_view line);

  absl::StatusCode code_ = absl::StatusCode::kOk;
  std::string text_;
};

}  // namespace catena::chain
