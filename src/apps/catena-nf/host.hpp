// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"
#include "base/ipc/frames.hpp"
#include "gpu/device/device.hpp"
#include "pipeline/isolation/protocol.hpp"

#include <catena/core/status.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace catena::nf_program {

/// Connection to the parent process over a socket: receives its requests, reports to it, and sends requests to it.
class Host {
 public:
  explicit Host(int socket) : socket_(socket) {}

  /// The parent's next request. Not while another thread waits for a reply.
  Result<ipc::Frame> next();
  /// Any thread.
  Status tell(nf_process::Call call, std::string_view text);
  /// Memory for a state to hand over. Any thread. DataLoss if the parent sends no memory.
  Result<FileDescriptor> memory_for(nf_process::StateOf const& state);
  /// Opens the NF's device, as runtime::RunOptions::open_device. Any thread. Null, with `why`, if the NF has no device;
  /// Unavailable if the caller should try again; as device::remote::connect().
  Result<std::unique_ptr<device::Device>> open_device(std::string* why);

  struct Opened {
    nf_process::Answer answer;
    std::optional<std::string> kept;  ///< content of a kept file
  };
  /// Sends one of the calls about outputs and returns the reply. Any thread.
  Result<Opened> ask(nf_process::Call call, std::span<const std::byte> body);

 private:
  int socket_;
  std::mutex mutex_;  ///< guards the exchange of messages once the NF runs
};

}  // namespace catena::nf_program
