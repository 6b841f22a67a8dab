// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <string>

namespace catena::service {

/// The response of a service.
struct Answer {
  long status = 0;
  std::string body;
};

/// Sends a request to the service at a control socket. Waits until the service has responded. `body`: sent unless
/// empty. Unavailable if no service listens there, with the command for starting one; PermissionDenied if this user may
/// not use the socket.
Result<Answer> ask(std::string const& socket, std::string const& method, std::string const& path,
                   std::string const& body = {});

}  // namespace catena::service
