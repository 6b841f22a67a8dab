// SPDX-License-Identifier: Apache-2.0
#include "gpu/copy/rewritten.hpp"

#include <cstring>

namespace catena::copy {
namespace {

/// Payloads that one copy moves.
struct Run {
  std::uint32_t first_slot = 0;
  std::uint32_t slots = 0;
  std::uint32_t begin = 0;  ///< in each slot
  std::uint32_t bytes = 0;
};

bool follows(std::uint32_t slot, std::uint32_t begin, std::uint32_t bytes, Run const& run) {
  return slot == run.first_slot + run.slots && begin == run.begin && bytes == run.bytes;
}

Status enqueue(Run const& run, device::Stream& stream, SharedBuffer& shared) {
  if (run.slots == 0) {
    return absl::OkStatus();
  }
  const std::size_t at = std::size_t{run.first_slot} * packet::kSlotBytes + run.begin;
  const std::size_t reach = std::size_t{run.slots - 1} * packet::kSlotBytes + run.bytes;
  return stream.copy_rows_to_device(shared.buffer(), at, shared.pool().subspan(at, reach),
                                    {run.bytes, packet::kSlotBytes, run.slots});
}

}  // namespace

Result<std::uint64_t> enqueue_rewritten(device::Stream& stream, SharedBuffer& shared, packet::Batch const& batch) {
  packet::MetaColumns const& meta = batch.meta();
  if (batch.size() == 0 ||
      (batch.is_run() && std::memchr(meta.rewritten + batch.slots()[0], 1, batch.size()) == nullptr)) {
    return 0;  // nearly always
  }
  std::uint64_t moved = 0;
  Run run;
  for (const std::uint32_t slot : batch.slots()) {
    if (meta.rewritten[slot] == 0) {
      continue;
    }
    meta.rewritten[slot] = 0;
    packet::Layers const& layers = meta.layers[slot];
    const std::uint32_t begin = std::uint32_t{meta.offset[slot]} + layers.payload;
    const std::uint32_t bytes = layers.payload_length;
    if (bytes == 0) {
      continue;
    }
    if (run.slots == 0 || !follows(slot, begin, bytes, run)) {
      CATENA_RETURN_IF_ERROR(enqueue(run, stream, shared));
      run = {slot, 0, begin, bytes};
    }
    ++run.slots;
    moved += bytes;
  }
  CATENA_RETURN_IF_ERROR(enqueue(run, stream, shared));
  return moved;
}

}  // namespace catena::copy
