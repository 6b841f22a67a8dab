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

/// How often speeds are looked at.
constexpr std::chrono::milliseconds kPeriod{500};
/// How often a stage is asked whether it has taken its offer.
constexpr std::chrono::microseconds kOfferPeriod{100};
constexpr int kMaxFailures = 3;
/// P of the paper's section 5.3: small, so that few compute units are left over.
constexpr double kGrowth = 0.02;
/// Of an NF that was not measured: its launches have as many packets as a part has room for in a first step.
constexpr share::NfCost kUnknown{.kernel = {1, 0}, .transfer = {}};

}  // namespace

Result<std::unique_ptr<GpuSharing>> GpuSharing::create(std::shared_ptr<device::Device> device,
                                                       chain::SharingOptions const& options, std::vector<Nf> nfs,
                                                       std::uint32_t packet_bytes) {
  std::unique_ptr<GpuSharing> sharing(new GpuSharing(std::move(device), options, std::move(nfs)));
  CATENA_RETURN_IF_ERROR(sharing->settle_shape());
  CATENA_ASSIGN_OR_RETURN(sharing->schedule_,
                          sharing->schedule(packet_bytes, std::vector<double>(sharing->nfs_.size())));
  CATENA_ASSIGN_OR_RETURN(sharing->partitions_, sharing->divide(sharing->schedule_));
  if (options.mode == Mode::kTemporal) {
    // whether streams of the device wait for one another, before packets do
    CATENA_ASSIGN_OR_RETURN(const auto stream, sharing->device_->create_stream());
    CATENA_ASSIGN_OR_RETURN(const auto event, stream->record());
    CATENA_RETURN_IF_ERROR(stream->wait_for(*event));
  }
  return sharing;
}

/// Whether NFs have parts of their own.
bool GpuSharing::is_apart() const { return options_.mode == Mode::kScheduled || options_.mode == Mode::kFair; }

/// How many compute units there are to share, and in which multiples.
Status GpuSharing::settle_shape() {
  const std::uint32_t all = device_->info().compute_units;
  shape_ = {options_.compute_units == 0 ? all : std::min(options_.compute_units, all), 1};
  if (options_.parts == Parts::kGreen) {
    CATENA_ASSIGN_OR_RETURN(const auto parts, device_->divide(std::array{1U}));
    shape_.step = parts.front()->compute_units();
    shape_.sms -= shape_.sms % shape_.step;
    // groups may leave some units out
    while (shape_.sms > shape_.step && !device_->divide(std::array{shape_.sms}).ok()) {
      shape_.sms -= shape_.step;
    }
  } else if (options_.compute_units != 0 && (!is_apart() || options_.parts == Parts::kNone)) {
    return absl::UnimplementedError(concat("--share ", to_string(options_.mode), " of ", options_.compute_units,
                                           " compute units takes --parts green: without parts kernels run anywhere"));
  }
  if (is_apart() && shape_.sms < nfs_.size() * shape_.step && options_.parts == Parts::kGreen) {
    return absl::ResourceExhaustedError(concat(device_->info().name, " has ", shape_.sms,
                                               " compute units in groups of ", shape_.step, " to share, and ",
                                               nfs_.size(), " NFs: write --parts blocks, or --share uncoordinated"));
  }
  units_ = shape_.sms;
  if (is_apart() && options_.parts != Parts::kGreen) {
    // parts of what runs at once, not of the units themselves: also where there are fewer of those than NFs
    constexpr std::uint32_t kFinest = 16;
    shape_.sms = std::max<std::uint32_t>(shape_.sms, kFinest * static_cast<std::uint32_t>(nfs_.size()));
  }
  return absl::OkStatus();
}

Result<share::Schedule> GpuSharing::schedule(std::uint32_t packet_bytes,
                                             std::vector<double> const& packets_per_s) const {
  std::vector<share::NfDemand> demands;
  for (std::size_t i = 0; i < nfs_.size(); ++i) {
    Nf const& nf = nfs_[i];
    const std::optional<share::NfCost> cost = nf.cost(packet_bytes);
    if (!cost && options_.mode == Mode::kScheduled) {
      return absl::FailedPreconditionError(concat("--share scheduled needs to know what NF '", nf.name, "' costs on ",
                                                  device_->info().name, " with its rules, for packets of ",
                                                  packet_bytes,
                                                  " bytes: measure it with `catena profile --nf CHAIN --device ",
                                                  device_->info().backend, "`, or write --share fair"));
    }
    demands.push_back({nf.name, cost.value_or(kUnknown), packets_per_s[i], nf.latency_limit_ns});
  }
  return share::schedule(options_.mode, demands, shape_, kGrowth);
}

