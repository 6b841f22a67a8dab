// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "functions/match/interval_set.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// The address and port expressions of rule headers: any, single values, ranges, CIDR blocks, negation, nested lists
/// and variables.
namespace catena::match {

enum class SetKind { kAddress, kPort };

/// An error in an expression.
struct SetError {
  std::size_t offset = 0;  ///< of the first wrong byte
  std::string message;     ///< the error and the correction
  /// Not empty for a well-formed expression that cannot be applied, with the reason: "IPv6 address", "undefined
  /// variable $X", "matches no port"
  std::string unsupported;
};
using SetResult = std::variant<IntervalSet, SetError>;

/// The elements of an expression: the positive ones and the negated ones.
struct SignedSet {
  IntervalSet included;
  IntervalSet excluded;
  bool has_ipv6 = false;  ///< an element was an IPv6 address, which no IPv4 packet has
};

class Variables;

/// Evaluates `text`. An expression is the union of its positive elements, or everything without positive elements,
/// minus its negated elements at any depth: [any,[!10.0.0.1]] is all but 10.0.0.1. The operand of a `!` is evaluated by
/// itself first. A variable counts as the list of its elements. Suricata and Snort do the same. Limits: kMaxListDepth
/// levels, kMaxIntervals ranges in a list. IPv6 addresses count as empty sets, so that lists keep their IPv4 part.
/// Error if nothing can match: `!any`, `[10.0.0.0/8,!10.0.0.0/8]`, `[fe80::/10]`.
SetResult parse_set(SetKind kind, std::string_view text, Variables const& variables);
inline constexpr int kMaxListDepth = 16;
inline constexpr std::size_t kMaxIntervals = 65536;

/// The variables available to rule headers. Starts with the usual ones (README.md lists them); immutable after
/// create(), any thread.
class Variables {
 public:
  struct Definition {
    std::string name;  ///< without $
    std::string text;
    std::string position;  ///< "file:line:column" for messages
  };
  struct Failure {
    std::string position;
    std::string message;
  };

  /// The defaults alone.
  Variables();
  /// The defaults, overridden and extended by `definitions`, which may refer to each other. Failure: a definition that
  /// is neither an address nor a port expression, or refers to itself.
  static std::variant<Variables, Failure> create(std::span<const Definition> definitions);

  /// Null if no such variable exists, or it is of the other kind.
  SignedSet const* find(SetKind kind, std::string_view name) const;
  std::vector<std::string> names(SetKind kind) const;
  bool known(std::string_view name) const { return values_.find(name) != values_.end(); }

 private:
  struct Value {
    std::optional<SignedSet> addresses;
    std::optional<SignedSet> ports;
  };
  struct Empty {};
  explicit Variables(Empty) {}
  std::optional<Failure> resolve(std::span<const Definition> definitions);

  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace catena::match
