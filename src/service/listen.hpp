// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <string>
#include <string_view>

namespace catena::service {

/// The path of the control socket where no one says another: /run/catena/catena.sock for root, else catena.sock in
/// $XDG_RUNTIME_DIR. FailedPrecondition where that is not set.
Result<std::string> default_socket();
/// The state folder: /var/lib/catena for root, else catena in $XDG_STATE_HOME or ~/.local/state. FailedPrecondition
/// where neither is known.
Result<std::string> default_state_folder();

/// A Unix socket that listens, and the lock that keeps others from its path.
class ControlSocket {
 public:
  /// Makes the folder of `path` (0755) where there is none. A socket that a service left there is replaced; the lock
  /// (`path`.lock, which stays) says whether one still runs. The socket gets mode 0660.
  /// AlreadyExists with the holder's process number where another service has it, or `path` is no socket;
  /// InvalidArgument for a path that is too long for a socket; else what the system says.
  static Result<ControlSocket> open(std::string const& path);
  /// Takes the socket away.
  ~ControlSocket();
  ControlSocket(ControlSocket&& other) noexcept;
  ControlSocket& operator=(ControlSocket&&) = delete;

  /// The socket, which is the caller's to close.
  int release();

 private:
  ControlSocket() = default;
  Status listen_at(std::string const& path);

  std::string path_;  ///< empty: nothing was made
  int lock_ = -1;
  int socket_ = -1;
};

/// A TCP socket that listens at "127.0.0.1:9464" or "[::1]:9464". InvalidArgument for any other text; what the system
/// says.
Result<int> listen_tcp(std::string_view address);

}  // namespace catena::service
