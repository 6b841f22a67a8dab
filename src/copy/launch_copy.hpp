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

#include "copy/engine.hpp"
#include "copy/launch_plan.hpp"
#include "copy/rows.hpp"
#include "copy/shared_buffer.hpp"
#include "device/device.hpp"

namespace catena::copy {

/// Bytes that crossed the bus, and packets they were for.
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

/// What a launch moves for: an NF on a device. All of it outlives the copies.
struct Cargo {
  device::Device* device;
  kernel::KernelSpec const* spec;
  LaunchPlan const* plan;
  SharedBuffer* shared;                ///< null where the plan has no shared step
  class TransferKernels const* moves;  ///< likewise
};

/// The kernels around an NF's own in a shared step, compiled for its plan. Shared by the launches in flight.
class TransferKernels {
 public:
  /// Errors: as program::build(); InvalidArgument where the plan needs a mapped packet pool that `shared` does not
  /// have. `name`: of the NF's kernel, for messages.
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

/// Where an NF's kernel finds what was brought for it, and leaves what is to go back.
struct CallSite {
  device::Buffer* batch;
  device::Buffer* out;
  kernel::LaunchParams params;  ///< of the bytes; count, state and spill area are the caller's
};

/// Methods by which the bodies of a batch travel.
struct BodyMethods {
  TransferMethod in = TransferMethod::kStrided;
  TransferMethod out = TransferMethod::kStrided;
  bool operator==(BodyMethods const&) const = default;
};

/// The copies of one launch, both ways, with the memory that they need: everything that crosses the bus for it but its
/// state and its spill area. Call order, with the NF's kernel in between:
///
///   allocate() -> warm_up_in() -> the kernel -> warm_up_out()                    once
///   prepare() -> its moves are made -> enqueue_in() -> launch_in() -> the kernel -> launch_out() -> enqueue_out() ->
///   wait -> apply() -> its moves are made
///
/// launch_in() and launch_out() are what kernels do, and may be recorded; the others are for engines and the CPU.
/// Belongs to one thread at a time; what is enqueued must be done before it ends.
class LaunchCopy {
 public:
  /// Room for `max_packets` packets, each as long as its slot: earlier NFs may have made it longer than rx takes it.
  static std::unique_ptr<LaunchCopy> make(Cargo const& cargo, std::uint32_t max_packets);
  virtual ~LaunchCopy() = default;
  LaunchCopy(LaunchCopy const&) = delete;
  LaunchCopy& operator=(LaunchCopy const&) = delete;

  /// What prepare() asks of the rows.
  virtual Rows::Needs needs() const { return {}; }
  /// Takes all memory, and fills that of the device with kPoison by `stream`.
  virtual Status allocate(device::Stream& stream) = 0;
  /// Every copy that kernels make, for as many work-items as ever will be, and without packets: drivers finish
  /// compiling a kernel when it is first launched.
  virtual Status warm_up_in(device::Stream& /*stream*/) { return absl::OkStatus(); }
  virtual Status warm_up_out(device::Stream& /*stream*/) { return absl::OkStatus(); }

  /// Lays out a batch, writes what goes through staging, and appends to `moves` what is left of that: bodies. `rows` is
  /// arranged; `aux`: of the decided rows of each unit, plan.aux_bytes a row. Both must live until apply(). Internal,
  /// and nothing is written or enqueued, where the packets need more memory than there is: a defect of what sized it.
  virtual Status prepare(Rows const& rows, std::span<const std::span<const std::byte>> aux,
                         std::vector<Move>& moves) = 0;
  virtual Status enqueue_in(device::Stream& stream) = 0;
  /// For at most `max_rows` rows: how many there are, the LaunchHeader says. So are launch_out() and the NF's kernel.
  virtual Status launch_in(device::CommandRecorder& /*target*/, std::uint32_t /*max_rows*/) { return absl::OkStatus(); }
  virtual CallSite call_site() const = 0;
  virtual Status launch_out(device::CommandRecorder& /*target*/, std::uint32_t /*max_rows*/) {
    return absl::OkStatus();
  }
  virtual Status enqueue_out(device::Stream& stream) = 0;
  /// Writes what came back through staging into the packets, and appends to `moves` what is left of that: bodies. A
  /// frame whose bounds do not fit the place that it had in staging marks the row as faulted instead.
  virtual void apply(std::vector<Move>& moves) = 0;

  /// The batch's methods, where what launch_in(), the kernel and launch_out() enqueue is the same for all batches of
  /// these methods and as many rows at most.
  virtual std::optional<BodyMethods> repeatable() const { return std::nullopt; }
  /// As if a batch of `rows` rows whose bodies take the default methods had been prepared: for recording its kernels.
  virtual void assume_default(std::uint32_t /*rows*/) {}

  /// Of a decided row's spill area: begin * spill_factor is where it starts, length * spill_factor its bytes.
  virtual kernel::Extent spill_extent(std::uint32_t row) const = 0;
  /// Bytes of the spill area that a launch may need.
  virtual std::size_t spill_bytes() const = 0;
  /// Rows whose kernel reached out of bounds. Good once the batch is back on the host.
  kernel::FaultReport const& faults() const { return *reinterpret_cast<kernel::FaultReport const*>(faults_); }
  bool faulted(std::uint32_t row) const { return faults_[sizeof(kernel::FaultReport) + row] != std::byte{0}; }
  /// The first result struct; plan.result_bytes a row.
  const std::byte* results() const { return results_; }
  /// What crossed the bus since the last call.
  TransferCounts take_transfers();

 protected:
  LaunchCopy(Cargo const& cargo, std::uint32_t max_packets) : cargo_(cargo), max_packets_(max_packets) {}
  std::uint32_t max_packets() const { return max_packets_; }
  Status allocate_memory(device::Stream& stream, std::size_t batch_bytes, std::size_t in_bytes, std::size_t out_bytes);
  /// Whether a batch fits the memory of allocate_memory(): `in_bytes` of staging to the device, `out_bytes` of staging
  /// to the host, `batch_bytes` on the device. To be asked before anything is written.
  Status check_fits(std::size_t batch_bytes, std::size_t in_bytes, std::size_t out_bytes) const;
  void mark_faulted(std::uint32_t row, std::uint64_t offset);
  /// A byte a row from `first_row` on, not 0 for rows that reached out of bounds; null if none did.
  const std::byte* faulted_rows(std::uint32_t first_row) const;

  Cargo cargo_;
  std::unique_ptr<device::Buffer> batch_;
  std::unique_ptr<device::PinnedBuffer> staging_;
  std::unique_ptr<device::PinnedBuffer> staging_out_;
  Rows const* rows_ = nullptr;
  std::byte* faults_ = nullptr;         ///< in staging_out_: the report, then a flag per row
  const std::byte* results_ = nullptr;  ///< in staging_out_
  TransferCounts transfers_;

 private:
  std::uint32_t max_packets_;
};

}  // namespace catena::copy