Result<std::vector<std::shared_ptr<device::Partition>>> GpuSharing::divide(share::Schedule const& schedule) const {
  std::vector<std::shared_ptr<device::Partition>> parts(nfs_.size());
  if (options_.parts != Parts::kGreen) {
    return parts;
  }
  if (!is_apart()) {
    if (options_.compute_units != 0) {
      CATENA_ASSIGN_OR_RETURN(auto shared, device_->divide(std::array{shape_.sms}));
      std::fill(parts.begin(), parts.end(), std::shared_ptr<device::Partition>(std::move(shared.front())));
    }
    return parts;
  }
  std::vector<std::uint32_t> sizes;
  for (share::Share const& share : schedule.shares) {
    sizes.push_back(share.sms);
  }
  CATENA_ASSIGN_OR_RETURN(auto divided, device_->divide(sizes));
  std::move(divided.begin(), divided.end(), parts.begin());
  return parts;
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
  if (options_.parts == Parts::kBlocks && is_apart()) {
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
  return bounds(nf, schedule_.shares[nf], partitions_[nf].get());
}

void GpuSharing::add(std::size_t nf, DeviceStage& stage, DeviceSide& side, std::size_t position) {
  stages_[nf].push_back({&stage, &side, position});
}

void GpuSharing::start(std::function<Traffic()> traffic) {
  if (options_.mode != Mode::kScheduled) {
    return;
  }
  traffic_ = std::move(traffic);
  thread_ = std::thread([this] { watch(); });
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
}

/// False once stop() was called.
bool GpuSharing::sleep(std::chrono::microseconds time) {
  std::unique_lock lock(mutex_);
  return !stopping_changed_.wait_for(lock, time, [this] { return is_stopping_; });
}

void GpuSharing::watch() {
  share::TrafficChange change;
  int failures = 0;  // in a row: each has taken memory beside the packets
  Traffic last = traffic_();
  while (sleep(kPeriod)) {
    const Traffic now = traffic_();
    std::vector<double> speeds;
    for (std::size_t i = 0; i < nfs_.size(); ++i) {
      speeds.push_back(static_cast<double>(now.packets[i] - last.packets[i]) /
                       std::chrono::duration<double>(kPeriod).count());
    }
    last = now;
    if (is_over()) {
      spdlog::warn("NFs share {} no more: it is out of use", device_->info().name);
      return;
    }
    if (!change.look(speeds) && !is_mixed_) {
      continue;
    }
    const Result<share::Schedule> next = schedule(now.packet_bytes, speeds);
    if (next.ok() && next->shares == schedule_.shares && !is_mixed_) {
      continue;
    }
    const Result<bool> handed_out = next.ok() ? hand_out(*next) : Result<bool>(next.status());
    if (handed_out.ok() && *handed_out) {
      failures = 0;
    } else if (handed_out.ok()) {
      return;
    } else if (!is_over()) {
      spdlog::warn("NFs keep the parts of {} that they have: {}", device_->info().name,
                   std::string(handed_out.status().message()));
      if (++failures == kMaxFailures) {
        return;
      }
    }
  }
}

/// Hands parts to the stages, one after another. False: the device is out of use, or stop() was called. An error:
/// stages may have parts of before and of now.
Result<bool> GpuSharing::hand_out(share::Schedule const& schedule) {
  CATENA_ASSIGN_OR_RETURN(std::vector<std::shared_ptr<device::Partition>> parts, divide(schedule));
  // those of before live until no stage has launches on them
  partitions_.insert(partitions_.end(), parts.begin(), parts.end());
  is_mixed_ = true;
  for (std::size_t nf = 0; nf < nfs_.size(); ++nf) {
    const kernel::LaunchBounds own = bounds(nf, schedule.shares[nf], parts[nf].get());
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
  partitions_ = std::move(parts);
  is_mixed_ = false;
  {
    const std::scoped_lock lock(schedule_mutex_);
    schedule_ = schedule;
  }
  changes_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

std::string GpuSharing::describe(Allocation const& part) const {
  const bool are_units = !is_apart() || options_.parts == Parts::kGreen;
  return concat(part.nf, ": ", part.units, " of ", shape_.sms, are_units ? " compute units" : " parts", ", at most ",
                part.launch_packets, " packets a launch");
}

std::string GpuSharing::describe() const {
  std::string text(to_string(options_.mode));
  if (options_.parts == Parts::kGreen && (is_apart() || options_.compute_units != 0)) {
    text += concat(", in green contexts of ", shape_.step, " compute units or a multiple");
  } else if (options_.parts == Parts::kBlocks && is_apart()) {
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
  const std::scoped_lock lock(schedule_mutex_);
  std::vector<Allocation> all;
  for (std::size_t i = 0; i < nfs_.size(); ++i) {
    all.push_back({nfs_[i].name, schedule_.shares[i].sms, launch_packets(i, schedule_.shares[i])});
  }
  return all;
}

}  // namespace catena::runtime
