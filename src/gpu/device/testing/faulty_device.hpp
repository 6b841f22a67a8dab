// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/device.hpp"

#include <chrono>
#include <cstdint>
#include <memory>

namespace catena::device::testing {

/// Calls with injectable faults.
enum class Call {
  kAllocate,
  kAllocatePinned,
  kMapHost,
  kCreateStream,
  kCreateCommandBuffer,
  kDivide,
  kCompile,
  kLoad,
  kCopyToDevice,
  kCopyToHost,
  kCopyRowsToDevice,
  kCopyRowsToHost,
  kFill,
  kLaunch,
  kEnqueue,
  kFinalize,
  kRecord,
  kRecordTimestamp,
  kWaitFor,
  kFlush,
  kReady,
};
inline constexpr std::size_t kCallCount = 21;

/// A real device with faults injected by a test. All other calls go to the real device, which also owns the buffers,
/// programs, kernels and command buffers. Its streams, events and pinned buffers must not outlive it. Thread rule: as
/// every Device, including the functions for tests.
class FaultyDevice final : public Device {
 public:
  /// `real` must outlive this.
  explicit FaultyDevice(Device& real);
  FaultyDevice(FaultyDevice const&) = delete;
  FaultyDevice& operator=(FaultyDevice const&) = delete;
  ~FaultyDevice() override;

  /// The `nth` call of this kind from now on (1: the next) returns `status` and is not made; later calls work.
  void fail(Call call, std::uint64_t nth, Status status);
  /// As fail(), and from then on the device is lost: every call, and failed(), returns `status`.
  void lose(Call call, std::uint64_t nth, Status status);
  /// While true, no event becomes ready.
  void hold_events(bool hold);
  /// From the `nth` readiness query on (1: the next), no event becomes ready.
  void hold_events_from(std::uint64_t nth);
  /// Events recorded from now on become ready after `delay` at the earliest.
  void delay_events(std::chrono::nanoseconds delay);
  /// From now on, calls of streams and of their events count and fail, and events are held, only on the streams
  /// numbered `first` to `end` - 1 in creation order. Other streams work until the device is lost.
  void aim(std::uint64_t first, std::uint64_t end);
  /// Streams created so far.
  std::uint64_t streams() const;
  /// Number of calls of this kind since the start, including failed calls; of streams, only the ones selected by aim().
  std::uint64_t calls(Call call) const;
  /// Pinned buffers freed while a stream existed, which may have had a copy into them in flight.
  std::uint64_t early_frees() const;

  DeviceInfo const& info() const override;
  Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes) override;
  Result<std::unique_ptr<PinnedBuffer>> allocate_pinned(std::size_t bytes) override;
  Result<std::unique_ptr<Buffer>> map_host(HostMemory const& memory) override;
  Result<std::unique_ptr<Stream>> create_stream(StreamOptions const& options) override;
  Result<std::unique_ptr<CommandBuffer>> create_command_buffer(Partition* partition) override;
  Result<std::vector<std::unique_ptr<Partition>>> divide(std::span<const std::uint32_t> compute_units) override;
  Result<Binary> compile(ProgramSource const& source) override;
  Result<std::unique_ptr<Program>> load(std::span<const std::byte> binary) override;
  Status failed() const override;
  /// The real device keeps running.
  void abandon(Status const& reason) override;

  struct Faults;

 private:
  Device* real_;
  DeviceInfo info_;
  std::unique_ptr<Faults> faults_;
};

}  // namespace catena::device::testing
