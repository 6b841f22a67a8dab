// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/sharing/scheduler.hpp"

#include <catena/core/status.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace catena::share {

/// The SMs of an NF on a GPU: those of its share, from number `first` on.
struct Part {
  std::uint32_t first = 0;
  Share share;
  bool operator==(Part const&) const = default;
};

/// A GPU and the chains whose NFs share it: the part of each NF, by schedule() over the NFs of all chains. Chains come
/// and go, and their traffic is checked from time to time. Each chain switches to its new parts between two launches,
/// at its own time. Until all have switched, old and new parts may have SMs in common, which only makes them slower.
///
/// Thread rule: any thread. Members keep it alive.
class PartitionPlan : public std::enable_shared_from_this<PartitionPlan> {
 public:
  /// Minimum time between two checks.
  static constexpr std::chrono::milliseconds kPeriod{500};

  /// The current demands and speeds of the NFs of a chain: always the same number, in the same order. Called by threads
  /// of other members, never after the end of its own, and must not call this object.
  using Demands = std::function<Result<std::vector<NfDemand>>()>;

  /// A chain. Its destruction ends the membership.
  class Member {
   public:
    ~Member();
    Member(Member const&) = delete;
    Member& operator=(Member const&) = delete;
    /// Of its NFs, now.
    std::vector<Part> parts() const;

   private:
    friend class PartitionPlan;
    Member(std::shared_ptr<PartitionPlan> partition_plan, Demands demands)
        : partition_plan_(std::move(partition_plan)), demands_(std::move(demands)) {}

    std::shared_ptr<PartitionPlan> partition_plan_;
    Demands demands_;
    std::vector<Part> parts_;  ///< one per NF
  };

  explicit PartitionPlan(Mode mode) : mode_(mode) {}
  PartitionPlan(PartitionPlan const&) = delete;
  PartitionPlan& operator=(PartitionPlan const&) = delete;

  Mode mode() const { return mode_; }
  /// Adds a chain, and gives all NFs new parts. Errors, after which nothing has changed: as schedule() and `demands`,
  /// of any chain; InvalidArgument: the other members have another shape of the GPU.
  Result<std::unique_ptr<Member>> join(GpuShape gpu, Demands demands);
  /// Adapts parts to the NFs' speeds and needs, if these have changed since the last assignment and the mode requires
  /// it; at once if packets wait for an NF with a part sized for its need. Does nothing within kPeriod of the last
  /// check. Errors: as schedule() and any chain's demands; parts stay.
  Status look(std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now());

 private:
  Result<std::vector<NfDemand>> demands_of_all();
  Status hand_out(std::vector<NfDemand> const& demands);
  bool has_less_than_it_needs(std::vector<NfDemand> const& all) const;
  void leave(Member& member);

  Mode mode_;
  mutable std::mutex mutex_;
  GpuShape gpu_;
  std::vector<Member*> members_;
  TrafficChange change_;
  std::vector<bool> has_limit_;  ///< per NF: its need was known, and its part is sized for it
  std::chrono::steady_clock::time_point checked_;
};

/// The partition plans of a service, one for each device shared by chains, under any name of it. Any thread.
class PartitionPlans {
 public:
  explicit PartitionPlans(Mode mode) : mode_(mode) {}
  PartitionPlans(PartitionPlans const&) = delete;
  PartitionPlans& operator=(PartitionPlans const&) = delete;

  /// `device`: see device::identity().
  std::shared_ptr<PartitionPlan> of(std::string const& device);

 private:
  Mode mode_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<PartitionPlan>> partition_plans_;
};

}  // namespace catena::share
