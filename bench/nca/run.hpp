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

/// Runs of libnca, called as an application would.
namespace catena::bench {

struct CloseNca {
  void operator()(nca_context* context) const { nca_close(context); }
};
using NcaContext = std::unique_ptr<nca_context, CloseNca>;

/// As nca_open(). Its text is in the error, or in `text`. Errors: InvalidArgument for an unknown name; Unavailable if
/// the device does not exist.
Result<NcaContext> open_nca(std::string const& device, std::string& text);
/// An NCA_MATCH function with `strings`, owned by the context. Errors: as nca_add_network_function(), with its text.
Result<nca_function*> add_strings(nca_context& context, std::span<const std::string> strings);

struct NcaLoad {
  Traffic const* traffic = nullptr;
  std::uint32_t bytes = 0;  ///< per packet; 0: variable
  std::uint32_t buffer_packets = 16384;
  std::uint32_t streams = 1;
  std::uint32_t threads = 1;  ///< per stream, adding packets
  std::uint32_t queues = 3;   ///< per stream; it has two buffers more
  double seconds = 1;         ///< a quarter of it is warm-up
  bool times = false;
};

struct NcaSpeed {
  double bytes_per_s = 0;  ///< packet bytes
  double packets_per_s = 0;
  std::uint64_t buffers = 0;  ///< checked buffers, including warm-up and end
  std::uint64_t packets = 0;
  std::uint64_t matches = 0;
  std::vector<nca_times> times;  ///< of all buffers of stream 0, if requested
  std::int64_t from_ns = 0;      ///< start of stream 0's measured interval, in the clock of `times`
  std::int64_t to_ns = 0;
};

/// Runs streams: per stream, threads add the traffic's packets round-robin, and one thread reads results. Each buffer
/// must have the number of matches of its packets, and the first buffer of each stream exactly those matches. The speed
/// is that of the buffers read between the first one after the warm-up and the last one before the end, at least three.
/// With `times`, at least as many more as a stream holds, so that some of them were copied in this interval. Errors:
///   DataLoss           matches or packets are missing, or too many
///   DeadlineExceeded   a stream did not complete that many buffers in a minute
///   Internal           a library call failed; its text is in the message
Result<NcaSpeed> run_nca(nca_context& context, nca_function& function, NcaLoad const& load);

/// Packet bytes per second of the function's kernel alone, run repeatedly over one buffer already on the device.
/// Errors: FailedPrecondition if the function has no kernel, as on "cpu"; DataLoss if the kernel's matches are wrong;
/// else the device's.
Result<double> plain_kernel_bytes_per_s(nca_function& function, NcaLoad const& load);

}  // namespace catena::bench
