// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace catena::nf {

/// A rule of an NF's files that is not applied: the NF does not support it, or its form is broken.
struct Refusal {
  std::string file;
  std::uint32_t line;       ///< from 1
  std::uint32_t column;     ///< from 1, in bytes
  std::string reason;       ///< escaped; equal words for equal reasons: rules are counted by it
  std::string detail = {};  ///< escaped; what is wrong with this rule. Empty if `reason` says it
};

/// Implemented, besides Nf, by an NF that may refuse rules. `catena check` and the report count and list them.
class Refusing {
 public:
  virtual ~Refusing() = default;
  /// In file order; must not change. Thread rule: any thread.
  virtual std::vector<Refusal> const& refusals() const = 0;
  /// Number of the other rules of the files, which are applied. Must not change. Thread rule: any thread.
  virtual std::size_t applied_rules() const = 0;
};

/// "x.rules:2:30: not applied: pcre", with the detail if there is one.
std::string to_string(Refusal const& refusal);

/// Number of rules per reason, most frequent first, equal counts by name.
std::vector<std::pair<std::string, std::size_t>> count_by_reason(std::span<const Refusal> refusals);
/// The same as text: "pcre 2, flowbits 1".
std::string reasons_of(std::span<const Refusal> refusals);

}  // namespace catena::nf
