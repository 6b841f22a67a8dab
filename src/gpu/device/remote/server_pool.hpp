// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/file_descriptor.hpp"
#include "gpu/device/remote/supervisor.hpp"

namespace catena::device::remote {

/// The device servers of a process, and the quarantine of their clients. Each requested device has one server, or
/// several servers whose clients share no device memory regardless of kernel arguments (see Group). A client whose
/// kernel trapped or did not end is in quarantine. A client "a/b" is a part of the client "a". If several clients had
/// unfinished work at that time, each is readmitted alone for a while, so that a repetition identifies the cause. Any
/// thread.
class ServerPool {
 public:
  struct Options {
    std::string program;  ///< see find_server_program()
    ServerLimits limits;
    /// Time that a suspect works alone among suspects before it is cleared.
    std::chrono::milliseconds probation{1000};
    /// An owner with so many offences, each one a client that went into quarantine, within `offence_memory`, is to
    /// have a server of his own: he may name the next client as he likes.
    std::size_t max_offences = 2;
    std::chrono::milliseconds offence_memory = std::chrono::hours(1);
  };
  explicit ServerPool(Options options) : options_(std::move(options)) {}

  /// Servers of a few clients, used by no other client. They end with the last holder of the group, which must be
  /// before the end of the pool.
  class Group {
   private:
    friend class ServerPool;
    std::string name_;
    std::map<std::string, std::unique_ptr<Supervisor>> servers_;  ///< by device; guarded by the pool's lock
  };
  /// The group of that name: the existing one if it has a holder, else a new one.
  std::shared_ptr<Group> group(std::string const& name);

  /// As device::open(), through a server started by the first request. `group`: selects the server; null: the common
  /// server of all clients without a group.
  ///   Unavailable         as device::open(); a dead server has not restarted yet, or the client is a suspect and waits
  ///                       for its turn: retry later
  ///   FailedPrecondition  the client is in quarantine; the text gives the reason
  Result<std::unique_ptr<Device>> open(DevicePreference const& preference, Client const& client, std::string* why,
                                       Group* group = nullptr);
  /// A socket for connect() in another process, which can open the device with it and have kernels compiled if the
  /// server's judge accepts them. Empty, with the reason in `why`, if open() gives no device. Errors: as open().
  Result<FileDescriptor> connect(DevicePreference const& preference, Client const& client, std::string* why,
                                 Group* group = nullptr);
  /// Lifts the quarantine of a client and of its parts. NotFound if neither is in quarantine.
  Status reset(std::string_view client);
  /// Why a client, or a part of it, is in quarantine; empty if not.
  std::string quarantine_of(std::string_view client) const;
  /// Why the clients of `owner` are to use a group of their own; empty: they may use the common server.
  std::string separation_of(std::string_view owner) const;
  /// Process id of a device's server; -1: not running.
  int pid_of(DevicePreference const& preference, Group const* group = nullptr) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Suspicion {
    std::string quarantine;                      ///< reason; empty: a suspect
    std::optional<Clock::time_point> let_in_at;  ///< of a suspect: start of its probation
    std::string server;                          ///< where it is a suspect
  };
  void judge(std::string const& server, Supervisor::Death const& death);
  Status admit(std::string_view client);
  Result<Supervisor*> server_of(DevicePreference const& preference, Group* group);

  Options options_;
  mutable std::mutex mutex_;
  std::map<std::string, Suspicion, std::less<>> suspicions_;
  std::map<std::string, std::vector<Clock::time_point>, std::less<>> offences_;  ///< by owner, the oldest first
  std::map<std::string, std::weak_ptr<Group>, std::less<>> groups_;
  Group common_;  ///< destroyed before the suspicions reported by its servers
};

}  // namespace catena::device::remote
