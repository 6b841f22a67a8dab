// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <string>

namespace catena::service {

/// What a service answered.
struct Answer {
  long status = 0;
  std::string body;
};

/// Asks the service at a control socket. Waits as long as the service works on the answer. `body`: sent where it is not
/// empty. Unavailable where none listens there, with the command that starts one; PermissionDenied where the socket is
/// not for this user.
Result<Answer> ask(std::string const& socket, std::string const& method, std::string const& path,
                   std::string const& body = {});

/// The resource of a chain, whatever its name has in it.
std::string chain_path(std::string const& name);

}  // namespace catena::service
