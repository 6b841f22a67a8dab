// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace catena::bench {

/// Files of a benchmark's output folder: name and text.
using Files = std::vector<std::pair<std::string, std::string>>;

/// A page of Markdown as it grows, and the figures that it shows.
class MarkdownPage {
 protected:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }
  void figure(std::string const& file, std::string const& svg, std::string const& words) {
    files_.emplace_back(file, svg);
    add("![{}]({})\n\n", words, file);
  }
  /// The figures, and behind them the page as README.md. Nothing is left here.
  Files take_files() {
    files_.emplace_back("README.md", std::move(text_));
    return std::move(files_);
  }

 private:
  std::string text_;
  Files files_;
};

/// Writes results.json with `json` and a line feed, and the files of the page, into `folder`, which it makes where it
/// is missing. PermissionDenied: a file cannot be written.
Status write_output(std::string const& folder, std::string const& json, Files const& files);

}  // namespace catena::bench
