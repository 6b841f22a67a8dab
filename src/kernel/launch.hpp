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

#include "copy/host_mover.hpp"
#include "copy/launch_copy.hpp"
#include "device/turns.hpp"
#include "kernel/adapt.hpp"
#include "kernel/launch_times.hpp"

/// Runs an NF's kernel over batches of packets: moves what the plan says to the device, launches, and moves back.
namespace catena::kernel {

/// The state of one NF on one device and its compiled kernel; shared by the launches in flight.
class DeviceNf {
 public:
  /// `state`: the bytes that the kernel sees as Context::state() and array(); copied to the device before returning.
  /// `shared` is needed for a shared step and must outlive the NF. Errors: as kernel::build(); ResourceExhausted where
  /// the state does not fit; InvalidArgument for a shared step without a buffer, or a mapped route where the pool is
  /// not mapped.
  static Result<std::unique_ptr<DeviceNf>> create(device::Device& device, KernelSpec spec, copy::LaunchPlan const& plan,
                                                  std::span<const std::byte> state,
                                                  copy::SharedBuffer* shared = nullptr,
                                                  Groups groups = Groups::kAsNeeded);

  KernelSpec const& spec() const { return spec_; }
  Groups groups() const { return groups_; }
  copy::LaunchPlan const& plan() const { return plan_; }
  device::Device& device() const { return *device_; }
  /// Null where create() got none.
  copy::SharedBuffer* shared() const { return shared_; }

  /// The kernels that move around its own; null where the plan has no shared step.
  copy::TransferKernels const* moves() const { return moves_.get(); }
  /// Launches the kernel for `packets` packets, with `params` of what was brought for it: its state and local memory
  /// are filled in here. `work_packets`: those that it has work-items for, in `max_groups` work-groups at most (0: as
  /// many as that takes). Precondition: groups() is kAny where there is such a limit.
  Status launch(device::CommandRecorder& target, copy::CallSite const& site, device::Buffer* spill,
                std::uint32_t packets, std::uint32_t work_packets, std::uint32_t max_groups = 0) const;
  /// Overwrites the state with zeros, because it holds keys, and waits for that; nothing may be launched after it.
  /// Errors: those of the device, a lost one among them, whose memory cannot be reached any more.
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

/// How much of its device a launch may take.
struct LaunchBounds {
  std::uint32_t max_packets = 0;
  /// Packets that any launch of the NF may ever have, where that is more: memory is taken for so many, and kernels are
  /// launched for so many once, before others run (see Launch::create()).
  std::uint32_t room = 0;
  /// Where the NF's kernel runs; null: wherever the device likes. Only what is recorded keeps to it; a batch whose
  /// bodies move by other methods than the default, and were not recorded yet, is recorded then.
  std::shared_ptr<device::Partition> partition = nullptr;
  /// The same for the kernels that move packets: with few compute units they do not keep the bus busy. Not another part
  /// that has some of the same units, as such parts run by turns.
  std::shared_ptr<device::Partition> moves = nullptr;
  std::uint32_t max_groups = 0;    ///< work-groups of the NF's kernel at most; 0: as many as its packets need
  device::Turns* turns = nullptr;  ///< in which its kernel takes its turn; null: it does not wait for others
};

/// One batch in flight: [copy in] [the NF's kernel] [copy out] on a stream of its own, between moves into staging and
/// out of it that a host's copy engine makes. Call order: begin() -> add() .. -> submit() -> poll() until true ->
/// fetch_spill()? -> apply() until true -> results(). Belongs to one thread at a time.
class Launch {
 public:
  /// Room for `bounds.max_packets` packets, each as long as its slot: earlier NFs may have made it longer than rx takes
  /// it. Launches the kernel once without packets and waits for it. `mover`, of the same thread, is used as long as
  /// batches run: it is to end before the launch does, so that nothing is moved into memory that is gone. What `bounds`
  /// name outlives the launch. Errors: ResourceExhausted; DeadlineExceeded if that first launch hangs; InvalidArgument
  /// for a limit of work-groups where `nf` was not made for that.
  static Result<std::unique_ptr<Launch>> create(DeviceNf& nf, LaunchBounds const& bounds, copy::HostMover& mover);
  Launch(Launch const&) = delete;
  Launch& operator=(Launch const&) = delete;

  std::uint32_t capacity() const { return bounds_.max_packets; }
  /// Whether its kernels run where the bounds say. Not so where the plan has no batch moved by kernels to and from the
  /// host's memory: what is enqueued is another thing for every batch then, and nothing of it can be recorded.
  bool keeps_to_part() const { return (bounds_.partition == nullptr && bounds_.moves == nullptr) || !kernels_.empty(); }

