// SPDX-License-Identifier: Apache-2.0
#include "nf/instance.hpp"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <catena/core/text.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <numeric>

namespace catena::nf {
namespace {

constexpr std::array<DropReason, 5> kFrameworkReasons{{
    {"unsupported", "this NF cannot inspect the packet, and on_unsupported is drop"},
    {"kernel_fault", "the NF's kernel accessed memory out of bounds at this packet"},
    {"device_failed", "the device was lost, and with it its changes to this packet"},
    {"link_local", "ARP or another link-local control frame, and link_local is drop"},
    {"process_failed", "the NF's own process had this packet, and ended, violated the protocol or did not answer"},
}};

std::string_view name_of_address_space(std::uint32_t address_space) {
  switch (address_space) {
    case kernel::kAddressColumns:
      return "columns";
    case kernel::kAddressFrames:
      return "frames";
    case kernel::kAddressResults:
      return "results";
    case kernel::kAddressState:
      return "state";
    case kernel::kAddressSpill:
      return "spill";
    case kernel::kAddressLocal:
      return "local memory";
    default:
      return "unknown address space";
  }
}

class LaunchSpill final : public SpillRows {
 public:
  explicit LaunchSpill(kernel::Launch const& launch) : launch_(&launch) {}
  std::span<const std::byte> row(std::uint32_t row) const override { return launch_->spill(row); }

