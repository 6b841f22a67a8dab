// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gpu/device/remote/server.hpp"

namespace catena::device::remote {

/// A client of a device server.
struct Client {
  std::string name;        ///< of the owner of the work
  std::string owner = {};  ///< responsible for it, whatever its name; empty: unknown
};

/// Starts the process that owns a device, hands out connections to it, and restarts it when it has ended. Any thread.
class Supervisor {
 public:
  struct Options {
    std::string program;          ///< of the server; see find_server_program()
    std::string device = "auto";  ///< as for parse_preference()
    ServerLimits limits;
  };
  /// A client with unfinished work when a server ended.
  struct Suspect {
    Client client;        ///< as given to connect()
    std::string kernels;  ///< launched last
  };
  struct Death {
    std::string reason;             ///< for messages
    bool is_fault = false;          ///< the device failed or work was endless, because of one of the suspects
    std::vector<Suspect> suspects;  ///< oldest work first
  };

  /// Starts the server. A thread of the supervisor calls `on_death` after each end of a server and before the next one
  /// starts; `on_death` must not wait for a server.
  /// Unavailable if the program cannot be started. A device that cannot be opened is reported by connect().
  static Result<std::unique_ptr<Supervisor>> start(Options options, std::function<void(Death const&)> on_death = {});
  /// Ends the server.
  ~Supervisor();
  Supervisor(Supervisor const&) = delete;
  Supervisor& operator=(Supervisor const&) = delete;

  /// A socket for connect() in this process or, for an untrusted client, in another one. Unavailable if no server runs:
  /// a dead server restarts with growing delays. The text gives the reason of its end.
  Result<FileDescriptor> connect(Client const& client, Trust trust = Trust::kOwn);
  /// Process id of the running server; -1: not running.
  int pid() const;
  /// Why a server finds no device to open; empty: a device exists, or no server has reported yet.
  std::string no_device_reason() const;
  /// Whether this server or an earlier one has opened its device.
  bool has_served() const;

 private:
  struct Impl;
  explicit Supervisor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The server's program: next to this process's own program, or at its place in an installation. NotFound lists the
/// searched places.
Result<std::string> find_server_program();

}  // namespace catena::device::remote
