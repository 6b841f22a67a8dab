// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/device.hpp"
#include "device/remote/socket.hpp"
#include "nf_process/protocol.hpp"

#include <catena/core/status.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace catena::nf_program {

/// Who started this process, at the other end of a socket: what it wants, what it is told, and what it is asked for.
class Host {
 public:
  explicit Host(int socket) : socket_(socket) {}

  /// The next thing that it wants. Not while another thread asks for something.
  Result<device::remote::Frame> next();
  /// Any thread.
  Status tell(nf_process::Call call, std::string_view text);
  /// Memory in which a state is handed over. Any thread. DataLoss where there is none.
  Result<device::remote::Fd> memory_for(nf_process::StateOf const& state);
  /// The NF's device, as chain::RunOptions::open_device. Any thread. Null, and why, where it has none; Unavailable
  /// where it is to be asked again; as device::remote::connect().
  Result<std::unique_ptr<device::Device>> open_device(std::string* why);

  struct Opened {
    nf_process::Answer answer;
    std::optional<std::string> kept;  ///< what came with it
  };
  /// One of the calls about outputs, and what was answered. Any thread.
  Result<Opened> ask(nf_process::Call call, std::span<const std::byte> body);

 private:
  int socket_;
  std::mutex mutex_;  ///< of what goes to and fro, once the NF runs
};

}  // namespace catena::nf_program
