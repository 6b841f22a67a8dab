// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"
#include "base/core/name_watch.hpp"

#include <catena/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace catena::io {

/// The file name for standard input or output, on the command line and in chain files.
inline constexpr std::string_view kStandardStream = "-";

/// Whether `path` is standard output: "-", /dev/stdout, or the name of the file to which it is redirected. False for
/// /dev/null and the like, which any number of writers may share.
bool names_standard_output(std::string const& path);
/// The error for a path that is a socket; empty if `path` is no socket.
std::string socket_error(std::string const& path);

/// An output whose regular file has content: the file is replaced, or continued, or it stays and the run writes the
/// next part, a file of its own: "out.pcap.1" beside "out.pcap".
enum class OutputBegin : std::uint8_t { kReplaced, kAppended, kNextPart };

/// An output file of a run. open() does not change its content, so a run that cannot start leaves its outputs
/// unchanged: open() all of them first, then start() each. Owns the descriptor. One thread at a time.
class OutputFile {
 public:
  /// "-", or a path with names_standard_output(), is standard output. Waits for the reader of a FIFO. InvalidArgument
  /// for a socket; Cancelled if `give_up` ended the wait for a reader; the system's error if the file cannot be
  /// created: PermissionDenied, NotFound ... An appended file follows its name (NameWatch), so logs can be rotated.
  static Result<OutputFile> open(std::string const& path, OutputBegin begin, std::stop_token const& give_up = {});
  /// Truncates a regular file unless it is appended to. Output to other files and to standard output is appended.
  Status start();
  /// Writes all bytes, to one file. DataLoss, with the file, if this or an earlier write fails.
  Status write(const void* bytes, std::size_t count);
  /// DataLoss, with the file, if any write has failed. May be called more than once.
  Status close();
  std::string const& path() const { return path_; }
  /// Whether a reader may be waiting for the output: a FIFO, a socket, a terminal.
  bool is_stream() const { return is_stream_; }

 private:
  OutputFile(std::string path, FileDescriptor file, bool is_stream, bool is_emptied)
      : path_(std::move(path)), file_(std::move(file)), is_stream_(is_stream), is_emptied_(is_emptied) {}
  static Result<OutputFile> open_part(std::string const& path);
  void fail(const char* call);

  /// A part whose run has not started: it is removed with its object, so failed starts leave no parts.
  struct Unstarted {
    std::string path = {};
    Unstarted() = default;
    Unstarted(Unstarted&& other) noexcept : path(std::exchange(other.path, std::string())) {}
    Unstarted& operator=(Unstarted&& other) noexcept {
      std::swap(path, other.path);
      return *this;
    }
    ~Unstarted();
  };

  std::string path_;
  FileDescriptor file_;
  bool is_stream_;
  bool is_emptied_;  ///< by start(); never standard output: other programs may share it
  std::optional<NameWatch> name_;
  Unstarted unstarted_;
  Status failure_;
};

}  // namespace catena::io
