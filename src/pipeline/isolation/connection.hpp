// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ipc/mapping.hpp"
#include "pipeline/isolation/channel.hpp"
#include "pipeline/isolation/field_mask.hpp"

#include <catena/packet/slot.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace catena::nf_process {

/// One incarnation of an NF process, as the sender of its packets sees it. Its memory belongs to this incarnation
/// alone: late accesses after the end of the process, perhaps by a device, do no harm.
struct Connection {
  Connection(Channel own_channel, ipc::Mapping own_frames)
      : channel(std::move(own_channel)), frames(std::move(own_frames)) {}
  /// The slot with this number in `frames`, of packet::kSlotBytes bytes.
  std::byte* slot(std::uint32_t number) const {
    return frames.bytes().data() + std::size_t{number} * packet::kSlotBytes;
  }

  Channel channel;
  ipc::Mapping frames;                 ///< ChannelShape::slots() slots for the packets exchanged
  FieldMask field_mask;                ///< bytes copied of them; set before the connection is taken
  std::atomic<bool> is_closed{false};  ///< no more packets follow: it may end
  std::atomic<bool> is_gone{false};    ///< the process has ended
  /// When it last requested a write; the clock's epoch: never.
  std::atomic<std::chrono::steady_clock::time_point> wrote_at{};
};

}  // namespace catena::nf_process
