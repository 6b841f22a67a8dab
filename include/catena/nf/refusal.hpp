// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace catena::nf {

/// A rule of an NF's files that is well-formed but not applied, because it asks for what the NF does not do.
struct Refusal {
  std::string file;
  std::uint32_t line;    ///< from 1
  std::uint32_t column;  ///< from 1, in bytes
  std::string reason;    ///< the same words for the same reason: rules are counted by it
};

/// What an NF implements, beside Nf, that may refuse rules: `catena check` and the report count and list them.
class Refusing {
 public:
  virtual ~Refusing() = default;
  /// In the order of the files; must not change. Thread rule: any thread.
  virtual std::vector<Refusal> const& refusals() const = 0;
};

/// How often each reason occurs, most frequent first, equal ones by name.
std::vector<std::pair<std::string, std::size_t>> count_by_reason(std::span<const Refusal> refusals);
/// The same as text: "pcre 2, flowbits 1".
std::string reasons_of(std::span<const Refusal> refusals);

}  // namespace catena::nf
