// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/planner.hpp"

#include <array>
#include <span>
#include <vector>

#include "plan/candidates.hpp"

namespace catena::plan {

/// The costs of the movements of a chain's GPU NFs, with the plan-independent parts computed once.
class Pricing {
 public:
  /// `input` must outlive it.
  explicit Pricing(PlanInput const& input);

  /// Moves of one step, at most four per direction.
  struct Bill {
    std::array<Move, 8> moves;
    std::size_t count = 0;

    std::span<const Move> list() const { return {moves.data(), count}; }
    double total_ns() const;
  };
  Bill bill(std::size_t nf, Movement const& movement) const;

 private:
  struct Site {
    PlacedNf const* nf;
    Body before;   ///< at the kernel's input
    Body compact;  ///< the same without room to grow in a launch buffer
    Body after;    ///< at its output
  };
  void add_direction(Site const& site, Movement const& movement, Direction direction, Bill& bill) const;

  CostModel const* costs_;
  std::vector<Site> sites_;  ///< one per NF
};

}  // namespace catena::plan
