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

/// Bytes that crossed the bus, and the packets transferred.
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

/// The NF on a device that a launch moves packets for. All members must outlive the copies.
struct CopyRequest {
  device::Device* device;
  kernel::KernelSpec const* spec;
  LaunchPlan const* plan;
  SharedBuffer* shared;                ///< null if the plan has no shared step
  class TransferKernels const* moves;  ///< likewise
};

/// The transfer kernels around an NF's kernel in a shared step, compiled for its plan. Shared by the launches in
/// flight.
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

/// Where an NF's kernel finds its input and writes its output.
struct KernelArguments {
  device::Buffer* batch;
  device::Buffer* out;
  kernel::LaunchParams params;  ///< of the moved bytes; the caller sets count, state and spill area
};

/// The transfer kernels' work on a batch's bodies.
struct BodyPaths {
  KernelPath in = KernelPath::kNone;
  KernelPath out = KernelPath::kNone;
  bool operator==(BodyPaths const&) const = default;
};

/// The copies of one launch in both directions, and their memory: all bus transfers of the launch except its state and
/// its spill area. Call order around the NF's kernel:
///
///   allocate() -> warm_up_in() -> the kernel -> warm_up_out()                    once
///   prepare() -> its moves are made -> enqueue_in() -> launch_in() -> the kernel -> launch_out() -> enqueue_out() ->
///   wait -> apply() -> its moves are made
///
/// launch_in() and launch_out() launch kernels and may be recorded. The other functions use copy engines and the CPU.
/// Belongs to one thread at a time. Enqueued work must be done before destruction.
class LaunchCopy {
 public:
  /// Allocates for `max_packets` packets as long as their slots, because upstream NFs may extend a packet beyond the
  /// maximum length of rx.
  static std::unique_ptr<LaunchCopy> make(CopyRequest const& request, std::uint32_t max_packets);
  virtual ~LaunchCopy() = default;
  LaunchCopy(LaunchCopy const&) = delete;
  LaunchCopy& operator=(LaunchCopy const&) = delete;

  /// The needs of prepare().
  virtual Rows::Needs needs() const { return {}; }
  /// Allocates all memory, and fills the device memory with kPoison on `stream`.
  virtual Status allocate(device::Stream& stream) = 0;
  /// Launches every transfer kernel without packets, for the maximum number of work-items: drivers finish compiling a
  /// kernel at its first launch.
  virtual Status warm_up_in(device::Stream& /*stream*/) { return absl::OkStatus(); }
  virtual Status warm_up_out(device::Stream& /*stream*/) { return absl::OkStatus(); }

  /// Lays out a batch, writes the staged data, and appends the remaining moves (bodies) to `moves`. `rows` must be
  /// arranged. `aux`: for each unit, the aux structs of its decided rows, plan.aux_bytes per row. Both must live until
  /// apply(). Internal, with nothing written or enqueued, if the packets need more memory than allocated: a defect of
  /// the caller that sized it.
  virtual Status prepare(Rows const& rows, std::span<const std::span<const std::byte>> aux,
                         std::vector<hostcopy::Move>& moves) = 0;
  virtual Status enqueue_in(device::Stream& stream) = 0;
  /// Launches for at most `max_rows` rows; the LaunchHeader holds the actual number. Also applies to launch_out() and
  /// the NF's kernel.
  virtual Status launch_in(device::CommandRecorder& /*target*/, std::uint32_t /*max_rows*/) { return absl::OkStatus(); }
  virtual KernelArguments kernel_arguments() const = 0;
  virtual Status launch_out(device::CommandRecorder& /*target*/, std::uint32_t /*max_rows*/) {
    return absl::OkStatus();
  }
  virtual Status enqueue_out(device::Stream& stream) = 0;
  /// Writes the staged output into the packets, and appends the remaining moves (bodies) to `moves`. If the bounds of a
  /// frame do not fit its place in staging, the row is marked as faulted instead.
  virtual void apply(std::vector<hostcopy::Move>& moves) = 0;

  /// The batch's paths, if launch_in(), the kernel and launch_out() enqueue the same work for all batches with these
  /// paths and at most as many rows; else nullopt.
  virtual std::optional<BodyPaths> repeatable() const { return std::nullopt; }
  /// Acts as prepare() for a batch of `rows` rows whose bodies use the default methods. For recording its kernels.
  virtual void assume_default(std::uint32_t /*rows*/) {}

  /// The spill area of a decided row: it starts at begin * spill_factor and has length * spill_factor bytes.
  virtual kernel::Extent spill_extent(std::uint32_t row) const = 0;
  /// Maximum spill area of a launch, in bytes.
  virtual std::size_t spill_bytes() const = 0;
  /// Rows whose kernel accessed memory out of bounds. Valid once the batch is back on the host.
  kernel::FaultReport const& faults() const { return *reinterpret_cast<kernel::FaultReport const*>(faults_); }
  bool faulted(std::uint32_t row) const { return faults_[sizeof(kernel::FaultReport) + row] != std::byte{0}; }
  /// The first result struct; plan.result_bytes per row.
  const std::byte* results() const { return results_; }
  /// Transfers since the last call.
  TransferCounts take_transfers();

 protected:
  LaunchCopy(CopyRequest const& request, std::uint32_t max_packets) : request_(request), max_packets_(max_packets) {}
  std::uint32_t max_packets() const { return max_packets_; }
  Status allocate_memory(device::Stream& stream, std::size_t batch_bytes, std::size_t in_bytes, std::size_t out_bytes);
  /// Whether a batch fits the memory of allocate_memory(): `in_bytes` of staging to the device, `out_bytes` of staging
  /// to the host, `batch_bytes` on the device. Must be called before any write.
  Status check_fits(std::size_t batch_bytes, std::size_t in_bytes, std::size_t out_bytes) const;
  void mark_faulted(std::uint32_t row, std::uint64_t offset);
  /// One byte per row from `first_row` on, non-zero for rows with an out-of-bounds access; null if no row has one.
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
