// SPDX-License-Identifier: Apache-2.0
#include "service/caller.hpp"

#include <catena/core/text.hpp>

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace catena::service {
namespace {

Status failed(const char* call) { return absl::ErrnoToStatus(errno, concat("rights of the caller: ", call)); }

Status drop_capabilities() {
  // what it executes gets none back
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return failed("no_new_privs");
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
  return ::syscall(SYS_capset, &header, none.data()) == 0 ? absl::OkStatus() : failed("capset");
}

}  // namespace

Result<Caller> caller_of(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return absl::UnavailableError("the user of the connection is not known");
  }
  Caller caller{peer.uid, peer.gid, {}};
  // asked with no room the kernel says how much it takes
  size = 0;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, nullptr, &size) == 0 || errno != ERANGE) {
    return caller;
  }
  caller.groups.resize(size / sizeof(gid_t));
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, caller.groups.data(), &size) != 0) {
    return absl::UnavailableError("the groups of the connection's user are not known");
  }
  return caller;
}

pid_t process_of(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

Caller own_user() { return {::geteuid(), ::getegid(), {}}; }

Client own_client() { return {own_user(), true, true}; }

bool is_privileged(Caller const& caller) { return caller.uid == 0 || caller.uid == ::geteuid(); }

bool has_other_rights(Caller const& caller) { return ::geteuid() == 0 && caller.uid != 0; }

Status take_rights_of(Caller const& caller) {
  if (!has_other_rights(caller)) {
    return absl::OkStatus();
  }
  // the calls of the C library would change every thread of the process
  if (::syscall(SYS_setgroups, caller.groups.size(), caller.groups.data()) != 0) {
    return failed("setgroups");
  }
  ::syscall(SYS_setfsgid, caller.gid);
  ::syscall(SYS_setfsuid, caller.uid);
  // both give the id of before, whether or not they did anything; -1 is no id and changes none
  if (static_cast<gid_t>(::syscall(SYS_setfsgid, -1)) != caller.gid ||
      static_cast<uid_t>(::syscall(SYS_setfsuid, -1)) != caller.uid) {
    return absl::InternalError("rights of the caller: setfsuid");
  }
  return drop_capabilities();
}

}  // namespace catena::service
