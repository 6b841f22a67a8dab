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
/// mode. The library looks for the last kLibraryBytes bytes of a pattern, and what is before them is compared here:
/// scans for longer literals may end early with an error and without matches (Hyperscan 5.4.0, issues 303 and 353).
/// Not thread safe: a matcher owns its scratch memory. What it looks for does not change, and replicas share it.
class LiteralMatcher {
 public:
  static constexpr std::size_t kLibraryBytes = 32;

  /// Without patterns a matcher finds nothing. Errors: Unavailable if the processor lacks what the library needs
  /// (SSSE3); ResourceExhausted or InvalidArgument with the library's text if it refuses the patterns.
  static Result<LiteralMatcher> create(std::span<const Pattern> patterns);

  /// One for another thread that finds the same, with scratch memory of its own. ResourceExhausted without memory.
  Result<LiteralMatcher> replicate() const;
  /// Whether both have the same patterns in the same memory.
  bool shares_patterns_with(LiteralMatcher const& other) const { return patterns_ == other.patterns_; }

  /// Adds every occurrence to `matches`, in any order. What MatchTable::add() throws comes out; the matcher stays good.
  void scan(std::span<const std::uint8_t> payload, MatchTable& matches);

 private:
  struct FreeDatabase {
    void operator()(hs_database* database) const;
  };
  struct FreeScratch {
    void operator()(hs_scratch* scratch) const;
  };
  /// What the library does not look for of a pattern; empty for most.
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
  /// Compiles what the library looks for of `patterns`, at least one. Errors: as create().
  static Result<Patterns> compile(std::span<const Pattern> patterns);
  static int on_match(unsigned pattern, unsigned long long from, unsigned long long end, unsigned flags, void* scan);

  std::shared_ptr<const Patterns> patterns_;
  std::unique_ptr<hs_scratch, FreeScratch> scratch_;  ///< null without patterns
};

}  // namespace catena::match
