// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/chain_run.hpp"
#include "service/quotas.hpp"
#include "service/validated_spec.hpp"

#include <catena/core/status.hpp>

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace catena::service {

/// The names reserved by operations: one operation on a chain at a time. Thread rule: any thread. No other mutex is
/// locked with its mutex, and no run ends with it.
class Claims {
 public:
  /// A name reserved by one operation, for the lifetime of this object.
  class Claim {
   public:
    ~Claim();
    Claim(Claim&& other) noexcept : claims_(std::exchange(other.claims_, nullptr)), name_(std::move(other.name_)) {}
    Claim& operator=(Claim&&) = delete;

   private:
    friend class Claims;
    Claim(Claims& claims, std::string name) : claims_(&claims), name_(std::move(name)) {}

    Claims* claims_;
    std::string name_;
  };
  /// A chain set up by an operation: no other one can have its resources meanwhile.
  struct Wanted {
    std::string tenant;
    uid_t uid = 0;
    std::vector<Resource> resources;
    Amounts amounts = {};
  };
  /// The run awaited by an operation; others may end it.
  struct Start {
    std::shared_ptr<ChainRun> run = nullptr;             ///< null: it does not wait
    std::shared_ptr<std::stop_source> change = nullptr;  ///< of `run`, which runs already; null: it starts
    bool operator==(Start const&) const = default;
  };

  /// Aborted: another operation has the name.
  static Status taken(std::string const& name);
  /// As taken().
  Result<Claim> take(std::string const& name);
  /// For the operation with the name, until its end.
  void want(std::string const& name, Wanted wanted);
  void set_start(std::string const& name, Start start);

  bool contains(std::string const& name) const;
  bool is_empty() const;
  /// Of an operation on the chain; without a run if no operation waits.
  Start start_of(std::string const& name) const;
  /// Whether the operation ends within `limit`, or waits for another start than `start`.
  bool wait_for_end(std::string const& name, Start const& start, std::chrono::milliseconds limit) const;
  std::vector<std::shared_ptr<ChainRun>> starting_runs() const;
  /// By name of the chain.
  std::map<std::string, Wanted> wanted() const;

 private:
  struct Operation {
    Wanted wanted = {};
    Start start = {};
  };

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::map<std::string, Operation> operations_;
};

}  // namespace catena::service
