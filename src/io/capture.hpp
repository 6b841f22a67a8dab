// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"
#include "io/capture_reader.hpp"
#include "io/source.hpp"

#include <memory>
#include <stop_token>
#include <string>

/// Opening captures; for the sources of this folder.
namespace catena::io {

/// Reads a regular file from its start, by offsets: the file offset of the descriptor stays unchanged, and several
/// readers may share it. The file remains the caller's and must outlive the reader. `path` is for messages. Errors as
/// CaptureReader::open().
Result<std::unique_ptr<CaptureReader>> open_capture(FileDescriptor const& file, std::string const& path);

/// A capture that arrives piecewise from `input`: see open_pcap_source(). `name` is for messages.
Result<std::unique_ptr<Source>> open_stream_source(FileDescriptor input, std::string const& name,
                                                   std::stop_token const& give_up);

}  // namespace catena::io
