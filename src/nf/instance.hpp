// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpu/launch/launch.hpp"
#include "nf/statistics_board.hpp"
#include "nf/uninspected.hpp"

/// Runs an NF over batches, on the CPU and on a device: the common part of all NFs.
namespace catena::nf {

/// Drop reasons of the framework itself; they come after the NF's own in the counters.
enum class FrameworkReason : std::uint32_t {
  kUnsupported = 0,    ///< the NF cannot inspect the packet, and `on_unsupported: drop`
  kKernelFault = 1,    ///< the kernel made an access out of bounds for this packet
  kDeviceFailed = 2,   ///< the device was lost with bytes that the host does not have
  kLinkLocal = 3,      ///< a link-local control frame, and `link_local: drop`
  kProcessFailed = 4,  ///< the NF's own process ended, violated the protocol or hung with this packet
};
std::span<const DropReason> framework_reasons();

struct Counters {
  Counter in;           ///< live packets that reached the NF
  Counter processed;    ///< of `in`: given to the NF
  Counter unsupported;  ///< of `in`: not given to it, except for link_local
  Counter link_local;   ///< of `in`: control frames that it does not inspect
  /// Both of these by kind, except for packets that it answered; and packets of tunnels that an inspector got.
  UninspectedCounts uninspected;
  Counter kernel_faults;   ///< accesses out of bounds
  Counter device_packets;  ///< processed on the device
  Counter launches;        ///< on the device, completed without error
  copy::TransferCounts transfers;
};

/// One NF of a chain with its counters. Belongs to one thread at a time, unless stated otherwise.
class Instance {
 public:
  /// `nf`: another instance may have the same one, of which one processes packets at a time.
  Instance(std::string name, Descriptor const& descriptor, std::shared_ptr<Nf> nf, OnUnsupported on_unsupported,
           bool recording, LinkLocal link_local = LinkLocal::kPass);

  std::string const& name() const { return name_; }
  Descriptor const& descriptor() const { return *descriptor_; }
  Nf& nf() { return *nf_; }
  Nf const& nf() const { return *nf_; }
  /// For another instance. Any thread.
  std::shared_ptr<Nf> const& shared_nf() const { return nf_; }
  /// Input for compiling the NF's kernel: its hints and descriptor, and the plan's `shared` step if it has one.
  copy::LaunchPlan launch_plan(std::optional<copy::SharedStep> const& shared = {}) const;
  /// Any thread.
  Counters const& counters() const { return counters_; }
  Counters& counters() { return counters_; }
  Outcome& outcome() { return outcome_; }
  Outcome const& outcome() const { return outcome_; }
  /// For the NF's own statistics.
  StatisticsBoard& board() { return board_; }
  /// Name and count of every drop reason, the framework's last. Any thread.
  std::vector<std::pair<std::string_view, std::uint64_t>> drops() const;
  /// The meaning of the drop reason called `name`, as its descriptor has it; empty for an unknown name.
  std::string_view reason_help(std::string_view name) const;
  /// The name of drop reason `reason`, numbered as for Outcome::drop().
  std::string_view reason_name(std::uint32_t reason) const;
  void drop(packet::Packet const& packet, FrameworkReason reason);
  /// Drops every live packet of `unit`; these packets count as having reached the NF.
  void drop_alive(packet::Batch const& unit, FrameworkReason reason);

  /// A line for the start report about packets that this NF forwards without inspection; empty if it inspects all.
  std::string passes_unseen() const;

  /// Whether prepare() would get the packet. Any thread.
  bool processes(packet::Packet const& packet) const {
    return packet::ended(static_cast<std::uint8_t>(packet.verdict())) == 0 && supports(packet.layers().flags);
  }
  /// Appends to `slots` the packets of `unit` for the NF: live, and with the layers that its descriptor asks for.
  /// Counts the others, and drops them if the chain says so.
  void select(packet::Batch const& unit, std::vector<std::uint32_t>& slots);
  /// Runs prepare() and removes dropped and replied packets from `slots`. `aux` gets the aux structs of the rest.
  void prepare(packet::Batch const& unit, std::vector<std::uint32_t>& slots, std::vector<std::byte>& aux);
  /// Runs compute() and complete() on the CPU.
  void compute(packet::Batch const& batch, std::span<const std::byte> aux);
  /// Runs select, prepare and compute: the CPU placement.
  void process(packet::Batch const& unit);

