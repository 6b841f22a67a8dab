// SPDX-License-Identifier: Apache-2.0
#include "runtime/gpu_sharing.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <utility>

namespace catena::runtime {
namespace {

using share::Mode;
using share::Parts;

/// How often it is looked whether there are other parts.
constexpr std::chrono::milliseconds kPeriod = share::Division::kPeriod;
/// How often a stage is asked whether it has taken its offer.
constexpr std::chrono::microseconds kOfferPeriod{100};
constexpr int kMaxFailures = 3;
/// NFs of all chains that share a device, where parts are fine enough for any number.
constexpr std::size_t kMaxNfsOfAll = 64;
/// The same where another process hands them out, which costs no look at anything else.
constexpr std::chrono::milliseconds kGivenPeriod{20};
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

GpuSharing::GpuSharing(std::shared_ptr<device::Device> device, chain::SharingOptions const& options,
                       std::vector<Nf> nfs, std::uint32_t packet_bytes)
    : device_(std::move(device)),
      info_(device_->info()),
      options_(options),
      nfs_(std::move(nfs)),
      stages_(nfs_.size()),
      elsewhere_(nfs_.size()),
      known_costs_(nfs_.size()),
      packet_bytes_(packet_bytes),
      division_(is_alone() ? std::make_shared<share::Division>(options.mode) : options.division) {}

Result<std::unique_ptr<GpuSharing>> GpuSharing::create(std::shared_ptr<device::Device> device,
                                                       chain::SharingOptions const& options, std::vector<Nf> nfs,
                                                       std::uint32_t packet_bytes) {
  std::unique_ptr<GpuSharing> sharing(new GpuSharing(std::move(device), options, std::move(nfs), packet_bytes));
  CATENA_RETURN_IF_ERROR(sharing->settle_shape());
  if (!options.given) {
    CATENA_ASSIGN_OR_RETURN(sharing->member_, sharing->division_->join(
                                                  sharing->shape_, [self = sharing.get()] { return self->demands(); }));
  }
  CATENA_ASSIGN_OR_RETURN(sharing->parts_, sharing->parts_now());
  CATENA_ASSIGN_OR_RETURN(sharing->partitions_, sharing->divide(sharing->parts_));
  if (options.mode == Mode::kTemporal) {
    // whether streams of the device wait for one another, before packets do
    CATENA_ASSIGN_OR_RETURN(const auto stream, sharing->device_->create_stream());
    CATENA_ASSIGN_OR_RETURN(const auto event, stream->record());
    CATENA_RETURN_IF_ERROR(stream->wait_for(*event));
  }
  if (sharing->are_all_elsewhere()) {
    sharing->device_ = nullptr;
  }
  return sharing;
}

/// What the NFs are to have now.
Result<std::vector<share::Part>> GpuSharing::parts_now() {
  if (!options_.given) {
    return member_->parts();
  }
  std::vector<share::Part> parts = options_.given->now();
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
Status GpuSharing::settle_shape() {
  const std::uint32_t all = info_.compute_units;
  shape_ = {options_.compute_units == 0 ? all : std::min(options_.compute_units, all), 1};
  if (options_.parts == Parts::kGreen) {
    CATENA_ASSIGN_OR_RETURN(const auto parts, device_->divide(std::array{1U}));
    shape_.step = parts.front()->compute_units();
    shape_.sms -= shape_.sms % shape_.step;
    // groups may leave some units out
    while (shape_.sms > shape_.step && !device_->divide(std::array{shape_.sms}).ok()) {
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

/// What the NFs want, and how fast they were since they were last asked.
Result<std::vector<share::NfDemand>> GpuSharing::demands() {
  const std::scoped_lock lock(traffic_mutex_);
  std::vector<double> speeds(nfs_.size());
  if (traffic_ != nullptr) {
    Traffic now = traffic_();
    const auto at = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(at - last_at_).count();
    for (std::size_t i = 0; i < nfs_.size() && seconds > 0; ++i) {
      speeds[i] = static_cast<double>(now.packets[i] - last_.packets[i]) / seconds;
    }
    if (std::any_of(speeds.begin(), speeds.end(), [](double speed) { return speed > 0; })) {
      packet_bytes_ = now.packet_bytes;
    }
    last_ = std::move(now);
    last_at_ = at;
  }
  std::vector<share::NfDemand> demands;
  for (std::size_t i = 0; i < nfs_.size(); ++i) {
    Nf const& nf = nfs_[i];
    if (std::optional<share::NfCost> now = nf.cost(packet_bytes_)) {
      known_costs_[i] = now;  // else the last one: larger packets than were measured must not keep others from parts
    }
    std::optional<share::NfCost> const& cost = known_costs_[i];
    if (!cost && options_.mode == Mode::kScheduled) {
      return absl::FailedPreconditionError(concat("--share scheduled needs to know what NF '", nf.name, "' costs on ",
                                                  info_.name, " with its rules, for packets of ", packet_bytes_,
                                                  " bytes: measure it with `catena profile --nf CHAIN --device ",
                                                  info_.backend, "`, or write --share fair"));
    }
    demands.push_back({nf.name, cost.value_or(kUnknown), speeds[i], nf.latency_limit_ns});
  }
  return demands;
}

/// A part of the device for each NF, or null. Parts of one size in one order are always the same compute units, so what
/// lies in front of an NF's part is divided off, too, and given back. NFs that are told their parts one by one have all
/// of it until they know all of them.
Result<std::vector<std::shared_ptr<device::Partition>>> GpuSharing::divide(
    std::vector<share::Part> const& parts) const {
  std::vector<std::shared_ptr<device::Partition>> own(nfs_.size());
  if (options_.parts != Parts::kGreen || are_all_elsewhere()) {
    return own;
  }
  if (!is_apart(options_.mode)) {
    if (options_.compute_units != 0) {
      CATENA_ASSIGN_OR_RETURN(auto shared, device_->divide(std::array{shape_.sms}));
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
  CATENA_ASSIGN_OR_RETURN(auto divided, device_->divide(sizes));
  std::move(divided.end() - static_cast<std::ptrdiff_t>(parts.size()), divided.end(), own.begin());
  return own;
}

std::uint32_t GpuSharing::launch_packets(std::size_t nf, share::Share const& share) const {
  const std::uint64_t packets = share.batch() / nfs_[nf].stages;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(packets, nfs_[nf].least_packets, nfs_[nf].most_packets));
}

kernel::LaunchBounds GpuSharing::bounds(std::size_t nf, share::Share const& share, device::Partition* partition) {
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
  if (options_.mode == Mode::kTemporal) {
    bounds.turns = &turns_;
  }
  return bounds;
}

kernel::LaunchBounds GpuSharing::bounds_of(std::size_t nf) {
  return bounds(nf, parts_[nf].share, partitions_[nf].get());
}

void GpuSharing::add(std::size_t nf, DeviceStage& stage, DeviceSide& side, std::size_t position) {
  stages_[nf].push_back({&stage, &side, position});
}

void GpuSharing::add(std::size_t nf, ProcessPart& part) {
  elsewhere_[nf] = &part;
  part.give(as_given(parts_[nf]));
}

void GpuSharing::start(std::function<Traffic()> traffic) {
  {
    const std::scoped_lock lock(traffic_mutex_);
    traffic_ = std::move(traffic);
    last_ = traffic_();
    last_at_ = std::chrono::steady_clock::now();
  }
  if (options_.given) {
    options_.given->taken(parts_);
  }
  if (options_.mode == Mode::kScheduled || !is_alone()) {
    thread_ = std::thread([this] { watch(); });
  }
}

void GpuSharing::stop() {
  {
    const std::scoped_lock lock(mutex_);
    is_stopping_ = true;
  }
  stopping_changed_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
  const std::scoped_lock lock(traffic_mutex_);
  traffic_ = nullptr;  // who asks from now on finds NFs that do nothing
}

/// False once stop() was called.
bool GpuSharing::sleep(std::chrono::microseconds time) {
  std::unique_lock lock(mutex_);
  return !stopping_changed_.wait_for(lock, time, [this] { return is_stopping_; });
}

void GpuSharing::watch() {
  int failures = 0;  // in a row: each has taken memory beside the packets
  while (sleep(options_.given ? kGivenPeriod : kPeriod)) {
    if (is_over()) {
      spdlog::warn("NFs share {} no more: it is out of use", info_.name);
      member_.reset();
      return;
    }
    const Result<bool> followed = follow();
    if (followed.ok() && *followed) {
      failures = 0;
    } else if (followed.ok()) {
      return;
    } else if (!is_over()) {
      spdlog::warn("NFs keep the parts of {} that they have: {}", info_.name, std::string(followed.status().message()));
      if (++failures == kMaxFailures) {
        return;
      }
    }
  }
}

/// Takes other parts where there are some. As hand_out().
Result<bool> GpuSharing::follow() {
  CATENA_RETURN_IF_ERROR(options_.given ? absl::OkStatus() : division_->look());
  CATENA_ASSIGN_OR_RETURN(const std::vector<share::Part> parts, parts_now());
  return parts == parts_ && !is_mixed_ ? Result<bool>(true) : hand_out(parts);
}

/// Hands parts to the stages, one after another. False: the device is out of use, or stop() was called. An error:
/// stages may have parts of before and of now.
Result<bool> GpuSharing::hand_out(std::vector<share::Part> const& parts) {
  CATENA_ASSIGN_OR_RETURN(std::vector<std::shared_ptr<device::Partition>> partitions, divide(parts));
  // those of before live until no stage has launches on them
  partitions_.insert(partitions_.end(), partitions.begin(), partitions.end());
  is_mixed_ = true;
  for (std::size_t nf = 0; nf < nfs_.size(); ++nf) {
    if (elsewhere_[nf] != nullptr) {
      elsewhere_[nf]->give(as_given(parts[nf]));  // it takes that in its own time
      continue;
    }
    const kernel::LaunchBounds own = bounds(nf, parts[nf].share, partitions[nf].get());
    for (Shared const& shared : stages_[nf]) {
      DeviceUse& use = shared.side->use();
      CATENA_ASSIGN_OR_RETURN(auto attachment,
                              shared.stage->attach(*shared.side->kernel_of(shared.position),
                                                   shared.side->only_on_device(shared.position), use, own));
      // of a device that is out of use the stage takes nothing more, and whoever brings it back makes the next offer
      shared.stage->offer(std::move(attachment));
      while (use.allowed() && !shared.stage->has_taken_offer()) {
        if (!sleep(kOfferPeriod)) {
          return false;
        }
      }
      if (!use.allowed()) {
        return false;
      }
      // what it had before ends here, and not where packets wait
      shared.stage->reclaim().reset();
    }
  }
  partitions_ = std::move(partitions);
  is_mixed_ = false;
  {
    const std::scoped_lock lock(parts_mutex_);
    parts_ = parts;
  }
  if (options_.given) {
    options_.given->taken(parts);
  }
  changes_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

std::string GpuSharing::describe(Allocation const& part) const {
  const bool are_units = !is_apart(options_.mode) || options_.parts == Parts::kGreen;
  return concat(part.nf, ": ", part.units, " of ", shape_.sms, are_units ? " compute units" : " parts", ", at most ",
                part.launch_packets, " packets a launch");
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

bool GpuSharing::is_over() const {
  return std::any_of(stages_.begin(), stages_.end(), [](std::vector<Shared> const& of_nf) {
    return std::any_of(of_nf.begin(), of_nf.end(), [](Shared const& each) { return !each.side->use().allowed(); });
  });
}

std::vector<GpuSharing::Allocation> GpuSharing::allocations() const {
  const std::scoped_lock lock(parts_mutex_);
  std::vector<Allocation> all;
  for (std::size_t i = 0; i < nfs_.size(); ++i) {
    const bool is_taken = elsewhere_[i] == nullptr || elsewhere_[i]->taken() == as_given(parts_[i]);
    all.push_back({nfs_[i].name, parts_[i].share.sms, launch_packets(i, parts_[i].share), is_taken});
  }
  return all;
}

}  // namespace catena::runtime
