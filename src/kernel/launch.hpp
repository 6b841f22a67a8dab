// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/kernel/fault.hpp>
#include <catena/kernel/launch_params.hpp>
#include <catena/packet/batch.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernel/launch_times.hpp"
#include "kernel/program.hpp"
#include "kernel/shared_buffer.hpp"

/// Runs an NF's kernel over batches of packets: moves what the plan says to the device, launches, and moves back.
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
  /// `shared` is needed for a shared step and must outlive the NF. Errors: as kernel::build(); ResourceExhausted where
  /// the state does not fit; InvalidArgument for a shared step without a buffer, or a mapped route where the pool is
  /// not mapped.
  static Result<std::unique_ptr<DeviceNf>> create(device::Device& device, KernelSpec spec, LaunchPlan const& plan,
                                                  std::span<const std::byte> state, SharedBuffer* shared = nullptr);

  KernelSpec const& spec() const { return spec_; }
  LaunchPlan const& plan() const { return plan_; }
  device::Device& device() const { return *device_; }
  /// Null where create() got none.
  SharedBuffer* shared() const { return shared_; }

 private:
  friend class Launch;
  friend class PackedLaunch;
  friend class SharedLaunch;
  DeviceNf() = default;
  Status load_transfers();
  device::Device* device_ = nullptr;
  KernelSpec spec_;
  LaunchPlan plan_;
  std::unique_ptr<device::Program> program_;
  device::Kernel* kernel_ = nullptr;
  std::unique_ptr<device::Buffer> state_;
  SharedBuffer* shared_ = nullptr;
  // of a shared step
  std::unique_ptr<device::Program> move_in_program_;
  std::unique_ptr<device::Program> move_out_program_;
  device::Kernel* move_in_ = nullptr;
  device::Kernel* move_out_ = nullptr;
  std::unique_ptr<device::Program> upload_program_;
  device::Kernel* upload_ = nullptr;
};

/// One batch in flight: owns its stream, its pinned staging and its device memory. Call order:
/// begin() -> add() .. -> submit() -> poll() until true -> fetch_spill()? -> apply() -> results().
/// Belongs to one thread at a time.
class Launch {
 public:
  /// Room for `max_packets` packets, each as long as its slot: earlier NFs may have made it longer than rx takes it.
  /// Launches the kernel once without packets and waits for it. Errors: ResourceExhausted; DeadlineExceeded if that
  /// first launch hangs.
  static Result<std::unique_ptr<Launch>> create(DeviceNf& nf, std::uint32_t max_packets);
  virtual ~Launch() = default;
  Launch(Launch const&) = delete;
  Launch& operator=(Launch const&) = delete;

  std::uint32_t capacity() const { return max_packets_; }

  /// Starts a new batch. The packets must not change until apply().
  virtual void begin();
  /// The packets of `unit` come next: its slots belong to this batch alone until apply(), those of packets that are not
  /// added too. Without it the slots of the packets that are added are all there are.
  virtual void add_unit(packet::Batch const& /*unit*/) {}
  /// Adds packets that the NF decides, with their aux structs (`aux.size() == batch.size() * aux_bytes`). Both must
  /// live until apply(). Precondition: packets so far + batch.size() <= capacity().
  void add(packet::Batch const& batch, std::span<const std::byte> aux);
  /// Adds packets that the NF passes over. A shared step moves their fields too: a later NF may decide them.
  virtual void add_passthrough(packet::Batch const& /*batch*/) {}
  /// Enqueues the moves to the device, the kernel and the moves back. Does not wait. Internal, and nothing is written
  /// or enqueued, where the packets need more memory than the launch has: a defect of what sized it.
  virtual Status submit() = 0;
  /// Enqueues the kernel once more over the packets that submit() brought to the device, without any copy; poll() is
  /// true when it is done. For measuring a kernel alone.
  virtual Status enqueue_kernel() = 0;
  /// True when results are on the host. Never waits.
  Result<bool> poll();
  /// After an error of submit(), poll() or fetch_spill(): true when nothing of the batch runs any more. Never waits. An
  /// error: nobody knows, and what runs may still read and write the packets.
  Result<bool> drained();
  /// Whether the kernel may have run since begin(), and what is behind it: the moves back.
  bool kernel_ran() const { return kernel_ran_; }
  /// Waits for poll() to be true; DeadlineExceeded names `what` and the device.
  Status wait(std::chrono::nanoseconds limit, std::string_view what);

  /// From the next submit() on keeps the times(). Waits for the device a few times, to set its clock beside the host's;
  /// not while a batch is in flight. Errors: as Stream::record_timestamp(); DeadlineExceeded if the device does not
  /// answer.
  Status start_trace();
  /// Of the last submit(), once poll() was true, as exact as a DeviceClock; what fetch_spill() asks for is not in it.
  /// FailedPrecondition: there was no submit() since start_trace(), or it is not done.
  Result<LaunchTimes> times() const { return timestamps_.times(nf_->spec().name); }

