// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"
#include "io/source.hpp"

#include <pcap/pcap.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <stop_token>
#include <string>

/// Reading captures with libpcap; for the sources of this folder.
namespace catena::io {

struct ClosePcap {
  void operator()(pcap_t* capture) const { pcap_close(capture); }
};

/// An open capture, positioned at its first frame.
struct Capture {
  std::unique_ptr<char[]> buffer;  ///< used by the file until it is closed
  std::unique_ptr<pcap_t, ClosePcap> pcap;
};

/// Opens a regular file from its start. The file remains the caller's and has one capture at a time. `path` is for
/// messages. Errors as open_pcap_source().
Result<Capture> open_capture(FileDescriptor const& file, std::string const& path);
/// Likewise for a stream; the capture takes ownership of it.
Result<Capture> open_capture(std::FILE* file, std::string const& path);

/// When a frame was captured, in ns since 1970; 0 for earlier stamps.
std::uint64_t stamp_ns(pcap_pkthdr const& header);

/// A capture that arrives piecewise from `input`: see open_pcap_source(). `name` is for messages.
Result<std::unique_ptr<Source>> open_stream_source(FileDescriptor input, std::string const& name,
                                                   std::stop_token const& give_up);

}  // namespace catena::io
