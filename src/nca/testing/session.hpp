// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nca/nca.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// Shared by the tests of libnca. Uses only the API.
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

/// Opens a device; null if it is not available.
Context open(std::string const& device);
/// The available ones of "cpu" and the backends of devices.
std::vector<std::string> const& device_names();

std::string text_of(nca_context const& context);
std::string text_of(nca_stream const& stream);

/// Adds a function. On failure the test fails, and null is returned.
nca_function* add(nca_context& context, nca_kind kind, const void* config);

/// A stream configuration with small buffers, so that tests use many.
nca_stream_config small_buffers(std::vector<nca_function*> const& functions);
Stream make_stream(nca_context& context, nca_stream_config const& config);

/// The packets in the API's format; tags are positions plus `first_tag`.
std::vector<nca_packet> views(std::vector<Packet> const& packets, std::uint64_t first_tag = 0);

/// Sends packets through the stream, calls `on_results` for each buffer, and then releases it. Waits at the descriptor
/// if the stream is full. The test fails unless each packet comes back once, in order, with its tag and bytes.
void run(nca_stream& stream, std::vector<Packet> const& packets,
         std::function<void(nca_results const& results, std::uint64_t first_packet)> const& on_results);

/// Reads and releases all complete buffers.
void drain(nca_stream& stream, std::function<void(nca_results const&)> const& on_results);
/// Waits until the descriptor reports readable results.
bool wait_for_results(nca_stream& stream);

}  // namespace catena::nca::testing
