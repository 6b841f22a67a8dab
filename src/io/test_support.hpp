// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/testing/scratch_folder.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/sink.hpp"
#include "io/source.hpp"

/// Common helpers for the tests of sources, sinks and the pool.
namespace catena::io::testing {

using Frame = std::vector<std::uint8_t>;

/// Starts the EAL if necessary and creates a pool. Ends the test program on failure.
std::unique_ptr<memory::PacketPool> make_pool(std::uint32_t slots = 1024);

void write_file(std::string const& path, std::span<const std::uint8_t> bytes);
Frame read_file(std::string const& path);
bool have_program(std::string const& name);
/// Runs a shell command that must succeed; returns its standard output.
std::string run_command(std::string const& command);

/// A capture file as read by libpcap, the reference for sources and sinks.
struct Captured {
  std::vector<Frame> frames;
  std::vector<std::uint64_t> stamps_ns;
  int link_type = -1;
  bool nanoseconds = false;
  std::string error;  ///< reason if it could not be opened or read to its end
};
Captured read_with_libpcap(std::string const& path);
/// Written by libpcap.
void write_with_libpcap(std::string const& path, std::vector<Frame> const& frames, bool nanoseconds = false,
                        int link_type = 1);

/// Sizes and bytes differ between frames.
std::vector<Frame> make_frames(std::size_t count, std::uint32_t min_bytes, std::uint32_t max_bytes,
                               std::uint32_t seed = 1);

/// A TCP segment of one connection with time stamps, correct checksums and `payload` bytes of its own.
Frame make_segment(std::uint32_t sequence, std::uint16_t identification, std::uint32_t payload, std::uint8_t flags,
                   std::uint16_t source_port = 1000);
/// Sets the checksums of IPv4 without options and of TCP, for any lengths in the headers.
void set_checksums(Frame& segment);

/// Whether both have the same frames; names the first difference.
::testing::AssertionResult same_frames(std::vector<Frame> const& got, std::vector<Frame> const& expected);

/// The live frames of a unit, as they are in their slots.
std::vector<Frame> frames_of(memory::PacketPool& pool, memory::Unit const& unit);
/// Receives until the source has finished or failed, or has given nothing `idle_limit` times in a row. Releases
/// everything.
struct Received {
  std::vector<Frame> frames;
  std::vector<std::uint64_t> indices;
  std::uint64_t starved = 0;
  Status status;
};
Received receive_all(Source& source, memory::PacketPool& pool, std::uint32_t idle_limit = 1000);
/// Moves units from source to sink until the source has finished or has given nothing `idle_limit` times in a row, then
/// calls finish().
Status pump(Source& source, Sink& sink, memory::PacketPool& pool, std::uint32_t idle_limit = 1000);
/// Sends frames in units of `unit_packets`, without waiting.
Status send_frames(Sink& sink, memory::PacketPool& pool, std::vector<Frame> const& frames,
                   std::uint32_t unit_packets = memory::kDefaultUnitPackets);

std::uint64_t count_of(std::vector<NamedCount> const& counts, std::string_view name);

}  // namespace catena::io::testing
