// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace catena {

/// Requests of ioctl(2): the numbers that are `value` under `mask`.
struct IoctlRequests {
  std::uint64_t mask;
  std::uint64_t value;
};

/// The needs of a library on its machine, beyond /usr and the descriptors of its process. The code that uses the
/// library knows its needs, and a sandbox gives them. Paths are absolute.
struct ProcessNeeds {
  static constexpr const char* kScratch = "/tmp";
  struct File {
    std::filesystem::path source;
    std::filesystem::path target;  ///< empty: as `source`
  };
  std::vector<std::filesystem::path> devices;  ///< nodes opened for reading and writing
  std::vector<IoctlRequests> requests;         ///< to these devices
  std::vector<File> files;                     ///< files and folders to read
  std::vector<std::pair<std::string, std::string>> environment;
  std::uint64_t scratch_bytes = 0;  ///< of files in kScratch
  std::uint64_t memory_bytes = 0;   ///< private
  std::uint32_t threads = 0;
  bool starts_programs = false;     ///< such as a compiler, in processes of their own
  bool reserves_addresses = false;  ///< many more than it has memory
  bool listens = false;             ///< at a Unix socket for messages (SOCK_SEQPACKET), without a client
};

}  // namespace catena
