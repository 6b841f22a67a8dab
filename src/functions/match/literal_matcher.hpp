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
#include <vector>

struct hs_database;
struct hs_scratch;

namespace catena::match {

/// Finds all occurrences of all patterns in a payload, overlapping ones too, with Hyperscan (or Vectorscan) in block
/// mode. The library looks for the last kLibraryBytes bytes of a pattern, and what is before them is compared here:
/// scans for longer literals may end early with an error and without matches (Hyperscan 5.4.0, issues 303 and 353).
/// Not thread safe: a matcher owns its scratch memory.
class LiteralMatcher {
 public:
  static constexpr std::size_t kLibraryBytes = 32;

  /// Without patterns a matcher finds nothing. Errors: Unavailable if the processor lacks what the library needs
  /// (SSSE3); ResourceExhausted or InvalidArgument with the library's text if it refuses the patterns.
  static Result<LiteralMatcher> create(std::span<const Pattern> patterns);

  /// Adds every occurrence to `matches`, in any order.
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
  struct Scan;
  LiteralMatcher() = default;
  static int on_match(unsigned pattern, unsigned long long from, unsigned long long end, unsigned flags, void* scan);

  std::vector<Head> heads_;  ///< by pattern
  std::unique_ptr<hs_database, FreeDatabase> database_;
  std::unique_ptr<hs_scratch, FreeScratch> scratch_;
};

}  // namespace catena::match
