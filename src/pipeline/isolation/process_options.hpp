// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"

#include <catena/core/status.hpp>

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace catena::nf_process {

/// A file visible to an NF process, read-only.
struct ShownFile {
  std::string path;        ///< absolute
  FileDescriptor fd = {};  ///< if set, this open file is shown at `path`, whichever user owns it
};

/// Options for starting the process of an NF, or of a group of NFs.
struct ProcessOptions {
  std::string program;   ///< see find_nf_program()
  std::string name;      ///< of the NF, for messages; "group X" for several
  std::string position;  ///< "file:line:column" of the first NF, prefix of errors other than an NF's own
  std::string group;     ///< name of the group; empty: the process has one NF
  /// Arguments of the program, for lists of processes. All users of the machine can read them: no names.
  std::vector<std::string> label;
  std::vector<ShownFile> files;
  std::string container;  ///< folder of its root file system; empty: it has this machine's /usr
  bool is_trial = false;  ///< only a trial: nothing is opened or written
  std::uint64_t memory_bytes = std::uint64_t{6} << 30U;  ///< see sandbox::SandboxOptions
  std::uint32_t cpus = 0;                                ///< number of CPUs to run on; 0: any
  std::optional<uid_t>
      uid;  ///< see sandbox::SandboxOptions; both or neither: the caller's, or a reserved one instead of root
  std::optional<gid_t> gid;
  /// Connects the process to the server of a device: a socket for device::remote::connect(), or an empty one with `why`
  /// if the device does not exist. Called by a thread of the process's supervisor. Null: no server.
  std::function<Result<FileDescriptor>(std::string const& preference, std::string* why)> connect_device;
  std::stop_token give_up;  ///< cancels create(), add() and start(), which return Cancelled; no effect later
};

}  // namespace catena::nf_process
