// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"
#include "base/ipc/mapping.hpp"
#include "base/ipc/ring.hpp"
#include "nf/uninspected.hpp"
#include "pipeline/isolation/lines.hpp"

#include <catena/core/status.hpp>
#include <catena/packet/layers.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

/// NFs in separate processes: the parts shared by both ends, and the parent's end, which trusts no input.
namespace catena::nf_process {

/// Maximum number of NFs per process.
inline constexpr std::size_t kMaxNfs = 32;

/// Size of a channel's messages, and their maximum number in flight per direction.
struct ChannelShape {
  std::uint32_t unit_packets = 0;
  std::uint32_t depth = 0;  ///< a power of two
  bool has_lines = false;   ///< record and alert lines come with the units

  /// For units of `unit_packets` packets: enough in flight that neither end waits for the other.
  static ChannelShape of(std::uint32_t unit_packets, bool has_lines = false);
  /// Slots for the frames of the messages: a power of two, enough for `depth` blocks of unit_packets.
  std::uint32_t slots() const;
};

/// One packet of a unit sent between the processes: the position of its frame, and its metadata (see
/// packet::MetaColumns).
struct PacketEntry {
  packet::Layers layers;  ///< for the NF process, which may lack the parsed bytes
  std::uint32_t slot;
  std::uint16_t offset;
  std::uint16_t length;
  std::uint16_t port;
  std::uint16_t ingress;
  std::uint16_t mtu;
  std::uint16_t reason;  ///< of a dropped packet: as nf::Outcome::drop() takes it
  std::uint8_t verdict;
  std::uint8_t nf;       ///< of a dropped packet or a reply: number of the deciding NF
  std::uint8_t output;   ///< the last NF's output if the packet is alive, as in packet::Packet::set_output()
  std::uint8_t unused;   ///< explicit padding, so that no uninitialized memory leaks to the reader
  std::uint32_t alerts;  ///< bit i: NF number i raised an alert
  std::uint64_t index;
  std::uint64_t arrival_ns;
};

/// Counts of an NF since its process started, as nf::Counters.
struct SharedCounts {
  std::atomic<std::uint64_t> processed;
  std::atomic<std::uint64_t> unsupported;
  std::atomic<std::uint64_t> link_local;
  std::atomic<std::uint64_t> kernel_faults;
  std::atomic<std::uint64_t> device_packets;
  std::atomic<std::uint64_t> launches;
  std::atomic<std::uint64_t> transfer_packets;
  std::atomic<std::uint64_t> bytes_to_device;
  std::atomic<std::uint64_t> bytes_to_host;
  std::array<std::atomic<std::uint64_t>, nf::UninspectedCounts::kKinds> uninspected;
  std::atomic<std::uint64_t> uninspected_total;  ///< changes after `uninspected` did
};

/// An NF's partition of a shared GPU: see share::Part. 0 units: not assigned yet.
struct GpuPart {
  std::uint16_t first = 0;
  std::uint16_t units = 0;
  std::uint32_t packets_per_unit = 0;
  bool operator==(GpuPart const&) const = default;
};

/// Reasons of a closed ring: see RingWriter::close().
inline constexpr std::uint32_t kEnds = 1;
inline constexpr std::uint32_t kTransfersState = 2;  ///< the reader is to send its state for a replacement process

/// The ends of a ring. The writer must keep no more messages in flight than the depth; each returned message
/// acknowledges one.
using RingWriter = ipc::RingWriter<PacketEntry>;
using RingReader = ipc::RingReader<PacketEntry>;

/// Shared memory of an NF process and its parent, besides frames: one ring per direction, counts, and lines if wanted.
/// Neither end has to trust its content.
class Channel {
 public:
  /// ResourceExhausted if memory runs out.
  static Result<Channel> create(ChannelShape shape);
  /// Maps the other end's channel. Errors: as ipc::Mapping::map().
  static Result<Channel> map(FileDescriptor fd, ChannelShape shape);

  int fd() const { return memory_.fd(); }
  ChannelShape const& shape() const { return shape_; }
  // `notifier`: the caller's end of ipc::make_socket_pair(), for the wake-ups of both rings.
  RingWriter writer_to_nf(int notifier) const { return {head(0), messages(0), notifier}; }
  RingReader reader_of_nf(int notifier) const { return {head(0), messages(0), notifier}; }
  RingWriter writer_to_host(int notifier) const { return {head(1), messages(1), notifier}; }
  RingReader reader_of_host(int notifier) const { return {head(1), messages(1), notifier}; }
  // Of NF number `nf` of the process, below kMaxNfs.
  SharedCounts& counts(std::size_t nf) const;
  /// The NF's GPU partition: assigned by the parent, and taken as the NF reports it. Any thread.
  void give_part(std::size_t nf, GpuPart part) const;
  GpuPart given_part(std::size_t nf) const;
  void take_part(std::size_t nf, GpuPart part) const;
  GpuPart taken_part(std::size_t nf) const;
  // Precondition: the shape has lines.
  LineWriter line_writer() const { return {line_head(), line_ring()}; }
  LineReader line_reader() const { return {line_head(), line_ring()}; }

 private:
  Channel(ipc::Mapping memory, ChannelShape shape) : memory_(std::move(memory)), shape_(shape) {}
  ipc::RingHead& head(std::size_t ring) const;
  ipc::RingMessages<PacketEntry> messages(std::size_t ring) const;
  LineRingHead& line_head() const;
  std::span<std::byte> line_ring() const;

  ipc::Mapping memory_;
  ChannelShape shape_;
};

}  // namespace catena::nf_process
