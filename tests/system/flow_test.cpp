// SPDX-License-Identifier: Apache-2.0
// Chains that get more than they can do: with back-pressure nothing is lost inside, and what is lost at all is lost at
// rx, for those ways alone that are too slow.
#include "system/chain_runner.hpp"

#include "pipeline/counts.hpp"
#include "pipeline/session.hpp"
#include "pipeline/testing/faulty_relay.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <catena/core/text.hpp>

#include <atomic>
#include <chrono>
#include <deque>
#include <fstream>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace catena::testing {
namespace {

/// An NF that needs a given time for each packet.
class Busy final : public nf::Nf {
 public:
  explicit Busy(std::chrono::nanoseconds a_packet) : a_packet_(a_packet) {}
  nf::Hints hints() const override { return {}; }
  void compute(packet::Batch const& batch, std::span<const std::byte> /*aux*/,
               std::span<std::byte> /*results*/) override {
    const auto end = std::chrono::steady_clock::now() + a_packet_ * batch.size();
    while (std::chrono::steady_clock::now() < end) {
    }
  }

 private:
  std::chrono::nanoseconds a_packet_;
};

Result<std::unique_ptr<nf::Nf>> make_busy(nf::Config& config) {
  CATENA_ASSIGN_OR_RETURN(const std::int64_t ns, config.integer("ns", 0, 1'000'000));
  CATENA_RETURN_IF_ERROR(config.finish());
  return std::make_unique<Busy>(std::chrono::nanoseconds(ns));
}

nf::Registry const& with_busy() {
  static const nf::Descriptor kBusy{.type = "busy",
                                    .help = "takes its time",
                                    .needs = 0,
                                    .drop_reasons = {},
                                    .config = {},
                                    .sharding = nf::Sharding::kPacket,
                                    .create = &make_busy};
  static const nf::Registry kRegistry = [] {
    nf::Registry registry = nf::builtin_nfs();
    EXPECT_TRUE(registry.add(kBusy).ok());
    return registry;
  }();
  return kRegistry;
}

/// A generator that cannot wait, as a port.
class LiveGenerator final : public io::Source {
 public:
  explicit LiveGenerator(std::uint64_t packets) : inner_(*io::make_generator({.flows = 64, .count = packets})) {}
  Status receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index, bool& starved) override {
    return inner_->receive(pool, unit, next_index, starved);
  }
  bool finished() const override { return inner_->finished(); }
  io::SourceCounts counts() const override { return inner_->counts(); }
  std::string describe() const override { return "live generator"; }
  std::optional<io::LiveClock> live_clock() const override { return clock_; }

 private:
  std::unique_ptr<io::Source> inner_;
  io::LiveClock clock_;
};

/// A chain with `spec`, and with an rx that has `packets` packets as fast as the chain takes them. Null after an error.
std::unique_ptr<runtime::Session> session_of(std::string const& spec, std::uint64_t packets, bool is_live,
                                             std::uint32_t workers = 2, std::string const& device = "none") {
  Result<chain::ChainConfig> config = chain::parse_chain(
      concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: flow}\nspec:\n  rx: {generator: {flows: 64, count: ",
             packets, "}}\n  tx: null\n  device: ", device, "\n", spec),
      data_file("chain/test.yaml"));
  EXPECT_TRUE(config.ok()) << config.status();
  runtime::RunOptions options;
  options.workers = workers;
  if (is_live) {
    options.make_source = [packets]() -> Result<std::unique_ptr<io::Source>> {
      return std::make_unique<LiveGenerator>(packets);
    };
  }
  auto session = runtime::Session::create(*std::move(config), options, with_busy());
  EXPECT_TRUE(session.ok()) << session.status();
  return session.ok() ? *std::move(session) : nullptr;
}

/// Runs such a chain to its end.
runtime::Report run(std::string const& spec, std::uint64_t packets, bool is_live, std::uint32_t workers = 2,
                    std::string const& device = "none") {
  const auto session = session_of(spec, packets, is_live, workers, device);
  if (session == nullptr) {
    return {};
  }
  EXPECT_TRUE(session->run().ok());
  runtime::Report report = session->report();
  EXPECT_TRUE(report.accounted()) << to_text(report);
  EXPECT_EQ(report.rx.slots_in_use, 0U);
  return report;
}

std::uint64_t lost_inside(runtime::Report const& report) {
  std::uint64_t lost = 0;
  for (runtime::NfReport const& nf : report.nfs) {
    lost += nf.queue.drops;
    for (io::NamedCount const& drop : nf.packets.drops) {
      lost += drop.count;
    }
  }
  return lost;
}

