// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "device/remote/server.hpp"

namespace catena::device::remote {

/// Starts the process that owns a device, hands out connections to it, and starts it anew when it has ended.
/// Any thread.
class Supervisor {
 public:
  struct Options {
    std::string program;          ///< of the server; see find_server_program()
    std::string device = "auto";  ///< as parse_preference() takes it
    ServerLimits limits;
  };
  /// Whose work was unfinished when a server ended.
  struct Suspect {
    std::string client;   ///< as connect() had it
    std::string kernels;  ///< launched last
  };
  struct Death {
    std::string reason;             ///< for people
    bool is_fault = false;          ///< the device failed or work was endless: one of the suspects did it
    std::vector<Suspect> suspects;  ///< the oldest work first
  };

  /// Starts the server. `on_death` is called by a thread of the supervisor each time that a server has ended and before
  /// another one starts; it must not wait for one.
  /// Unavailable where the program cannot be started. A device that cannot be opened shows in connect().
  static Result<std::unique_ptr<Supervisor>> start(Options options, std::function<void(Death const&)> on_death = {});
  /// Ends the server.
  ~Supervisor();
  Supervisor(Supervisor const&) = delete;
  Supervisor& operator=(Supervisor const&) = delete;

  /// A socket for connect() of this process or, for a stranger, of another one, whose work goes by the name `client`.
  /// Unavailable where no server runs: one that died a moment ago is started again with growing delays; the text says
  /// why it ended.
  Result<Fd> connect(std::string_view client, Trust trust = Trust::kOwn);
  /// Of the server that runs; -1 where none does.
  int pid() const;
  /// Why there is no device for a server to open; empty: there is, or none has said so yet.
  std::string no_device_reason() const;
  /// Whether a server has opened its device, this one or one before it.
  bool has_served() const;

 private:
  struct Impl;
  explicit Supervisor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The server's program: beside this process's own program, or where an installation has it. NotFound with the places.
Result<std::string> find_server_program();

}  // namespace catena::device::remote
