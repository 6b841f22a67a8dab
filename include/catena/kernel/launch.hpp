// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/kernel/fault.hpp>
#include <catena/kernel/program.hpp>
#include <catena/packet/batch.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// Runs an NF's kernel over batches of packets in sync mode `copy`: stages what the kernel reads, launches, and
/// brings back what it wrote.
namespace catena::kernel {

/// Bytes that crossed the bus, and packets they were for.
struct TransferCounts {
  std::uint64_t packets = 0;
  std::uint64_t bytes_to_device = 0;
  std::uint64_t bytes_to_host = 0;
};

/// The state of one NF on one device and its compiled kernel; shared by the launches in flight.
class DeviceNf {
 public:
  /// `state`: the bytes that the kernel sees as Context::state() and array(); copied to the device before returning.
  /// Errors: as kernel::build(); ResourceExhausted where the state does not fit.
  static Result<std::unique_ptr<DeviceNf>> create(device::Device& device, ProgramSpec spec,
                                                  std::span<const std::byte> state);

  ProgramSpec const& spec() const { return spec_; }
  device::Device& device() const { return *device_; }

 private:
  friend class Launch;
  DeviceNf() = default;
  device::Device* device_ = nullptr;
  ProgramSpec spec_;
  std::unique_ptr<device::Program> program_;
  device::Kernel* kernel_ = nullptr;
  std::unique_ptr<device::Buffer> state_;
};

/// One batch in flight: owns its stream, its pinned staging and its device memory. Call order:
/// stage() -> poll() until true -> fetch_spill()? -> apply() -> results(). Belongs to one thread at a time.
class Launch {
 public:
  /// Room for `max_packets` packets with `max_frame_bytes_each` bytes of payload or frame each. Launches the kernel
  /// once without packets and waits for it. Errors: ResourceExhausted; DeadlineExceeded if that first launch hangs.
  static Result<std::unique_ptr<Launch>> create(DeviceNf& nf, std::uint32_t max_packets,
                                                std::uint32_t max_frame_bytes_each = packet::kMaxFrameBytes);

  std::uint32_t capacity() const { return max_packets_; }

  /// Starts a new batch. The packets must not change until apply().
  void begin();
  /// Adds packets with their aux structs (`aux.size() == batch.size() * aux_bytes`). Copies fields into staging.
  /// Precondition: staged packets + batch.size() <= capacity().
  void add(packet::Batch const& batch, std::span<const std::byte> aux);
  /// Enqueues copy, kernel and copy. Does not wait.
  Status submit();
  /// Enqueues the kernel once more over the packets that submit() brought to the device, without any copy; poll() is
  /// true when it is done. For measuring a kernel alone.
  Status enqueue_kernel();
  /// True when results are on the host. Never waits.
  Result<bool> poll();
  /// Waits for poll() to be true; DeadlineExceeded names `what` and the device.
  Status wait(std::chrono::nanoseconds limit, std::string_view what);

  /// Brings the first `bytes` bytes of the spill area of row `row` to the host; enqueues only, poll() again.
  /// For packets whose result list did not hold everything. Rows are asked for in rising order, each once.
  /// InvalidArgument for another order, or for more bytes than the row's spill area has.
  Status fetch_spill(std::uint32_t row, std::uint32_t bytes);
  /// What fetch_spill() brought for `row`; empty if nothing was asked for.
  std::span<const std::byte> spill(std::uint32_t row) const;

  /// Rows that strayed: their packets must be dropped with reason kernel_fault. Empty report: count 0.
  FaultReport const& faults() const;
  bool faulted(std::uint32_t row) const;

  /// Writes what the kernel wrote (columns, frames) back into the packets given to add(). `first_row` is the row of
  /// `batch[0]`. A frame extent that does not fit its room marks the row as faulted instead.
  void apply(packet::Batch const& batch, std::uint32_t first_row);
  /// The result structs of all rows, `result_bytes` apart.
  std::span<const std::byte> results() const;

  std::uint32_t rows() const { return count_; }
  /// What crossed the bus since the last call.
  TransferCounts take_transfers();

 private:
  /// Byte positions of one batch in the batch region; host staging has the same shape.
  struct Layout {
    std::uint32_t padded = 0;
    std::size_t aux = 0;
    std::size_t extents = 0;
    std::size_t frames = 0;
    std::size_t out = 0;
    std::size_t out_columns = 0;
    std::size_t results = 0;
    std::size_t end = 0;
  };
  struct Staged {
    packet::Batch batch;
    std::span<const std::byte> aux;
    std::uint32_t first_row;
  };
  struct Spilled {
    std::uint32_t row;
    std::span<std::byte> bytes;
  };

  Launch() = default;
  Status warm_up();
  Layout layout_for(std::uint32_t count, std::size_t frame_bytes) const;
  void gather();
  void gather_column(std::uint32_t field, std::byte* column) const;
  void scatter_column(std::uint32_t field, packet::Batch const& batch, std::uint32_t first_row) const;
  void scatter_bytes(packet::Batch const& batch, std::uint32_t first_row);
  Result<std::span<std::byte>> spill_room(std::size_t bytes);
  std::byte* out(std::size_t region_offset) const;

  DeviceNf* nf_ = nullptr;
  Frames frames_ = Frames::kNone;
  packet::FieldSet in_ = 0;
  packet::FieldSet out_ = 0;
  bool frames_written_ = false;
  std::uint32_t max_packets_ = 0;
  std::unique_ptr<device::Buffer> batch_;
  std::unique_ptr<device::Buffer> spill_;
  std::unique_ptr<device::PinnedBuffer> staging_;      // columns, aux, extents, frames, cleared fault header
  std::unique_ptr<device::PinnedBuffer> staging_out_;  // frames if written, then faults, columns, results
  std::vector<std::unique_ptr<device::PinnedBuffer>> spill_staging_;
  std::size_t spill_staging_used_ = 0;  // bytes of the last entry
  std::unique_ptr<device::Stream> stream_;
  std::unique_ptr<device::Event> event_;

  std::vector<Staged> staged_;
  std::vector<Extent> extents_;
  std::vector<Spilled> spilled_;
  std::uint32_t count_ = 0;
  Layout layout_;
  TransferCounts transfers_;
};

}  // namespace catena::kernel
