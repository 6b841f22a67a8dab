// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/cost_fit.hpp"
#include "plan/cost_model.hpp"

#include <array>

/// The planner's half of the transfer methods: one MethodTraits per method, each in a file of src/plan/methods/.
namespace catena::plan {

/// A transfer method as the planner sees it. Pure functions, any thread.
struct MethodTraits {
  /// See CostModel::can_carry().
  bool (*supports)(TransferShape const& shape);
  /// See CostModel::cost(). `coefficients`: of this method and direction in `model`.
  MoveCost (*cost)(CostModel const& model, MethodCost const& coefficients, Direction direction,
                   TransferShape const& shape);
  /// Coefficients of one direction from its measurements.
  MethodCost (*fit)(Timings const& timings);
  /// [direction] Coefficients of CostModel::h200().
  std::array<MethodCost, 2> h200;
};

/// A method without its constant does not link.
namespace methods {
#define CATENA_METHOD(method, name, path) extern const MethodTraits method;
CATENA_TRANSFER_METHODS(CATENA_METHOD)
#undef CATENA_METHOD
}  // namespace methods

MethodTraits const& traits_of(TransferMethod method);

/// Bytes of frames on their way to the host beside the frames themselves: whole cache lines are written, half a line
/// more at either end, which takes no longer. 0 for other moves.
double bytes_of_whole_lines(Direction direction, TransferShape const& shape);

}  // namespace catena::plan
