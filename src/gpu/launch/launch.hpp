// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/kernel/fault.hpp>
#include <catena/kernel/launch_params.hpp>
#include <catena/packet/batch.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hostcopy/host_mover.hpp"
#include "gpu/copy/launch_copy.hpp"
#include "gpu/device/stream_serializer.hpp"
#include "gpu/launch/adapt.hpp"
#include "gpu/launch/launch_times.hpp"

/// Runs an NF's kernel over batches of packets: moves the plan's fields to the device, launches, and moves back.
namespace catena::kernel {

/// The state of one NF on one device and its compiled kernel; shared by the launches in flight.
class DeviceNf {
 public:
  /// `state`: the bytes of Context::state() and array() in the kernel; copied to the device before returning. `shared`:
  /// required for a shared step, and must outlive the NF. Errors: as kernel::build(); ResourceExhausted if the state
  /// does not fit; InvalidArgument for a shared step without a buffer, or for a mapped route if the pool is not mapped.
  static Result<std::unique_ptr<DeviceNf>> create(device::Device& device, KernelSpec spec, copy::LaunchPlan const& plan,
                                                  std::span<const std::byte> state,
                                                  copy::SharedBuffer* shared = nullptr,
                                                  Groups groups = Groups::kAsNeeded);

  KernelSpec const& spec() const { return spec_; }
  Groups groups() const { return groups_; }
  copy::LaunchPlan const& plan() const { return plan_; }
  device::Device& device() const { return *device_; }
  /// Null if create() got no buffer.
  copy::SharedBuffer* shared() const { return shared_; }

  /// The transfer kernels around its own kernel; null if the plan has no shared step.
  copy::TransferKernels const* moves() const { return moves_.get(); }
  /// Launches the kernel for `packets` packets with the parameters in `site`; fills in its state and local memory.
  /// `work_packets`: packets that get work-items, in at most `max_groups` work-groups (0: as many as needed).
  /// Precondition: groups() is kAny if `max_groups` is not 0.
  Status launch(device::CommandRecorder& target, copy::KernelArguments const& site, device::Buffer* spill,
                std::uint32_t packets, std::uint32_t work_packets, std::uint32_t max_groups = 0) const;
  /// Overwrites the state with zeros, because it holds keys, and waits for completion. No launch may follow. Errors:
  /// the device's, including a lost device, whose memory is out of reach.
  Status wipe_state();

 private:
  DeviceNf() = default;
  device::Device* device_ = nullptr;
  KernelSpec spec_;
  Groups groups_ = Groups::kAsNeeded;
  copy::LaunchPlan plan_;
  std::unique_ptr<device::Program> program_;
  device::Kernel* kernel_ = nullptr;
  std::unique_ptr<device::Buffer> state_;
  copy::SharedBuffer* shared_ = nullptr;
  std::unique_ptr<copy::TransferKernels> moves_;
};

/// Limits on a launch's use of its device.
struct LaunchBounds {
  std::uint32_t max_packets = 0;
  /// Maximum packets of any launch of the NF, if more: memory is allocated for this number, and kernels are launched
  /// once for this number before others run (see Launch::create()).
  std::uint32_t room = 0;
  /// Where the NF's kernel runs; null: anywhere. Applies to recorded commands only. A batch with non-default methods
  /// for its bodies is recorded when it first occurs.
  std::shared_ptr<device::Partition> partition = nullptr;
  /// The same for the transfer kernels: with few compute units they do not saturate the bus. Must not be a different
  /// partition that shares units with `partition`, because such partitions are time-sliced.
  std::shared_ptr<device::Partition> moves = nullptr;
  std::uint32_t max_groups = 0;  ///< maximum work-groups of the NF's kernel; 0: as many as its packets need
  device::StreamSerializer* serializer = nullptr;  ///< serializes its kernel with others; null: not serialized
};

/// One batch in flight: [copy in] [the NF's kernel] [copy out] on a stream of its own, between moves into and out of
/// staging by a host copy engine. Call order: begin() -> add() .. -> submit() -> poll() until true -> fetch_spill()? ->
/// apply() until true -> results(). Belongs to one thread at a time.
class Launch {
 public:
  /// Allocates for `bounds.max_packets` packets as long as their slots, because upstream NFs may extend a packet beyond
  /// the maximum length of rx. Launches the kernel once without packets and waits for it. `mover`, of the same thread,
  /// is used while batches run. It must end before the launch does, so that nothing is moved into freed memory. Members
  /// of `bounds` must outlive the launch. Errors: ResourceExhausted; DeadlineExceeded if the first launch hangs;
  /// InvalidArgument for a limit of work-groups if `nf` was not compiled for it.
  static Result<std::unique_ptr<Launch>> create(DeviceNf& nf, LaunchBounds const& bounds, hostcopy::HostMover& mover);
  Launch(Launch const&) = delete;
  Launch& operator=(Launch const&) = delete;

