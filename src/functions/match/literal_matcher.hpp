// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "functions/match/match_table.hpp"
#include "functions/match/pattern_set.hpp"

#include <catena/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

struct hs_database;
struct hs_scratch;

namespace catena::match {

/// Finds all occurrences of all patterns in a payload, overlapping ones too, with Hyperscan (or Vectorscan) in block
/// mode. The library searches for the last kLibraryBytes bytes of a pattern, and earlier bytes are compared here,
/// because scans for longer literals may end early with an error and without matches (Hyperscan 5.4.0, issues 303 and
/// 353). Not thread safe, because a matcher owns its scratch memory. The patterns are constant, and replicas share
/// them.
class LiteralMatcher {
 public:
  static constexpr std::size_t kLibraryBytes = 32;

  /// A matcher without patterns finds nothing. Errors: Unavailable if the processor lacks a feature required by the
  /// library (SSSE3); ResourceExhausted or InvalidArgument with the library's text if it refuses the patterns.
  static Result<LiteralMatcher> create(std::span<const Pattern> patterns);

  /// A matcher of the same patterns for another thread, with scratch memory of its own. ResourceExhausted without
  /// memory.
  Result<LiteralMatcher> replicate() const;
  /// Whether both have the same patterns in the same memory.
  bool shares_patterns_with(LiteralMatcher const& other) const { return patterns_ == other.patterns_; }

  /// Adds every occurrence to `matches`, in any order. Exceptions of MatchTable::add() pass through; the matcher stays
  /// valid.
  void scan(std::span<const std::uint8_t> payload, MatchTable& matches);

 private:
  struct FreeDatabase {
    void operator()(hs_database* database) const;
  };
  struct FreeScratch {
    void operator()(hs_scratch* scratch) const;
  };
  /// The first bytes of a pattern, which the library does not search for; empty for most.
  struct Head {
    std::string bytes;
    bool nocase = false;
  };
  /// Immutable: any number of threads.
  struct Patterns {
    std::vector<Head> heads;  ///< by pattern
    std::unique_ptr<hs_database, FreeDatabase> database;
  };
  struct Scan;
  explicit LiteralMatcher(std::shared_ptr<const Patterns> patterns) : patterns_(std::move(patterns)) {}
  /// Compiles the library's part of `patterns`, at least one. Errors: as create().
  static Result<Patterns> compile(std::span<const Pattern> patterns);
  static int on_match(unsigned pattern, unsigned long long from, unsigned long long end, unsigned flags, void* scan);

  std::shared_ptr<const Patterns> patterns_;
  std::unique_ptr<hs_scratch, FreeScratch> scratch_;  ///< null without patterns
};

}  // namespace catena::match
