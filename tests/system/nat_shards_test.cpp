// SPDX-License-Identifier: Apache-2.0
// A NAT in several shards of a real chain, with packets that come back: which inside host gets what is known
// beforehand, whatever ports were chosen. tests/system/shards_test.cpp cannot have answers in its captures, as their
// ports differ.
#include "system/chain_runner.hpp"
#include "system/same_bytes.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/testing/packet_store.hpp>
#include <catena/packet/icmp.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace catena::testing {
namespace {

using packet::testing::Frame;
using packet::testing::make_frame;

constexpr std::uint32_t kHosts = 200;
constexpr std::uint32_t kServer = 0xC6336407;  // 198.51.100.7
constexpr std::uint16_t kServerPort = 4000;
constexpr std::uint32_t kRouterOutside = 0xC63364FE;
constexpr std::uint8_t kUdp = 17;
constexpr std::size_t kL3 = 14;
constexpr std::size_t kQuote = kL3 + 20 + 8;

std::uint32_t host(std::uint32_t i) { return 0x0A000100 + i; }
std::uint16_t host_port(std::uint32_t i) { return static_cast<std::uint16_t>(5000 + i % 7); }  // many have the same

/// Ends of a UDP datagram whose IPv4 header is at `l3`.
struct Ends {
  std::uint32_t source;
  std::uint16_t source_port;
  std::uint32_t destination;
  std::uint16_t destination_port;
  bool operator==(Ends const&) const = default;
};
Ends ends_of(Frame const& frame, std::size_t l3 = kL3) {
  return {packet::load_be32(&frame[l3 + 12]), packet::load_be16(&frame[l3 + 20]), packet::load_be32(&frame[l3 + 16]),
          packet::load_be16(&frame[l3 + 22])};
}

/// "out 17": what a datagram is, and its host's number.
struct Text {
  std::string what;
  std::uint32_t number = 0;
};
Text text_of(Frame const& frame, std::size_t l3 = kL3) {
  const std::string payload(frame.begin() + static_cast<std::ptrdiff_t>(l3 + 28), frame.end());
  const std::size_t space = payload.find(' ');
  return {payload.substr(0, space), static_cast<std::uint32_t>(std::stoul(payload.substr(space + 1)))};
}
Frame udp(std::uint32_t source, std::uint16_t source_port, std::uint32_t destination, std::uint16_t destination_port,
          std::string_view what, std::uint32_t number) {
  return make_frame(kUdp, source, destination, source_port, destination_port, concat(what, " ", number));
}

/// What a router outside says about `frame`, which is on its way to the server.
Frame unreachable(Frame const& frame) {
  nf::testing::PacketStore store(std::span(&frame, 1));
  const packet::Packet packet = store.all()[0];
  packet::make_icmp_error(packet, packet::kHostUnreachable, kRouterOutside);
  return {packet.frame(), packet.frame() + packet.length()};
}

/// What the chain sent. The source's and the sink's threads use it.
class Wire {
 public:
  void send(Frame frame) {
    const std::scoped_lock lock(mutex_);
    frames_.push_back(std::move(frame));
  }
  std::vector<Frame> frames() const {
    const std::scoped_lock lock(mutex_);
    return frames_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Frame> frames_;
};

class WireSink final : public io::Sink {
 public:
  explicit WireSink(std::shared_ptr<Wire> wire) : wire_(std::move(wire)) {}
  Status send(memory::PacketPool& pool, memory::Unit& unit) override {
    const packet::Batch batch = pool.batch(unit);
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      if (batch[i].verdict() != packet::Verdict::kDrop) {
        wire_->send({batch[i].frame(), batch[i].frame() + batch[i].length()});
        ++sent_;
      }
    }
    pool.release_slots(unit, 0, unit.count);
    return absl::OkStatus();
  }
  Status finish() override { return absl::OkStatus(); }
  io::SinkCounts counts() const override { return {sent_, {}}; }
  std::string describe() const override { return "wire"; }

 private:
  std::shared_ptr<Wire> wire_;
  Counter sent_;
};

/// Some frames, and once all of them have left what is made of these.
class TwoRounds final : public io::Source {
 public:
  using Second = std::function<std::vector<Frame>(std::vector<Frame> const&)>;
  TwoRounds(std::vector<Frame> first, Second second, std::shared_ptr<Wire> wire)
      : frames_(std::move(first)), second_(std::move(second)), wire_(std::move(wire)) {}

  Status receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index, bool& starved) override {
    if (next_ == frames_.size()) {
      const std::vector<Frame> sent = wire_->frames();
      if (sent.size() < frames_.size()) {
        return absl::OkStatus();
      }
      frames_ = second_(sent);
      next_ = 0;
      is_second_ = true;
    }
    constexpr std::size_t kUnitPackets = 48;
    const auto count = static_cast<std::uint32_t>(std::min(kUnitPackets, frames_.size() - next_));
    if (!pool.acquire_slots(unit, count)) {
      starved = true;
      return absl::OkStatus();
    }
    unit.count = count;
    for (const std::uint32_t slot : unit.used_slots()) {
      Frame const& frame = frames_[next_++];
      std::copy(frame.begin(), frame.end(), pool.slot(slot) + packet::kSlotHeadroom);
      pool.set_arrived(slot, static_cast<std::uint32_t>(frame.size()), next_index, next_index * 1000);
      ++next_index;
    }
    delivered_ += count;
    return absl::OkStatus();
  }
  bool finished() const override { return is_second_ && next_ == frames_.size(); }
  io::SourceCounts counts() const override { return {delivered_, {}}; }
  std::string describe() const override { return "two rounds"; }