TEST(BackPressure, loses_nothing_in_front_of_a_slow_nf) {
  constexpr std::uint64_t kPackets = 40'000;
  const std::string nfs =
      "  nfs:\n    - {name: a, type: busy, config: {ns: 0}}\n"
      "    - {name: b, type: busy, config: {ns: 200}}\n    - {name: c, type: busy, config: {ns: 2000}}\n";
  for (const std::uint32_t workers : {1U, 2U, 4U}) {
    const runtime::Report report = run("  flow: {}\n" + nfs, kPackets, true, workers);
    EXPECT_EQ(report.tx.sent, kPackets);
    EXPECT_EQ(lost_inside(report), 0U) << to_text(report);
    if (workers > 1) {  // one alone goes from NF to NF: little waits
      EXPECT_GT(report.nfs[2].queue.slow_downs, 0U) << to_text(report);
      EXPECT_GT(report.nfs[1].queue.pauses, 0U);
    }
    // a batch of each worker's may be under way when the ring is full
    EXPECT_LE(report.nfs[2].queue.peak, 717U + 256U) << "as its limit says, and not as memory has room";
  }
  const runtime::Report vanilla = run("  flow: {mode: vanilla}\n" + nfs, kPackets, true);
  EXPECT_GT(lost_inside(vanilla), kPackets / 10) << "what others do";
  EXPECT_LE(vanilla.nfs[2].packets.in, vanilla.nfs[1].packets.in);
}

TEST(BackPressure, loses_nothing_where_ways_meet_and_nfs_are_on_a_device) {
  const std::string chain =
      "  flow: {}\n  tuning: {pool_slots: 65536}\n  nfs:\n"
      "    - {name: fw, type: firewall, on: gpu, config: {rules: fw.rules, default: allow}}\n"
      "    - {name: slow, type: busy, config: {ns: 1000}}\n    - {name: copies, type: busy, config: {ns: 500}}\n"
      "    - {name: rt, type: router, on: gpu, config: {routes: routes.txt}}\n"
      "  graph:\n    - {from: rx, to: fw}\n    - {from: fw, match: {dport: 0-1023}, to: {mirror: copies}}\n"
      "    - {from: fw, match: {protocol: udp}, to: slow}\n    - {from: fw, to: rt}\n    - {from: slow, to: rt}\n"
      "    - {from: rt, to: tx}\n  unmatched: drop\n";
  for (std::string const& device : device_names()) {
    const runtime::Report report = run(chain, 60'000, false, 2, device);
    EXPECT_EQ(report.rx.seen, 60'000U);
    for (runtime::NfReport const& nf : report.nfs) {
      EXPECT_EQ(nf.queue.drops, 0U) << nf.name;
      EXPECT_EQ(nf.device.launches > 0, nf.type == "firewall" || nf.type == "router") << nf.name;
    }
    EXPECT_GT(report.nfs[1].queue.slow_downs + report.nfs[1].queue.peak, 0U);
  }
}

TEST(BackPressure, a_slow_way_does_not_starve_a_fast_one) {
  constexpr std::uint64_t kPackets = 200'000;
  const runtime::Report report =
      run("  flow: {}\n  nfs:\n    - {name: fast, type: busy, config: {ns: 500}}\n"
          "    - {name: slow, type: busy, config: {ns: 50000}}\n"
          "  graph:\n    - {from: rx, match: {protocol: udp}, to: slow}\n    - {from: rx, to: fast}\n"
          "    - {from: [slow, fast], to: tx}\n",
          kPackets, true, 4);
  const auto in = [&report](std::size_t nf) { return report.nfs[nf].packets.in; };
  ASSERT_EQ(report.nfs[1].name, "slow");
  EXPECT_EQ(in(0), kPackets / 2) << "all that is for the fast one comes to it";
  EXPECT_LT(in(1), kPackets / 4) << "of what is for the slow one, what it can do: not as much as for the other";
  EXPECT_GT(in(1), 700U);
  EXPECT_EQ(lost_inside(report), 0U);
  ASSERT_EQ(report.rx.drops.size(), 1U);
  EXPECT_EQ(report.rx.drops[0].name, "backlog_full");
  EXPECT_EQ(report.rx.drops[0].count, kPackets - in(0) - in(1)) << "the rest was lost at rx, before any work";
}

TEST(BackPressure, a_source_that_can_wait_waits_for_the_slow_way) {
  constexpr std::uint64_t kPackets = 20'000;
  const runtime::Report report =
      run("  flow: {}\n  nfs:\n    - {name: fast, type: busy, config: {ns: 100}}\n"
          "    - {name: slow, type: busy, config: {ns: 5000}}\n"
          "  graph:\n    - {from: rx, match: {protocol: udp}, to: slow}\n    - {from: rx, to: fast}\n"
          "    - {from: [slow, fast], to: tx}\n",
          kPackets, false, 2);
  EXPECT_EQ(report.tx.sent, kPackets);
  EXPECT_EQ(report.dropped(), 0U);
}

TEST(BackPressure, vanilla_runs_in_one_shard) {
  Result<chain::ChainConfig> config = chain::parse_chain(
      concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: flow}\nspec:\n  rx: {generator: {count: 10}}\n",
             "  tx: {pcap: ", (scratch_folder() / "out.pcap").string(), "}\n  shards: 2\n  flow: {mode: vanilla}\n",
             "  nfs: [{name: a, type: busy, config: {ns: 0}}]\n"),
      "c.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(std::string(runtime::Session::create(*std::move(config), {}, with_busy()).status().message()),
              ::testing::HasSubstr("c.yaml:8:9: 'flow' is vanilla, which is for comparisons and runs in one shard"));
}

