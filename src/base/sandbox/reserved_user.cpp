// SPDX-License-Identifier: Apache-2.0
#include "base/sandbox/reserved_user.hpp"

#include <catena/core/text.hpp>

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

namespace catena::sandbox {

namespace {

Status check_range(UserRange range) {
  std::ifstream file("/proc/self/uid_map");
  const std::string map{std::istreambuf_iterator<char>(file), {}};
  return has_range(map, range) ? absl::OkStatus()
                               : absl::UnavailableError(concat("this user namespace lacks users ", range.first, " to ",
                                                               range.first + range.count - 1));
}

/// Opens the file of locks, which only this user may open: another one could take all locks.
Result<FileDescriptor> open_locks(std::filesystem::path const& path) {
  const auto failed = [&path](std::string_view call) {
    return absl::UnavailableError(concat(call, " ", path, ": ", std::strerror(errno)));
  };
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);  // open() below reports why there is none
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) {
    return failed("open");
  }
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return absl::UnavailableError(concat(path, " is not a regular file for its owner alone"));
  }
  return file;
}

/// Locks a byte of the file for this descriptor alone, as other descriptors of this process are strangers, too.
bool lock_byte(int file, std::uint32_t byte) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return ::fcntl(file, F_OFD_SETLK, &lock) == 0;
}

}  // namespace

bool has_range(std::string_view uid_map, UserRange range) {
  std::istringstream lines{std::string(uid_map)};
  for (std::uint64_t inside = 0, outside = 0, count = 0; lines >> inside >> outside >> count;) {
    if (inside <= range.first && std::uint64_t{range.first} + range.count <= inside + count) {
      return true;
    }
  }
  return false;
}

Result<std::unique_ptr<ReservedUser>> ReservedUser::take(std::filesystem::path const& locks, UserRange range) {
  CATENA_RETURN_IF_ERROR(check_range(range));
  CATENA_ASSIGN_OR_RETURN(FileDescriptor file, open_locks(locks));
  // A user taken is a later one than the last: a process that is about to end, or its shared memory, may have that.
  static std::atomic<std::uint32_t> next{0};
  for (std::uint32_t i = 0; i < range.count; ++i) {
    const std::uint32_t number = next.fetch_add(1, std::memory_order_relaxed) % range.count;
    if (lock_byte(file.get(), number)) {
      return std::unique_ptr<ReservedUser>(new ReservedUser(std::move(file), range.first + number));
    }
  }
  return absl::ResourceExhaustedError(concat("all ", range.count, " reserved users are taken"));
}

ProcessUser take_process_user() {
  Result<std::unique_ptr<ReservedUser>> user = ReservedUser::take();
  if (user.ok()) {
    const uid_t id = (*user)->id();
    return {*std::move(user), id};
  }
  static std::once_flag said;
  std::call_once(said, [&user] {
    spdlog::warn("sandboxed processes run as user {}, which other processes may have, too: {}", kNobody,
                 std::string(user.status().message()));
  });
  return {nullptr, kNobody};
}

}  // namespace catena::sandbox
