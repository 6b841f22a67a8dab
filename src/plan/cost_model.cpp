// SPDX-License-Identifier: Apache-2.0
#include "plan/cost_model.hpp"

#include <catena/packet/slot.hpp>

#include <algorithm>

namespace catena::plan {

CostModel CostModel::h200() {
  // Measured on an H200, PCIe 5 x16, unless another origin is named. Where there are figures for one direction alone
  // and for both at once, those for both: a chain always moves both ways.
  constexpr double kBulkNsPerByte = 1 / 50.8;    // pinned copies both ways at once, GB/s each way
  constexpr double kKernelNsPerByte = 1 / 34.0;  // gather and scatter kernels at the same time, GB/s each way
  constexpr double kCopyNs = 2700;               // what is left of 4 KB, 64 KB and 256 KB copies without their bytes
  constexpr double kLaunchNs = 2800;             // kernels launched back to back
  CostModel model;
  auto& staged = model.methods[static_cast<std::size_t>(TransferMethod::kStaged)];
  staged.fill({.per_transfer_ns = kCopyNs, .per_byte_ns = kBulkNsPerByte});
  auto& strided = model.methods[static_cast<std::size_t>(TransferMethod::kStrided)];
  strided.fill({.per_transfer_ns = kCopyNs,
                .per_packet_ns = 1e3 / 345,  // 345 Mpps at 64 bytes; 128 bytes take as long
                .per_byte_ns = kBulkNsPerByte});
  auto& gather = model.methods[static_cast<std::size_t>(TransferMethod::kGather)];
  gather[static_cast<std::size_t>(Direction::kToDevice)] = {
      .per_transfer_ns = kLaunchNs,
      .per_packet_ns = 1e3 / 614,         // 614 Mpps reading 64-byte packets
      .per_packet_fields_ns = 1e3 / 690,  // 690 Mpps reading one aligned 4-byte field
      .per_byte_ns = kKernelNsPerByte};
  gather[static_cast<std::size_t>(Direction::kToHost)] = {
      .per_transfer_ns = kLaunchNs,
      .per_packet_ns = 64 / 44.0,         // 44 GB/s writing 64-byte packets
      .per_packet_fields_ns = 1e3 / 355,  // 355 Mpps writing one aligned 4-byte field
      .per_byte_ns = kKernelNsPerByte};
  model.host_copy_ns_per_byte = 1 / 5.0;       // one core batching packets of 512 bytes and more: 4 to 6 GB/s
  model.host_touch_ns = 8;                     // the same at 64 bytes: 8 GB/s, one cache line a packet
  model.host_column_ns = 1;                    // an estimate: a load and a store that hit the cache
  model.device_copy_ns_per_byte = 2 / 4800.0;  // the data sheet's 4.8 TB/s; each byte is read and written
  model.packets_per_transfer = 4096;           // 16 units of 256 packets a launch
  return model;
}

bool CostModel::can_carry(TransferMethod method, TransferShape const& shape) {
  switch (method) {
    case TransferMethod::kStaged:
      return true;
    case TransferMethod::kStrided:
      return shape.kind == TransferShape::Kind::kBody && shape.whole_frames && shape.between_slots;
    case TransferMethod::kGather:
      return shape.kind != TransferShape::Kind::kLaunch && shape.between_slots && !shape.touches_metadata;
  }
  return false;
}

MoveCost CostModel::cost(TransferMethod method, Direction direction, TransferShape const& shape) const {
  MethodCost const& at = of(method, direction);
  const double per_transfer = at.per_transfer_ns / packets_per_transfer;
  // frames are written to the host by whole lines: half a line more at either end, which takes no longer
  const double beside = direction == Direction::kToHost && shape.whole_frames ? packet::kCacheLineBytes : 0;
  MoveCost cost;
  switch (method) {
    case TransferMethod::kStaged:
      // columns and bodies are in the launch buffer, which one copy moves: that is paid for by kLaunch
      cost.bytes = shape.staged_bytes;
      cost.total_ns = cost.bytes * at.per_byte_ns + (shape.kind == TransferShape::Kind::kLaunch ? per_transfer : 0);
      if (shape.kind == TransferShape::Kind::kColumns) {
        cost.cpu_ns = shape.columns * host_column_ns + (shape.touches_packet ? host_touch_ns : 0);
      } else if (shape.kind == TransferShape::Kind::kBody) {
        cost.cpu_ns = shape.bytes * host_copy_ns_per_byte;
      }
      cost.total_ns += cost.cpu_ns + (shape.between_slots ? shape.bytes * device_copy_ns_per_byte : 0);
      return cost;
    case TransferMethod::kStrided:
      cost.bytes = shape.longest_bytes + beside;
      cost.total_ns = per_transfer + std::max(at.per_packet_ns, shape.longest_bytes * at.per_byte_ns);
      return cost;
    case TransferMethod::kGather:
      cost.bytes = shape.bytes + beside;
      const double least = shape.kind == TransferShape::Kind::kBody ? at.per_packet_ns : at.per_packet_fields_ns;
      cost.total_ns = per_transfer + std::max(least, shape.bytes * at.per_byte_ns);
      return cost;
  }
  return cost;
}

TransferMethod CostModel::cheapest(Direction direction, TransferShape const& shape, MoveCost& cost_of_it) const {
  TransferMethod best = TransferMethod::kStaged;
  cost_of_it = cost(best, direction, shape);
  for (const TransferMethod method : {TransferMethod::kStrided, TransferMethod::kGather}) {
    if ((available & method_bit(method)) == 0 || !can_carry(method, shape)) {
      continue;
    }
    if (const MoveCost other = cost(method, direction, shape); other.total_ns < cost_of_it.total_ns) {
      best = method;
      cost_of_it = other;
    }
  }
  return best;
}

}  // namespace catena::plan
