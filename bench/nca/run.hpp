// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/nca/traffic.hpp"

#include <nca/nca.h>
#include <catena/core/status.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

/// Runs of libnca as an application makes them.
namespace catena::bench {

struct CloseNca {
  void operator()(nca_context* context) const { nca_close(context); }
};
using NcaContext = std::unique_ptr<nca_context, CloseNca>;

/// As nca_open(), whose text is in the error, or in `text`. Errors: InvalidArgument for a name that is none;
/// Unavailable if there is no such device.
Result<NcaContext> open_nca(std::string const& device, std::string& text);
/// An NCA_MATCH of `strings`; belongs to the context. Errors: as nca_add_network_function(), with its text.
Result<nca_function*> add_strings(nca_context& context, std::span<const std::string> strings);

struct NcaLoad {
  Traffic const* traffic = nullptr;
  std::uint32_t bytes = 0;  ///< of each packet; 0: variable
  std::uint32_t buffer_packets = 16384;
  std::uint32_t streams = 1;
  std::uint32_t threads = 1;  ///< that add packets, a stream
  std::uint32_t queues = 3;   ///< of a stream, which has two buffers more
  double seconds = 1;         ///< a quarter of it is warm-up
  bool times = false;
};

struct NcaSpeed {
  double bytes_per_s = 0;  ///< of packets
  double packets_per_s = 0;
  std::uint64_t buffers = 0;  ///< that were checked, those of the warm-up and the end too
  std::uint64_t packets = 0;
  std::uint64_t matches = 0;
  std::vector<nca_times> times;  ///< of all buffers of stream 0, where asked for
  std::int64_t from_ns = 0;      ///< of stream 0, what the speed is measured over, in the clock of `times`
  std::int64_t to_ns = 0;
};

/// Streams with threads that add the traffic's packets in turn, and a thread that reads: each buffer must have as many
/// matches as its packets have, and the first buffer of each stream exactly those. Speed is that of the buffers that
/// were read between the first one after the warm-up and the last one before the end, of three at least; with `times`
/// of as many more as a stream holds, so that some of them were copied meanwhile. Errors:
///   DataLoss           matches are missing or too many, or packets are
///   DeadlineExceeded   a stream did not complete so many buffers in a minute
///   Internal           a call of the library failed; its text is in the message
Result<NcaSpeed> run_nca(nca_context& context, nca_function& function, NcaLoad const& load);

/// Bytes of packets a second that the function's kernel takes by itself: over one buffer that is on the device already,
/// again and again. Errors: FailedPrecondition if the function has no kernel, as on "cpu"; DataLoss if the kernel does
/// not find what it must; else the device's.
Result<double> plain_kernel_bytes_per_s(nca_function& function, NcaLoad const& load);

}  // namespace catena::bench