  /// Starts a new batch. The packets must not change until apply().
  void begin();
  /// The packets of `unit` come next, those in `decided` for the NF, with their aux structs (aux.size() ==
  /// decided.size() * aux_bytes). Its slots belong to this batch alone until apply(); a shared step moves the fields of
  /// packets that are passed over, too: a later NF may decide them. `aux` must live until apply().
  /// Precondition: packets so far + unit.size() <= capacity().
  void add(packet::Batch const& unit, std::span<const std::uint32_t> decided, std::span<const std::byte> aux);
  /// Which packets were added.
  copy::Rows const& rows() const { return rows_; }
  /// Starts the moves into staging; behind them, here or in poll(), the moves to the device, the kernel and the moves
  /// back are enqueued. Does not wait. Internal, and nothing is written or enqueued, where the packets need more memory
  /// than the launch has: a defect of what sized it.
  Status submit();
  /// Enqueues the kernel once more over the packets that submit() brought to the device, without any copy; poll() is
  /// true when it is done. For measuring a kernel alone.
  Status enqueue_kernel();
  /// How long the device works on the kernel alone, in ns by its own clock, on `partition` (null: wherever it likes)
  /// over the packets that submit() brought to it: `runs` runs, each of which waits for the one before. The kernel
  /// works on what its last run left. For measuring; waits, each run at most `limit`. FailedPrecondition: there is no
  /// batch of which any packet was decided, or it is not done; else as the device's errors, DeadlineExceeded among
  /// them.
  Result<std::vector<double>> time_kernel(device::Partition* partition, std::uint32_t runs,
                                          std::chrono::nanoseconds limit);
  /// Enqueues what waits for the moves into staging, where they are done; poll() does it, too. Never waits.
  Status advance();
  /// Whether a host's copy engine has work of the batch: how long that takes is not the device's matter.
  bool is_moving() const { return moving_.has_value(); }
  /// True when results are on the host. Never waits.
  Result<bool> poll();
  /// After an error of submit(), poll() or fetch_spill(): true when nothing of the batch runs any more. Never waits. An
  /// error: nobody knows, and what runs may still read and write the packets.
  Result<bool> drained();
  /// Whether the kernel may have run since begin(), and what is behind it: the moves back.
  bool kernel_ran() const { return kernel_ran_; }
  /// Whether apply() was called since begin(): packets may have changed.
  bool is_applied() const { return is_applied_; }
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
  FaultReport const& faults() const { return copy_->faults(); }
  bool faulted(std::uint32_t row) const { return copy_->faulted(row); }

  /// Completes the moves back: writes what came through staging into the packets. A frame whose bounds do not fit its
  /// staging extent marks the row as faulted instead. True when all of it is there. Never waits.
  bool apply();
  /// The result structs of the decided rows, `result_bytes` apart.
  std::span<const std::byte> results() const {
    return {copy_->results(), std::size_t{rows_.decided()} * nf_->plan().result_bytes};
  }
  /// What crossed the bus since the last call.
  copy::TransferCounts take_transfers();

 private:
  /// What decides which kernels a batch needs, and with which arguments, except for what the LaunchHeader says.
  struct KernelsKey {
    std::uint32_t max_rows = 0;
    copy::BodyMethods methods;
    bool is_traced = false;
    bool operator==(KernelsKey const&) const = default;
  };
  struct Kernels {
    KernelsKey key;
    device::CommandBuffer* commands = nullptr;  ///< all, or the NF's kernel where is_divided()
    device::CommandBuffer* before = nullptr;    ///< those in front of it, and behind it
    device::CommandBuffer* after = nullptr;
    device::Event* moved_in = nullptr;  ///< timestamps, where it is traced
    device::Event* computed = nullptr;
  };
  struct Spilled {
    std::uint32_t row;
    std::span<std::byte> bytes;
  };
  Launch(DeviceNf& nf, LaunchBounds const& bounds, copy::HostMover& mover, std::unique_ptr<copy::LaunchCopy> copy)
      : nf_(&nf),
        bounds_(bounds),
        room_(std::max(bounds.room, bounds.max_packets)),
        mover_(&mover),
        copy_(std::move(copy)),
        rows_(copy_->needs()) {}
  Status warm_up();
  /// Command buffers for batches of every size whose bodies take the default methods; others are recorded when needed.
  Status record_commands();
  /// The kernels of all batches of at most `max_rows` rows whose bodies take these methods. Good until the next call.
  Result<Kernels> record(KernelsKey const& key);
  Result<device::CommandBuffer*> new_commands(device::Partition* partition);
  /// Whether the NF's kernel and those that move packets are recordings of their own.
  bool is_divided() const { return bounds_.turns != nullptr || bounds_.moves != bounds_.partition; }
  Result<Kernels const*> kernels_for(std::uint32_t max_rows, copy::BodyMethods const& methods);
  Status launch_nf(device::CommandRecorder& target, std::uint32_t work_packets);
  Status enqueue_kernels();
  void start_moves();
  bool moves_are_done();
  Status enqueue();
  Status record_timestamp(LaunchTimestamps::Point point) { return timestamps_.put(*stream_, point); }
  Result<std::span<std::byte>> spill_staging(std::size_t bytes);

  DeviceNf* nf_;
  LaunchBounds bounds_;
  std::uint32_t room_;  ///< packets that there is memory for
  copy::HostMover* mover_;
  std::unique_ptr<copy::LaunchCopy> copy_;
  std::unique_ptr<device::Buffer> spill_;
  std::vector<std::unique_ptr<device::PinnedBuffer>> spill_staging_;     ///< of fetch_spill()
  std::vector<std::unique_ptr<device::CommandBuffer>> command_buffers_;  ///< for the stream, which ends before them
  /// Behind all memory that it may write to: it is waited for first when the launch ends.
  std::unique_ptr<device::Stream> stream_;
  std::unique_ptr<device::Event> event_;
  std::unique_ptr<device::Event> drain_;  ///< of drained()
  copy::Rows rows_;
  std::vector<std::span<const std::byte>> aux_;  ///< of each unit
  std::vector<copy::Move> moves_;                ///< into staging or out of it
  std::optional<copy::HostMover::Ticket> moving_;
  std::vector<Kernels> kernels_;
  LaunchTimestamps timestamps_;
  std::uint64_t spilled_bytes_ = 0;     ///< that fetch_spill() asked for since take_transfers()
  std::size_t spill_staging_used_ = 0;  ///< bytes of the last entry
  std::vector<Spilled> spilled_;
  bool is_staging_ = false;  ///< the moves into staging are under way, and nothing is enqueued yet
  bool kernel_ran_ = false;  ///< since begin(), or it may have
  bool is_applied_ = false;
};

}  // namespace catena::kernel
