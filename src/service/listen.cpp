// SPDX-License-Identifier: Apache-2.0
#include "service/listen.hpp"

#include "base/core/socket_address.hpp"
#include "base/ipc/unix_address.hpp"

#include <catena/core/text.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace catena::service {
namespace {

constexpr int kBacklog = SOMAXCONN;  // who finds it full is not made to wait, but refused

Status failed(std::string const& what) { return absl::ErrnoToStatus(errno, what); }

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr || *value != '/' ? std::string() : value;  // relative ones are to be ignored
}

/// "; process 17 holds it" where the lock file says so.
std::string holder(int lock) {
  constexpr std::size_t kMaxDigits = 16;
  std::string text(kMaxDigits, '\0');
  const ssize_t bytes = ::pread(lock, text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
  text = text.substr(0, text.find('\n'));
  return text.empty() ? text : concat(": process ", text);
}

}  // namespace

Result<std::string> default_socket() {
  if (::geteuid() == 0) {
    return "/run/catena/catena.sock";
  }
  const std::string folder = environment("XDG_RUNTIME_DIR");
  return folder.empty() ? Result<std::string>(absl::FailedPreconditionError(
                              "XDG_RUNTIME_DIR is not set, so the socket has no usual place; name it with --socket"))
                        : folder + "/catena.sock";
}

Result<std::string> default_state_folder() {
  if (::geteuid() == 0) {
    return "/var/lib/catena";
  }
  if (const std::string state = environment("XDG_STATE_HOME"); !state.empty()) {
    return state + "/catena";
  }
  const std::string home = environment("HOME");
  return home.empty() ? Result<std::string>(absl::FailedPreconditionError(
                            "neither XDG_STATE_HOME nor HOME is set; name the state folder with --state"))
                      : home + "/.local/state/catena";
}

Result<ControlSocket> ControlSocket::open(std::string const& path) {
  ControlSocket socket;
  CATENA_ASSIGN_OR_RETURN(const sockaddr_un address, ipc::unix_address(path));
  std::error_code error;
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty()) {
    std::filesystem::create_directories(folder, error);  // if that fails, so does what follows
  }
  const std::string lock_path = path + ".lock";
  constexpr mode_t kOwnerOnly = 0600;
  socket.lock_ = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kOwnerOnly);
  if (socket.lock_ < 0) {
    return failed(lock_path);
  }
  // of those that come at once one has it; the kernel gives it back with the process
  if (::flock(socket.lock_, LOCK_EX | LOCK_NB) != 0) {
    return absl::AlreadyExistsError(concat("another service has ", path, holder(socket.lock_)));
  }
  const std::string process = concat(::getpid(), "\n");
  if (::ftruncate(socket.lock_, 0) != 0 || ::pwrite(socket.lock_, process.data(), process.size(), 0) < 0) {
    return failed(lock_path);
  }
  CATENA_RETURN_IF_ERROR(socket.listen_at(path, address));
  return socket;
}

Status ControlSocket::listen_at(std::string const& path, sockaddr_un const& address) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode)) {
      return absl::AlreadyExistsError(concat(path, " exists and is not a socket"));
    }
    ::unlink(path.c_str());  // of a service that was killed: the lock is ours
  }
  socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  constexpr mode_t kOwnerAndGroup = 0660;
  // nobody can connect before it listens, so its mode is right by then
  if (socket_ < 0 || ::bind(socket_, ipc::raw(address), sizeof address) != 0) {
    return failed(path);
  }
  path_ = path;
  return ::chmod(path.c_str(), kOwnerAndGroup) == 0 && ::listen(socket_, kBacklog) == 0 ? absl::OkStatus()
                                                                                        : failed(path);
}

ControlSocket::ControlSocket(ControlSocket&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      lock_(std::exchange(other.lock_, -1)),
      socket_(std::exchange(other.socket_, -1)) {}

ControlSocket::~ControlSocket() {
  if (!path_.empty()) {
    ::unlink(path_.c_str());
  }
  for (const int descriptor : {socket_, lock_}) {
    if (descriptor >= 0) {
      ::close(descriptor);
    }
  }
}

int ControlSocket::release() { return std::exchange(socket_, -1); }

Result<int> listen_tcp(std::string_view address) {
  const Result<SocketAddress> parsed = parse_socket_address(address);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(
        concat("'", address, "' is no address to listen at; write one as 127.0.0.1:9464 or [::1]:9464"));
  }
  const int socket = ::socket(parsed->family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  if (socket < 0 || ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      ::bind(socket, parsed->raw(), parsed->size) != 0 || ::listen(socket, kBacklog) != 0) {
    const Status status = failed(std::string(address));
    if (socket >= 0) {
      ::close(socket);
    }
    return status;
  }
  return socket;
}

}  // namespace catena::service
