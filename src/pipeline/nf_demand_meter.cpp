// SPDX-License-Identifier: Apache-2.0
#include "pipeline/nf_demand_meter.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace catena::runtime {

NfDemandMeter::NfDemandMeter(std::span<const SharingNf> nfs, share::Mode mode, device::DeviceInfo const& device,
                             std::uint32_t packet_bytes)
    : nfs_(nfs), mode_(mode), device_(&device), known_costs_(nfs.size()) {
  meter_.start({}, packet_bytes, {});
}

void NfDemandMeter::start(std::function<share::TrafficSample()> traffic) {
  const std::scoped_lock lock(mutex_);
  traffic_ = std::move(traffic);
  meter_.start(traffic_(), meter_.packet_bytes(), std::chrono::steady_clock::now());
}

void NfDemandMeter::stop() {
  const std::scoped_lock lock(mutex_);
  traffic_ = nullptr;
}

Result<std::vector<share::NfDemand>> NfDemandMeter::demands(share::GpuShape const& shape) {
  const std::scoped_lock lock(mutex_);
  if (traffic_ != nullptr) {
    std::vector<std::uint64_t> backlog;
    std::ranges::transform(nfs_, std::back_inserter(backlog), &SharingNf::backlog_packets);
    meter_.look(traffic_(), backlog, std::chrono::steady_clock::now());
  }
  std::vector<share::NfDemand> demands;
  for (std::size_t i = 0; i < nfs_.size(); ++i) {
    const std::optional<share::NfCost> cost = cost_of(i, shape);
    if (!cost && mode_ == share::Mode::kScheduled) {
      return absl::FailedPreconditionError(concat("--share scheduled needs the costs of NF '", nfs_[i].name, "' on ",
                                                  device_->name, " with its rules, for packets of ",
                                                  meter_.packet_bytes(),
                                                  " bytes: measure them with `catena profile --nf CHAIN --device ",
                                                  device_->backend, "`, or write --share fair"));
    }
    share::NfDemand& demand = demands.emplace_back();
    demand.name = nfs_[i].name;
    demand.cost = cost.value_or(kUnknownCost);
    demand.latency_limit_ns = nfs_[i].latency_limit_ns;
    // of a chain that does not run yet, or no more, NFs do nothing: one may wait for ever for who reads its output
    demand.packets_per_s = traffic_ == nullptr ? 0 : meter_.packets_per_s(i);
    demand.needed_pps = traffic_ == nullptr ? 0 : meter_.needed_pps(i);
  }
  return demands;
}

/// The last one that was known, and with which the NF can have a part: larger packets than were measured, or than a
/// launch can have within its limit, must not keep others from parts.
std::optional<share::NfCost> NfDemandMeter::cost_of(std::size_t nf, share::GpuShape const& shape) {
  const std::optional<share::NfCost> now = nfs_[nf].cost(meter_.packet_bytes());
  // at first the division judges
  if (now && (!known_costs_[nf] || does_any_part_for(*now, nfs_[nf].latency_limit_ns, shape))) {
    known_costs_[nf] = now;
  }
  return known_costs_[nf];
}

/// Whether an NF of that cost keeps to its limit whatever part it has, or of parts that it is given by need, in one.
bool NfDemandMeter::does_any_part_for(share::NfCost const& cost, double limit_ns, share::GpuShape const& shape) const {
  if (mode_ == share::Mode::kScheduled) {
    constexpr double kSome = 1;  // packets a second
    return share::least_share(cost, kSome, limit_ns, shape.step, shape.step).has_value();
  }
  return share::fullest_share(cost, limit_ns, shape.sms).has_value();
}

}  // namespace catena::runtime