 private:
  friend class DeviceBatch;
  bool processes_all(packet::Batch const& unit) const;
  bool supports(std::uint16_t flags) const { return (flags & reported_by_) == descriptor_->needs; }
  void leave_out_unsupported(packet::Batch const& unit);
  void count_tunnels(packet::Batch const& unit, std::span<const std::uint32_t> slots);
  std::string name_;
  Descriptor const* descriptor_;
  std::shared_ptr<Nf> nf_;
  std::uint16_t reported_by_;  ///< LayerFlags that tell whether the NF processes a packet
  OnUnsupported on_unsupported_;
  LinkLocal link_local_;
  Outcome outcome_;
  Counters counters_;
  StatisticsBoard board_;
  std::vector<std::uint32_t> slots_;
  std::vector<std::byte> aux_;
  std::vector<std::byte> results_;
};

/// One launch of an instance on a device, over several units, or groups of small units. Call order:
/// add() .. add() -> submit() -> poll() until true.
/// After an error of submit() or poll(), or without a call of submit(): drained() until true, if work may still run ->
/// finish_on_cpu() or drop() for each unit in the order of add() -> clear().
class DeviceBatch {
 public:
  /// `bounds`, `mover`: as Launch::create().
  static Result<std::unique_ptr<DeviceBatch>> create(Instance& instance, kernel::DeviceNf& device_nf,
                                                     kernel::LaunchBounds const& bounds, hostcopy::HostMover& mover);

  std::uint32_t room() const { return launch_->capacity() - packets_; }
  /// As Launch::keeps_to_part().
  bool keeps_to_part() const { return launch_->keeps_to_part(); }
  bool empty() const { return used_ == 0; }
  /// Runs select() and prepare() and stages the unit. Precondition: unit.size() <= room().
  void add(packet::Batch const& unit);
  /// Starts the device work; a batch without packets needs no device and is done at once.
  Status submit();
  /// As Launch::advance() and is_moving().
  Status advance() { return has_work_ ? launch_->advance() : absl::OkStatus(); }
  bool is_moving() const { return has_work_ && launch_->is_moving(); }
  /// True when every unit is complete, with verdicts, records and fields in place. The batch is then empty again.
  Result<bool> poll();
  /// Keeps the times() from the next batch on. As Launch::start_trace().
  Status start_trace() { return launch_->start_trace(); }
  /// When the device reached each part of the batch last completed by poll(); nullopt if it needed no device. Errors:
  /// as Launch::times().
  Result<std::optional<kernel::LaunchTimes>> times();
  /// As Launch::time_kernel(), over the batch last completed by poll().
  Result<std::vector<double>> time_kernel(device::Partition* partition, std::uint32_t runs,
                                          std::chrono::nanoseconds limit) {
    return launch_->time_kernel(partition, runs, limit);
  }
  /// As Launch::drained().
  Result<bool> drained() { return launch_->drained(); }
  /// Number of units since the batch was empty.
  std::size_t units() const { return used_; }
  /// Processes unit number `unit` with the CPU implementation.
  void finish_on_cpu(std::size_t unit);
  /// Drops the live packets of the unit, with reason device_failed, because the host does not have their newest bytes.
  /// Replies are on the host. `with_replies` drops them too, for a unit that cannot be sent at all.
  void drop(std::size_t unit, bool with_replies);
  /// Empties the batch.
  void clear();
  /// Whether the device or a copy engine may have written to the packets themselves since add(), or still may.
  bool may_write_packets() const;
  /// Whether it may have written kernel output to them, so that the host's bytes are neither the old ones nor the new.
  bool may_change_packets() const;
  /// Whether the kernel may have written any of `fields` in the shared buffer since add().
  bool may_change_on_device(packet::FieldSet fields) const;

 private:
  DeviceBatch() = default;
  void complete();

  Instance* instance_ = nullptr;
  kernel::DeviceNf* device_nf_ = nullptr;
  std::unique_ptr<kernel::Launch> launch_;
  std::vector<std::vector<std::byte>> aux_;  ///< of the first used_ units; the others are reused by the next batch
  std::vector<std::uint32_t> slots_;         ///< of the current unit: the packets to process
  std::size_t used_ = 0;
  std::uint32_t packets_ = 0;
  bool has_work_ = false;  ///< the device has something to do
  bool spill_asked_ = false;
  std::uint64_t faulty_launches_ = 0;
  std::vector<SpillRequest> spill_requests_;
};

}  // namespace catena::nf
