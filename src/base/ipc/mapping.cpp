// SPDX-License-Identifier: Apache-2.0
#include "base/ipc/mapping.hpp"

#include <catena/core/text.hpp>

#include <cerrno>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace catena::ipc {
namespace {

constexpr std::size_t kPageBytes = 4096;

}  // namespace

Result<Mapping> Mapping::create(const char* name, std::size_t bytes) {
  if (bytes == 0) {
    return Mapping();
  }
  CATENA_ASSIGN_OR_RETURN(FileDescriptor fd, make_peer_memory(name, bytes));
  return map(std::move(fd), bytes);
}

Result<Mapping> Mapping::map(FileDescriptor fd, std::size_t bytes, std::uint64_t offset, Pages pages) {
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  struct stat info {};
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd.get(), &info) != 0) {
    return absl::InvalidArgumentError("the owner can still shrink the shared memory: seal it with F_SEAL_SHRINK");
  }
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (bytes == 0 || offset % kPageBytes != 0 || offset > size || bytes > size - offset) {
    return absl::InvalidArgumentError(
        concat("shared memory: ", bytes, " bytes at offset ", offset, " of ", size, "; it begins at a page"));
  }
  const int flags = MAP_SHARED | (pages == Pages::kNow ? MAP_POPULATE : 0);
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd.get(), static_cast<off_t>(offset));
  if (at == MAP_FAILED) {
    return absl::ResourceExhaustedError(concat("mapping ", bytes, " bytes of shared memory: ", std::strerror(errno)));
  }
  return Mapping(std::move(fd), {static_cast<std::byte*>(at), bytes});
}

Mapping::~Mapping() {
  if (!bytes_.empty()) {
    munmap(bytes_.data(), bytes_.size());
  }
}

}  // namespace catena::ipc
