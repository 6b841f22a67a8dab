// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/packet/batch.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/core/transfer_methods.hpp"
#include "base/hostcopy/engine.hpp"
#include "gpu/copy/staging_extent.hpp"
#include "gpu/device/device.hpp"

/// Transfer methods for packet bodies (whole frames or payloads) between the packet pool and its twin on a device, and
/// the choice of a method for each launch.
namespace catena::copy {

/// Consecutive slots.
struct SlotRun {
  std::uint32_t first;
  std::uint32_t slots;
};

/// The bodies moved by one launch, and their places. Holds views: the memory must outlive the copy, and the metadata
/// must not change until the copy is done.
struct Bodies {
  std::span<std::byte> pool;                  ///< packet pool, from slot 0
  device::Buffer* twins = nullptr;            ///< its twin on the device, from offset 0
  packet::MetaColumns const* meta = nullptr;  ///< of the pool
  std::span<const std::uint32_t> slots;       ///< of the moved packets, one per row
  /// Slots used by this launch only, including the slots of the rows; not necessarily in order.
  std::span<const SlotRun> own;
  bool payloads = false;       ///< payloads only; else whole frames
  std::uint32_t headroom = 0;  ///< kToHost: bytes by which frames may have grown at the front on the device
  std::uint32_t tailroom = 0;  ///< the same at the end
};

/// One transfer method for bodies, in one direction. Call order for each launch:
///
///   kToDevice: prepare() -> moves_in() -> enqueue() -> the caller's kernel
///   kToHost:   prepare() -> the caller's kernel -> enqueue() -> wait -> moves_out()
///
/// kernel_path(method()) is the work of the caller's kernel.
///
/// Belongs to one thread at a time.
class BodyCopy {
 public:
  virtual ~BodyCopy() = default;
  virtual TransferMethod method() const = 0;
  /// Whether this method suits `bodies`. If not, BodyMover chooses another.
  virtual bool supports(Bodies const& bodies) const = 0;
  /// Lays out one launch and returns its staging size in bytes. `bodies` must outlive the launch.
  virtual std::size_t prepare(Bodies const& bodies) = 0;
  /// After prepare(): the place of each row in staging; empty if the method uses no staging.
  virtual std::span<const StagingExtent> staging_extents() const { return {}; }
  /// Appends the moves of all rows into `staging`, whose size prepare() returned.
  virtual void moves_in(std::span<std::byte> /*staging*/, std::vector<hostcopy::Move>& /*moves*/) {}
  /// Appends the move of row `row` from `staging` into its slot: the payload, or the frame at the bounds in the current
  /// metadata.
  virtual void moves_out(std::uint32_t /*row*/, std::span<const std::byte> /*staging*/,
                         std::vector<hostcopy::Move>& /*moves*/) {}
  /// Enqueues the bus transfers made neither through staging nor by kernels. Errors: the device's.
  virtual Status enqueue(device::Stream& /*stream*/) { return absl::OkStatus(); }
  /// Bytes that cross the bus in this launch, without staged bytes.
  virtual std::uint64_t bytes() const = 0;
};

/// A launch of at most this many packets uses the method with the lowest latency instead of the cheapest one. A kernel
/// that reads or writes the pool is done before a copy engine has started, and no other engine has to wait for it.
inline constexpr std::uint32_t kFewPackets = 256;

/// Chooses a method for each launch. Few packets: kGather, if the device supports it and the plan does not require
/// kStaged. Otherwise: the planned method if it supports the launch's packets, else the next best method of this device
/// (kGather, then kStaged).
class BodyMover {
 public:
  BodyMover(TransferMethod planned, Direction direction, bool payloads, bool pool_is_mapped);
  /// The method for `packets` packets in consecutive slots.
  TransferMethod default_method(std::uint32_t packets) const;
  /// Whether choose() reads Bodies::own. If not, Bodies::own may be empty.
  bool needs_contiguity() const { return methods_.size() > 1; }
  /// Returns the prepared copy of one launch, valid until the next choose(). Sets `staging_bytes` to the result of
  /// prepare().
  BodyCopy& choose(Bodies const& bodies, std::size_t& staging_bytes);
  /// Maximum staging size for `packets` packets, in bytes.
  std::size_t max_staging_bytes(std::uint32_t packets) const;

 private:
  bool is_for_kernel(std::size_t packets) const;

  std::vector<std::unique_ptr<BodyCopy>> methods_;  ///< one, or the planned one and the next best
};

}  // namespace catena::copy
