// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/copy/room.hpp>
#include <catena/core/status.hpp>
#include <catena/device/device.hpp>
#include <catena/packet/batch.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

/// Ways to move the bodies of packets (whole frames, or payloads) between the packet pool and its twin on a device, and
/// the choice between them for each launch.
namespace catena::copy {

/// How bytes cross the bus.
enum class Route : std::uint32_t {
  kStaged,   ///< the CPU copies to or from pinned staging, which one bulk copy moves; a kernel copies on the device
  kStrided,  ///< 2-D copies between slots and their twins: whole frames only
  kMapped,   ///< a kernel reads or writes the packet pool (gather, scatter)
};

enum class Way : std::uint8_t { kToDevice, kToHost };

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

/// One way to move bodies, in one direction. Call order for each launch:
///
///   kToDevice: prepare() -> write_staging() -> enqueue() -> the caller's kernel
///   kToHost:   prepare() -> the caller's kernel -> enqueue() -> wait -> read_staging()
///
/// The caller's kernel copies on the device (kStaged) or across the bus (kMapped); kStrided needs none.
///
/// Belongs to one thread at a time.
class BodyCopy {
 public:
  virtual ~BodyCopy() = default;
  virtual Route route() const = 0;
  /// Whether this way does well with `bodies`: else the decision maker takes another.
  virtual bool suits(Bodies const& bodies) const = 0;
  /// Lays out one launch; returns the bytes that it needs of the staging buffers. `bodies` must live to the end.
  virtual std::size_t prepare(Bodies const& bodies) = 0;
  /// Of prepare(): where each row stands in staging; empty where nothing is staged.
  virtual std::span<const Room> rooms() const { return {}; }
  /// Copies rows into `staging` (as many bytes as prepare() said).
  virtual void write_staging(std::span<std::byte> /*staging*/) {}
  /// Copies row `row` out of `staging` into its slot: its payload, or the frame where the metadata has it by now.
  virtual void read_staging(std::uint32_t /*row*/, std::span<const std::byte> /*staging*/) {}
  /// Enqueues what crosses the bus beside staging and kernels. Errors: the device's.
  virtual Status enqueue(device::Stream& /*stream*/) { return absl::OkStatus(); }
  /// Bytes that cross the bus in this launch, those in staging left out.
  virtual std::uint64_t bytes() const = 0;
};

/// Packets of a launch whose way is short rather than cheap: a kernel that reads or writes the pool is done before a
/// copy engine has begun, and needs no other engine to wait for it.
inline constexpr std::uint32_t kFewPackets = 256;

/// Picks a way for each launch: kMapped for few packets, where the device can do it and the plan does not ask for
/// kStaged; else the planned one if it suits the launch's packets, else the next best that this device can do (kMapped,
/// then kStaged). kStrided cannot carry payloads.
class BodyMover {
 public:
  BodyMover(Route planned, Way way, bool payloads, bool pool_is_mapped);
  /// The way of `packets` packets whose slots follow one another.
  Route usual(std::uint32_t packets) const;
  /// Whether choose() looks at Bodies::own, which may stay empty otherwise.
  bool looks_at_runs() const { return ways_.size() > 1; }
  /// The way for one launch, prepared; valid until the next choose(). `staging_bytes` is set to what prepare() said.
  BodyCopy& choose(Bodies const& bodies, std::size_t& staging_bytes);
  /// Bytes of staging that `packets` packets can need, at most.
  std::size_t most_staging_bytes(std::uint32_t packets) const;

 private:
  bool is_for_kernel(std::size_t packets) const;

  std::vector<std::unique_ptr<BodyCopy>> ways_;  ///< one, or the planned one and the next best
};

}  // namespace catena::copy
