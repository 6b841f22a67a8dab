// SPDX-License-Identifier: Apache-2.0
#include "share/division.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace catena::share {
namespace {

/// P of the paper's section 5.3: small, so that few SMs are left over.
constexpr double kGrowth = 0.02;

}  // namespace

Division::Member::~Member() { division_->leave(*this); }

std::vector<Part> Division::Member::parts() const {
  const std::scoped_lock lock(division_->mutex_);
  return parts_;
}

Result<std::unique_ptr<Division::Member>> Division::join(GpuShape gpu, Demands demands) {
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

void Division::leave(Member& member) {
  const std::scoped_lock lock(mutex_);
  std::erase(members_, &member);
  change_ = TrafficChange();
}

Status Division::look(std::chrono::steady_clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  if (now - looked_ < kPeriod) {
    return absl::OkStatus();
  }
  looked_ = now;
  CATENA_ASSIGN_OR_RETURN(const std::vector<NfDemand> all, demands_of_all());
  std::vector<double> speeds;
  std::transform(all.begin(), all.end(), std::back_inserter(speeds),
                 [](NfDemand const& nf) { return nf.packets_per_s; });
  return change_.look(speeds) ? hand_out(all) : absl::OkStatus();
}

/// With the mutex.
Result<std::vector<NfDemand>> Division::demands_of_all() {
  std::vector<NfDemand> all;
  for (Member* member : members_) {
    CATENA_ASSIGN_OR_RETURN(const std::vector<NfDemand> own, member->demands_());
    member->parts_.resize(own.size());
    const std::size_t before = all.size();
    for (NfDemand demand : own) {
      for (std::size_t& next : demand.next) {
        next += before;
      }
      all.push_back(std::move(demand));
    }
  }
  return all;
}

/// With the mutex.
Status Division::hand_out(std::vector<NfDemand> const& demands) {
  CATENA_ASSIGN_OR_RETURN(const Schedule schedule, share::schedule(mode_, demands, gpu_, kGrowth));
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

}  // namespace catena::share
