// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

/// Outputs of an NF besides packets. An NF uses these classes and no system calls, because an NF in its own process has
/// no file system to write to. The chain's process writes the outputs named in its configuration.
namespace catena::nf {

/// One file or receiver. The destructor closes it. One thread at a time.
class Output {
 public:
  virtual ~Output() = default;
  Output() = default;
  Output(Output const&) = delete;
  Output& operator=(Output const&) = delete;

  /// Writes all of `bytes`. The message of an error names the output and has the system's error text; part of the bytes
  /// may then be written.
  ///   a file         appends them
  ///   a kept file    replaces its content with them in one step, and returns when content and name are on the disk. If
  ///                  the machine stops, the file has the old bytes or the new ones. kMaxKeptBytes at most
  ///   a receiver     sends one datagram, lost if not accepted at once. DataLoss: it was sent, but an earlier one
  ///   rejected
  virtual Status write(std::span<const std::byte> bytes) = 0;
  /// Called after the last write(). An error, as of write(), if written bytes may be missing.
  virtual Status close() = 0;
};

inline constexpr std::size_t kMaxKeptBytes = 65'536;

/// A file kept for the next run.
struct KeptFile {
  std::optional<std::string> text;  ///< its content; nullopt if it did not exist
  std::unique_ptr<Output> output;   ///< the file, locked: no other process of this machine opens it meanwhile
};

/// Opens outputs. Any thread.
class Outputs {
 public:
  virtual ~Outputs() = default;
  /// `path`: as returned by Config::output_path(). The file is created if need be, and appended to. If its name
  /// is given away (log rotation), a new file of this name is opened within a second. Errors of the system; in an NF
  /// process also PermissionDenied if the configuration does not name `path` as an output file.
  virtual Result<std::unique_ptr<Output>> open_file(std::string const& path) = 0;
  /// `receiver`: as returned by Config::receiver(). InvalidArgument if its host is neither an IPv4 address nor the name
  /// of one; ResourceExhausted if the system has no socket; in an NF process as open_file().
  virtual Result<std::unique_ptr<Output>> connect(std::string const& receiver) = 0;
  /// Opens file `name` of `folder`, as returned by Config::output_folder(). A missing folder is created, for its owner
  /// alone. A name has letters, digits, '-' and '_', 64 at most. FailedPrecondition if another process has the file;
  /// InvalidArgument for any other name or a file above the limit; else errors of the system; in an NF process as
  /// open_file(), and ResourceExhausted for more than 256 outputs.
  virtual Result<KeptFile> open_kept(std::string const& folder, std::string const& name) = 0;
};

/// Outputs opened at once, with the rights of the calling thread; for an NF in the chain's process.
std::shared_ptr<Outputs> own_outputs();

}  // namespace catena::nf
