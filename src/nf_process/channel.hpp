// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/remote/socket.hpp"
#include "nf_process/lines.hpp"

#include <catena/core/status.hpp>
#include <catena/packet/layers.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

/// NFs in processes of their own: what both ends share, and the end that trusts nobody.
namespace catena::nf_process {

/// NFs of one process, at most.
inline constexpr std::size_t kMaxNfs = 32;

/// How large the messages of a channel are, and how many of each direction may be on their way.
struct ChannelShape {
  std::uint32_t unit_packets = 0;
  std::uint32_t depth = 0;  ///< a power of two
  bool has_lines = false;   ///< lines about packets come with the units

  /// For units of so many packets: enough of them on the way that neither end waits for the other.
  static ChannelShape of(std::uint32_t unit_packets, bool has_lines = false);
  /// Slots of the frames that cross with the messages: a power of two, enough for `depth` blocks of unit_packets.
  std::uint32_t slots() const;
};

/// What wakes the other process: a pair of sockets, an end for each. Whatever one does with his, nobody waits at the
/// other: flags of a descriptor belong to its end alone. ResourceExhausted where there is none.
Result<std::pair<device::remote::Fd, device::remote::Fd>> make_bell();
/// It does not ring any more, unless who rings has done so thousands of times since: then a part of that is taken, as
/// all of it may have no end.
void silence(int bell);

/// One packet of a unit that changes hands: where its frame is, and its metadata (see packet::MetaColumns).
struct PacketEntry {
  packet::Layers layers;  ///< on the way to the NF, which need not have the bytes that they were read from
  std::uint32_t slot;
  std::uint16_t offset;
  std::uint16_t length;
  std::uint16_t port;
  std::uint16_t ingress;
  std::uint16_t mtu;
  std::uint16_t reason;  ///< of a packet that was dropped: as nf::Outcome::drop() takes it
  std::uint8_t verdict;
  std::uint8_t nf;       ///< of a packet that was dropped or is a reply: number of the NF that did it
  std::uint8_t output;   ///< by which a packet that is alive left the last NF, as packet::Packet::set_output() has it
  std::uint8_t unused;   ///< else it would be memory that nobody wrote, of who writes the entry
  std::uint32_t alerts;  ///< bit i: NF number i raised one
  std::uint64_t index;
  std::uint64_t arrival_ns;
};

/// What an NF has counted since its process began, as nf::Counters.
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
};

/// The part of a GPU that an NF has of what others share with it: see share::Part. No units: it was given none yet.
struct GpuPart {
  std::uint16_t first = 0;
  std::uint16_t units = 0;
  std::uint32_t packets_per_unit = 0;
  bool operator==(GpuPart const&) const = default;
};

/// What one direction of a channel keeps in shared memory.
struct alignas(64) LaneHead {
  std::atomic<std::uint32_t> pushed;             ///< messages since the beginning
  std::atomic<std::uint32_t> closed;             ///< 1: no more will come; 2: and another process goes on for who reads
  alignas(64) std::atomic<std::uint32_t> armed;  ///< 1: who reads wants to be woken
};

inline constexpr std::uint32_t kHandsOver = 2;  ///< LaneHead::closed

/// The end of a lane that writes. It never looks at what the other end says, so whoever uses it must have no more than
/// the depth of messages on the way: an answer says that one was read. One thread.
class LaneWriter {
 public:
  LaneWriter(LaneHead& head, std::span<std::byte> messages, ChannelShape shape, int bell)
      : head_(&head), messages_(messages), shape_(shape), bell_(bell) {}
  /// Where the next message goes; room for a unit.
  std::span<PacketEntry> next() const;
  /// The next message is there, with so many packets.
  void push(std::uint32_t packets);
  /// Wakes the reader where it sleeps: after one push() or several. Never waits.
  void wake();
  /// There are no more messages. `hands_over`: who reads is to say what another process needs to go on.
  void close(bool hands_over = false);

 private:
  LaneHead* head_;
  std::span<std::byte> messages_;
  ChannelShape shape_;
  int bell_;
  std::uint32_t pushed_ = 0;
};

/// The end that reads. What it reads, the other end may change meanwhile: it is to be copied once, and then checked.
/// One thread.
class LaneReader {
 public:
  LaneReader(LaneHead& head, std::span<std::byte> messages, ChannelShape shape, int bell)
      : head_(&head), messages_(messages), shape_(shape), bell_(bell) {}
  /// The oldest message that was not taken; none: there is none now, and the bell will ring when there is.
  /// DataLoss where the other end claims what cannot be.
  Result<std::optional<std::span<const PacketEntry>>> poll();
  /// It was read.
  void take() { ++taken_; }
  /// Whether the other end is done; there may be messages left.
  bool is_closed() const { return head_->closed.load(std::memory_order_acquire) != 0; }
  /// As close() said.
  bool hands_over() const { return head_->closed.load(std::memory_order_acquire) == kHandsOver; }

 private:
  void arm();
  LaneHead* head_;
  std::span<std::byte> messages_;
  ChannelShape shape_;
  int bell_;
  std::uint32_t taken_ = 0;
  std::uint32_t idle_polls_ = 0;
  bool is_armed_ = false;
};

/// The memory that an NF's process has in common with who started it, beside frames: a lane each way, counts, and lines
/// where they are wanted. It holds nothing that either end has to believe.
class Channel {
 public:
  /// ResourceExhausted where there is no memory.
  static Result<Channel> create(ChannelShape shape);
  /// The other end's. Errors: as device::remote::Mapping::map().
  static Result<Channel> map(device::remote::Fd fd, ChannelShape shape);

  int fd() const { return memory_.fd(); }
  ChannelShape const& shape() const { return shape_; }
  LaneWriter writer_to_nf(int bell) const { return {head(0), messages(0), shape_, bell}; }
  LaneReader reader_of_nf(int bell) const { return {head(0), messages(0), shape_, bell}; }
  LaneWriter writer_to_host(int bell) const { return {head(1), messages(1), shape_, bell}; }
  LaneReader reader_of_host(int bell) const { return {head(1), messages(1), shape_, bell}; }
  // Of NF number `nf` of the process, below kMaxNfs.
  SharedCounts& counts(std::size_t nf) const;
  /// Which part it has: what who started it says, and what the NF says it has taken. Any thread.
  void give_part(std::size_t nf, GpuPart part) const;
  GpuPart given_part(std::size_t nf) const;
  void take_part(std::size_t nf, GpuPart part) const;
  GpuPart taken_part(std::size_t nf) const;
  // Precondition: the shape has lines.
  LineWriter line_writer() const { return {line_head(), line_ring()}; }
  LineReader line_reader() const { return {line_head(), line_ring()}; }

 private:
  Channel(device::remote::Mapping memory, ChannelShape shape) : memory_(std::move(memory)), shape_(shape) {}
  LaneHead& head(std::size_t lane) const;
  std::span<std::byte> messages(std::size_t lane) const;
  LineRingHead& line_head() const;
  std::span<std::byte> line_ring() const;

  device::remote::Mapping memory_;
  ChannelShape shape_;
};

}  // namespace catena::nf_process
