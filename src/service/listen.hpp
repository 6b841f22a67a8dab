// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <string>
#include <string_view>

#include <sys/un.h>

namespace catena::service {

/// Default path of the control socket: /run/catena/catena.sock for root, else catena.sock in $XDG_RUNTIME_DIR.
/// FailedPrecondition if this variable is not set.
Result<std::string> default_socket();
/// Default state folder: /var/lib/catena for root, else catena in $XDG_STATE_HOME or ~/.local/state. FailedPrecondition
/// if neither is known.
Result<std::string> default_state_folder();

/// A listening Unix socket, and the lock on its path.
class ControlSocket {
 public:
  /// Creates the folder of `path` (0755) if missing. A socket left there by a service is replaced; the lock
  /// (`path`.lock, which stays) shows whether a service still runs. The socket gets mode 0660.
  /// AlreadyExists with the holder's process ID if another service has it, or `path` is not a socket; InvalidArgument
  /// for a path that ipc::unix_address() refuses; else the system's error.
  static Result<ControlSocket> open(std::string const& path);
  /// Removes the socket.
  ~ControlSocket();
  ControlSocket(ControlSocket&& other) noexcept;
  ControlSocket& operator=(ControlSocket&&) = delete;

  /// The socket; the caller must close it.
  int release();

 private:
  ControlSocket() = default;
  Status listen_at(std::string const& path, sockaddr_un const& address);

  std::string path_;  ///< empty: nothing was created
  int lock_ = -1;
  int socket_ = -1;
};

/// A TCP socket listening at "127.0.0.1:9464" or "[::1]:9464". InvalidArgument for any other text; the system's error.
Result<int> listen_tcp(std::string_view address);

}  // namespace catena::service