/// What is between two hosts, and the queue of the second one's port: packets that do not fit are lost.
class Wire {
 public:
  explicit Wire(std::size_t room) : room_(room) {}
  void put(std::vector<std::uint8_t> frame) {
    const std::lock_guard lock(mutex_);
    if (frames_.size() == room_) {
      ++lost_;
      return;
    }
    frames_.push_back(std::move(frame));
  }
  std::deque<std::vector<std::uint8_t>> take(std::size_t most) {
    const std::lock_guard lock(mutex_);
    std::deque<std::vector<std::uint8_t>> taken;
    for (; !frames_.empty() && taken.size() < most; frames_.pop_front()) {
      taken.push_back(std::move(frames_.front()));
    }
    return taken;
  }
  void end() { is_over_ = true; }
  bool is_over() {
    const std::lock_guard lock(mutex_);
    return is_over_ && frames_.empty();
  }
  std::uint64_t lost() {
    const std::lock_guard lock(mutex_);
    return lost_;
  }

 private:
  std::size_t room_;
  std::mutex mutex_;
  std::deque<std::vector<std::uint8_t>> frames_;
  std::uint64_t lost_ = 0;
  std::atomic<bool> is_over_{false};
};

class WireSink final : public io::Sink {
 public:
  explicit WireSink(Wire& wire) : wire_(&wire) {}
  Status send(memory::PacketPool& pool, memory::Unit& unit) override {
    for (const std::uint32_t slot : unit.used_slots()) {
      if (static_cast<packet::Verdict>(pool.meta().verdict[slot]) != packet::Verdict::kDrop) {
        auto const* const bytes = pool.slot(slot) + packet::kSlotHeadroom;
        wire_->put({bytes, bytes + pool.meta().length[slot]});
        sent_ += 1;
      }
    }
    pool.release_slots(unit.used_slots());
    return absl::OkStatus();
  }
  Status finish() override {
    wire_->end();
    return absl::OkStatus();
  }
  io::SinkCounts counts() const override { return {.sent = sent_, .drops = {}, .fragments = 0}; }
  std::string describe() const override { return "wire"; }

 private:
  Wire* wire_;
  std::atomic<std::uint64_t> sent_{0};
};

class WireSource final : public io::Source {
 public:
  explicit WireSource(Wire& wire) : wire_(&wire) {}
  Status receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index, bool& starved) override {
    if (pool.free_slots() < pool.unit_packets()) {
      starved = true;
      return absl::OkStatus();
    }
    const auto frames = wire_->take(pool.unit_packets());
    if (frames.empty() || !pool.acquire_slots(unit, static_cast<std::uint32_t>(frames.size()))) {
      EXPECT_TRUE(frames.empty());
      return absl::OkStatus();
    }
    unit.count = static_cast<std::uint32_t>(frames.size());
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const std::uint32_t slot = unit.slots()[i];
      std::ranges::copy(frames[i], pool.slot(slot) + packet::kSlotHeadroom);
      pool.set_arrived(slot, static_cast<std::uint32_t>(frames[i].size()), next_index++, 0);
      ++seen_;
    }
    return absl::OkStatus();
  }
  bool finished() const override { return wire_->is_over(); }
  io::SourceCounts counts() const override { return {.seen = seen_, .drops = {}}; }
  std::string describe() const override { return "wire"; }
  std::optional<io::LiveClock> live_clock() const override { return clock_; }

 private:
  Wire* wire_;
  std::atomic<std::uint64_t> seen_{0};
  io::LiveClock clock_;
};

