// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/transfer_methods.hpp"
#include "gpu/copy/body_copy.hpp"

/// The moving half of the transfer methods: one MethodMover per method, each in a file of src/gpu/copy/methods/.
namespace catena::copy {

inline constexpr std::uint32_t kStagingAlign = 16;
/// Maximum bytes of a packet in staging.
inline constexpr std::size_t kMaxStagedBytes = packet::kSlotBytes + 2 * kStagingAlign;

/// Slot bytes of a packet's body, from the metadata.
struct MemoryPlace {
  std::uint32_t begin;
  std::uint32_t end;
};
MemoryPlace place_of(Bodies const& bodies, std::uint32_t slot);

/// The same bytes [begin, end) of every slot of a run.
struct Rectangle {
  SlotRun run;
  std::uint32_t begin;
  std::uint32_t end;
};

/// A transfer method as launches use it.
struct MethodMover {
  bool carries_payloads;  ///< else whole frames only
  std::unique_ptr<BodyCopy> (*make)(Direction direction);
  /// KernelPath::kNone: enqueues the copy of a rectangle between `pool` and its twin. Null for other paths. Errors: the
  /// device's.
  Status (*enqueue)(device::Stream& stream, Direction direction, std::span<std::byte> pool, device::Buffer& twins,
                    Rectangle const& rectangle);
};

/// A method without its constant does not link.
namespace methods {
#define CATENA_METHOD(method, name, path) extern const MethodMover method;
CATENA_TRANSFER_METHODS(CATENA_METHOD)
#undef CATENA_METHOD
}  // namespace methods

MethodMover const& mover_of(TransferMethod method);

}  // namespace catena::copy
