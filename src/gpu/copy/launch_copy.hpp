// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/counter.hpp>
#include <catena/core/status.hpp>
#include <catena/kernel/fault.hpp>
#include <catena/kernel/launch_params.hpp>
#include <catena/kernel/spec.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/hostcopy/engine.hpp"
#include "gpu/copy/launch_plan.hpp"
#include "gpu/copy/rows.hpp"
#include "gpu/copy/shared_buffer.hpp"
#include "gpu/device/device.hpp"

namespace catena::copy {

/// Bytes transferred over the bus, and their packets.
struct TransferCounts {
  Counter packets;
  Counter bytes_to_device;
  Counter bytes_to_host;

  TransferCounts& operator+=(TransferCounts const& other) {
    packets += other.packets;
    bytes_to_device += other.bytes_to_device;
    bytes_to_host += other.bytes_to_host;
    return *this;
  }
};

/// The NF whose packets are copied, and its device. All members must outlive the copies. An NF has a shared step if its
/// kernel works on the shared buffer; else a direct step, on the launch's own buffer (docs/transfers.md).
struct CopyRequest {
  device::Device* device;
  kernel::KernelSpec const* spec;  ///< of the NF's kernel
  LaunchPlan const* plan;
  SharedBuffer* shared;                ///< null in a direct step
  class TransferKernels const* moves;  ///< null in a direct step
};

/// The transfer kernels of a shared step, compiled for its plan. They run before and after the NF's kernel. All
/// launches in flight use the same object.
class TransferKernels {
 public:
  /// Errors: as program::build(); InvalidArgument if the plan needs a mapped packet pool and `shared` has no mapping.
  /// `name`: name of the NF's kernel, for messages.
  static Result<std::unique_ptr<TransferKernels>> load(device::Device& device, LaunchPlan const& plan,
                                                       SharedBuffer const& shared, std::string_view name);
  device::Kernel& move_in() const { return *move_in_; }
  device::Kernel& move_out() const { return *move_out_; }
  device::Kernel& upload() const { return *upload_; }

 private:
  TransferKernels() = default;
  std::unique_ptr<device::Program> move_in_program_;
  std::unique_ptr<device::Program> move_out_program_;
  std::unique_ptr<device::Program> upload_program_;
  device::Kernel* move_in_ = nullptr;
  device::Kernel* move_out_ = nullptr;
  device::Kernel* upload_ = nullptr;
};

/// Arguments of an NF's kernel.
struct KernelArguments {
  device::Buffer* batch;        ///< input
  device::Buffer* out;          ///< output
  kernel::LaunchParams params;  ///< complete except for count, state and spill area, which the caller sets
};

/// The paths of the transfer kernels for the bodies (payloads or frames) of a batch.
struct BodyPaths {
  KernelPath in = KernelPath::kNone;
  KernelPath out = KernelPath::kNone;
  bool operator==(BodyPaths const&) const = default;
};

/// The copies of one launch in both directions, and their memory: all bus transfers of the launch except its state and
/// its spill area. Call order, with the caller's own work in brackets:
///
///   once:        allocate() -> warm_up_in() -> [NF kernel] -> warm_up_out()
///   each batch:  prepare() -> [host copies of `moves`] -> enqueue_in() -> launch_in() -> [NF kernel]
///                -> launch_out() -> enqueue_out() -> [wait for the device] -> apply() -> [host copies of `moves`]
///
/// launch_in() and launch_out() launch kernels and may be recorded. The other functions use copy engines and the CPU.
/// Belongs to one thread at a time. Enqueued work must be done before destruction.
class LaunchCopy {
 public:
  /// Creates the copies of a direct or a shared step. `max_packets`: of a launch. Each may fill its slot, because
  /// upstream NFs may extend a packet beyond the maximum length of rx.
  static std::unique_ptr<LaunchCopy> make(CopyRequest const& request, std::uint32_t max_packets);
  virtual ~LaunchCopy() = default;
  LaunchCopy(LaunchCopy const&) = delete;
  LaunchCopy& operator=(LaunchCopy const&) = delete;

  /// The data about rows that prepare() reads.
  virtual Rows::Needs needs() const { return {}; }
  /// Allocates all memory, and fills the device memory with kPoison on `stream`.
  virtual Status allocate(device::Stream& stream) = 0;
  /// Launches every transfer kernel once, without packets and for the maximum number of work-items. Drivers finish
  /// compiling a kernel at its first launch.
  virtual Status warm_up_in(device::Stream& /*stream*/) { return absl::OkStatus(); }
  virtual Status warm_up_out(device::Stream& /*stream*/) { return absl::OkStatus(); }

