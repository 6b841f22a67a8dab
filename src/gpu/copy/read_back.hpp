// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/packet/batch.hpp>

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/copy/shared_buffer.hpp"

namespace catena::copy {

/// Brings back the data that a plan left only in the shared buffer, once the chain runs without the device. Slow: one
/// copy per packet. Call order for each batch: start() -> poll() until true -> apply(). Belongs to one thread at a
/// time.
class ReadBack {
 public:
  /// `fields`: the fields whose newest values are not on the host. The frame bounds (kMetaOffset, kMetaLength,
  /// kMetaLayers) and the verdict are not among them, because plans bring these back before the next NF. Batches have
  /// at most `max_packets` packets. `shared` must outlive this. Errors: as Device::create_stream() and
  /// allocate_pinned().
  static Result<std::unique_ptr<ReadBack>> create(device::Device& device, SharedBuffer& shared, packet::FieldSet fields,
                                                  std::uint32_t max_packets);

  /// Enqueues the copies of the batch's live packets. Its slots must not change until apply(). Writes to their twins in
  /// the shared buffer must be done. Errors: as Stream::copy_to_host().
  Status start(packet::Batch const& batch);
  /// True when the bytes are on the host. Never waits.
  Result<bool> poll() { return event_->ready(); }
  /// Writes the fields into the packets.
  void apply();

 private:
  explicit ReadBack(packet::FieldSet fields) : fields_(fields) {}
  std::byte* frame_room(std::size_t row) const { return staging_->bytes().data() + row * packet::kSlotBytes; }
  std::byte* port_room(std::size_t row) const;

  packet::FieldSet fields_;
  std::uint32_t max_packets_ = 0;
  SharedBuffer* shared_ = nullptr;
  std::unique_ptr<device::PinnedBuffer> staging_;  ///< one slot per packet, then one port per packet
  std::unique_ptr<device::Stream> stream_;         ///< ends before the staging that it writes to
  std::unique_ptr<device::Event> event_;
  std::vector<std::uint32_t> slots_;  ///< of the packets in flight
  packet::MetaColumns meta_{};
};

/// Copies `fields` of a frame of `length` bytes from one place to another. Skips fields missing in the frame.
void copy_fields(packet::FieldSet fields, packet::Layers const& layers, std::uint32_t length, const std::uint8_t* from,
                 std::uint8_t* to);

}  // namespace catena::copy
