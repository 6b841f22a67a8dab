// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/packet/address.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

/// TCP for the stack's process: lwIP, with options of our own.
namespace catena::stack {

struct Endpoint {
  packet::Address address;
  std::uint16_t port = 0;
  bool operator==(Endpoint const&) const = default;
};

/// A frame to be sent. Its parts are valid during FramePort::send() alone.
struct OutgoingFrame {
  std::span<const std::span<const std::byte>> parts;  ///< the headers, then data
  std::uint32_t bytes = 0;                            ///< of all parts
  /// Offset of the TCP header whose checksum the port completes: the field holds the sum of the pseudo header (RFC
  /// 9293, 3.1). 0: the frame has all its checksums.
  std::uint16_t checksum_start = 0;
  std::uint16_t header_bytes = 0;   ///< of Ethernet, IP and TCP; with segment_bytes
  std::uint16_t segment_bytes = 0;  ///< to be cut into segments with this many bytes of data; 0: sent whole
};

/// Where frames leave. Thread rule: Tcp's thread.
class FramePort {
 public:
  virtual ~FramePort() = default;
  /// False: no room; the frame is lost, and TCP sends its data again.
  virtual bool send(OutgoingFrame const& frame) = 0;
};

/// Number of a connection, from accepted() until peer or application ended it; may then be used again.
using ConnectionId = std::uint32_t;

/// What happens to connections. Called by Tcp::input() and Tcp::tick() on Tcp's thread; all calls of Tcp but these two
/// may be made from within.
class TcpEvents {
 public:
  virtual ~TcpEvents() = default;
  /// False: the connection is reset.
  virtual bool accepted(ConnectionId connection, Endpoint const& local, Endpoint const& peer) = 0;
  /// Bytes in order. False: no room for them; they are offered again, later ones are lost until they are
  /// taken.
  virtual bool received(ConnectionId connection, std::span<const std::byte> bytes) = 0;
  /// The peer has `bytes` more of the written bytes; their memory is free.
  virtual void acknowledged(ConnectionId connection, std::size_t bytes) = 0;
  /// The peer sends no more.
  virtual void peer_closed(ConnectionId connection) = 0;
  /// The connection is gone; all its memory is free.
  virtual void reset(ConnectionId connection) = 0;
};

struct TcpOptions {
  struct Network {
    packet::Address address;
    std::uint8_t prefix = 24;                ///< bits
    std::optional<packet::Address> gateway;  ///< of the same family
  };
  std::array<std::uint8_t, 6> mac = {};
  std::uint16_t mtu = 1500;
  std::optional<Network> ipv4;
  std::optional<Network> ipv6;
  std::uint32_t max_connections = 20'000;  ///< established ones; a further one is reset
  /// Half-open connections of all listeners. A SYN above it, or above the backlog of its listener, pushes out the
  /// oldest one of the listener with the most.
  std::uint32_t max_half_open = 4096;
  /// Connections after close(), waiting for the peer or in TIME-WAIT; one more pushes out the oldest. At least 1.
  std::uint32_t max_closing = 65'536;
  /// A connection is reset if its peer acknowledges less than 536 bytes of sent or waiting data for so long: its window
  /// stays closed, or it is gone. RFC 9293, 3.8.3 demands 100 s at least.
  std::chrono::seconds stall_limit{120};
  /// Bytes of lwIP, without the caller's memory of write(). Frames above it are lost, and write() fails. Data out of
  /// order is kept below a half of it.
  std::size_t max_memory = std::size_t{256} << 20U;
  /// Most bytes of a connection received and not consumed(); 64 KiB to 1 MiB. A piece without room in received() is
  /// lost and sent again, so room for so many bytes is needed.
  std::uint32_t receive_window = 64 * 1024;
  bool cuts_segments = true;  ///< the port sends frames of up to 64 KiB as segments (TSO)
};

/// Since the object was made, but for the numbers of now.
struct TcpCounters {
  std::uint32_t half_open = 0;                ///< now
  std::uint32_t closing = 0;                  ///< now: after close(), with TIME-WAIT
  std::size_t memory_blocks = 0;              ///< now, of lwIP
  std::size_t memory_bytes = 0;               ///< now, of lwIP
  std::uint64_t half_open_dropped = 0;        ///< pushed out by other SYNs
  std::uint64_t closing_dropped = 0;          ///< pushed out by others
  std::uint64_t stalled = 0;                  ///< reset by stall_limit
  std::uint64_t segments_dropped = 0;         ///< of known connections, dropped: RFC 9293, 3.10.7.4 and RFC 5961
  std::uint64_t challenge_acks = 0;           ///< sent (RFC 5961)
  std::uint64_t challenge_acks_withheld = 0;  ///< by the limit: two per second and connection
};

/// TCP over IPv4 and IPv6 on one Ethernet port, for servers. One object in a process at a time, because lwIP has global
/// state. Belongs to one thread at a time.
class Tcp {
 public:
  /// `port` and `events` outlive it. FailedPrecondition: the process has one. Unavailable: no
  /// random numbers. InvalidArgument: no address, a gateway
  /// of another family, or another receive_window.
  static Result<std::unique_ptr<Tcp>> create(TcpOptions const& options, FramePort& port, TcpEvents& events);
  /// Resets all connections.
  virtual ~Tcp() = default;

  /// A frame has arrived; any bytes. Its TCP checksum was verified by the port.
  virtual void input(std::span<const std::byte> frame) = 0;
  /// Runs the timers due at `now`. Call it at least each kTick.
  virtual void tick(std::chrono::steady_clock::time_point now) = 0;
  static constexpr std::chrono::milliseconds kTick{10};

  /// Accepts connections at `port` of all addresses. At most `backlog`, and at least one, are half open. AlreadyExists:
  /// the port is taken.
  virtual Status listen(std::uint16_t port, std::uint16_t backlog) = 0;
  /// Drops its half-open connections; established ones stay. Not from within an event.
  virtual void stop_listening(std::uint16_t port) = 0;

  /// The most bytes for write() now.
  virtual std::size_t room(ConnectionId connection) const = 0;
  /// Sends bytes, which must live and stay as they are until acknowledged() or reset(). Precondition: at most room(),
  /// and at most kMaxWrite. `more`: another write() follows at once. False: no memory; nothing was written.
  virtual bool write(ConnectionId connection, std::span<const std::byte> bytes, bool more) = 0;
  static constexpr std::size_t kMaxWrite = std::size_t{44} * 1460;
  /// The application has taken `bytes` of the received ones.
  virtual void consumed(ConnectionId connection, std::size_t bytes) = 0;
  /// Sends the FIN and ends the connection. Its number is free now, no event follows. Precondition: all bytes
  /// was written is acknowledged.
  virtual void close(ConnectionId connection) = 0;
  /// Sends the FIN after the written bytes; receives on.
  virtual void close_sending(ConnectionId connection) = 0;
  virtual void reset(ConnectionId connection) = 0;
  virtual std::uint32_t connections() const = 0;
  virtual TcpCounters counters() const = 0;
};

}  // namespace catena::stack
