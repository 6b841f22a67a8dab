// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernel/launch.hpp"
#include "nf/statistics_board.hpp"

/// Runs an NF over batches: the part that every NF has in common, on the CPU and on a device.
namespace catena::nf {

/// Reasons that the framework itself drops packets for; they come after the NF's own in the counters.
enum class FrameworkReason : std::uint32_t {
  kUnsupported = 0,    ///< not what the NF can inspect, and `on_unsupported: drop`
  kKernelFault = 1,    ///< the kernel reached out of bounds at this packet
  kDeviceFailed = 2,   ///< the device was lost with bytes that the host does not have
  kLinkLocal = 3,      ///< a link-local control frame, and `link_local: drop`
  kProcessFailed = 4,  ///< the NF's own process ended, lied or hung with this packet
};
std::span<const DropReason> framework_reasons();

struct Counters {
  Counter in;              ///< live packets that reached the NF
  Counter processed;       ///< of those, given to the NF
  Counter unsupported;     ///< of those, not given to it, but for the next
  Counter link_local;      ///< of those, control frames that it does not inspect
  Counter kernel_faults;   ///< accesses out of bounds
  Counter device_packets;  ///< processed on the device
  Counter launches;        ///< on the device, which ended well
  copy::TransferCounts transfers;
};

/// One NF of a chain with its counters. Belongs to one thread at a time, but for what says otherwise.
class Instance {
 public:
  Instance(std::string name, Descriptor const& descriptor, std::unique_ptr<Nf> nf, OnUnsupported on_unsupported,
           bool recording, LinkLocal link_local = LinkLocal::kPass);

  std::string const& name() const { return name_; }
  Descriptor const& descriptor() const { return *descriptor_; }
  Nf& nf() { return *nf_; }
  Nf const& nf() const { return *nf_; }
  /// For other threads than that of the steps, beside it: what `read` says of the NF, which stays as long as that
  /// takes.
  template <typename Read>
  auto look(Read read) const {
    const std::lock_guard lock(nf_mutex_);
    return read(*nf_);
  }
  /// From here on the NF is that of `next`, of the same type, with what its entry says of packets that it does not
  /// inspect; counts and all else go on. `next` has the one of before then. By the thread of the steps, while no batch
  /// is between prepare() and complete().
  void exchange_nf(Instance& next);
  /// What the NF's kernel is compiled for: by its hints and descriptor, and by the plan's `shared` step if it has one.
  copy::LaunchPlan launch_plan(std::optional<copy::SharedStep> const& shared = {}) const;
  /// By any thread.
  Counters const& counters() const { return counters_; }
  Counters& counters() { return counters_; }
  Outcome& outcome() { return outcome_; }
  Outcome const& outcome() const { return outcome_; }
  /// For the NF's own statistics.
  StatisticsBoard& board() { return board_; }
  /// Name and count of every drop reason, the framework's last. Any thread.
  std::vector<std::pair<std::string_view, std::uint64_t>> drops() const;
  /// The name of drop reason `reason` as Outcome::drop() takes it.
  std::string_view reason_name(std::uint32_t reason) const;
  void drop(packet::Packet const& packet, FrameworkReason reason);
  /// Drops every packet of `unit` that is alive; they count as having reached the NF.
  void drop_alive(packet::Batch const& unit, FrameworkReason reason);

  /// What this NF lets through without inspecting it, as a line for the start report; empty if nothing.
  std::string passes_unseen() const;

  /// Whether prepare() would get the packet. Any thread.
  bool decides(packet::Packet const& packet) const {
    return packet::ended(static_cast<std::uint8_t>(packet.verdict())) == 0 && supports(packet.layers().flags);
  }
  /// Appends to `slots` the packets of `unit` that the NF is to decide: alive, and such as its descriptor asks for.
  /// Counts the others, and drops them where the chain says so.
  void select(packet::Batch const& unit, std::vector<std::uint32_t>& slots);
  /// prepare(); removes from `slots` what it dropped or replied to. `aux` gets the aux structs of the rest.
  void prepare(packet::Batch const& unit, std::vector<std::uint32_t>& slots, std::vector<std::byte>& aux);
  /// compute() and complete() on the CPU.
  void compute(packet::Batch const& batch, std::span<const std::byte> aux);
  /// select, prepare and compute: the CPU placement.
  void process(packet::Batch const& unit);

