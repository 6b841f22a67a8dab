// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/flow_templates.hpp"
#include "io/source.hpp"

#include <cstdint>
#include <vector>

namespace catena::io {

/// Who comes when in artificial traffic: flows take turns, so that packet n is of flow n modulo their number. Gives the
/// packets of some of them, or of all, in order.
class FlowTurns {
 public:
  struct Turn {
    std::uint64_t number;  ///< of the packet among all
    std::uint64_t round;   ///< how often all flows had their turn before
    std::uint32_t flow;
  };

  /// `own`: the flows whose packets it gives, in rising order; each below `flows`.
  FlowTurns(std::uint32_t flows, std::vector<std::uint32_t> own) : flows_(flows), own_(std::move(own)) {}
  /// Of all flows.
  explicit FlowTurns(std::uint32_t flows) : FlowTurns(flows, all(flows)) {}

  /// Precondition: there is a flow.
  Turn next() {
    const Turn turn{first_ + own_[at_], round_, own_[at_]};
    if (++at_ == own_.size()) {
      at_ = 0;
      ++round_;
      first_ += flows_;
    }
    return turn;
  }
  bool empty() const { return own_.empty(); }
  /// How many of the first `packets` packets it gives.
  std::uint64_t of_first(std::uint64_t packets) const;
  /// Its part of a rate that all flows have together.
  double part_of(std::uint64_t per_second) const;

 private:
  static std::vector<std::uint32_t> all(std::uint32_t flows);

  std::uint32_t flows_;
  std::vector<std::uint32_t> own_;
  std::size_t at_ = 0;
  std::uint64_t round_ = 0;
  std::uint64_t first_ = 0;  ///< number of the round's first packet
};

/// The turns of each part: a flow belongs to that which `part_of` says of its frames.
/// Errors: ResourceExhausted where there is no memory for a packet pool to show them in.
Result<std::vector<FlowTurns>> divide_flows(FlowTemplates const& frames, std::uint32_t flows, std::uint32_t parts,
                                            PartOf const& part_of);

}  // namespace catena::io
