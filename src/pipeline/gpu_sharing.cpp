// SPDX-License-Identifier: Apache-2.0
#include "pipeline/gpu_sharing.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace catena::runtime {
namespace {

using share::Mode;
using share::Parts;

/// NFs of all chains that share a device, where parts are fine enough for any number.
constexpr std::size_t kMaxNfsOfAll = 64;
/// Of an NF that was not measured: its launches have as many packets as a part has room for in a first step.
constexpr share::NfCost kUnknown{.kernel = {1, 0}, .transfer = {}};

bool follow_one_another(std::vector<share::Part> const& parts) {
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].first != parts[i - 1].first + parts[i - 1].share.sms) {
      return false;
    }
  }
  return true;
}

}  // namespace

nf_process::GpuPart as_given(share::Part const& part) {
  return {static_cast<std::uint16_t>(part.first), static_cast<std::uint16_t>(part.share.sms),
          part.share.packets_per_sm};
}

GpuSharing::GpuSharing(device::DeviceInfo info, chain::SharingOptions const& options, SharedPartitions partitions,
                       std::vector<Nf> nfs, std::uint32_t packet_bytes)
    : info_(std::move(info)),
      options_(options),
      partitions_(std::move(partitions)),
      nfs_(std::move(nfs)),
      stages_(nfs_.size()),
      elsewhere_(nfs_.size()),
      known_costs_(nfs_.size()),
      partition_plan_(is_alone()                     ? std::make_shared<share::PartitionPlan>(options.mode)
                      : partitions_.plans != nullptr ? partitions_.plans->of(device::identity(info_))
                                                     : nullptr) {
  meter_.start({}, packet_bytes, {});
}

Result<std::unique_ptr<GpuSharing>> GpuSharing::create(device::Device& device, chain::SharingOptions const& options,
                                                       SharedPartitions partitions, std::vector<Nf> nfs,
                                                       std::uint32_t packet_bytes) {
  std::unique_ptr<GpuSharing> sharing(
      new GpuSharing(device.info(), options, std::move(partitions), std::move(nfs), packet_bytes));
  CATENA_RETURN_IF_ERROR(sharing->resolve_shape(device));
  CATENA_RETURN_IF_ERROR(sharing->resolve_turns(device));
  if (!sharing->partitions_.given) {
    CATENA_ASSIGN_OR_RETURN(sharing->member_, sharing->partition_plan_->join(
                                                  sharing->shape_, [self = sharing.get()] { return self->demands(); }));
  }
  CATENA_ASSIGN_OR_RETURN(sharing->parts_, sharing->parts_now());
  CATENA_ASSIGN_OR_RETURN(sharing->first_bounds_, sharing->bounds_for(device, sharing->parts_));
  return sharing;
}

/// Who sees to it that kernels run one after another, where they are to.
Status GpuSharing::resolve_turns(device::Device& device) {
  if (options_.mode != Mode::kTemporal || info_.has_turns) {
    return absl::OkStatus();
  }
  if (!is_alone()) {
    return absl::UnimplementedError(concat("--share temporal: ", info_.name,
                                           " is in the process of one chain, and other processes would not wait for "
                                           "it; use a device server"));
  }
  // whether streams of the device wait for one another, before packets do
  CATENA_ASSIGN_OR_RETURN(const auto stream, device.create_stream());
  CATENA_ASSIGN_OR_RETURN(const auto event, stream->record());
  CATENA_RETURN_IF_ERROR(stream->wait_for(*event));
  takes_turns_ = true;
  return absl::OkStatus();
}

/// What the NFs are to have now.
Result<std::vector<share::Part>> GpuSharing::parts_now() {
  if (!partitions_.given) {
    return member_->parts();
  }
  std::vector<share::Part> parts = partitions_.given->now();
  for (share::Part& part : parts) {
    if (part.share.batch() == 0) {
      part = {0, {shape_.sms, kUnknown.max_packets_per_sm}};
    }
    if (std::uint64_t{part.first} + part.share.sms > shape_.sms) {
      return absl::InvalidArgumentError(
          concat("a part of ", part.share.sms, " from ", part.first, " on, of ", shape_.sms));
    }
  }
  return parts;
}

bool GpuSharing::are_all_elsewhere() const {
  return std::all_of(nfs_.begin(), nfs_.end(), [](Nf const& nf) { return nf.is_elsewhere; });
}