  std::uint32_t capacity() const { return bounds_.max_packets; }
  /// Whether its kernels run within the partitions of the bounds. False if the plan moves no batch by kernels to and
  /// from host memory: each batch then enqueues different work, and nothing can be recorded.
  bool keeps_to_part() const { return (bounds_.partition == nullptr && bounds_.moves == nullptr) || !kernels_.empty(); }

  /// Starts a new batch. The packets must not change until apply().
  void begin();
  /// Appends the packets of `unit`. `decided`: the packets for the NF, with their aux structs (aux.size() ==
  /// decided.size() * aux_bytes). Its slots belong to this batch alone until apply(). A shared step also moves the
  /// fields of passed-over packets, because a later NF may decide them. `aux` must live until apply().
  /// Precondition: packets so far + unit.size() <= capacity().
  void add(packet::Batch const& unit, std::span<const std::uint32_t> decided, std::span<const std::byte> aux);
  /// The added packets.
  copy::Rows const& rows() const { return rows_; }
  /// Starts the moves into staging. After them, here or in poll(), enqueues the moves to the device, the kernel and the
  /// moves back. Does not wait. Internal, with nothing written or enqueued, if the packets need more memory than the
  /// launch has: a defect of the caller that sized it.
  Status submit();
  /// Enqueues the kernel again over the packets that submit() brought to the device, without copies; poll() is true
  /// when it is done. For measuring a kernel alone.
  Status enqueue_kernel();
  /// Time of the kernel alone in ns by the device's clock, on `partition` (null: anywhere), over the packets that
  /// submit() brought to the device. Makes `runs` runs one after another; each works on the output of the previous run.
  /// For measurements; waits, at most `limit` per run. FailedPrecondition: no batch with a decided packet, or the batch
  /// is not done. Other errors: the device's, including DeadlineExceeded.
  Result<std::vector<double>> time_kernel(device::Partition* partition, std::uint32_t runs,
                                          std::chrono::nanoseconds limit);
  /// Once the moves into staging are done, enqueues the work after them; poll() does it, too. Never waits.
  Status advance();
  /// Whether a host copy engine has work of the batch, for whose time the device is not responsible.
  bool is_moving() const { return moving_.has_value(); }
  /// True when results are on the host. Never waits.
  Result<bool> poll();
  /// After an error of submit(), poll() or fetch_spill(): true when no work of the batch runs any more. Never waits. If
  /// drained() returns an error, the state is unknown, and running work may still read and write the packets.
  Result<bool> drained();
  /// Whether the kernel, and the moves back after it, may have run since begin().
  bool kernel_ran() const { return kernel_ran_; }
  /// Whether apply() was called since begin(): packets may have changed.
  bool is_applied() const { return is_applied_; }
  /// Waits until poll() is true; DeadlineExceeded names `what` and the device.
  Status wait(std::chrono::nanoseconds limit, std::string_view what);

  /// Records times() from the next submit() on. Waits for the device a few times, to compare its clock with the host's.
  /// Must not be called while a batch is in flight. Errors: as Stream::record_timestamp(); DeadlineExceeded if the
  /// device does not respond.
  Status start_trace();
  /// Times of the last submit(), once poll() was true, with the accuracy of a DeviceClock and without fetch_spill().
  /// FailedPrecondition: no submit() since start_trace(), or it is not done.
  Result<LaunchTimes> times() const { return timestamps_.times(nf_->spec().name); }

  /// Copies the first `bytes` bytes of row `row`'s spill area to the host. Only enqueues; call poll() again.
  /// For packets whose results exceed the result list. Rows must be requested in ascending order, each once.
  /// InvalidArgument for another order, or for more bytes than the row's spill area has.
  Status fetch_spill(std::uint32_t row, std::uint32_t bytes);
  /// The bytes from fetch_spill() for `row`; empty if not requested.
  std::span<const std::byte> spill(std::uint32_t row) const;