 private:
  std::vector<Frame> frames_;
  Second second_;
  std::shared_ptr<Wire> wire_;
  std::size_t next_ = 0;
  bool is_second_ = false;
  Counter delivered_;
};

struct Placed {
  std::uint32_t shards;
  std::uint32_t gpu_mask;
  std::string device;
};

/// What left after the datagrams of all hosts went out, and what is made of them came in.
std::vector<Frame> run_two_rounds(std::vector<NfText> const& nfs, Placed const& placed, TwoRounds::Second second) {
  const ChainRun chain{nfs, placed.gpu_mask, clear_traffic()[0].capture, placed.device,
                       fmt::format("  shards: {}\n", placed.shards)};
  Result<chain::ChainConfig> config =
      chain::parse_chain(chain_text(chain, (scratch_folder() / "wire.pcap").string()), data_file("chain/test.yaml"));
  EXPECT_TRUE(config.ok()) << config.status();
  const auto wire = std::make_shared<Wire>();
  runtime::RunOptions options;
  options.workers = 3;
  options.make_source = [&]() -> Result<std::unique_ptr<io::Source>> {
    std::vector<Frame> out;
    for (std::uint32_t i = 0; i < kHosts; ++i) {
      out.push_back(udp(host(i), host_port(i), kServer, kServerPort, "out", i));
    }
    return std::make_unique<TwoRounds>(std::move(out), second, wire);
  };
  options.make_sink = [&]() -> Result<std::unique_ptr<io::Sink>> { return std::make_unique<WireSink>(wire); };
  auto session = runtime::Session::create(*std::move(config), options, nf::builtin_nfs());
  EXPECT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE((*session)->run().ok());
  EXPECT_TRUE((*session)->report().accounted());
  EXPECT_EQ((*session)->report().rx.slots_in_use, 0U);
  std::vector<Frame> sent = wire->frames();
  return {sent.begin() + std::min<std::ptrdiff_t>(kHosts, std::ssize(sent)), sent.end()};
}

/// For each host an answer, an error about its datagram, and a datagram that another host sends to where it seems to
/// be.
std::vector<Frame> round_of(std::vector<Frame> const& out, std::map<std::uint32_t, Ends>& outside) {
  std::vector<Frame> in;
  for (Frame const& frame : out) {
    const Ends ends = ends_of(frame);
    const Text text = text_of(frame);
    outside[text.number] = ends;
    EXPECT_EQ(ends.destination, kServer);
    EXPECT_EQ(ends.source >> 8U, 0xCB0071U) << "203.0.113.x";
    in.push_back(udp(kServer, kServerPort, ends.source, ends.source_port, "answer", text.number));
    in.push_back(unreachable(frame));
    in.push_back(udp(host((text.number + 1) % kHosts), 9000, ends.source, ends.source_port, "hairpin", text.number));
  }
  return in;
}

void expect_delivered(std::vector<Frame> const& delivered, std::map<std::uint32_t, Ends> const& outside,
                      std::string const& what) {
  std::map<std::string, std::uint32_t> seen;
  for (Frame const& frame : delivered) {
    const bool is_error = frame[kL3 + 9] == 1;
    const Ends ends = ends_of(frame, is_error ? kQuote : kL3);
    const Text text = text_of(frame, is_error ? kQuote : kL3);
    ++seen[text.what];
    if (is_error) {
      EXPECT_EQ(ends, (Ends{host(text.number), host_port(text.number), kServer, kServerPort})) << what;
      EXPECT_EQ(packet::load_be32(&frame[kL3 + 16]), host(text.number)) << what;
      EXPECT_EQ(packet::load_be32(&frame[kL3 + 12]), kRouterOutside) << what;
      continue;
    }
    EXPECT_EQ(ends.destination, host(text.number)) << what;
    EXPECT_EQ(ends.destination_port, host_port(text.number)) << what;
    if (text.what == "answer") {
      EXPECT_EQ(ends.source, kServer) << what;
      EXPECT_EQ(ends.source_port, kServerPort) << what;
    } else {
      // RFC 4787, REQ-9: by its external address, which is one for all that a host sends
      EXPECT_EQ(ends.source, outside.at((text.number + 1) % kHosts).source) << what;
    }
  }
  EXPECT_EQ(outside.size(), kHosts) << what;
  EXPECT_EQ(seen, (std::map<std::string, std::uint32_t>{{"answer", kHosts}, {"out", kHosts}, {"hairpin", kHosts}}))
      << what;
}

/// In front of the NAT and behind it: NFs that share its shards, and such as want others.
TEST(NatInShards, brings_answers_errors_and_hairpinned_packets_to_their_hosts) {
  const NfText mark{"dscp", "remark", "map: [{from: 0, to: 10}]"};
  const std::vector<std::vector<NfText>> chains{{mark, kNat}, {kMonitor, kNat, mark}, {kNat, kMonitor}};
  std::vector<std::string> devices{"none"};
  devices.insert(devices.end(), device_names().begin(), device_names().end());
  for (std::vector<NfText> const& nfs : chains) {
    const std::uint32_t all = (1U << nfs.size()) - 1;
    for (std::string const& device : devices) {
      for (const std::uint32_t shards : {1U, 3U, 8U}) {
        std::map<std::uint32_t, Ends> outside;
        const auto second = [&outside](std::vector<Frame> const& out) { return round_of(out, outside); };
        const std::uint32_t mask = device == "none" ? 0 : all;
        const std::vector<Frame> delivered = run_two_rounds(nfs, {shards, mask, device}, second);
        expect_delivered(delivered, outside,
                         fmt::format("{} NFs from {}, {} shards, {}", nfs.size(), nfs[0].name, shards, device));
      }
    }
  }
}

}  // namespace
}  // namespace catena::testing
