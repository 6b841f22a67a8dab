// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/live_clock.hpp"
#include "packet/memory/packet_pool.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace catena::io {

/// A count with a name, for reports.
struct NamedCount {
  std::string name;
  std::uint64_t count;
};

/// Frame counts of a source, read at one moment: seen == delivered + all drops. A live port keeps counting during the
/// read.
struct SourceCounts {
  std::uint64_t seen = 0;         ///< includes delivered frames
  std::vector<NamedCount> drops;  ///< frames seen but not delivered, by reason: "too_long" ...
};

/// Origin of packets. Called by one thread at a time, unless noted otherwise.
class Source {
 public:
  virtual ~Source() = default;
  /// Starts the run: the source gets frames arriving at a shared port from now on. Any thread, before the first
  /// receive().
  virtual void start() {}
  /// receive() is not called again, and counts() are final for a shared port. May be called more than once.
  virtual void stop() {}
  /// Fills `unit` (empty, without slots) with up to pool.unit_packets() packets in arrival order, in slots taken from
  /// `pool`, and sets unit.count. Every frame seen by the source has a number, including dropped ones. `next_index` is
  /// the number of the next frame, and receive() advances it past the last frame seen. Each packet is entered by
  /// memory::PacketPool::set_arrived() with its number. The caller sets the unit's first_index and end_index, and its
  /// arrival times unless the source knows when its packets were due. 0 packets is no error: no packet available now,
  /// no free slot (sets `starved`), or finished(). An error ends the run; the unit then has no packet and no slot, and
  /// the packets before the error have been delivered.
  virtual Status receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index, bool& starved) = 0;
  /// True if no packet will ever come again. False for live sources.
  virtual bool finished() const = 0;
  /// Any thread.
  virtual SourceCounts counts() const = 0;
  /// Packet rate of the source if the chain always accepts its packets; 0: as many as are taken, or unknown.
  virtual double offered_per_second() const { return 0; }
  /// Approximate progress through the source's packets, 0 to 1; below 0 if their number is unknown. Any thread.
  virtual double part_done() const { return -1; }
  /// A later call may count more packets: use counts() for consistent values.
  std::uint64_t seen() const { return counts().seen; }
  std::vector<NamedCount> drops() const { return counts().drops; }
  /// For the start-up report: "pcap office.pcap".
  virtual std::string describe() const = 0;
  /// The clock for the packet stamps of a live source; it does not change. Nullopt if packets bring their own times or
  /// have artificial ones, so that time advances only with packets.
  virtual std::optional<LiveClock> live_clock() const { return std::nullopt; }
  /// Sockets of which one is readable whenever packets are available; empty: the source must be polled.
  virtual std::vector<int> sockets() const { return {}; }
};

/// Reads pcap and pcapng captures of Ethernet frames (DLT_EN10MB), with micro- or nanosecond stamps. A frame has the
/// captured bytes only, and the capture's stamp as its arrival time. `loops`: how often the file is replayed, at least
/// 1; each pass begins 1 us after the latest stamp of the previous one. Drops: "too_long" (above kMaxFrameBytes). A
/// stream (see is_stream()) is read only once, by its own thread, so receive() never waits for it. Opening it waits for
/// its first bytes; `give_up` ends the wait with Cancelled. Errors: NotFound if it cannot be opened, InvalidArgument
/// for another link type, zero loops, several loops of a stream, or a damaged file. Damage after the start of the file
/// ends the run with DataLoss that names the frame, counted from 1 as in Wireshark.
Result<std::unique_ptr<Source>> open_pcap_source(std::string const& path, std::uint64_t loops = 1,
                                                 std::stop_token const& give_up = {});

struct SampledFrame {
  std::uint32_t bytes;
  packet::Layers layers;
};
/// Whether `path` can be read only once: a FIFO, a socket, a terminal, or "-", standard input. Frames sampled from it
/// would be missing in the run.
bool is_stream(std::string const& path);
/// Samples the first `most` frames of a capture that is no stream, for decisions before packets run. Returns only
/// frames accepted by a chain (up to kMaxFrameBytes). Errors as open_pcap_source(), but damage further on only ends the
/// sample.
Result<std::vector<SampledFrame>> sample_capture(std::string const& path, std::size_t most);
/// Reads a capture to its end, as a run does. It must be no stream. Errors: as open_pcap_source() and its source.
Status verify_capture(std::string const& path);

