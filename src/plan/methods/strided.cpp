// SPDX-License-Identifier: Apache-2.0
#include "plan/methods.hpp"
#include "plan/methods/h200.hpp"

#include <algorithm>

namespace catena::plan {
namespace {

bool strided_supports(TransferShape const& shape) {
  return shape.kind == TransferShape::Kind::kBody && shape.whole_frames && shape.between_slots;
}

MoveCost strided_cost(CostModel const& model, MethodCost const& coefficients, Direction direction,
                      TransferShape const& shape) {
  MoveCost cost;
  cost.bytes = shape.longest_bytes + bytes_of_whole_lines(direction, shape);
  cost.total_ns = coefficients.per_transfer_ns / model.packets_per_transfer +
                  std::max(coefficients.per_packet_ns, shape.longest_bytes * coefficients.per_byte_ns);
  return cost;
}

constexpr MethodCost kStridedH200{.per_transfer_ns = h200::kCopyNs,
                                  .per_packet_ns = 1e3 / 345,  // 345 Mpps at 64 bytes; 128 bytes take as long
                                  .per_byte_ns = h200::kBulkNsPerByte};

}  // namespace

constinit const MethodTraits methods::kStrided{
    .supports = strided_supports, .cost = strided_cost, .fit = fit_packets, .h200 = {kStridedH200, kStridedH200}};

}  // namespace catena::plan
