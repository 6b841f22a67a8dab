// SPDX-License-Identifier: Apache-2.0
#include "plan/unit_size.hpp"

#include <algorithm>
#include <cmath>

namespace catena::plan {
namespace {

struct Mean {
  double sum = 0;
  std::uint32_t count = 0;

  void add(double value) {
    sum += value;
    ++count;
  }
  double value() const { return count == 0 ? 0 : sum / count; }
};

bool moves_bodies(GpuStep const& step, Direction direction) {
  return std::any_of(step.moves.begin(), step.moves.end(), [direction](Move const& move) {
    return move.direction == direction && move.kind == TransferShape::Kind::kBody;
  });
}

}  // namespace

double block_bytes(CostModel const& costs) {
  MethodCost const& cost = costs.of(TransferMethod::kStaged, Direction::kToDevice);
  // b * per_byte / (per_transfer + b * per_byte) = 0.9
  constexpr double kShare = 0.9 / (1 - 0.9);
  return cost.per_byte_ns > 0 ? kShare * cost.per_transfer_ns / cost.per_byte_ns : 0;
}

double bytes_per_transfer(Plan const& plan) {
  Mean bodies;
  Mean all;
  for (PlannedNf const& nf : plan.nfs) {
    for (const Direction direction : {Direction::kToDevice, Direction::kToHost}) {
      if (!nf.step) {
        continue;
      }
      const double bytes = direction == Direction::kToDevice ? nf.step->bytes_to_device : nf.step->bytes_to_host;
      all.add(bytes);
      if (moves_bodies(*nf.step, direction)) {
        bodies.add(bytes);
      }
    }
  }
  return bodies.count != 0 ? bodies.value() : all.value();
}

std::uint32_t unit_packets_for(CostModel const& costs, Plan const& plan) {
  const double bytes = bytes_per_transfer(plan);
  const double block = block_bytes(costs);
  if (bytes <= 0 || block <= 0) {
    return kMaxAutoUnitPackets;
  }
  const double packets = std::ceil(block / bytes / kUnitsPerBlock);
  return static_cast<std::uint32_t>(std::clamp(packets, double{kMinAutoUnitPackets}, double{kMaxAutoUnitPackets}));
}

}  // namespace catena::plan
