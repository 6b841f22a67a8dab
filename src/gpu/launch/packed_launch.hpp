// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/launch/launch.hpp"

#include "gpu/launch/packed_packets.hpp"

#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace catena::kernel {

/// Kernels of several NFs over one buffer of packed packets, which crosses the bus once. Each launch has a stream of
/// its own, so that its copies overlap the kernels of other launches. Call order: packets() are filled -> submit() ->
/// poll() until true -> results(), fetch_spill() -> clear(). Belongs to one thread at a time, except packets().
class PackedLaunch {
 public:
  /// One NF of the launch.
  struct Nf {
    DeviceNf* nf;                ///< must outlive the launch
    bool returns_spill = false;  ///< copy the whole spill area back with the results
  };
  /// Bytes of a row's spill area to fetch.
  struct SpillNeed {
    std::uint32_t row;
    std::uint32_t bytes;
  };

  /// `format`: created from the specs of `nfs` in the same order; must outlive the launch. Launches each kernel once
  /// without packets and waits for it. Errors: ResourceExhausted; DeadlineExceeded if a launch hangs.
  static Result<std::unique_ptr<PackedLaunch>> create(device::Device& device, std::span<const Nf> nfs,
                                                      PackedFormat const& format);

  /// Launches the NF's kernel without packets, for the work-items of `max_packets` packets, and waits for it. Call
  /// once, before launches that share the NF: PoCL compiles another variant of a kernel for a launch larger than all
  /// before, and ends the process if this happens while the kernel runs. Errors: as create().
  static Status warm_up(DeviceNf& nf, std::uint32_t max_packets);

  PackedPackets& packets() { return *packets_; }

  /// Enqueues the copy to the device, every kernel and the copy back. Does not wait. The packets must not change until
  /// poll() is true.
  Status submit();
  /// True when results are on the host, or recompute() is done. Never waits.
  Result<bool> poll();
  /// Enqueues every kernel `times` times over the packets of the last submit(), without copies: for measuring kernels
  /// alone. Does not wait.
  Status recompute(std::uint32_t times);

  /// Creates a clock of the device, for trace(). Waits for the device. Must not be called while a buffer is in flight.
  /// Errors: as DeviceClock::create().
  Result<std::shared_ptr<DeviceClock const>> make_clock();
  /// Records times() from the next submit() on.
  void trace(std::shared_ptr<DeviceClock const> clock) { timestamps_.start(std::move(clock)); }
  /// Times of the last submit(), once poll() was true, without fetch_spill(). FailedPrecondition: no submit() since
  /// trace(), or it is not done.
  Result<LaunchTimes> times() const { return timestamps_.times("packed packets"); }

  FaultReport const& faults(std::size_t nf) const;
  bool faulted(std::size_t nf, std::uint32_t row) const;
  /// The result structs of all rows, `result_bytes` apart.
  std::span<const std::byte> results(std::size_t nf) const;
  /// With returns_spill: the row's spill area.
  std::span<const std::byte> returned_spill(std::size_t nf, std::uint32_t row) const;

  /// Copies the bytes of `needs`, in ascending order of rows, to the host and waits for them: as many leading needs as
  /// fit into the staging, at least one. Returns their number. Adjacent areas share one copy. Overwrites the bytes of
  /// the previous call. InvalidArgument: more bytes than the row's spill area has. DeadlineExceeded: not done within
  /// ten seconds.
  Result<std::size_t> fetch_spill(std::size_t nf, std::span<const SpillNeed> needs);
  /// The bytes of need `i` of the last fetch_spill().
  std::span<const std::byte> spill(std::size_t i) const { return fetched_[i]; }

  copy::TransferCounts const& transfers() const { return transfers_; }

 private:
  PackedLaunch() = default;
  Status allocate(device::Device& device);
  Status wait(std::chrono::nanoseconds limit);
  Status enqueue_kernels(std::uint32_t count, std::uint32_t work_packets);

  struct Part {
    Nf nf;
    std::unique_ptr<device::Buffer> spill;
    std::unique_ptr<device::PinnedBuffer> returned;
  };
  PackedFormat const* format_ = nullptr;
  std::vector<Part> parts_;
  std::unique_ptr<device::Buffer> batch_;
  std::unique_ptr<device::Buffer> out_;
  std::unique_ptr<device::PinnedBuffer> staging_;
  std::unique_ptr<device::PinnedBuffer> staging_out_;
  std::unique_ptr<device::PinnedBuffer> staging_spill_;
  std::unique_ptr<PackedPackets> packets_;
  std::unique_ptr<device::Stream> stream_;  // after the memory: it is waited for first
  std::unique_ptr<device::Event> event_;
  std::vector<std::span<const std::byte>> fetched_;
  LaunchTimestamps timestamps_;
  copy::TransferCounts transfers_;
};

}  // namespace catena::kernel
