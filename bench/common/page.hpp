// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/common/chart.hpp"

#include <catena/core/status.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace catena::bench {

/// A page of Markdown, and the figures that it shows: an object with a chart for each file name without its ending.
struct PageText {
  std::string markdown;
  nlohmann::json figures;
};

/// A page of Markdown as it grows, and the figures that it shows.
class MarkdownPage {
 protected:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }
  /// Shows the chart as `stem`.svg, which tools/plot draws; nothing for a chart without anything in it.
  template <typename Chart>
  void figure(std::string const& stem, Chart const& chart) {
    if (nlohmann::json drawn = to_json(chart); !drawn.is_null()) {
      figures_[stem] = std::move(drawn);
      add("![{}]({}.svg)\n\n", chart.title, stem);
    }
  }
  /// A piece that was written by itself.
  void append(PageText&& piece) {
    text_ += piece.markdown;
    figures_.update(piece.figures);
  }
  /// What has come together. Nothing is left here.
  PageText take() { return {std::move(text_), std::move(figures_)}; }

 private:
  std::string text_;
  nlohmann::json figures_ = nlohmann::json::object();
};

/// Writes results.json with the object `json`, the page's figures added as "figures", and README.md into `folder`,
/// which it makes where it is missing. PermissionDenied: a file cannot be written.
Status write_output(std::string const& folder, std::string const& json, PageText const& page);

}  // namespace catena::bench
