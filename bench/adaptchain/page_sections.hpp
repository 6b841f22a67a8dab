// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/adaptchain/results.hpp"
#include "bench/chains/chains.hpp"
#include "bench/common/chart.hpp"
#include "bench/common/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

/// Pieces of paper_page(), each empty where nothing of it was measured. `sizes`: those of paper_page().
namespace catena::bench {

using Sizes = std::vector<std::uint32_t>;

/// One chain in every mode: figures 9 to 14. `figure`: the paper's, empty where it has none.
PageText chain_section(Results const& results, Sizes const& sizes, Part part, PaperChain const& chain,
                       std::string_view figure);
/// What workers do with C3 at full speed.
PageText busy_section(Results const& results, Sizes const& sizes);
/// Unit sizes: figure 15.
PageText units_section(Results const& results, Sizes const& sizes);
/// Latency at an offered rate: figure 16, and time lines.
PageText latency_section(Results const& results, Sizes const& sizes);

/// Parts of one launch in host memory and on the device: figure 1.
PageText stages_section(Results const& results, Sizes const& sizes);
/// Parts of C3's launches at an offered rate: figure 11(b).
PageText batch_section(Results const& results, Sizes const& sizes);
/// Moves to the device that wait for others: figure 3.
PageText conflicts_section(Results const& results, Sizes const& sizes);

/// A piece as it is written.
class PaperSection : protected MarkdownPage {
 public:
  PaperSection(Results const& results, Sizes const& sizes) : results_(results), sizes_(sizes) {}

 protected:
  Results const& results() const { return results_; }
  Sizes const& sizes() const { return sizes_; }
  bool has(Part part, std::string_view chain = {}) const { return is_measured(results_, part, chain); }

 private:
  Results const& results_;
  Sizes const& sizes_;
};

inline constexpr double kMega = 1e6;
inline constexpr double kPercent = 100;
inline constexpr double kNsPerSecond = 1e9;

/// Of an array with a value for each part of something.
template <typename Values>
double sum_of(Values const& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}
/// What the values of `parts` are together, in percent of `whole`.
template <typename Values, typename Part>
double percent_of(Values const& values, std::initializer_list<Part> parts, double whole) {
  const double sum = std::accumulate(parts.begin(), parts.end(), 0.0,
                                     [&values](double before, Part part) { return before + values[part]; });
  return sum * kPercent / whole;
}

inline Spread bytes_to_device(Cell const& cell) { return over(cell, &Repeat::bytes_to_device); }
/// Of one NF; 0 where it moves nothing.
inline Spread nf_bytes_to_device(Cell const& cell, std::string_view nf) {
  return over(cell, [nf](Repeat const& repeat) {
    NfBytes const* bytes = bytes_of(repeat, nf);
    return bytes != nullptr ? bytes->to_device : 0;
  });
}
inline Spread bytes_to_host(Cell const& cell) { return over(cell, &Repeat::bytes_to_host); }

/// The launches of one NF in all repeats of a cell that was traced.
struct Traced {
  std::uint64_t launches = 0;
  double packets_each = 0;  ///< on average
};
Traced traced_of(Cell const& cell, std::string_view nf);

/// What left a chain at an offered rate, in Gbps, marked where that is less.
std::string left_of(Cell const& cell);

/// "12.3 .. 45.6", the values of several things. Precondition: there is one.
template <typename Things, typename Value>
std::string range_of(Things const& things, Value const& value) {
  std::vector<double> values;
  std::transform(things.begin(), things.end(), std::back_inserter(values), value);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return fmt::format("{:.1f} .. {:.1f}", *low, *high);
}

inline Bar bar_of(Spread const& spread) { return {spread.median, spread.low, spread.high}; }

inline std::vector<std::string> labels_of(Sizes const& sizes) {
  std::vector<std::string> labels;
  for (const std::uint32_t bytes : sizes) {
    labels.push_back(std::to_string(bytes));
  }
  return labels;
}

}  // namespace catena::bench
