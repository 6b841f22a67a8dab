// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nca/nca.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// What the tests of libnca share. They use the API alone.
namespace catena::nca::testing {

using Packet = std::vector<std::uint8_t>;

struct CloseContext {
  void operator()(nca_context* context) const;
};
struct AbortStream {
  void operator()(nca_stream* stream) const;
};
using Context = std::unique_ptr<nca_context, CloseContext>;
using Stream = std::unique_ptr<nca_stream, AbortStream>;

/// Opens a device; null where it is not there.
Context open(std::string const& device);
/// Those of "cpu", "opencl" and "cuda" that can be opened here.
std::vector<std::string> const& device_names();

std::string text_of(nca_context const& context);
std::string text_of(nca_stream const& stream);

/// Adds a function; the test fails, and null comes back, if that does.
nca_function* add(nca_context& context, nca_kind kind, const void* config);

/// A stream of small buffers, so that tests see many.
nca_stream_config small_buffers(std::vector<nca_function*> const& functions);
Stream make_stream(nca_context& context, nca_stream_config const& config);

/// The packets as the API takes them; tags are positions plus `first_tag`.
std::vector<nca_packet> views(std::vector<Packet> const& packets, std::uint64_t first_tag = 0);

/// Sends packets through and calls `on_results` for each buffer, which is released then. Waits at the descriptor where
/// the stream is full. The test fails unless each packet comes back once, in order, with its tag and bytes.
void run(nca_stream& stream, std::vector<Packet> const& packets,
         std::function<void(nca_results const& results, std::uint64_t first_packet)> const& on_results);

/// Reads and releases what is complete.
void drain(nca_stream& stream, std::function<void(nca_results const&)> const& on_results);
/// Waits until the descriptor says that results can be read.
bool wait_for_results(nca_stream& stream);

}  // namespace catena::nca::testing
