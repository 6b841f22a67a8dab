// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/counter.hpp>
#include <catena/core/status.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// Work in steps that threads poll: stages, and the workers that share them.
namespace catena::sched {

enum class Progress { kIdle, kWorked, kFinished };

/// One pollable step of a run. poll() never blocks and is called by one thread at a time; after kFinished it is not
/// called again. An error ends the run.
class Stage {
 public:
  explicit Stage(std::string name) : name_(std::move(name)) {}
  virtual ~Stage() = default;
  virtual Result<Progress> poll() = 0;
  /// Whether an idle stage stays idle until a stage before it worked or one of sockets() is readable. False if time or
  /// a device brings work.
  virtual bool is_passive() const { return false; }
  virtual std::vector<int> sockets() const { return {}; }
  std::string const& name() const { return name_; }
  /// Time of its polls with work, on any worker. Time of a device is not included. Any thread.
  std::uint64_t busy_ns() const { return busy_ns_; }
  /// By the polling thread: a poll with work began and ended at these times.
  virtual void worked(std::int64_t begin_ns, std::int64_t end_ns) {
    busy_ns_ += static_cast<std::uint64_t>(end_ns - begin_ns);
  }

 private:
  std::string name_;
  Counter busy_ns_;
};

}  // namespace catena::sched