/// How many compute units there are to share, and in which multiples.
Status GpuSharing::resolve_shape(device::Device& device) {
  const std::uint32_t all = info_.compute_units;
  shape_ = {options_.compute_units == 0 ? all : std::min(options_.compute_units, all), 1};
  if (options_.parts == Parts::kGreen) {
    CATENA_ASSIGN_OR_RETURN(const auto parts, device.divide(std::array{1U}));
    shape_.step = parts.front()->compute_units();
    shape_.sms -= shape_.sms % shape_.step;
    // groups may leave some units out
    while (shape_.sms > shape_.step && !device.divide(std::array{shape_.sms}).ok()) {
      shape_.sms -= shape_.step;
    }
  } else if (options_.compute_units != 0 && (!is_apart(options_.mode) || options_.parts == Parts::kNone)) {
    return absl::UnimplementedError(concat("--share ", to_string(options_.mode), " of ", options_.compute_units,
                                           " compute units takes --parts green: without parts kernels run anywhere"));
  }
  if (is_alone() && is_apart(options_.mode) && shape_.sms < nfs_.size() * shape_.step &&
      options_.parts == Parts::kGreen) {
    return absl::ResourceExhaustedError(concat(info_.name, " has ", shape_.sms, " compute units in groups of ",
                                               shape_.step, " to share, and ", nfs_.size(),
                                               " NFs: write --parts blocks, or --share uncoordinated"));
  }
  units_ = shape_.sms;
  if (is_apart(options_.mode) && options_.parts != Parts::kGreen) {
    // parts of what runs at once, not of the units themselves: also where there are fewer of those than NFs
    constexpr std::uint32_t kFinest = 16;
    const std::size_t nfs = is_alone() ? nfs_.size() : kMaxNfsOfAll;
    shape_.sms = std::max<std::uint32_t>(shape_.sms, kFinest * static_cast<std::uint32_t>(nfs));
  }
  return absl::OkStatus();
}

/// What the NFs want, and what they have to do.
Result<std::vector<share::NfDemand>> GpuSharing::demands() {
  const std::scoped_lock lock(traffic_mutex_);
  if (traffic_ != nullptr) {
    std::vector<std::uint64_t> backlog;
    std::ranges::transform(nfs_, std::back_inserter(backlog), &Nf::backlog_packets);
    meter_.look(traffic_(), backlog, std::chrono::steady_clock::now());
  }
  std::vector<share::NfDemand> demands;
  for (std::size_t i = 0; i < nfs_.size(); ++i) {
    const std::optional<share::NfCost> cost = cost_of(i, meter_.packet_bytes());
    if (!cost && options_.mode == Mode::kScheduled) {
      return absl::FailedPreconditionError(concat("--share scheduled needs the costs of NF '", nfs_[i].name, "' on ",
                                                  info_.name, " with its rules, for packets of ", meter_.packet_bytes(),
                                                  " bytes: measure them with `catena profile --nf CHAIN --device ",
                                                  info_.backend, "`, or write --share fair"));
    }
    share::NfDemand& demand = demands.emplace_back();
    demand.name = nfs_[i].name;
    demand.cost = cost.value_or(kUnknown);
    demand.latency_limit_ns = nfs_[i].latency_limit_ns;
    // of a chain that does not run yet, or no more, NFs do nothing: one may wait for ever for who reads its output
    demand.packets_per_s = traffic_ == nullptr ? 0 : meter_.packets_per_s(i);
    demand.needed_pps = traffic_ == nullptr ? 0 : meter_.needed_pps(i);
  }
  return demands;
}

/// The last one that was known, and with which the NF can have a part: larger packets than were measured, or than a
/// launch can have within its limit, must not keep others from parts.
std::optional<share::NfCost> GpuSharing::cost_of(std::size_t nf, std::uint32_t packet_bytes) {
  const std::optional<share::NfCost> now = nfs_[nf].cost(packet_bytes);
  // at first the division judges
  if (now && (!known_costs_[nf] || does_any_part_for(*now, nfs_[nf].latency_limit_ns))) {
    known_costs_[nf] = now;
  }
  return known_costs_[nf];
}

/// Whether an NF of that cost keeps to its limit whatever part it has, or of parts that it is given by need, in one.
bool GpuSharing::does_any_part_for(share::NfCost const& cost, double limit_ns) const {
  if (options_.mode == Mode::kScheduled) {
    constexpr double kSome = 1;  // packets a second
    return share::least_share(cost, kSome, limit_ns, shape_.step, shape_.step).has_value();
  }
  return share::fullest_share(cost, limit_ns, shape_.sms).has_value();
}

