// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/live_clock.hpp"
#include "memory/packet_pool.hpp"

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

/// What a source saw, read at one moment: seen == delivered + every drop. A live port counts on while it is read.
struct SourceCounts {
  std::uint64_t seen = 0;         ///< those delivered included
  std::vector<NamedCount> drops;  ///< seen and not delivered, by reason: "too_long" ...
};

/// Where packets come from. Called by one thread at a time, but for what says otherwise.
class Source {
 public:
  virtual ~Source() = default;
  /// The run begins: what arrives at a shared port from here on is its. By any thread, before the first receive().
  virtual void start() {}
  /// receive() is not called again, and counts() are final for a shared port. Often is no harm.
  virtual void stop() {}
  /// Fills `unit` (empty, without slots) with up to pool.unit_packets() packets in arrival order, taking slots from
  /// `pool`; unit.count says how many. Every frame that the source sees has a number, also one that it drops:
  /// `next_index` is that of the next frame, and receive() moves it past the last one that it saw. Each packet is
  /// entered by memory::PacketPool::set_arrived() with its number; first_index and end_index of the unit are the
  /// caller's, and so are the times at which its packets arrived, unless the source knows when they were due. 0 packets
  /// is no error: nothing there now, no slot free (then `starved` is set), or finished(). An error ends the run; the
  /// unit then has no packet and no slot, and the packets before the error have been delivered.
  virtual Status receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index, bool& starved) = 0;
  /// True when no packet will ever come again. False for live sources.
  virtual bool finished() const = 0;
  /// By any thread.
  virtual SourceCounts counts() const = 0;
  /// Packets that the source would bring if the chain always took them; 0: as many as are taken, or not known.
  virtual double offered_per_second() const { return 0; }
  /// About which part of its packets the source has brought, 0 to 1; below 0 where nobody knows how many will come. Any
  /// thread.
  virtual double part_done() const { return -1; }
  /// Of two calls the second may know of more packets: take counts() where they must agree.
  std::uint64_t seen() const { return counts().seen; }
  std::vector<NamedCount> drops() const { return counts().drops; }
  /// For the start-up report: "pcap office.pcap".
  virtual std::string describe() const = 0;
  /// The clock that stamps the packets of a live source; it does not change. None where packets bring their times, or
  /// have artificial ones: there time passes with packets alone.
  virtual std::optional<LiveClock> live_clock() const { return std::nullopt; }
  /// Sockets of which one is readable whenever there are packets; none: the source has to be asked.
  virtual std::vector<int> sockets() const { return {}; }
};

/// Reads pcap and pcapng captures of Ethernet frames (DLT_EN10MB), micro- and nanosecond stamps. A frame is what was
/// captured of it, its arrival time the capture's stamp. `loops`: how often the file is replayed, at least 1; each
/// pass begins 1 us after the latest stamp of the one before. Drops: "too_long" (above kMaxFrameBytes).
/// A stream (see is_stream()) is read by a thread of its own, so that receive() never
/// waits for it, and once only; opening it waits for its first bytes, or for `give_up`, which makes it Cancelled.
/// Errors: NotFound if it cannot be opened, InvalidArgument for another link type, no loop at all, several of what can
/// be read once, or a damaged file (at the start; damage later ends the run with DataLoss that names the frame, counted
/// from 1 as Wireshark does).
Result<std::unique_ptr<Source>> open_pcap_source(std::string const& path, std::uint64_t loops = 1,
                                                 std::stop_token const& give_up = {});

struct SampledFrame {
  std::uint32_t bytes;
  packet::Layers layers;
};
/// Whether `path` names what can be read only once: a FIFO, a socket, a terminal, or "-", standard input. What were
/// sampled of it would be missing in the run.
bool is_stream(std::string const& path);
/// Of the first `most` frames of a capture that is no stream those that a chain takes (up to kMaxFrameBytes), for what
/// is decided before packets run. Errors as open_pcap_source(), but a capture that is damaged further on gives what is
/// before.
Result<std::vector<SampledFrame>> sample_capture(std::string const& path, std::size_t most);

/// Which part of a source's packets one belongs to, below the number of parts. All packets of a flow belong to one.
using PartOf = std::function<std::uint32_t(packet::Packet const&)>;