 private:
  friend class DeviceBatch;
  bool processes_all(packet::Batch const& unit) const;
  bool supports(std::uint8_t flags) const { return (flags & told_by_) == descriptor_->needs; }
  void leave_out_unsupported(packet::Batch const& unit);
  std::string name_;
  Descriptor const* descriptor_;
  mutable std::mutex nf_mutex_;  ///< whoever is not the thread of the steps has it while he looks at nf_
  std::unique_ptr<Nf> nf_;
  std::uint8_t told_by_;  ///< LayerFlags that tell whether the NF decides a packet
  OnUnsupported on_unsupported_;
  LinkLocal link_local_;
  Outcome outcome_;
  Counters counters_;
  StatisticsBoard board_;
  std::vector<std::uint32_t> slots_;
  std::vector<std::byte> aux_;
  std::vector<std::byte> results_;
};

/// One launch of an instance on a device, over several units, or groups of small ones. Call order:
/// add() .. add() -> submit() -> poll() until true.
/// After an error of submit() or poll(), or where submit() was never called: drained() until true, if anything may
/// still run -> finish_on_cpu() or drop() for each unit in the order of add() -> clear().
class DeviceBatch {
 public:
  /// `bounds`, `mover`: as Launch::create().
  static Result<std::unique_ptr<DeviceBatch>> create(Instance& instance, kernel::DeviceNf& device_nf,
                                                     kernel::LaunchBounds const& bounds, copy::HostMover& mover);

  std::uint32_t room() const { return launch_->capacity() - packets_; }
  /// As Launch::keeps_to_part().
  bool keeps_to_part() const { return launch_->keeps_to_part(); }
  bool empty() const { return used_ == 0; }
  /// Runs select() and prepare() and stages the unit. Precondition: unit.size() <= room().
  void add(packet::Batch const& unit);
  /// Starts the device work; a batch without packets needs none and is done at once.
  Status submit();
  /// As Launch::advance() and is_moving().
  Status advance() { return has_work_ ? launch_->advance() : absl::OkStatus(); }
  bool is_moving() const { return has_work_ && launch_->is_moving(); }
  /// True when every unit is complete: verdicts, records and fields are in place, and the batch is empty again.
  Result<bool> poll();
  /// From the next batch on keeps the times(). As Launch::start_trace().
  Status start_trace() { return launch_->start_trace(); }
  /// When the device came to the parts of the batch that poll() completed last; none where it needed no device.
  /// Errors: as Launch::times().
  Result<std::optional<kernel::LaunchTimes>> times();
  /// As Launch::time_kernel(), over the batch that poll() completed last.
  Result<std::vector<double>> time_kernel(device::Partition* partition, std::uint32_t runs,
                                          std::chrono::nanoseconds limit) {
    return launch_->time_kernel(partition, runs, limit);
  }
  /// As Launch::drained().
  Result<bool> drained() { return launch_->drained(); }
  /// Units since the batch was empty.
  std::size_t units() const { return used_; }
  /// Decides unit number `unit` by the CPU implementation.
  void finish_on_cpu(std::size_t unit);
  /// Drops what is alive of it, with reason device_failed: the host does not have its newest bytes. Replies are on the
  /// host; `with_replies` drops them too, for a unit that cannot be sent at all.
  void drop(std::size_t unit, bool with_replies);
  /// The batch is empty again.
  void clear();
  /// Whether the device or a copy engine may have written into the packets themselves since add(), or may still.
  bool may_write_packets() const;
  /// Whether it may have put there what the kernel wrote: the host's bytes are then neither the old ones nor the new.
  bool may_change_packets() const;
  /// Whether the kernel may have written any of `fields` in the shared buffer since add().
  bool may_change_on_device(packet::FieldSet fields) const;

 private:
  DeviceBatch() = default;
  void complete();

  Instance* instance_ = nullptr;
  kernel::DeviceNf* device_nf_ = nullptr;
  std::unique_ptr<kernel::Launch> launch_;
  std::vector<std::vector<std::byte>> aux_;  ///< of the first used_ units; the others wait for the next batch
  std::vector<std::uint32_t> slots_;         ///< of the unit at hand, those that are decided
  std::size_t used_ = 0;
  std::uint32_t packets_ = 0;
  bool has_work_ = false;  ///< there is something to do on the device
  bool spill_asked_ = false;
  std::uint64_t faulty_launches_ = 0;
  std::vector<SpillRequest> spill_requests_;
};

}  // namespace catena::nf
