// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/flow_templates.hpp"
#include "io/source.hpp"

#include <cstdint>
#include <vector>

namespace catena::io {

/// The packet order of synthetic traffic: flows take turns, so packet n is of flow n modulo their number. Returns the
/// packets of some flows, or of all, in order.
class FlowTurns {
 public:
  struct Turn {
    std::uint64_t number;  ///< of the packet among those of all flows
    std::uint64_t round;   ///< number of completed rounds of all flows
    std::uint32_t flow;
  };

  /// `own`: the flows of the returned packets, in ascending order, each below `flows`.
  FlowTurns(std::uint32_t flows, std::vector<std::uint32_t> own) : flows_(flows), own_(std::move(own)) {}
  /// For all flows.
  explicit FlowTurns(std::uint32_t flows) : FlowTurns(flows, all(flows)) {}

  /// Precondition: not empty().
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
  /// The number of its packets among the first `packets` packets.
  std::uint64_t of_first(std::uint64_t packets) const;
  /// Its part of the rate of all flows together.
  double part_of(std::uint64_t per_second) const;

 private:
  static std::vector<std::uint32_t> all(std::uint32_t flows);

  std::uint32_t flows_;
  std::vector<std::uint32_t> own_;
  std::size_t at_ = 0;
  std::uint64_t round_ = 0;
  std::uint64_t first_ = 0;  ///< number of the round's first packet
};

/// The turns of each part. The part of a flow is the result of `part_of` for its frames. ResourceExhausted if there is
/// no memory for a packet pool to hold such a frame.
Result<std::vector<FlowTurns>> divide_flows(FlowTemplates const& frames, std::uint32_t flows, std::uint32_t parts,
                                            PartOf const& part_of);

}  // namespace catena::io
