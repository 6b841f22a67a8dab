// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "share/scheduler.hpp"

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

/// Where an NF's share of a GPU lies: its SMs are those from number `first` on.
struct Part {
  std::uint32_t first = 0;
  Share share;
  bool operator==(Part const&) const = default;
};

/// A GPU and the chains whose NFs share it: which part each NF has, by schedule() over the NFs of all chains. Chains
/// come and go, and what they do is looked at now and then; whoever has parts takes others between two launches, in his
/// own time. Until all have done that, parts of before and of now may have SMs in common, which makes them slower and
/// nothing else.
///
/// Thread rule: any thread. Members keep it alive.
class Division : public std::enable_shared_from_this<Division> {
 public:
  /// How long after one look the next one is, at least.
  static constexpr std::chrono::milliseconds kPeriod{500};

  /// What the NFs of a chain want now, and how fast they are: always as many, in the same order. Called by threads of
  /// other members, never after its own has gone, and must not come back here.
  using Demands = std::function<Result<std::vector<NfDemand>>()>;

  /// A chain. Leaves with its destruction.
  class Member {
   public:
    ~Member();
    Member(Member const&) = delete;
    Member& operator=(Member const&) = delete;
    /// Of its NFs, now.
    std::vector<Part> parts() const;

   private:
    friend class Division;
    Member(std::shared_ptr<Division> division, Demands demands)
        : division_(std::move(division)), demands_(std::move(demands)) {}

    std::shared_ptr<Division> division_;
    Demands demands_;
    std::vector<Part> parts_;  ///< one for each NF
  };

  explicit Division(Mode mode) : mode_(mode) {}
  Division(Division const&) = delete;
  Division& operator=(Division const&) = delete;

  Mode mode() const { return mode_; }
  /// A chain joins, and all have other parts. Errors, after which everything is as before: as schedule() and `demands`,
  /// of any chain; InvalidArgument: others see another shape of the GPU.
  Result<std::unique_ptr<Member>> join(GpuShape gpu, Demands demands);
  /// Has parts follow the NFs' speeds and needs, where they have changed since they were handed out and the mode asks
  /// for that; at once where packets wait for an NF that had what it needed. Nothing if the last look is less than
  /// kPeriod ago. Errors: as schedule() and any chain's demands; parts stay.
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
  std::vector<bool> has_limit_;  ///< of each NF: it was handed out what it needed, and that was known
  std::chrono::steady_clock::time_point looked_;
};

/// The divisions of a service, one for each device that chains share, whatever they call it. Any thread.
class Divisions {
 public:
  explicit Divisions(Mode mode) : mode_(mode) {}
  Divisions(Divisions const&) = delete;
  Divisions& operator=(Divisions const&) = delete;

  /// `device`: see device::identity().
  std::shared_ptr<Division> of(std::string const& device);

 private:
  Mode mode_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Division>> divisions_;
};

}  // namespace catena::share
