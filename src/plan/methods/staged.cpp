// SPDX-License-Identifier: Apache-2.0
#include "plan/methods.hpp"
#include "plan/methods/h200.hpp"

namespace catena::plan {
namespace {

bool staged_supports(TransferShape const& /*shape*/) { return true; }

MoveCost staged_cost(CostModel const& model, MethodCost const& coefficients, Direction /*direction*/,
                     TransferShape const& shape) {
  const double per_transfer = coefficients.per_transfer_ns / model.packets_per_transfer;
  MoveCost cost;
  // columns and bodies are in the launch buffer, which one copy moves: that is paid for by kLaunch
  cost.bytes = shape.staged_bytes;
  cost.total_ns =
      cost.bytes * coefficients.per_byte_ns + (shape.kind == TransferShape::Kind::kLaunch ? per_transfer : 0);
  if (shape.kind == TransferShape::Kind::kColumns) {
    cost.cpu_ns = shape.columns * model.host_column_ns + (shape.touches_packet ? model.host_touch_ns : 0);
  } else if (shape.kind == TransferShape::Kind::kBody) {
    cost.cpu_ns = shape.bytes * model.host_copy_ns_per_byte;
  }
  cost.total_ns += cost.cpu_ns + (shape.between_slots ? shape.bytes * model.device_copy_ns_per_byte : 0);
  return cost;
}

constexpr MethodCost kStagedH200{.per_transfer_ns = h200::kCopyNs, .per_byte_ns = h200::kBulkNsPerByte};

}  // namespace

constinit const MethodTraits methods::kStaged{
    .supports = staged_supports, .cost = staged_cost, .fit = fit_bulk, .h200 = {kStagedH200, kStagedH200}};

}  // namespace catena::plan
