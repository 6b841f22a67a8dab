// SPDX-License-Identifier: Apache-2.0
#include "pipeline/gpu_partitioner.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace catena::runtime {
namespace {

using share::Mode;
using share::Parts;

/// NFs of all chains that share a device, where parts are fine enough for any number.
constexpr std::size_t kMaxNfsOfAll = 64;

bool follow_one_another(std::vector<share::Part> const& parts) {
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].first != parts[i - 1].first + parts[i - 1].share.sms) {
      return false;
    }
  }
  return true;
}

}  // namespace

GpuPartitioner::GpuPartitioner(device::DeviceInfo info, chain::SharingOptions const& options,
                               std::span<const SharingNf> nfs)
    : info_(std::move(info)), options_(options), nfs_(nfs) {}

Status GpuPartitioner::prepare(device::Device& device, bool is_alone) {
  CATENA_RETURN_IF_ERROR(resolve_shape(device, is_alone));
  return resolve_turns(device, is_alone);
}

/// How many compute units there are to share, and in which multiples.
Status GpuPartitioner::resolve_shape(device::Device& device, bool is_alone) {
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
  if (is_alone && is_apart(options_.mode) && shape_.sms < nfs_.size() * shape_.step &&
      options_.parts == Parts::kGreen) {
    return absl::ResourceExhaustedError(concat(info_.name, " has ", shape_.sms, " compute units in groups of ",
                                               shape_.step, " to share, and ", nfs_.size(),
                                               " NFs: write --parts blocks, or --share uncoordinated"));
  }
  units_ = shape_.sms;
  if (is_apart(options_.mode) && options_.parts != Parts::kGreen) {
    // parts of what runs at once, not of the units themselves: also where there are fewer of those than NFs
    constexpr std::uint32_t kFinest = 16;
    const std::size_t nfs = is_alone ? nfs_.size() : kMaxNfsOfAll;
    shape_.sms = std::max<std::uint32_t>(shape_.sms, kFinest * static_cast<std::uint32_t>(nfs));
  }
  return absl::OkStatus();
}

/// Whether the chain itself has to run kernels one after another.
Status GpuPartitioner::resolve_turns(device::Device& device, bool is_alone) {
  if (options_.mode != Mode::kTemporal || info_.has_turns) {
    return absl::OkStatus();
  }
  if (!is_alone) {
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

bool GpuPartitioner::are_all_elsewhere() const {
  return std::all_of(nfs_.begin(), nfs_.end(), [](SharingNf const& nf) { return nf.is_elsewhere; });
}

/// A part of the device for each NF, or null. Parts of one size in one order are always the same compute units, so what
/// lies in front of an NF's part is divided off, too, and given back. NFs that are told their parts one by one have all
/// of it until they know all of them.
Result<GpuPartitioner::Partitions> GpuPartitioner::divide(device::Device& device,
                                                          std::vector<share::Part> const& parts) const {
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

std::uint32_t GpuPartitioner::launch_packets(std::size_t nf, share::Share const& share) const {
  const std::uint64_t packets = share.batch() / nfs_[nf].stages;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(packets, nfs_[nf].least_packets, nfs_[nf].max_packets));
}

Result<std::vector<kernel::LaunchBounds>> GpuPartitioner::bounds_for(device::Device& device,
                                                                     std::vector<share::Part> const& parts) {
  CATENA_ASSIGN_OR_RETURN(const Partitions partitions, divide(device, parts));
  std::vector<kernel::LaunchBounds> all;
  for (std::size_t nf = 0; nf < nfs_.size(); ++nf) {
    all.push_back(bounds(nf, parts[nf].share, partitions[nf]));
  }
  return all;
}

kernel::LaunchBounds GpuPartitioner::bounds(std::size_t nf, share::Share const& share,
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

std::string GpuPartitioner::describe(std::uint32_t units) const {
  const bool are_units = !is_apart(options_.mode) || options_.parts == Parts::kGreen;
  return concat(units, " of ", shape_.sms, are_units ? " compute units" : " parts");
}

std::string GpuPartitioner::describe() const {
  std::string text(to_string(options_.mode));
  if (options_.parts == Parts::kGreen && (is_apart(options_.mode) || options_.compute_units != 0)) {
    text += concat(", in green contexts of ", shape_.step, " compute units or a multiple");
  } else if (options_.parts == Parts::kBlocks && is_apart(options_.mode)) {
    text += ", by the number of work-groups";
  }
  return text;
}

}  // namespace catena::runtime
