// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstddef>
#include <stop_token>
#include <string>
#include <string_view>

namespace catena::io {

/// What a file name on the command line or in a chain file says for standard input or output.
inline constexpr std::string_view kStandardStream = "-";

/// Whether `path` is standard output: "-", /dev/stdout, or the name of the file that it goes to. Not so for /dev/null
/// and the like, which all may write to at once.
bool names_standard_output(std::string const& path);
/// Why a socket's name is no name of a file; empty if `path` is none.
std::string socket_error(std::string const& path);

/// A file that a run writes. It is opened without a change to what is in it, so that a run that cannot start leaves its
/// outputs as they were: open() all of them first, then start() each. Owns the descriptor. One thread at a time.
class OutputFile {
 public:
  /// "-", or whatever names_standard_output(), is standard output. A FIFO is opened when it has a reader.
  /// InvalidArgument for a socket; Cancelled where `give_up` ended the wait for a reader; what the system says where
  /// the file cannot be created: PermissionDenied, NotFound ...
  static Result<OutputFile> open(std::string const& path, std::stop_token const& give_up = {});
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  OutputFile(OutputFile const&) = delete;
  OutputFile& operator=(OutputFile const&) = delete;
  ~OutputFile();

  /// Empties a regular file; what is written to others, and to standard output, only adds to them.
  Status start();
  /// Writes all bytes. DataLoss, with the file, if that fails, now or before.
  Status write(const void* bytes, std::size_t count);
  /// DataLoss, with the file, if anything could not be written. Often is no harm.
  Status close();
  std::string const& path() const { return path_; }
  /// Somebody may wait for what is written: a FIFO, a socket, a terminal.
  bool is_stream() const { return is_stream_; }

 private:
  OutputFile(std::string path, int descriptor, bool is_stream, bool is_standard)
      : path_(std::move(path)), descriptor_(descriptor), is_stream_(is_stream), is_standard_(is_standard) {}
  void fail(const char* call);

  std::string path_;
  int descriptor_;
  bool is_stream_;
  bool is_standard_;  ///< somebody else's: its offset and what is in it stay
  Status failure_;
};

}  // namespace catena::io
