// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "device/remote/supervisor.hpp"

namespace catena::device::remote {

/// The device servers of a process, one for each device that somebody asked for, or several whose clients share no
/// memory of the device's whatever their kernels are told (see Group), and which clients they still serve: a client
/// whose kernel trapped or did not end is in quarantine. A client "a/b" is a part of the client "a". Where several had
/// work unfinished when that happened, each of them is let back alone for a while, so that the next time shows who it
/// is. Any thread.
class ServerPool {
 public:
  struct Options {
    std::string program;  ///< see find_server_program()
    ServerLimits limits;
    /// How long a suspect works alone among suspects before it is cleared.
    std::chrono::milliseconds probation{1000};
  };
  explicit ServerPool(Options options) : options_(std::move(options)) {}

  /// Servers of a few clients, in which no other client works. They end with the last one who holds this, which is to
  /// be before the pool does.
  class Group {
   private:
    friend class ServerPool;
    std::string name_;
    std::map<std::string, std::unique_ptr<Supervisor>> servers_;  ///< by device; with the pool's lock
  };
  /// The group of that name: the one that somebody holds, or a new one.
  std::shared_ptr<Group> group(std::string const& name);

  /// As device::open(), by a server, which is started when it is first asked for. `client` names whose work it will be;
  /// `group`: whose server; null: that of all who name none.
  ///   Unavailable         as device::open(); a server that died is not there yet, or the client is a suspect whose
  ///   turn
  ///                       has not come: to be asked again
  ///   FailedPrecondition  the client is in quarantine; the text says why
  Result<std::unique_ptr<Device>> open(DevicePreference const& preference, std::string_view client, std::string* why,
                                       Group* group = nullptr);
  /// A socket for connect() of another process, which can open the device with it and have kernels compiled there that
  /// the server's judge lets pass. Nothing, and why, where open() gives
  /// no device. Errors: as open().
  Result<Fd> connect(DevicePreference const& preference, std::string_view client, std::string* why,
                     Group* group = nullptr);
  /// Lifts the quarantine of a client and of its parts. NotFound where none of them is in one.
  Status reset(std::string_view client);
  /// Why a client, or a part of it, is in quarantine; empty: none is.
  std::string quarantine_of(std::string_view client) const;
  /// Of the server of a device; -1: none runs.
  int pid_of(DevicePreference const& preference, Group const* group = nullptr) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Suspicion {
    std::string quarantine;                      ///< why; empty: a suspect
    std::optional<Clock::time_point> let_in_at;  ///< of a suspect: its probation began
    std::string server;                          ///< in which it is one
  };
  void judge(std::string const& server, Supervisor::Death const& death);
  Status admit(std::string_view client);
  Result<Supervisor*> server_of(DevicePreference const& preference, Group* group);

  Options options_;
  mutable std::mutex mutex_;
  std::map<std::string, Suspicion, std::less<>> suspicions_;
  std::map<std::string, std::weak_ptr<Group>, std::less<>> groups_;
  Group common_;  ///< ended before the suspicions that its servers tell of
};

}  // namespace catena::device::remote
