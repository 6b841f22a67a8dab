// SPDX-License-Identifier: Apache-2.0
// A part of the plug-in of the tests: code that runs wherever the object is loaded, as that of any vendor may. It
// leaves a file beside the object if it can, and says so where it is loaded into a program of the tests that should
// not.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <string>

namespace {

__attribute__((constructor)) void leave_a_trace() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&leave_a_trace), &info) == 0 || info.dli_fname == nullptr) {
    return;
  }
  const std::string path = std::string(info.dli_fname) + ".was-loaded";
  if (const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600); fd >= 0) {
    ::close(fd);
  }
}

}  // namespace
