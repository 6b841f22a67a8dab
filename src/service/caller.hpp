// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <sys/types.h>

#include <vector>

/// Who asks the service for something, and what is done with his rights.
namespace catena::service {

/// A process on the other side of a Unix socket, when it connected; or the one who applied a chain.
struct Caller {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  ///< supplementary ones

  bool operator==(Caller const&) const = default;
};

/// Unavailable where the kernel does not say.
Result<Caller> caller_of(int socket);

/// The service itself.
Caller own_user();

/// Root, or the user that the service runs as: both may do everything.
bool is_privileged(Caller const& caller);

/// Whether take_rights_of() changes anything: the service is root, and the caller is not.
bool has_other_rights(Caller const& caller);

/// The calling thread, and each thread that it starts from now on, opens files as `caller` and has no capability; for
/// good. Only the user and groups for files change, so that the caller still may not send the thread a signal. A
/// program that the thread executes has the service's user again, but no capabilities. Does nothing where the service
/// is not root or the caller is.
///
/// Errors: what the system says of the call that failed; the thread's rights are then undefined, and it must end.
Status take_rights_of(Caller const& caller);

}  // namespace catena::service
