// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstddef>
#include <stop_token>
#include <string>
#include <string_view>

namespace catena::io {

/// The file name for standard input or output, on the command line and in chain files.
inline constexpr std::string_view kStandardStream = "-";

/// Whether `path` is standard output: "-", /dev/stdout, or the name of the file to which it is redirected. False for
/// /dev/null and the like, which any number of writers may share.
bool names_standard_output(std::string const& path);
/// The error for a path that is a socket; empty if `path` is no socket.
std::string socket_error(std::string const& path);

/// An output file of a run. open() does not change its content, so a run that cannot start leaves its outputs
/// unchanged: open() all of them first, then start() each. Owns the descriptor. One thread at a time.
class OutputFile {
 public:
  /// "-", or a path with names_standard_output(), is standard output. Waits for the reader of a FIFO. InvalidArgument
  /// for a socket; Cancelled if `give_up` ended the wait for a reader; the system's error if the file cannot be
  /// created: PermissionDenied, NotFound ...
  static Result<OutputFile> open(std::string const& path, std::stop_token const& give_up = {});
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  OutputFile(OutputFile const&) = delete;
  OutputFile& operator=(OutputFile const&) = delete;
  ~OutputFile();

  /// Truncates a regular file. Output to other files and to standard output is appended.
  Status start();
  /// Writes all bytes. DataLoss, with the file, if this or an earlier write fails.
  Status write(const void* bytes, std::size_t count);
  /// DataLoss, with the file, if any write has failed. May be called more than once.
  Status close();
  std::string const& path() const { return path_; }
  /// Whether a reader may be waiting for the output: a FIFO, a socket, a terminal.
  bool is_stream() const { return is_stream_; }

 private:
  OutputFile(std::string path, int descriptor, bool is_stream, bool is_standard)
      : path_(std::move(path)), descriptor_(descriptor), is_stream_(is_stream), is_standard_(is_standard) {}
  void fail(const char* call);

  std::string path_;
  int descriptor_;
  bool is_stream_;
  bool is_standard_;  ///< shared with other programs: its offset and content stay unchanged
  Status failure_;
};

}  // namespace catena::io
