// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "match_table.hpp"
#include "pattern_set.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <memory>
#include <span>

struct hs_database;
struct hs_scratch;

namespace catena::nids {

/// Finds all occurrences of all patterns in a payload, overlapping ones too, with Hyperscan (or Vectorscan) in block
/// mode. Not thread safe: a matcher owns its scratch memory.
class LiteralMatcher {
 public:
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
  LiteralMatcher() = default;

  std::unique_ptr<hs_database, FreeDatabase> database_;
  std::unique_ptr<hs_scratch, FreeScratch> scratch_;
};

}  // namespace catena::nids
