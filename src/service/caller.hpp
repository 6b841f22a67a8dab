// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <sys/types.h>

#include <vector>

/// Clients of the service, and work with their rights.
namespace catena::service {

/// The process at the other end of a Unix socket, when it connected; or the user of an applied chain.
struct Caller {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  ///< supplementary groups

  bool operator==(Caller const&) const = default;
};

/// The client of a request about a known chain, and the chains within its reach.
struct Client {
  Caller caller;
  bool reaches_all = false;  ///< the chains of all users, and not only its own
  bool reads_texts = false;  ///< of all users: messages with words of the files of a chain, as in its log
};

/// Unavailable if the kernel does not report it.
Result<Caller> caller_of(int socket);

/// The process that connected; 0: the kernel does not report it.
pid_t process_of(int socket);

/// The service itself.
Caller own_user();
Client own_client();

/// Root, or the user of the service: both have all permissions.
bool is_privileged(Caller const& caller);

/// Whether take_rights_of() changes anything: the service is root, and the caller is not.
bool has_other_rights(Caller const& caller);

/// The calling thread, and each thread started by it from now on, opens files as `caller` and has no capability;
/// permanently. Only the user and groups for files change, so that the caller still may not send signals to the thread.
/// A program executed by the thread has the service's user again, but no capabilities. Does nothing unless the service
/// is root and the caller is not.
///
/// Errors: the system's error of the failed call; the thread's rights are then undefined, and it must end.
Status take_rights_of(Caller const& caller);

}  // namespace catena::service
