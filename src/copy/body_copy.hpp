// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/packet/batch.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "copy/engine.hpp"
#include "copy/staging_extent.hpp"
#include "core/transfer.hpp"
#include "device/device.hpp"

/// Transfer methods for the bodies of packets (whole frames, or payloads) between the packet pool and its twin on a
/// device, and the choice among them for each launch.
namespace catena::copy {

/// Consecutive slots.
struct SlotRun {
  std::uint32_t first;
  std::uint32_t slots;
};

/// What one launch moves, and where. Views: all of it outlives the copy, and no metadata changes until it is done.
struct Bodies {
  std::span<std::byte> pool;                  ///< the packet pool, from slot 0 on
  device::Buffer* twins = nullptr;            ///< the same on the device, from offset 0 on
  packet::MetaColumns const* meta = nullptr;  ///< of the pool
  std::span<const std::uint32_t> slots;       ///< of the packets that move, one a row
  /// Slots that nobody else uses meanwhile, those of the rows among them; not necessarily in order.
  std::span<const SlotRun> own;
  bool payloads = false;       ///< payloads alone; else frames
  std::uint32_t headroom = 0;  ///< kToHost: bytes by which frames may have grown at their front on the device
  std::uint32_t tailroom = 0;  ///< and at their end
};

/// One transfer method for bodies, in one direction. Call order for each launch:
///
///   kToDevice: prepare() -> moves_in() -> enqueue() -> the caller's kernel
///   kToHost:   prepare() -> the caller's kernel -> enqueue() -> wait -> moves_out()
///
/// The caller's kernel copies on the device (kStaged) or across the bus (kGather); kStrided needs none.
///
/// Belongs to one thread at a time.
class BodyCopy {
 public:
  virtual ~BodyCopy() = default;
  virtual TransferMethod method() const = 0;
  /// Whether this method is a good one for `bodies`: else the decision maker takes another.
  virtual bool supports(Bodies const& bodies) const = 0;
  /// Lays out one launch; returns the bytes that it needs of the staging buffers. `bodies` must live to the end.
  virtual std::size_t prepare(Bodies const& bodies) = 0;
  /// Of prepare(): the place of each row in staging; empty where nothing is staged.
  virtual std::span<const StagingExtent> staging_extents() const { return {}; }
  /// Appends the moves of all rows into `staging` (as many bytes as prepare() said).
  virtual void moves_in(std::span<std::byte> /*staging*/, std::vector<Move>& /*moves*/) {}
  /// Appends the move of row `row` out of `staging` into its slot: of its payload, or of the frame where the metadata
  /// has it by now.
  virtual void moves_out(std::uint32_t /*row*/, std::span<const std::byte> /*staging*/, std::vector<Move>& /*moves*/) {}
  /// Enqueues what crosses the bus beside staging and kernels. Errors: the device's.
  virtual Status enqueue(device::Stream& /*stream*/) { return absl::OkStatus(); }
  /// Bytes that cross the bus in this launch, those in staging left out.
  virtual std::uint64_t bytes() const = 0;
};

/// A launch of at most this many packets takes the method with the least latency, not the cheapest one: a kernel that
/// reads or writes the pool is done before a copy engine has begun, and needs no other engine to wait for it.
inline constexpr std::uint32_t kFewPackets = 256;

/// Picks a method for each launch: kGather for few packets, where the device can do it and the plan does not ask for
/// kStaged; else the planned one if it supports the launch's packets, else the next best that this device can do
/// (kGather, then kStaged). kStrided cannot carry payloads.
class BodyMover {
 public:
  BodyMover(TransferMethod planned, Direction direction, bool payloads, bool pool_is_mapped);
  /// The method for `packets` packets whose slots are consecutive.
  TransferMethod default_method(std::uint32_t packets) const;
  /// Whether choose() reads Bodies::own, which may stay empty otherwise.
  bool needs_contiguity() const { return methods_.size() > 1; }
  /// The copy of one launch, prepared; valid until the next choose(). `staging_bytes` is set to what prepare() said.
  BodyCopy& choose(Bodies const& bodies, std::size_t& staging_bytes);
  /// Bytes of staging that `packets` packets can need, at most.
  std::size_t max_staging_bytes(std::uint32_t packets) const;

 private:
  bool is_for_kernel(std::size_t packets) const;

  std::vector<std::unique_ptr<BodyCopy>> methods_;  ///< one, or the planned one and the next best
};

}  // namespace catena::copy