struct GeneratorConfig {
  std::uint32_t packet_bytes = 64;  ///< frame without FCS; 0: IMIX (7 x 64, 4 x 594, 1 x 1518)
  std::uint32_t flows = 1024;
  std::uint64_t packets_per_s = 0;  ///< 0: as fast as the chain takes them
  std::uint64_t seed = 1;
  std::uint64_t count = 0;  ///< 0: without end
};
inline constexpr std::uint32_t kMinGeneratedBytes = 60;
inline constexpr std::uint32_t kMaxGeneratedFlows = 1U << 20;
/// Deterministic traffic: same config, same bytes and arrival times, whatever the timing: packet i arrives at i / rate
/// seconds (10 million packets a second where no rate is given). Flows take turns; every second one is UDP, the
/// others are TCP, each packet the same segment again but for its IPv4 identification, the low 16 bits of the packet's
/// number. Clients are in 10.0.0.0/8, servers in 172.16.0.0/12 and 192.168.0.0/16; checksums are right; the payload is
/// text that differs by flow. IMIX sizes are exact in every 12 packets, in random order.
/// InvalidArgument for sizes outside kMinGeneratedBytes .. kMaxFrameBytes and for flows outside 1 ..
/// kMaxGeneratedFlows.
Result<std::unique_ptr<Source>> make_generator(GeneratorConfig const& config);
/// The same traffic from several sources, each with the packets of some flows, their numbers and their arrival times; a
/// rate is divided as flows are. ResourceExhausted as memory::PacketPool::create().
Result<std::vector<std::unique_ptr<Source>>> make_generators(GeneratorConfig const& config, std::uint32_t parts,
                                                             PartOf const& part_of);

/// Packets are numbered in runs of so many; every n-th run of a replay is sampled.
inline constexpr std::uint32_t kReplaySampleRun = 256;

struct ReplayConfig {
  /// Frames without FCS. Sizes take turns, and a flow meets all of them; a size listed twice comes twice as often.
  std::vector<std::uint32_t> packet_bytes = {64};
  std::uint32_t flows = 1024;
  std::uint64_t packets_per_s = 0;  ///< 0: as fast as the chain takes them
  std::uint64_t seed = 1;
  std::uint64_t count = 0;            ///< 0: without end
  std::uint32_t sample_every = 1024;  ///< every so many runs of kReplaySampleRun packets are whole; at least 1
};
inline constexpr std::uint32_t kMaxReplaySizes = 64;
/// Flows times sizes.
inline constexpr std::uint32_t kMaxReplayTemplates = 1U << 18;

/// Whether packet `index` of a replay is sampled: whole whatever the chain did to the slot before.
constexpr bool is_replay_sample(std::uint64_t index, std::uint32_t sample_every) {
  return index / kReplaySampleRun % sample_every == 0;
}

/// A benchmark's source: the flows, frames and arrival times of the generator at a small part of its cost. Frames are
/// in the slots from the packets before; of each only the first 64 bytes, which hold all headers, are written anew,
/// and the metadata, with layers that are known beforehand. What comes after them is written the first time that a
/// slot holds a frame so long, and in sampled packets (is_replay_sample()); else it is what was left there: text of the
/// same or another flow, or what an NF made of it. So a chain that leaves payloads alone gets the generator's bytes
/// where `flows` divides the slots of the pool and there is one size. A transport checksum is right for the whole
/// frame. Errors: InvalidArgument for no or too many sizes or flows, or one outside the generator's bounds, and for a
/// sample_every of 0.
Result<std::unique_ptr<Source>> make_replay(ReplayConfig const& config);
/// As make_generators().
Result<std::vector<std::unique_ptr<Source>>> make_replays(ReplayConfig const& config, std::uint32_t parts,
                                                          PartOf const& part_of);

/// Frames of a capture, from memory and in turn, whole each time: for chains that only know what to do with a payload
/// that is right, as decryption. Arrival times as the generator's. `packets_per_s` and `count` as in ReplayConfig.
/// Errors: InvalidArgument for no frame, and for an empty or too long one (above kMaxFrameBytes).
Result<std::unique_ptr<Source>> make_frame_replay(std::vector<std::vector<std::uint8_t>> frames,
                                                  std::uint64_t packets_per_s, std::uint64_t count);

}  // namespace catena::io
