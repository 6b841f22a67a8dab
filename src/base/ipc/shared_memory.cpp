// SPDX-License-Identifier: Apache-2.0
#include "base/ipc/shared_memory.hpp"

#include <catena/core/text.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>

namespace catena::ipc {
namespace {

constexpr int kFixedSize = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::string why(const char* call) { return concat(call, ": ", std::strerror(errno)); }

/// Empty, and without seals so far.
FileDescriptor make_empty(const char* name) {
  FileDescriptor memory(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  // the kernel makes it with mode 0777
  return memory && ::fchmod(memory.get(), S_IRUSR | S_IWUSR) == 0 ? std::move(memory) : FileDescriptor();
}

}  // namespace

Result<FileDescriptor> make_shared_memory(const char* name, std::uint64_t bytes, Pages pages) {
  if (bytes > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) {
    return absl::ResourceExhaustedError("no machine has so much");
  }
  const auto size = static_cast<off_t>(bytes);
  FileDescriptor memory = make_empty(name);
  if (!memory) {
    return absl::ResourceExhaustedError(why("memfd_create"));
  }
  if (pages == Pages::kNow && ::fallocate(memory.get(), 0, 0, size) != 0) {
    return absl::ResourceExhaustedError(why("fallocate"));
  }
  if (pages == Pages::kWhenWritten && ::ftruncate(memory.get(), size) != 0) {
    return absl::ResourceExhaustedError(why("ftruncate"));
  }
  if (::fcntl(memory.get(), F_ADD_SEALS, kFixedSize) != 0) {
    return absl::ResourceExhaustedError(why("F_ADD_SEALS"));
  }
  return memory;
}

Result<FileDescriptor> make_peer_memory(const char* name, std::uint64_t bytes) {
  Result<FileDescriptor> memory = make_shared_memory(name, bytes, Pages::kWhenWritten);
  if (!memory.ok()) {
    return absl::ResourceExhaustedError(
        concat(bytes, " bytes of shared memory: ", std::string(memory.status().message())));
  }
  return memory;
}

Result<FileDescriptor> make_memory_file(const char* name, absl::FunctionRef<Status(int file)> write) {
  FileDescriptor file = make_empty(name);
  if (!file) {
    return absl::UnavailableError(why("memfd_create"));
  }
  CATENA_RETURN_IF_ERROR(write(file.get()));
  if (::lseek(file.get(), 0, SEEK_SET) < 0 || ::fcntl(file.get(), F_ADD_SEALS, kFixedSize | F_SEAL_WRITE) != 0) {
    return absl::UnavailableError(why("F_ADD_SEALS"));
  }
  return file;
}

}  // namespace catena::ipc