  /// Lays out a batch, writes the staged data, and appends the host copies of bodies to `moves`. Call Rows::arrange()
  /// before. `aux`: for each unit the aux structs of the rows processed by the NF, plan.aux_bytes per row. `rows` and
  /// `aux` must outlive apply(). Internal if the packets need more memory than allocated, which is a defect of the
  /// caller; nothing is written or enqueued then.
  virtual Status prepare(Rows const& rows, std::span<const std::span<const std::byte>> aux,
                         std::vector<hostcopy::Move>& moves) = 0;
  virtual Status enqueue_in(device::Stream& stream) = 0;
  /// Launches the transfer kernels for at most `max_rows` rows; the LaunchHeader has the actual number. The same holds
  /// for launch_out() and the NF's kernel.
  virtual Status launch_in(device::CommandRecorder& /*target*/, std::uint32_t /*max_rows*/) { return absl::OkStatus(); }
  virtual KernelArguments kernel_arguments() const = 0;
  virtual Status launch_out(device::CommandRecorder& /*target*/, std::uint32_t /*max_rows*/) {
    return absl::OkStatus();
  }
  virtual Status enqueue_out(device::Stream& stream) = 0;
  /// Writes the staged output into the packets, and appends the host copies of bodies to `moves`. If a kernel returned
  /// a frame larger than its staging memory, marks the row as faulted instead.
  virtual void apply(std::vector<hostcopy::Move>& moves) = 0;

  /// The paths of the batch. A recording of launch_in(), the kernel and launch_out() can be replayed for batches with
  /// the same paths and at most as many rows. nullopt: this batch cannot use a recording.
  virtual std::optional<BodyPaths> repeatable() const { return std::nullopt; }
  /// Prepares a recording without packets: for `rows` rows whose bodies use the default transfer methods.
  virtual void assume_default(std::uint32_t /*rows*/) {}

  /// The spill area of a row processed by the NF: it starts at byte begin * spill_factor and has length * spill_factor
  /// bytes.
  virtual kernel::Extent spill_extent(std::uint32_t row) const = 0;
  /// Maximum spill area of a launch, in bytes.
  virtual std::size_t spill_bytes() const = 0;
  /// Out-of-bounds accesses of the kernel. Valid after enqueue_out() is done.
  kernel::FaultReport const& faults() const { return *reinterpret_cast<kernel::FaultReport const*>(faults_); }
  bool faulted(std::uint32_t row) const { return faults_[sizeof(kernel::FaultReport) + row] != std::byte{0}; }
  /// The array of result structs, plan.result_bytes per row.
  const std::byte* results() const { return results_; }
  /// Transfers since the last call.
  TransferCounts take_transfers();

 protected:
  LaunchCopy(CopyRequest const& request, std::uint32_t max_packets) : request_(request), max_packets_(max_packets) {}
  std::uint32_t max_packets() const { return max_packets_; }
  Status allocate_memory(device::Stream& stream, std::size_t batch_bytes, std::size_t in_bytes, std::size_t out_bytes);
  /// Internal if a batch does not fit the memory of allocate_memory(): `batch_bytes` on the device, `in_bytes` and
  /// `out_bytes` of staging per direction. Must be called before any write.
  Status check_fits(std::size_t batch_bytes, std::size_t in_bytes, std::size_t out_bytes) const;
  void mark_faulted(std::uint32_t row, std::uint64_t offset);
  /// One byte per row from `first_row` on: non-zero after an out-of-bounds access of this row. Null if all are zero.
  const std::byte* faulted_rows(std::uint32_t first_row) const;

  CopyRequest request_;
  std::unique_ptr<device::Buffer> batch_;
  std::unique_ptr<device::PinnedBuffer> staging_;
  std::unique_ptr<device::PinnedBuffer> staging_out_;
  Rows const* rows_ = nullptr;
  std::byte* faults_ = nullptr;         ///< in staging_out_: the report, then one flag per row
  const std::byte* results_ = nullptr;  ///< in staging_out_
  TransferCounts transfers_;

 private:
  std::uint32_t max_packets_;
};

}  // namespace catena::copy
