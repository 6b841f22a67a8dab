// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace catena::chain {

/// Collects all errors, one per line, so that a user sees them at once. One thread at a time.
class Diagnostics {
 public:
  /// Adds the lines of an error. A repeated error about an unknown key is left out.
  void add(Status const& status);
  /// The value; if `result` is an error, adds it and returns `otherwise`.
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