  /// Brings the first `bytes` bytes of the spill area of row `row` to the host; enqueues only, poll() again.
  /// For packets whose result list did not hold everything. Rows are asked for in rising order, each once.
  /// InvalidArgument for another order, or for more bytes than the row's spill area has.
  Status fetch_spill(std::uint32_t row, std::uint32_t bytes);
  /// What fetch_spill() brought for `row`; empty if nothing was asked for.
  std::span<const std::byte> spill(std::uint32_t row) const;

  /// Rows whose kernel reached out of bounds: their packets must be dropped with reason kernel_fault. Empty report:
  /// count 0.
  FaultReport const& faults() const;
  bool faulted(std::uint32_t row) const;

  /// Completes the moves back: writes what came through staging into the packets. A frame whose bounds do not fit its
  /// staging extent marks the row as faulted instead.
  virtual void apply() = 0;
  /// The result structs of all rows, `result_bytes` apart.
  std::span<const std::byte> results() const;

  std::uint32_t rows() const { return count_; }
  /// What crossed the bus since the last call.
  TransferCounts take_transfers();

 protected:
  struct Staged {
    packet::Batch batch;
    std::span<const std::byte> aux;
    std::uint32_t first_row;
  };

  Launch(DeviceNf& nf, std::uint32_t max_packets) : nf_(&nf), max_packets_(max_packets) {}
  /// Takes all memory (see allocate_memory()) and prepares enqueue_kernel() for no packets.
  virtual Status allocate() = 0;
  Status allocate_memory(std::size_t batch_bytes, std::size_t in_bytes, std::size_t out_bytes, std::size_t spill_bytes);
  /// Whether a batch fits the memory of allocate_memory(): `in_bytes` of staging to the device, `out_bytes` of staging
  /// to the host, `batch_bytes` on the device. To be asked before anything is written.
  Status check_fits(std::size_t batch_bytes, std::size_t in_bytes, std::size_t out_bytes) const;
  /// Enqueues every kernel of the launch, without packets.
  virtual Status enqueue_warm_up() { return enqueue_kernel(); }
  /// Makes, after the warm-up, what would take long while packets wait for it.
  virtual Status record_commands() { return absl::OkStatus(); }
  using enum LaunchTimestamps::Point;
  /// Records a timestamp where the launch is traced, else does nothing.
  Status record_timestamp(LaunchTimestamps::Point point) { return timestamps_.put(*stream_, point); }
  /// The point is a timestamp of a recording that the launch enqueued; null where it is not traced.
  void use_timestamp(LaunchTimestamps::Point point, device::Event* timestamp) { timestamps_.use(point, timestamp); }
  bool is_traced() const { return timestamps_.started(); }
  /// Launches the NF's kernel, for at most `max_packets` packets; it writes its results to `out`. What every launch
  /// has is filled in here.
  Status launch_nf_kernel(device::CommandRecorder& target, device::Buffer& out, LaunchParams params,
                          std::uint32_t max_packets);
  void mark_faulted(std::uint32_t row, std::uint64_t offset);
  /// A byte a row from `first_row` on, not 0 for rows that reached out of bounds; null if none did.
  const std::byte* faulted_rows(std::uint32_t first_row) const;
  /// Of a row's spill area: begin * spill_factor is where it starts, length * spill_factor its bytes.
  virtual Extent spill_extent(std::uint32_t row) const = 0;

  DeviceNf* nf_;
  std::unique_ptr<device::Buffer> batch_;
  std::unique_ptr<device::Buffer> spill_;
  std::unique_ptr<device::PinnedBuffer> staging_;
  std::unique_ptr<device::PinnedBuffer> staging_out_;
  std::vector<std::unique_ptr<device::PinnedBuffer>> spill_staging_;     ///< of fetch_spill()
  std::vector<std::unique_ptr<device::CommandBuffer>> command_buffers_;  ///< for the stream, which ends before them
  /// Behind all memory that it may write to: it is waited for first when the launch ends.
  std::unique_ptr<device::Stream> stream_;
  std::unique_ptr<device::Event> event_;
  std::unique_ptr<device::Event> drain_;  ///< of drained()
  std::vector<Staged> staged_;
  std::uint32_t count_ = 0;
  std::byte* faults_ = nullptr;         ///< in staging_out_: the report, then a flag per row
  const std::byte* results_ = nullptr;  ///< in staging_out_
  TransferCounts transfers_;
  bool kernel_ran_ = false;     ///< since begin(), or it may have
  bool is_warming_up_ = false;  ///< launches have as many work-items as the largest batch, and no packets

 private:
  struct Spilled {
    std::uint32_t row;
    std::span<std::byte> bytes;
  };
  Result<std::span<std::byte>> spill_staging(std::size_t bytes);

  std::uint32_t max_packets_;
  std::size_t spill_staging_used_ = 0;  // bytes of the last entry
  std::vector<Spilled> spilled_;
  LaunchTimestamps timestamps_;
};

}  // namespace catena::kernel
