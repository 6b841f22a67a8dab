// SPDX-License-Identifier: Apache-2.0
#include "plan/cost_model.hpp"

#include "plan/methods.hpp"

#include <catena/packet/slot.hpp>

#include <algorithm>
#include <array>

namespace catena::plan {
namespace {

constexpr std::array<MethodTraits const*, kMethodCount> kTraits{
#define CATENA_METHOD(method, name, path) &methods::method,
    CATENA_TRANSFER_METHODS(CATENA_METHOD)
#undef CATENA_METHOD
};

constexpr MethodSet kPoolMethods = [] {
  MethodSet set = 0;
  for (const TransferMethod method : kTransferMethods) {
    set = static_cast<MethodSet>(set | (needs_mapped_pool(method) ? method_bit(method) : 0));
  }
  return set;
}();

}  // namespace

MethodTraits const& traits_of(TransferMethod method) { return *kTraits[static_cast<std::size_t>(method)]; }

double bytes_of_whole_lines(Direction direction, TransferShape const& shape) {
  return direction == Direction::kToHost && shape.whole_frames ? packet::kCacheLineBytes : 0;
}

CostModel CostModel::h200() {
  CostModel model;
  for (const TransferMethod method : kTransferMethods) {
    model.methods[static_cast<std::size_t>(method)] = traits_of(method).h200;
  }
  // Measured on an H200, PCIe 5 x16, unless another origin is named.
  model.host_copy_ns_per_byte = 1 / 5.0;       // one core batching packets of 512 bytes and more: 4 to 6 GB/s
  model.host_touch_ns = 8;                     // the same at 64 bytes: 8 GB/s, one cache line a packet
  model.host_column_ns = 1;                    // an estimate: a load and a store that hit the cache
  model.device_copy_ns_per_byte = 2 / 4800.0;  // the data sheet's 4.8 TB/s; each byte is read and written
  model.packets_per_transfer = 4096;           // 16 units of 256 packets a launch
  return model;
}

bool CostModel::has_pool_methods() const { return (available & kPoolMethods) != 0; }

void CostModel::remove_pool_methods() { available &= static_cast<MethodSet>(~kPoolMethods); }

bool CostModel::can_carry(TransferMethod method, TransferShape const& shape) {
  return traits_of(method).supports(shape);
}

MoveCost CostModel::cost(TransferMethod method, Direction direction, TransferShape const& shape) const {
  return traits_of(method).cost(*this, of(method, direction), direction, shape);
}

TransferMethod CostModel::cheapest(Direction direction, TransferShape const& shape, MoveCost& cost_of_it) const {
  TransferMethod best = TransferMethod::kStaged;
  cost_of_it = cost(best, direction, shape);
  for (const TransferMethod method : kTransferMethods) {
    if (method == TransferMethod::kStaged || (available & method_bit(method)) == 0 || !can_carry(method, shape)) {
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