/// A part of the device for each NF, or null. Parts of one size in one order are always the same compute units, so what
/// lies in front of an NF's part is divided off, too, and given back. NFs that are told their parts one by one have all
/// of it until they know all of them.
Result<GpuSharing::Partitions> GpuSharing::divide(device::Device& device, std::vector<share::Part> const& parts) const {
  Partitions own(nfs_.size());
  if (options_.parts != Parts::kGreen || are_all_elsewhere()) {
    return own;
  }
  if (!is_apart(options_.mode)) {
    if (options_.compute_units != 0) {
      CATENA_ASSIGN_OR_RETURN(auto shared, device.divide(std::array{shape_.sms}));
      std::fill(own.begin(), own.end(), std::shared_ptr<device::Partition>(std::move(shared.front())));
    }
    return own;
  }
  if (!follow_one_another(parts)) {
    return own;
  }
  std::vector<std::uint32_t> sizes;
  const std::uint32_t in_front = parts.front().first;
  if (in_front != 0) {
    sizes.push_back(in_front);
  }
  for (share::Part const& part : parts) {
    sizes.push_back(part.share.sms);
  }
  CATENA_ASSIGN_OR_RETURN(auto divided, device.divide(sizes));
  std::move(divided.end() - static_cast<std::ptrdiff_t>(parts.size()), divided.end(), own.begin());
  return own;
}

std::uint32_t GpuSharing::launch_packets(std::size_t nf, share::Share const& share) const {
  const std::uint64_t packets = share.batch() / nfs_[nf].stages;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(packets, nfs_[nf].least_packets, nfs_[nf].max_packets));
}

Result<std::vector<kernel::LaunchBounds>> GpuSharing::bounds_for(device::Device& device,
                                                                 std::vector<share::Part> const& parts) {
  CATENA_ASSIGN_OR_RETURN(const Partitions partitions, divide(device, parts));
  std::vector<kernel::LaunchBounds> all;
  for (std::size_t nf = 0; nf < nfs_.size(); ++nf) {
    all.push_back(bounds(nf, parts[nf].share, partitions[nf]));
  }
  return all;
}

kernel::LaunchBounds GpuSharing::bounds(std::size_t nf, share::Share const& share,
                                        std::shared_ptr<device::Partition> const& partition) {
  kernel::LaunchBounds bounds;
  bounds.partition = partition;
  // parts that have units in common run by turns: of a few units, what moves packets stays with the NF
  bounds.moves = options_.compute_units == 0 ? nullptr : partition;
  bounds.max_packets = launch_packets(nf, share);
  if (options_.parts == Parts::kBlocks && is_apart(options_.mode)) {
    // a compute unit's first step of work-items on each, as section 5.1 of the paper has a block on each
    constexpr std::uint64_t kItemsPerUnit = 1024;
    const std::uint64_t items = share.sms * units_ * kItemsPerUnit / shape_.sms;
    const std::uint64_t groups = items / nfs_[nf].group_size / nfs_[nf].stages;
    bounds.max_groups = static_cast<std::uint32_t>(std::max<std::uint64_t>(groups, 1));
  }
  bounds.serializer = takes_turns_ ? &serializer_ : nullptr;
  return bounds;
}

std::string GpuSharing::describe(Allocation const& part) const {
  const bool are_units = !is_apart(options_.mode) || options_.parts == Parts::kGreen;
  return concat(part.nf, ": ", part.units, " of ", shape_.sms, are_units ? " compute units" : " parts", ", at most ",
                part.launch_packets, " packets per launch");
}

std::string GpuSharing::describe() const {
  std::string text(to_string(options_.mode));
  if (options_.parts == Parts::kGreen && (is_apart(options_.mode) || options_.compute_units != 0)) {
    text += concat(", in green contexts of ", shape_.step, " compute units or a multiple");
  } else if (options_.parts == Parts::kBlocks && is_apart(options_.mode)) {
    text += ", by the number of work-groups";
  }
  return text;
}

std::vector<GpuSharing::Allocation> GpuSharing::allocations() const {
  const std::scoped_lock lock(parts_mutex_);
  std::vector<Allocation> all;
  for (std::size_t i = 0; i < nfs_.size(); ++i) {
    const bool is_taken =
        elsewhere_[i] != nullptr ? elsewhere_[i]->taken() == as_given(parts_[i]) : !is_mixed_ && !has_lost(i);
    all.push_back({nfs_[i].name, parts_[i].share.sms, launch_packets(i, parts_[i].share), is_taken});
  }
  return all;
}

}  // namespace catena::runtime