  /// Rows whose kernel accessed memory out of bounds: their packets must be dropped with reason kernel_fault. Empty
  /// report: count 0.
  FaultReport const& faults() const { return copy_->faults(); }
  bool faulted(std::uint32_t row) const { return copy_->faulted(row); }

  /// Completes the moves back: writes the staged output into the packets. If the bounds of a frame do not fit its
  /// staging extent, the row is marked as faulted instead. True when all output is in place. Never waits.
  bool apply();
  /// The result structs of the decided rows, `result_bytes` apart.
  std::span<const std::byte> results() const {
    return {copy_->results(), std::size_t{rows_.decided()} * nf_->plan().result_bytes};
  }
  /// Transfers since the last call.
  copy::TransferCounts take_transfers();

 private:
  /// Determines the kernels of a batch and their arguments, except for the content of the LaunchHeader.
  struct KernelsKey {
    std::uint32_t max_rows = 0;
    copy::BodyPaths paths;
    bool is_traced = false;
    bool operator==(KernelsKey const&) const = default;
  };
  struct Kernels {
    KernelsKey key;
    device::CommandBuffer* commands = nullptr;  ///< all kernels, or the NF's kernel if is_divided()
    device::CommandBuffer* before = nullptr;    ///< transfer kernels before and after it
    device::CommandBuffer* after = nullptr;
    device::Event* moved_in = nullptr;  ///< timestamps, if traced
    device::Event* computed = nullptr;
  };
  struct Spilled {
    std::uint32_t row;
    std::span<std::byte> bytes;
  };
  Launch(DeviceNf& nf, LaunchBounds const& bounds, hostcopy::HostMover& mover, std::unique_ptr<copy::LaunchCopy> copy)
      : nf_(&nf),
        bounds_(bounds),
        room_(std::max(bounds.room, bounds.max_packets)),
        mover_(&mover),
        copy_(std::move(copy)),
        rows_(copy_->needs()) {}
  Status warm_up();
  /// Records command buffers for batches of every size whose bodies use the default methods; others are recorded when
  /// needed.
  Status record_commands();
  /// The kernels of all batches of at most `max_rows` rows whose bodies use these methods. Valid until the next call.
  Result<Kernels> record(KernelsKey const& key);
  Result<device::CommandBuffer*> new_commands(device::Partition* partition);
  /// Whether the NF's kernel and the transfer kernels are separate recordings.
  bool is_divided() const { return bounds_.serializer != nullptr || bounds_.moves != bounds_.partition; }
  Result<Kernels const*> kernels_for(std::uint32_t max_rows, copy::BodyPaths const& paths);
  Status launch_nf(device::CommandRecorder& target, std::uint32_t work_packets);
  Status enqueue_kernels();
  void start_moves();
  bool moves_are_done();
  Status enqueue();
  Status record_timestamp(LaunchTimestamps::Point point) { return timestamps_.put(*stream_, point); }
  Result<std::span<std::byte>> spill_staging(std::size_t bytes);

  DeviceNf* nf_;
  LaunchBounds bounds_;
  std::uint32_t room_;  ///< allocated number of packets
  hostcopy::HostMover* mover_;
  std::unique_ptr<copy::LaunchCopy> copy_;
  std::unique_ptr<device::Buffer> spill_;
  std::vector<std::unique_ptr<device::PinnedBuffer>> spill_staging_;     ///< of fetch_spill()
  std::vector<std::unique_ptr<device::CommandBuffer>> command_buffers_;  ///< for the stream, which ends before them
  /// Declared after all memory that it may write to, so that the destructor waits for it first.
  std::unique_ptr<device::Stream> stream_;
  std::unique_ptr<device::Event> event_;
  std::unique_ptr<device::Event> drain_;  ///< of drained()
  copy::Rows rows_;
  std::vector<std::span<const std::byte>> aux_;  ///< of each unit
  std::vector<hostcopy::Move> moves_;            ///< into staging or out of it
  std::optional<hostcopy::HostMover::Ticket> moving_;
  std::vector<Kernels> kernels_;
  LaunchTimestamps timestamps_;
  std::uint64_t spilled_bytes_ = 0;     ///< requested by fetch_spill() since take_transfers()
  std::size_t spill_staging_used_ = 0;  ///< used bytes of the last buffer
  std::vector<Spilled> spilled_;
  bool is_staging_ = false;  ///< moves into staging are in flight, and nothing is enqueued yet
  bool kernel_ran_ = false;  ///< it may have run since begin()
  bool is_applied_ = false;
};

}  // namespace catena::kernel
