// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

/// What an NF writes besides packets. It asks for it here and calls the system for none of it: an NF in a process of
/// its own has no file system to write to, and the chain's process writes for it what its configuration names.
namespace catena::nf {

/// One file or receiver. Closed when it is destroyed. One thread at a time.
class Output {
 public:
  virtual ~Output() = default;
  Output() = default;
  Output(Output const&) = delete;
  Output& operator=(Output const&) = delete;

  /// All of `bytes`, or an error whose message names the output and says what the system said; part of them may be
  /// written then.
  ///   a file         adds them to it
  ///   a kept file    puts them in place of what is in it, in one step, and returns when they and the name are on the
  ///                  disk: whenever the machine stops, the old bytes or the new ones are there. kMaxKeptBytes at most
  ///   a receiver     sends them as one datagram, which is lost where the system does not take it at once
  virtual Status write(std::span<const std::byte> bytes) = 0;
  /// After the last write(). An error, as of write(), where what was written may not be there.
  virtual Status close() = 0;
};

inline constexpr std::size_t kMaxKeptBytes = 65'536;

/// A file that is there for the next run.
struct KeptFile {
  std::optional<std::string> text;  ///< what was in it; nothing: there was none
  std::unique_ptr<Output> output;   ///< and the right to it: nobody else of this machine has it as long as this lives
};

/// Opens outputs. Any thread.
class Outputs {
 public:
  virtual ~Outputs() = default;
  /// `path`: as Config::output_path() gave it. The file is made or emptied; one that an NF in a process of its own
  /// opened before, and whose process then ended, is gone on with. What the system says where it cannot be; in a
  /// process also PermissionDenied for what the configuration does not name so.
  virtual Result<std::unique_ptr<Output>> open_file(std::string const& path) = 0;
  /// `receiver`: as Config::receiver() gave it. InvalidArgument where its host is no IPv4 address and no name of one;
  /// ResourceExhausted where the system has no socket; in a process as open_file().
  virtual Result<std::unique_ptr<Output>> connect(std::string const& receiver) = 0;
  /// The file `name` of `folder`, as Config::output_folder() gave it, which is made, for its owner alone, where it is
  /// not there. A name has letters, digits, '-' and '_', 64 at most. FailedPrecondition where somebody else has the
  /// file; InvalidArgument for such a name or a file that is too large; what the system says else; in a process as
  /// open_file(), and ResourceExhausted for more than 256 outputs.
  virtual Result<KeptFile> open_kept(std::string const& folder, std::string const& name) = 0;
};

/// With the rights of the thread that calls, at once: what an NF in the chain's process has.
std::shared_ptr<Outputs> own_outputs();

}  // namespace catena::nf