/// A chain of one NF whose rx or tx is the wire.
std::unique_ptr<runtime::Session> chain_at(Wire& wire, bool is_first, std::uint64_t packets, std::uint32_t busy_ns,
                                           std::string const& flow) {
  Result<chain::ChainConfig> config = chain::parse_chain(
      concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: flow}\nspec:\n  rx: {generator: {count: ", packets,
             "}}\n  tx: null\n  device: none\n  flow: ", flow, "\n  nfs: [{name: a, type: busy, config: {ns: ", busy_ns,
             "}}]\n"),
      (scratch_folder() / "chain.yaml").string());
  EXPECT_TRUE(config.ok()) << config.status();
  runtime::RunOptions options;
  if (is_first) {
    options.make_sink = [&wire]() -> Result<std::unique_ptr<io::Sink>> { return std::make_unique<WireSink>(wire); };
  } else {
    options.make_source = [&wire]() -> Result<std::unique_ptr<io::Source>> {
      return std::make_unique<WireSource>(wire);
    };
  }
  auto session = runtime::Session::create(*std::move(config), options, with_busy());
  EXPECT_TRUE(session.ok()) << session.status();
  return *std::move(session);
}

TEST(BackPressure, crosses_hosts_whatever_becomes_of_its_datagrams) {
  constexpr std::uint64_t kPackets = 200'000;
  constexpr std::size_t kRoom = 65'536;
  constexpr std::uint32_t kFirstNs = 2'500;    // 400,000 packets a second: the wire has room for 160 ms
  constexpr std::uint32_t kSecondNs = 10'000;  // a quarter of them
  constexpr std::uint32_t kFaults = 10;        // of 1,000 datagrams as many are lost, repeated, and late
  std::ofstream(scratch_folder() / "key") << "00112233445566778899aabbccddeeff\n";
  for (const bool is_told : {true, false}) {
    const std::uint16_t port = runtime::testing::free_udp_port();
    runtime::testing::FaultyRelay relay(port, kFaults);
    Wire wire(is_told ? kRoom : kRoom / 16);  // what is lost without signals does not wait for room first
    const auto signals = [](const char* key, std::uint16_t at) {
      return concat("{signals: {key: key, ", key, ": '127.0.0.1:", at, "'}}");
    };
    const auto second = chain_at(wire, false, 1, kSecondNs, is_told ? signals("listen", port) : "{}");
    const auto first = chain_at(wire, true, kPackets, kFirstNs, is_told ? signals("downstream", relay.port()) : "{}");
    if (is_told) {  // who sends before anybody answers is not told
      const auto asks = [&second] { return second->counts().sum(runtime::counts::kFlowAskers, {}); };
      for (int i = 0; i < 10'000 && asks() == 0; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      ASSERT_EQ(asks(), 1U);
    }
    auto other = std::async(std::launch::async, [&second] { return second->run(); });
    EXPECT_TRUE(first->run().ok());
    EXPECT_TRUE(other.get().ok());
    EXPECT_EQ(first->report().tx.sent, kPackets);
    EXPECT_EQ(second->report().tx.sent + wire.lost(), kPackets);
    if (is_told) {
      EXPECT_EQ(wire.lost(), 0U);
      EXPECT_GT(relay.lost() * relay.repeated() * relay.delayed(), 0U);
      EXPECT_GT(first->report().nfs[0].queue.pauses, 0U);
    } else {
      EXPECT_GT(wire.lost(), kPackets / 10) << "what it is for";
    }
  }
}

TEST(BackPressure, counts_how_long_rx_was_paused) {
  const auto session = session_of("  flow: {}\n  nfs: [{name: a, type: busy, config: {ns: 5000}}]\n", 40'000, false);
  ASSERT_NE(session, nullptr);
  EXPECT_TRUE(session->run().ok());
  const metrics::Snapshot counts = session->counts();
  const double paused = static_cast<double>(counts.sum(runtime::counts::kRxPausedTime)) / 1e9;
  EXPECT_GT(paused, session->report().seconds / 10) << "rx is much faster than the NF";
  EXPECT_LE(paused, session->report().seconds);
  EXPECT_EQ(counts.sum(runtime::counts::kRxPaused), 0U) << "nobody waits after the end";
}

}  // namespace
}  // namespace catena::testing