 private:
  kernel::Launch const* launch_;
};

}  // namespace

std::span<const DropReason> framework_reasons() { return kFrameworkReasons; }

Instance::Instance(std::string name, Descriptor const& descriptor, std::shared_ptr<Nf> nf, OnUnsupported on_unsupported,
                   bool recording, LinkLocal link_local)
    : name_(std::move(name)),
      descriptor_(&descriptor),
      nf_(std::move(nf)),
      reported_by_(static_cast<std::uint16_t>(descriptor.needs | descriptor.refuses)),
      on_unsupported_(on_unsupported),
      link_local_(link_local),
      outcome_(descriptor.drop_reasons.size() + kFrameworkReasons.size(), recording,
               static_cast<std::uint32_t>(descriptor.drop_reasons.size()) +
                   static_cast<std::uint32_t>(FrameworkReason::kKernelFault)) {}

copy::LaunchPlan Instance::launch_plan(std::optional<copy::SharedStep> const& shared) const {
  const Hints hints = nf_->hints();
  return {hints.gr, hints.gw, descriptor_->aux_bytes, descriptor_->result_bytes, shared};
}

std::string_view Instance::reason_name(std::uint32_t reason) const {
  const auto own = descriptor_->drop_reasons;
  return reason < own.size() ? own[reason].name : kFrameworkReasons[reason - own.size()].name;
}

std::string_view Instance::reason_help(std::string_view name) const {
  for (const std::span<const DropReason> reasons : {descriptor_->drop_reasons, framework_reasons()}) {
    if (const auto found = std::ranges::find(reasons, name, &DropReason::name); found != reasons.end()) {
      return found->help;
    }
  }
  return {};
}

std::vector<std::pair<std::string_view, std::uint64_t>> Instance::drops() const {
  std::vector<std::pair<std::string_view, std::uint64_t>> result;
  for (std::uint32_t reason = 0; reason < outcome_.drops().size(); ++reason) {
    result.emplace_back(reason_name(reason), outcome_.drops()[reason]);
  }
  return result;
}

void Instance::drop(packet::Packet const& packet, FrameworkReason reason) {
  const auto number = static_cast<std::uint32_t>(descriptor_->drop_reasons.size()) + static_cast<std::uint32_t>(reason);
  outcome_.drop(packet, number);
  if (outcome_.recording()) {
    outcome_.record(packet, packet::Verdict::kDrop, static_cast<std::int32_t>(number), "");
  }
}

void Instance::drop_alive(packet::Batch const& unit, FrameworkReason reason) {
  for (std::uint32_t i = 0; i < unit.size(); ++i) {
    if (packet::ended(unit.meta().verdict[unit.slots()[i]]) == 0) {
      ++counters_.in;
      drop(unit[i], reason);
    }
  }
}

std::string Instance::passes_unseen() const {
  if (descriptor_->takes_unsupported) {
    return {};  // it decides these packets too
  }
  std::vector<std::string_view> kinds;
  if (on_unsupported_ == OnUnsupported::kPass) {
    if (descriptor_->needs == packet::kIpv4) {
      kinds.emplace_back("non-IPv4");
    } else if (descriptor_->needs != 0) {
      kinds.emplace_back("packets without the headers it needs");
    }
    if ((descriptor_->refuses & packet::kTruncated) != 0) {
      kinds.emplace_back("truncated datagrams");
    }
  }
  if (link_local_ == LinkLocal::kPass && !supports(packet::kLinkLocal)) {
    kinds.emplace_back("link-local control frames (ARP, LLDP, STP)");
  }
  return kinds.empty() ? std::string() : fmt::format("forwards without inspection: {}", fmt::join(kinds, ", "));
}

/// Whether all packets of a unit whose slots are a run are alive and ones that this NF can inspect. False if an
/// inspector has to count tunnels among them.
bool Instance::processes_all(packet::Batch const& unit) const {
  if (unit.size() == 0) {
    return true;
  }
  const std::uint8_t* verdicts = unit.meta().verdict + unit.slots()[0];
  const packet::Layers* layers = unit.meta().layers + unit.slots()[0];
  const unsigned reported_by = reported_by_ | (descriptor_->is_inspector ? unsigned{packet::kTunnelBits} : 0U);
  const unsigned needs = descriptor_->needs;
  unsigned missing = 0;
  for (std::uint32_t i = 0; i < unit.size(); ++i) {
    missing |= packet::ended(verdicts[i]);
    missing |= (layers[i].flags & reported_by) ^ needs;
  }
  return missing == 0;
}

void Instance::select(packet::Batch const& unit, std::vector<std::uint32_t>& slots) {
  // Every packet of every NF comes through here: no branch that depends on the packet.
  if (unit.is_run() && processes_all(unit)) {
    slots.insert(slots.end(), unit.slots().begin(), unit.slots().end());
    counters_.in += unit.size();
    counters_.processed += unit.size();
    return;
  }
  packet::MetaColumns const& meta = unit.meta();
  const packet::Layers* layers = meta.layers;
  const std::uint8_t* verdicts = meta.verdict;
  const unsigned reported_by = reported_by_;
  const unsigned needs = descriptor_->needs;
  const auto is_alive = [verdicts](std::uint32_t slot) { return packet::ended(verdicts[slot]) == 0; };
  const auto is_supported = [layers, reported_by, needs](std::uint32_t slot) {
    return (layers[slot].flags & reported_by) == needs;
  };
  const std::size_t before = slots.size();
  slots.resize(before + unit.size());
  std::uint32_t* next = slots.data() + before;
  std::uint64_t alive = 0;
  for (const std::uint32_t slot : unit.slots()) {
    const bool alive_here = is_alive(slot);
    alive += alive_here ? 1U : 0U;
    *next = slot;
    next += static_cast<std::size_t>(alive_here) & static_cast<std::size_t>(is_supported(slot));
  }
  slots.resize(static_cast<std::size_t>(next - slots.data()));
  const std::uint64_t processed = slots.size() - before;
  counters_.in += alive;
  counters_.processed += processed;
  if (alive != processed) {
    leave_out_unsupported(unit);
  }
  if (descriptor_->is_inspector) {
    count_tunnels(unit, std::span(slots).subspan(before));
  }
}

void Instance::count_tunnels(packet::Batch const& unit, std::span<const std::uint32_t> slots) {
  for (const std::uint32_t slot : slots) {
    const packet::Tunnel tunnel = packet::tunnel_of(unit.meta().layers[slot].flags);
    if (tunnel != packet::Tunnel::kNone) {
      counters_.uninspected.add(tunnel);
    }
  }
}

/// Counts the packets of `unit` that are alive and not this NF's to decide, and drops those that must not pass.
void Instance::leave_out_unsupported(packet::Batch const& unit) {
  for (std::uint32_t i = 0; i < unit.size(); ++i) {
    const packet::Packet packet = unit[i];
    const std::uint16_t flags = packet.layers().flags;
    if (packet::ended(unit.meta().verdict[unit.slots()[i]]) != 0 || supports(flags)) {
      continue;
    }
    const bool link_local = packet::is_link_local(flags);
    ++(link_local ? counters_.link_local : counters_.unsupported);
    if (descriptor_->takes_unsupported) {
      nf_->take_unsupported(packet, outcome_);
      if (packet::ended(unit.meta().verdict[unit.slots()[i]]) != 0) {
        if (packet.verdict() == packet::Verdict::kDrop) {
          counters_.uninspected.add(packet, true);
        }
        continue;
      }
    }
    const bool is_dropped = link_local ? link_local_ == LinkLocal::kDrop : on_unsupported_ == OnUnsupported::kDrop;
    if (is_dropped) {
      drop(packet, link_local ? FrameworkReason::kLinkLocal : FrameworkReason::kUnsupported);
    }
    counters_.uninspected.add(packet, is_dropped);
  }
}

void Instance::prepare(packet::Batch const& unit, std::vector<std::uint32_t>& slots, std::vector<std::byte>& aux) {
  const std::size_t aux_bytes = descriptor_->aux_bytes;
  const auto ended = [this] {
    return std::accumulate(outcome_.drops().begin(), outcome_.drops().end(), outcome_.replies());
  };
  aux.assign(slots.size() * aux_bytes, std::byte{0});
  const std::uint64_t ended_before = ended();
  nf_->prepare(unit.subset(slots), aux, outcome_);
  if (ended() == ended_before) {
    return;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (packet::ended(unit.meta().verdict[slots[i]]) != 0) {
      continue;
    }
    if (kept != i) {
      slots[kept] = slots[i];
      std::copy_n(aux.begin() + static_cast<std::ptrdiff_t>(i * aux_bytes), aux_bytes,
                  aux.begin() + static_cast<std::ptrdiff_t>(kept * aux_bytes));
    }
    ++kept;
  }
  slots.resize(kept);
  aux.resize(kept * aux_bytes);
}

void Instance::compute(packet::Batch const& batch, std::span<const std::byte> aux) {
  results_.assign(std::size_t{batch.size()} * descriptor_->result_bytes, std::byte{0});
  nf_->compute(batch, aux, results_);
  nf_->complete({batch, aux, results_, outcome_});
}

void Instance::process(packet::Batch const& unit) {
  slots_.clear();
  select(unit, slots_);
  if (slots_.empty()) {
    return;
  }
  prepare(unit, slots_, aux_);
  if (!slots_.empty()) {
    compute(unit.subset(slots_), aux_);
  }
}

Result<std::unique_ptr<DeviceBatch>> DeviceBatch::create(Instance& instance, kernel::DeviceNf& device_nf,
                                                         kernel::LaunchBounds const& bounds,
                                                         hostcopy::HostMover& mover) {
  std::unique_ptr<DeviceBatch> batch(new DeviceBatch());
  batch->instance_ = &instance;
  batch->device_nf_ = &device_nf;
  CATENA_ASSIGN_OR_RETURN(batch->launch_, kernel::Launch::create(device_nf, bounds, mover));
  return batch;
}

void DeviceBatch::add(packet::Batch const& unit) {
  if (empty()) {
    launch_->begin();
    has_work_ = false;
  }
  // the vectors of units that are done are used again: no allocation on the packet path
  if (used_ == aux_.size()) {
    aux_.emplace_back();
  }
  std::vector<std::byte>& aux = aux_[used_++];
  slots_.clear();
  instance_->select(unit, slots_);
  instance_->prepare(unit, slots_, aux);
  launch_->add(unit, slots_, aux);
  packets_ += unit.size();
}

Status DeviceBatch::submit() {
  spill_asked_ = false;
  has_work_ = launch_->rows().has_any();
  return has_work_ ? launch_->submit() : absl::OkStatus();
}

Result<bool> DeviceBatch::poll() {
  if (has_work_) {
    CATENA_ASSIGN_OR_RETURN(const bool done, launch_->poll());
    if (!done) {
      return false;
    }
    if (!spill_asked_) {
      spill_asked_ = true;
      spill_requests_.clear();
      instance_->nf().spill_requests(launch_->results(), spill_requests_);
      for (SpillRequest const& request : spill_requests_) {
        CATENA_RETURN_IF_ERROR(launch_->fetch_spill(request.row, request.bytes));
      }
      if (!spill_requests_.empty()) {
        return false;
      }
    }
    if (!launch_->apply()) {
      return false;
    }
    complete();
  }
  clear();
  return true;
}

Result<std::optional<kernel::LaunchTimes>> DeviceBatch::times() {
  if (!has_work_) {
    return std::nullopt;
  }
  CATENA_ASSIGN_OR_RETURN(const kernel::LaunchTimes times, launch_->times());
  return times;
}

void DeviceBatch::complete() {
  const std::uint32_t result_bytes = instance_->descriptor().result_bytes;
  const LaunchSpill spill(*launch_);
  std::uint64_t dropped = 0;  // for what the kernel did out of bounds
  for (std::size_t unit = 0; unit < used_; ++unit) {
    const packet::Batch decided = launch_->rows().decided(unit);
    if (decided.size() == 0) {
      continue;
    }
    const std::uint32_t first_row = launch_->rows().first_decided(unit);
    const std::span<const std::byte> aux = aux_[unit];
    const std::span<const std::byte> results =
        launch_->results().subspan(std::size_t{first_row} * result_bytes, decided.size() * result_bytes);
    instance_->counters_.device_packets += decided.size();
    if (launch_->faults().count == 0) {
      instance_->nf().complete({decided, aux, results, instance_->outcome_, &spill, first_row});
      continue;
    }
    // faulted rows are dropped; the others are complete()d one by one, so that their rows stay right
    const std::uint32_t aux_bytes = instance_->descriptor().aux_bytes;
    for (std::uint32_t i = 0; i < decided.size(); ++i) {
      const packet::Batch one = decided.subset(decided.slots().subspan(i, 1));
      if (launch_->faulted(first_row + i)) {
        instance_->drop(one[0], FrameworkReason::kKernelFault);
        ++dropped;
      } else {
        instance_->nf().complete({one, aux.subspan(std::size_t{i} * aux_bytes, aux_bytes),
                                  results.subspan(std::size_t{i} * result_bytes, result_bytes), instance_->outcome_,
                                  &spill, first_row + i});
      }
    }
  }
  ++instance_->counters_.launches;
  instance_->counters_.transfers += launch_->take_transfers();
  if (kernel::FaultReport const& report = launch_->faults(); report.count > 0) {
    instance_->counters_.kernel_faults += report.count;
    // loud, but a hostile kernel must not fill the log: the 1st, 2nd, 4th, 8th ... launch with a fault
    const std::uint64_t launches = ++faulty_launches_;
    if ((launches & (launches - 1)) == 0) {
      // work-items beyond the last packet run too, and no packet is theirs
      const std::string first = report.packet < launch_->rows().decided()
                                    ? concat("packet ", report.packet, " of the batch")
                                    : "no packet of the batch";
      spdlog::error(
          "NF {} on {}: its kernel accessed memory out of bounds {} times in one launch (faulty launch {}); one: "
          "{}, {} + {} bytes, which has {} bytes. Packets dropped for it: {}.",
          instance_->name(), device_nf_->device().info().name, report.count, launches, first,
          name_of_address_space(report.address_space), report.offset, report.size, dropped);
    }
  }
}

bool DeviceBatch::may_write_packets() const {
  auto const& step = device_nf_->plan().shared;
  if (has_work_ && launch_->is_applied()) {
    return true;
  }
  return step && has_work_ && launch_->kernel_ran() && step->to_host != 0 &&
         !(uses_staging(step->body_out) && uses_staging(step->columns_out));
}

bool DeviceBatch::may_change_packets() const {
  auto const& step = device_nf_->plan().shared;
  return may_write_packets() && (launch_->is_applied() || (step->to_host & device_nf_->plan().writes) != 0);
}

bool DeviceBatch::may_change_on_device(packet::FieldSet fields) const {
  return device_nf_->plan().shared && has_work_ && launch_->kernel_ran() && (device_nf_->plan().writes & fields) != 0;
}

void DeviceBatch::finish_on_cpu(std::size_t unit) { instance_->compute(launch_->rows().decided(unit), aux_[unit]); }

void DeviceBatch::drop(std::size_t unit, bool with_replies) {
  packet::Batch const& packets = launch_->rows().unit(unit);
  for (std::uint32_t i = 0; i < packets.size(); ++i) {
    const packet::Verdict verdict = packets[i].verdict();
    if (verdict != packet::Verdict::kDrop && (with_replies || verdict != packet::Verdict::kReply)) {
      instance_->drop(packets[i], FrameworkReason::kDeviceFailed);
    }
  }
}

void DeviceBatch::clear() {
  used_ = 0;
  packets_ = 0;
}

}  // namespace catena::nf
