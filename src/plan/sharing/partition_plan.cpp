// SPDX-License-Identifier: Apache-2.0
#include "plan/sharing/partition_plan.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace catena::share {
namespace {

/// P of the paper's section 5.3: small, so that few SMs are left over.
constexpr double kGrowth = 0.02;

}  // namespace

PartitionPlan::Member::~Member() { partition_plan_->leave(*this); }

std::vector<Part> PartitionPlan::Member::parts() const {
  const std::scoped_lock lock(partition_plan_->mutex_);
  return parts_;
}

Result<std::unique_ptr<PartitionPlan::Member>> PartitionPlan::join(GpuShape gpu, Demands demands) {
  // its destruction leaves, so it is made before the lock is taken, and ends after that
  std::unique_ptr<Member> member(new Member(shared_from_this(), std::move(demands)));
  const std::scoped_lock lock(mutex_);
  if (!members_.empty() && (gpu.sms != gpu_.sms || gpu.step != gpu_.step)) {
    return absl::InvalidArgumentError(concat("others share ", gpu_.sms, " compute units in parts of ", gpu_.step,
                                             " of this device, and it has ", gpu.sms, " in parts of ", gpu.step));
  }
  gpu_ = gpu;
  members_.push_back(member.get());
  Result<std::vector<NfDemand>> all = demands_of_all();
  const Status handed_out = all.ok() ? hand_out(*all) : all.status();
  if (!handed_out.ok()) {
    members_.pop_back();
    return handed_out;
  }
  change_ = TrafficChange();  // the NFs are others than it has seen
  return member;
}

void PartitionPlan::leave(Member& member) {
  const std::scoped_lock lock(mutex_);
  std::erase(members_, &member);
  change_ = TrafficChange();
}

Status PartitionPlan::look(std::chrono::steady_clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  if (now - checked_ < kPeriod) {
    return absl::OkStatus();
  }
  checked_ = now;
  CATENA_ASSIGN_OR_RETURN(const std::vector<NfDemand> all, demands_of_all());
  if (has_less_than_it_needs(all)) {
    change_ = TrafficChange();  // it does not wait for a second look
  }
  std::vector<double> traffic;
  for (NfDemand const& nf : all) {
    traffic.push_back(nf.packets_per_s);
    traffic.push_back(nf.needed_pps ? 1 + *nf.needed_pps : 0);
  }
  return change_.look(traffic) ? hand_out(all) : absl::OkStatus();
}

/// Whether packets wait for an NF that was handed out what it needed. With the mutex.
bool PartitionPlan::has_less_than_it_needs(std::vector<NfDemand> const& all) const {
  for (std::size_t i = 0; i < all.size() && i < has_limit_.size(); ++i) {
    if (has_limit_[i] && !all[i].needed_pps) {
      return true;
    }
  }
  return false;
}

/// With the mutex.
Result<std::vector<NfDemand>> PartitionPlan::demands_of_all() {
  std::vector<NfDemand> all;
  std::size_t chain = 0;
  for (Member* member : members_) {
    CATENA_ASSIGN_OR_RETURN(const std::vector<NfDemand> own, member->demands_());
    member->parts_.resize(own.size());
    const std::size_t before = all.size();
    for (NfDemand demand : own) {
      for (std::size_t& next : demand.next) {
        next += before;
      }
      demand.chain = chain;
      all.push_back(std::move(demand));
    }
    ++chain;
  }
  return all;
}

/// With the mutex.
Status PartitionPlan::hand_out(std::vector<NfDemand> const& demands) {
  CATENA_ASSIGN_OR_RETURN(const Schedule schedule, share::schedule(mode_, demands, gpu_, kGrowth));
  has_limit_.clear();
  std::transform(demands.begin(), demands.end(), std::back_inserter(has_limit_),
                 [](NfDemand const& nf) { return nf.needed_pps.has_value(); });
  std::size_t position = 0;
  std::uint32_t first = 0;
  for (Member* member : members_) {
    for (Part& part : member->parts_) {
      part = {first, schedule.shares[position]};
      first += is_apart(mode_) ? part.share.sms : 0;
      ++position;
    }
  }
  return absl::OkStatus();
}

std::shared_ptr<PartitionPlan> PartitionPlans::of(std::string const& device) {
  const std::scoped_lock lock(mutex_);
  std::shared_ptr<PartitionPlan>& partition_plan = partition_plans_[device];
  if (partition_plan == nullptr) {
    partition_plan = std::make_shared<PartitionPlan>(mode_);
  }
  return partition_plan;
}

}  // namespace catena::share
