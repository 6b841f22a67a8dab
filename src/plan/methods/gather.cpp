// SPDX-License-Identifier: Apache-2.0
#include "plan/methods.hpp"

#include <algorithm>

namespace catena::plan {
namespace {

bool gather_supports(TransferShape const& shape) {
  return shape.kind != TransferShape::Kind::kLaunch && shape.between_slots && !shape.touches_metadata;
}

MoveCost gather_cost(CostModel const& model, MethodCost const& coefficients, Direction direction,
                     TransferShape const& shape) {
  MoveCost cost;
  cost.bytes = shape.bytes + bytes_of_whole_lines(direction, shape);
  const double least =
      shape.kind == TransferShape::Kind::kBody ? coefficients.per_packet_ns : coefficients.per_packet_fields_ns;
  cost.total_ns = coefficients.per_transfer_ns / model.packets_per_transfer +
                  std::max(least, shape.bytes * coefficients.per_byte_ns);
  return cost;
}

constexpr double kKernelNsPerByte = 1 / 34.0;  // gather and scatter kernels at the same time, GB/s each way
constexpr double kLaunchNs = 2800;             // kernels launched back to back

constexpr MethodCost kGatherToDeviceH200{
    .per_transfer_ns = kLaunchNs,
    .per_packet_ns = 1e3 / 614,         // 614 Mpps reading 64-byte packets
    .per_packet_fields_ns = 1e3 / 690,  // 690 Mpps reading one aligned 4-byte field
    .per_byte_ns = kKernelNsPerByte};
constexpr MethodCost kGatherToHostH200{.per_transfer_ns = kLaunchNs,
                                       .per_packet_ns = 64 / 44.0,         // 44 GB/s writing 64-byte packets
                                       .per_packet_fields_ns = 1e3 / 355,  // 355 Mpps writing one aligned 4-byte field
                                       .per_byte_ns = kKernelNsPerByte};

}  // namespace

constinit const MethodTraits methods::kGather{.supports = gather_supports,
                                              .cost = gather_cost,
                                              .fit = fit_packets,
                                              .h200 = {kGatherToDeviceH200, kGatherToHostH200}};

}  // namespace catena::plan