/// The part that a packet of a source belongs to, below the number of parts. All packets of a flow belong to one part.
using PartOf = std::function<std::uint32_t(packet::Packet const&)>;

struct GeneratorConfig {
  std::uint32_t packet_bytes = 64;  ///< frame without FCS; 0: IMIX (7 x 64, 4 x 594, 1 x 1518)
  std::uint32_t flows = 1024;
  std::uint64_t packets_per_s = 0;  ///< 0: as fast as the chain takes them
  std::uint64_t seed = 1;
  std::uint64_t count = 0;  ///< 0: endless
};
inline constexpr std::uint32_t kMinGeneratedBytes = 60;
inline constexpr std::uint32_t kMaxGeneratedFlows = 1U << 20;
/// Deterministic traffic: the same config gives the same bytes and arrival times, independent of timing. Packet i
/// arrives at i / rate seconds (10 million packets a second without a rate). Flows take turns; every second one is UDP,
/// the others are TCP. All packets of a flow are the same segment except for the IPv4 identification, the low 16 bits
/// of the packet's number. Clients are in 10.0.0.0/8, servers in 172.16.0.0/12 and 192.168.0.0/16; checksums are
/// correct; the payload is text that differs by flow. IMIX sizes are exact in every 12 packets, in random order.
/// InvalidArgument for sizes outside kMinGeneratedBytes .. kMaxFrameBytes and for flows outside 1 ..
/// kMaxGeneratedFlows.
Result<std::unique_ptr<Source>> make_generator(GeneratorConfig const& config);
/// The same traffic from several sources. Each has the packets of some flows, with their numbers and arrival times; the
/// rate is divided like the flows. ResourceExhausted as memory::PacketPool::create().
Result<std::vector<std::unique_ptr<Source>>> make_generators(GeneratorConfig const& config, std::uint32_t parts,
                                                             PartOf const& part_of);

/// Packets per run, by packet number; every n-th run of a replay is sampled.
inline constexpr std::uint32_t kReplaySampleRun = 256;

struct ReplayConfig {
  /// Frames without FCS. Sizes take turns, and each flow gets all of them; a size listed twice comes twice as often.
  std::vector<std::uint32_t> packet_bytes = {64};
  std::uint32_t flows = 1024;
  std::uint64_t packets_per_s = 0;  ///< 0: as fast as the chain takes them
  std::uint64_t seed = 1;
  std::uint64_t count = 0;            ///< 0: endless
  std::uint32_t sample_every = 1024;  ///< one in this many runs of kReplaySampleRun packets is written whole; at least
                                      ///< 1
};
inline constexpr std::uint32_t kMaxReplaySizes = 64;
/// Flows times sizes.
inline constexpr std::uint32_t kMaxReplayTemplates = 1U << 18;

/// Whether packet `index` of a replay is sampled: written whole, regardless of earlier changes to its slot by the
/// chain.
constexpr bool is_replay_sample(std::uint64_t index, std::uint32_t sample_every) {
  return index / kReplaySampleRun % sample_every == 0;
}

/// A benchmark source: the flows, frames and arrival times of the generator at a small part of its cost. It reuses the
/// frames left in the slots. Of each frame it writes only the first 64 bytes, which hold all headers, and the metadata,
/// with layers known beforehand. The bytes after them are written when a slot holds a frame of this length for the
/// first time, and in sampled packets (is_replay_sample()). Otherwise the slot keeps its old bytes: text of the same or
/// another flow, possibly modified by an NF. So a chain that does not modify payloads gets the generator's bytes if
/// `flows` divides the slots of the pool and only one size is used. A transport checksum is correct for the whole
/// frame. Errors: InvalidArgument for no or too many sizes or flows, for a size or number of flows outside the
/// generator's bounds, and for a sample_every of 0.
Result<std::unique_ptr<Source>> make_replay(ReplayConfig const& config);
/// As make_generators().
Result<std::vector<std::unique_ptr<Source>>> make_replays(ReplayConfig const& config, std::uint32_t parts,
                                                          PartOf const& part_of);

/// Replays frames of a capture from memory, in turn, each one whole: for chains that need correct payloads, such as
/// decryption. Arrival times as the generator's. `packets_per_s` and `count` as in ReplayConfig. Errors:
/// InvalidArgument for no frame, and for an empty or too long one (above kMaxFrameBytes).
Result<std::unique_ptr<Source>> make_frame_replay(std::vector<std::vector<std::uint8_t>> frames,
                                                  std::uint64_t packets_per_s, std::uint64_t count);

}  // namespace catena::io
