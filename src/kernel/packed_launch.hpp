// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/launch.hpp"

#include "kernel/packed_packets.hpp"

#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace catena::kernel {

/// Several NFs' kernels over one buffer of packed packets, which crosses the bus once. Each launch has a stream of its
/// own, so that the copies of one hide behind the kernels of others. Call order: packets() are filled -> submit() ->
/// poll() until true -> results(), fetch_spill() -> clear(). Belongs to one thread at a time, but for packets().
class PackedLaunch {
 public:
  /// What one NF needs of the launch.
  struct Nf {
    DeviceNf* nf;                ///< must outlive the launch
    bool returns_spill = false;  ///< the whole spill area comes back with the results
  };
  /// Bytes of a row's spill area to fetch.
  struct SpillNeed {
    std::uint32_t row;
    std::uint32_t bytes;
  };

  /// `format`: made of the specs of `nfs`, in their order; must outlive the launch. Launches each kernel once without
  /// packets and waits for it. Errors: ResourceExhausted; DeadlineExceeded if that hangs.
  static Result<std::unique_ptr<PackedLaunch>> create(device::Device& device, std::span<const Nf> nfs,
                                                      PackedFormat const& format);

  /// Launches the NF's kernel for as many work-items as `max_packets` packets take, without packets, and waits for it.
  /// To be done once, before launches that share the NF: PoCL makes another variant of a kernel for a launch larger
  /// than all before it, and ends the process where that happens while the kernel runs. Errors: as create().
  static Status warm_up(DeviceNf& nf, std::uint32_t max_packets);

  PackedPackets& packets() { return *packets_; }

  /// Enqueues the copy to the device, every kernel and the copy back. Does not wait. From here on the packets must not
  /// change until poll() is true.
  Status submit();
  /// True when results are on the host, or recompute() is done. Never waits.
  Result<bool> poll();
  /// Enqueues every kernel `times` times over the packets that the last submit() brought to the device, without any
  /// copy: for measuring kernels alone. Does not wait.
  Status recompute(std::uint32_t times);

  /// A clock of the device, for trace(). Waits for the device; not while a buffer is in flight. Errors: as
  /// DeviceClock::create().
  Result<std::shared_ptr<DeviceClock const>> make_clock();
  /// From the next submit() on keeps the times().
  void trace(std::shared_ptr<DeviceClock const> clock) { timestamps_.start(std::move(clock)); }
  /// Of the last submit(), once poll() was true; what fetch_spill() asks for is not in it. FailedPrecondition: there
  /// was no submit() since trace(), or it is not done.
  Result<LaunchTimes> times() const { return timestamps_.times("packed packets"); }

  FaultReport const& faults(std::size_t nf) const;
  bool faulted(std::size_t nf, std::uint32_t row) const;
  /// The result structs of all rows, `result_bytes` apart.
  std::span<const std::byte> results(std::size_t nf) const;
  /// With returns_spill: the row's spill area.
  std::span<const std::byte> returned_spill(std::size_t nf, std::uint32_t row) const;

  /// Brings what `needs` names, in rising order of rows, to the host, and waits for it; as many of the first ones as
  /// the staging holds, at least one. Returns how many. Neighbours travel in one copy. Takes another call's place.
  /// InvalidArgument: more bytes than the row's spill area has. DeadlineExceeded: not in ten seconds.
  Result<std::size_t> fetch_spill(std::size_t nf, std::span<const SpillNeed> needs);
  /// What the last fetch_spill() brought for its need number `i`.
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
