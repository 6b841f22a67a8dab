// SPDX-License-Identifier: Apache-2.0
#include "io/capture.hpp"

#include "io/output_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

namespace catena::io {

Result<std::unique_ptr<CaptureReader>> open_capture(FileDescriptor const& file, std::string const& path) {
  return CaptureReader::open(
      [descriptor = file.get(), offset = off_t{0}](void* to, std::size_t bytes) mutable {
        const ssize_t got = ::pread(descriptor, to, bytes, offset);
        offset += got > 0 ? got : 0;
        return got;
      },
      path);
}

bool is_stream(std::string const& path) {
  struct stat status {};
  return path == kStandardStream ||
         (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode));
}

}  // namespace catena::io
