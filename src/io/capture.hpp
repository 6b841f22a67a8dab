// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/file_descriptor.hpp"
#include "io/source.hpp"

#include <pcap/pcap.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <stop_token>
#include <string>

/// Captures through libpcap; for the sources of this folder.
namespace catena::io {

struct ClosePcap {
  void operator()(pcap_t* capture) const { pcap_close(capture); }
};

/// A capture that is read from its first frame on.
struct Capture {
  std::unique_ptr<char[]> buffer;  ///< used by the file until it is closed
  std::unique_ptr<pcap_t, ClosePcap> pcap;
};

/// Of a regular file that is open, from its start; the file stays the caller's, and has one capture at a time. `path`
/// is for messages. Errors as open_pcap_source().
Result<Capture> open_capture(FileDescriptor const& file, std::string const& path);
/// The same of a stream, which belongs to the capture from now on.
Result<Capture> open_capture(std::FILE* file, std::string const& path);

/// When a frame was captured, in ns since 1970; stamps before that are 0.
std::uint64_t stamp_ns(pcap_pkthdr const& header);

/// A capture that comes bit by bit from `input`: see open_pcap_source(). `name` is for messages.
Result<std::unique_ptr<Source>> open_stream_source(FileDescriptor input, std::string const& name,
                                                   std::stop_token const& give_up);

}  // namespace catena::io
