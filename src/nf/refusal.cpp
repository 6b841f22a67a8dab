// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/refusal.hpp>

#include <catena/core/escape.hpp>
#include <catena/core/text.hpp>

#include <algorithm>
#include <map>

namespace catena::nf {

std::string to_string(Refusal const& refusal) {
  return concat(escaped(refusal.file), ":", refusal.line, ":", refusal.column, ": not applied: ", refusal.reason,
                refusal.detail.empty() ? "" : ": ", refusal.detail);
}

std::vector<std::pair<std::string, std::size_t>> count_by_reason(std::span<const Refusal> refusals) {
  std::map<std::string, std::size_t> counts;
  for (Refusal const& refusal : refusals) {
    ++counts[refusal.reason];
  }
  std::vector<std::pair<std::string, std::size_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](auto const& a, auto const& b) { return a.second > b.second; });
  return sorted;
}

std::string reasons_of(std::span<const Refusal> refusals) {
  std::string text;
  for (auto const& [reason, count] : count_by_reason(refusals)) {
    text += concat(text.empty() ? "" : ", ", reason, " ", count);
  }
  return text;
}

}  // namespace catena::nf
