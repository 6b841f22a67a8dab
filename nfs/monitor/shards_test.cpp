// SPDX-License-Identifier: Apache-2.0
// Several monitors that divide packets among them export what one does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <catena/core/text.hpp>
#include <catena/nf/testing/migration.hpp>
#include <catena/nf/testing/oracle.hpp>
#include <catena/nf/testing/packet_store.hpp>
#include <catena/packet/headers.hpp>
#include <catena/packet/testing/traffic.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <thread>

#include "group.hpp"
#include "ipfix_testing.hpp"
#include "monitor_testing.hpp"

namespace catena::monitor::testing {
namespace {

using nf::testing::Frame;
using nf::testing::make_frame;
using nf::testing::with_fragment;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::string_view kYaml =
    "active_timeout_s: 10\ntop: 20\n"
    "export: [{format: json, file: flows.jsonl}, {format: ipfix, file: flows.ipfix}]\n";

struct Traffic {
  std::vector<Frame> frames;
  std::vector<std::uint64_t> arrivals_ns;
};

/// An ICMP error of this code from a router, about a packet of any flow.
Frame make_error(std::uint32_t src, std::uint32_t dst, std::uint8_t code, std::uint16_t quoted_port) {
  const Frame about = make_frame(6, dst, src, quoted_port, 80, "data");
  return nf::testing::make_icmp(3, code, src, dst, 0, nf::testing::quote_of(about, 8));
}

/// Flows of all kinds in both directions, with pauses about as long as the time-outs, in the order of time.
Traffic mixed_traffic(std::size_t packets) {
  auto random = [engine = std::mt19937(17)]() mutable { return static_cast<std::uint32_t>(engine()); };
  const std::vector<Frame> others = packet::testing::frames_of_every_kind();
  Traffic traffic;
  std::uint64_t now_ns = 1'700'000'000 * kTestSecond;
  for (std::size_t i = 0; i < packets; ++i) {
    const std::uint32_t host = 0x0A000000 + random() % 30;
    const std::uint32_t server = 0x0B000000 + random() % 3;
    const bool is_busy = random() % 8 == 0;  // one flow goes on all the time
    const std::uint16_t port = is_busy ? std::uint16_t{1} : static_cast<std::uint16_t>(2 + random() % 5);
    const std::uint8_t protocol = is_busy || random() % 2 == 0 ? 6 : 17;
    const std::string payload(random() % 200, 'x');
    const Frame request =
        make_frame(protocol, is_busy ? 0x0A000000 : host, is_busy ? 0x0B000000 : server, port, 80, payload);
    const std::vector<Frame> kinds{
        request,
        request,
        make_frame(protocol, server, host, 80, port, payload),
        with_fragment(request, 0x2000),
        with_fragment(request, 0x0010),
        nf::testing::make_echo(host, server, static_cast<std::uint16_t>(random() % 9), 1, payload),
        make_error(host, server, static_cast<std::uint8_t>(random() % 2), port),
        make_frame(17, 0x0C000000 + static_cast<std::uint32_t>(i), server, 53, 53, ""),  // a flood
        others[random() % others.size()],
    };
    traffic.frames.push_back(is_busy ? request : kinds[random() % kinds.size()]);
    now_ns += random() % 300 == 0 ? random() % (20 * kTestSecond) : random() % 20'000'000;
    traffic.arrivals_ns.push_back(now_ns);
  }
  return traffic;
}

/// Monitors that divide packets among them, each in a thread of its own.
class ShardedMonitor {
 public:
  ShardedMonitor(std::string_view yaml, std::string const& folder, std::uint32_t count) {
    auto config = nf::Config::parse(yaml, folder + "/test.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    config->set_shard({0, count});
    add(catena_nf_monitor().create(*config));
    for (std::uint32_t i = 1; i < count; ++i) {
      add(instances_.front()->nf().replicate(i));
    }
    sharder_ = instances_.front()->nf().sharder();
  }

  /// The sharder is one round ahead of the monitors.
  void process(Traffic const& traffic) {
    constexpr std::size_t kRound = 3000;
    std::vector<std::thread> threads;
    for (std::size_t first = 0; first < traffic.frames.size(); first += kRound) {
      std::vector<Traffic> parts = divide(traffic, first, std::min(kRound, traffic.frames.size() - first));
      join(threads);
      for (std::size_t shard = 0; shard < parts.size(); ++shard) {
        threads.emplace_back([this, shard, part = std::move(parts[shard])] {
          nf::testing::PacketStore store(part.frames, part.arrivals_ns);
          for (std::size_t at = 0; at < store.size(); at += 50) {
            instances_[shard]->process(store.batch(at, std::min<std::size_t>(50, store.size() - at)));
          }
        });
      }
    }
    join(threads);
  }
  void finish() {
    for (auto const& instance : instances_) {
      EXPECT_TRUE(instance->nf().finish().ok());
    }
  }
  /// Takes the place of monitors in any number of shards.
  void take_over(ShardedMonitor& before) {
    const Status ready = nf::testing::prepare_migration(before.all(), all());
    ASSERT_TRUE(ready.ok()) << ready;
    nf::testing::migrate_state(before.all(), all());
  }
  nf::Nf& monitor(std::size_t shard) { return instances_[shard]->nf(); }
  nf::Sharder& sharder() { return *sharder_; }
  /// Added up, as the framework does.
  std::uint64_t statistic(std::string_view name) const {
    std::uint64_t sum = 0;
    for (auto const& instance : instances_) {
      for (nf::Statistic const& entry : instance->nf().statistics()) {
        sum += entry.name == name ? entry.value : 0;
      }
    }
    return sum;
  }

  /// Instead of the sharder: packets in turn.
  bool ignores_sharder = false;

 private:
  std::vector<nf::Nf*> all() const {
    std::vector<nf::Nf*> all;
    for (auto const& instance : instances_) {
      all.push_back(&instance->nf());
    }
    return all;
  }
  void add(Result<std::unique_ptr<nf::Nf>> made) {
    ASSERT_TRUE(made.ok()) << made.status();
    instances_.push_back(std::make_unique<nf::testing::CpuNf>(catena_nf_monitor(), *std::move(made)));
  }
  std::vector<Traffic> divide(Traffic const& traffic, std::size_t first, std::size_t count) {
    nf::testing::PacketStore store(std::span(traffic.frames).subspan(first, count));
    std::vector<Traffic> parts(instances_.size());
    for (std::uint32_t i = 0; i < count; ++i) {
      const packet::Packet packet = store.all()[i];
      const bool asks = !ignores_sharder && packet.is(packet::kIpv4);
      Traffic& part = parts[asks ? sharder_->shard_of(packet).value() : i % parts.size()];
      part.frames.push_back(traffic.frames[first + i]);
      part.arrivals_ns.push_back(traffic.arrivals_ns[first + i]);
    }
    return parts;
  }
  static void join(std::vector<std::thread>& threads) {
    for (std::thread& thread : threads) {
      thread.join();
    }
    threads.clear();
  }

  std::vector<std::unique_ptr<nf::testing::CpuNf>> instances_;
  std::unique_ptr<nf::Sharder> sharder_;
};

std::vector<std::string> sorted_lines(std::string const& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

/// What one monitor makes of the traffic, without a sharder.
struct One {
  One(std::string_view yaml, Traffic const& traffic, ScratchFolder const& folder) {
    auto made = nf::testing::make_nf(catena_nf_monitor(), yaml, folder.path());
    EXPECT_TRUE(made.ok()) << made.status();
    nf::testing::CpuNf instance(catena_nf_monitor(), *std::move(made));
    nf::testing::PacketStore store(traffic.frames, traffic.arrivals_ns);
    instance.process(store.all());
    EXPECT_TRUE(instance.nf().finish().ok());
    records = sorted_lines(folder.read("flows.jsonl"));
    testing::remove_flows(folder);
    report = instance.nf().end_report();
    for (nf::Statistic const& entry : instance.nf().statistics()) {
      statistics[entry.name] = entry.value;
    }
  }
  std::vector<std::string> records;
  std::vector<std::string> report;
  std::map<std::string, std::uint64_t> statistics;
};

class Sharded : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  ScratchFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Counts, Sharded, ::testing::Values(1U, 2U, 3U, 8U));

TEST_P(Sharded, records_top_talkers_and_counts_are_those_of_one) {
  const Traffic traffic = mixed_traffic(30'000);
  const One one(kYaml, traffic, folder_);
  ASSERT_THAT(one.records, SizeIs(::testing::Gt(10'000U)));
  for (const std::string_view reason : {"idle", "active", "forced_end"}) {
    EXPECT_THAT(one.records, ::testing::Contains(HasSubstr(reason)));
  }

  ShardedMonitor sharded(kYaml, folder_.path(), GetParam());
  sharded.process(traffic);
  sharded.finish();
  EXPECT_EQ(sorted_lines(folder_.read("flows.jsonl")), one.records);
  EXPECT_EQ(sharded.monitor(0).end_report(), one.report);
  EXPECT_THAT(one.report, SizeIs(20));
  for (std::uint32_t shard = 1; shard < GetParam(); ++shard) {
    EXPECT_THAT(sharded.monitor(shard).end_report(), IsEmpty());
  }
  for (const std::string_view name : {"flows", "flows_exported", "flows_evicted", "export_errors"}) {
    EXPECT_EQ(sharded.statistic(name), one.statistics.at(std::string(name))) << name;
  }
  EXPECT_GE(sharded.statistic("flows_peak"), one.statistics.at("flows_peak"));
}

TEST_P(Sharded, ipfix_holds_the_records_of_the_json_lines_in_one_sequence) {
  if (!nf::testing::can_import("scapy.layers.netflow")) {
    GTEST_SKIP() << "python3-scapy is not installed";
  }
  ShardedMonitor sharded(kYaml, folder_.path(), GetParam());
  sharded.process(mixed_traffic(4000));
  sharded.finish();
  const auto result =
      nf::testing::run_oracle("monitor", "scapy_ipfix.py", {folder_.path("flows.ipfix"), folder_.path("flows.jsonl")});
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr(concat(sharded.statistic("flows_exported"), " records")));
}

TEST_P(Sharded, a_collector_gets_all_records_from_one_socket_in_one_sequence) {
  const Receiver receiver;
  ShardedMonitor sharded(concat("export: [{format: ipfix, udp: '127.0.0.1:", receiver.port(), "'}]"), folder_.path(),
                         GetParam());
  sharded.process(mixed_traffic(1000));
  sharded.finish();
  Collector collector;
  std::uint64_t records = 0;
  for (Bytes const& datagram : receiver.take()) {
    const Message message = collector.decode(datagram);
    ASSERT_EQ(message.sequence, records);
    records += message.records.size();
  }
  EXPECT_EQ(records, sharded.statistic("flows_exported"));
  EXPECT_GT(records, 100U);
}

TEST_P(Sharded, templates_come_in_time_whichever_shard_exports) {
  Traffic traffic;
  for (std::uint32_t src = 0; src < 200; ++src) {
    traffic.frames.push_back(make_frame(17, src, 9, 1, 1, ""));
    traffic.arrivals_ns.push_back((1'000 + 25 * src) * kTestSecond);
  }
  const Receiver receiver;
  ShardedMonitor sharded(
      concat("export: [{format: ipfix, udp: '127.0.0.1:", receiver.port(), "', template_refresh: 1000000}]"),
      folder_.path(), GetParam());
  sharded.process(traffic);
  sharded.finish();
  Collector collector;
  std::uint64_t records = 0;
  std::uint32_t templates_at = 0;
  for (Bytes const& datagram : receiver.take()) {
    const Message message = collector.decode(datagram);
    templates_at = message.templates > 0 ? message.export_time : templates_at;
    EXPECT_LT(message.export_time - templates_at, 600U);
    records += message.records.size();
  }
  EXPECT_EQ(records, 200U);
}

TEST_P(Sharded, whether_a_flow_was_idle_at_the_end_is_decided_by_the_last_packet_of_all) {
  Traffic traffic;
  for (std::uint32_t src = 0; src < 100; ++src) {
    traffic.frames.push_back(make_frame(17, src, 9, 1, 1, ""));
    traffic.arrivals_ns.push_back(src * kTestSecond / 4);
  }
  const One one(kYaml, traffic, folder_);
  ShardedMonitor sharded(kYaml, folder_.path(), GetParam());
  sharded.process(traffic);
  sharded.finish();
  EXPECT_EQ(sorted_lines(folder_.read("flows.jsonl")), one.records);
  EXPECT_EQ(std::ranges::count_if(one.records, [](std::string const& line) { return line.find("idle") != line.npos; }),
            40);
}

TEST_P(Sharded, max_flows_is_for_all_together) {
  ShardedMonitor sharded("max_flows: 20\n", folder_.path(), GetParam());
  Traffic traffic;
  for (std::uint32_t src = 0; src < 1000; ++src) {
    traffic.frames.push_back(make_frame(17, src, 9, 1, 1, ""));
    traffic.arrivals_ns.push_back(src);
  }
  sharded.process(traffic);
  EXPECT_EQ(sharded.statistic("flows_peak"), 20U);
  EXPECT_EQ(sharded.statistic("flows_evicted"), 980U);
}

TEST(ChangeOfShards, records_top_talkers_and_counts_are_those_of_one) {
  const ScratchFolder folder;
  const Traffic traffic = mixed_traffic(30'000);
  const One one(kYaml, traffic, folder);
  constexpr std::array kCounts{1U, 3U, 1U, 4U, 2U, 2U, 16U, 3U};
  const std::size_t part = traffic.frames.size() / kCounts.size();
  auto sharded = std::make_unique<ShardedMonitor>(kYaml, folder.path(), 2);
  for (std::size_t i = 0; i < kCounts.size(); ++i) {
    auto next = std::make_unique<ShardedMonitor>(kYaml, folder.path(), kCounts[i]);
    const std::uint64_t peak = sharded->statistic("flows_peak");
    next->take_over(*sharded);
    EXPECT_EQ(next->statistic("flows_peak"), peak);
    sharded = std::move(next);
    const auto first = static_cast<std::ptrdiff_t>(i * part);
    const auto end = i + 1 == kCounts.size() ? std::ssize(traffic.frames) : first + static_cast<std::ptrdiff_t>(part);
    sharded->process({{traffic.frames.begin() + first, traffic.frames.begin() + end},
                      {traffic.arrivals_ns.begin() + first, traffic.arrivals_ns.begin() + end}});
  }
  sharded->finish();
  EXPECT_EQ(sorted_lines(folder.read("flows.jsonl")), one.records);
  EXPECT_EQ(sharded->monitor(0).end_report(), one.report);
  for (const std::string_view name : {"flows", "flows_exported", "flows_evicted", "export_errors"}) {
    EXPECT_EQ(sharded->statistic(name), one.statistics.at(std::string(name))) << name;
  }
  const std::string ipfix = folder.read("flows.ipfix");
  Collector collector;
  std::uint64_t records = 0;
  for (std::size_t at = 0; at < ipfix.size();) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&ipfix[at]);
    const Message message = collector.decode(Bytes(bytes, bytes + packet::load_be16(bytes + 2)));
    ASSERT_EQ(message.sequence, records);
    records += message.records.size();
    at += message.length;
  }
  EXPECT_EQ(records, one.records.size());
}

TEST_P(Sharded, a_quiet_live_link_exports_the_records_of_every_shard) {
  ShardedMonitor sharded(kYaml, folder_.path(), GetParam());
  Traffic traffic;
  for (std::uint32_t src = 0; src < 40; ++src) {
    traffic.frames.push_back(make_frame(17, src, 9, 1, 1, ""));
    traffic.arrivals_ns.push_back(kTestSecond);
  }
  sharded.process(traffic);
  for (std::uint64_t second = 2; second <= 18; ++second) {
    for (std::uint32_t shard = 0; shard < GetParam(); ++shard) {
      sharded.monitor(shard).tick(second * kTestSecond);
    }
  }
  EXPECT_THAT(sorted_lines(folder_.read("flows.jsonl")), SizeIs(40));
}

TEST(Shards, another_number_of_shards_gives_other_records) {
  const ScratchFolder folder;
  const Traffic traffic = mixed_traffic(2000);
  const One one(kYaml, traffic, folder);
  ShardedMonitor sharded(kYaml, folder.path(), 3);
  sharded.ignores_sharder = true;
  sharded.process(traffic);
  sharded.finish();
  EXPECT_NE(sorted_lines(folder.read("flows.jsonl")), one.records) << "the tests above cannot fail";
}

TEST(Shards, a_flow_goes_to_one_and_all_get_a_share) {
  constexpr std::uint32_t kCount = 8;
  const ScratchFolder folder;
  ShardedMonitor sharded("{}", folder.path(), kCount);
  const std::unique_ptr<nf::Sharder> another = sharded.monitor(1).sharder();
  std::map<std::uint32_t, int> flows_of;
  for (std::uint32_t i = 0; i < 4000; ++i) {
    const Frame frame = make_frame(17, 0x0A000000 + i, 9, static_cast<std::uint16_t>(i), 53, "data");
    nf::testing::PacketStore store(std::vector{
        frame, with_fragment(frame, 0x2000), make_frame(17, 0x0A000000 + i, 9, static_cast<std::uint16_t>(i), 53, "")});
    const std::uint32_t shard = sharded.sharder().shard_of(store.all()[0]).value();
    ASSERT_LT(shard, kCount);
    ASSERT_EQ(sharded.sharder().shard_of(store.all()[1]), shard) << "a first fragment is one of its flow's packets";
    ASSERT_EQ(sharded.sharder().shard_of(store.all()[2]), shard);
    ASSERT_EQ(another->shard_of(store.all()[0]), shard) << "sharders of several sources agree";
    ++flows_of[shard];
  }
  for (std::uint32_t shard = 0; shard < kCount; ++shard) {
    EXPECT_NEAR(flows_of[shard], 4000 / kCount, 120) << "over five standard deviations";
  }
}

TEST(Shards, what_the_sharder_reads_is_a_hint_where_there_is_one) {
  const ScratchFolder folder;
  ShardedMonitor one("{}", folder.path(), 1);
  EXPECT_EQ(one.monitor(0).hints().prepare_reads, packet::kNoFields);
  ShardedMonitor two("{}", folder.path(), 2);
  for (std::size_t shard = 0; shard < 2; ++shard) {
    EXPECT_TRUE(packet::contains(two.monitor(shard).hints().prepare_reads, packet::kIpv4Src));
    EXPECT_TRUE(packet::contains(two.monitor(shard).hints().prepare_reads, packet::kIcmpHeader));
    EXPECT_EQ(two.monitor(shard).hints().complete_reads, one.monitor(0).hints().complete_reads);
  }
}

TEST(Shards, the_start_report_counts_the_memory_of_all) {
  const ScratchFolder folder;
  const auto report = [&](std::uint32_t count) {
    return ShardedMonitor(concat("max_flows: 1048576\n", kYaml), folder.path(), count).monitor(0).start_report();
  };
  EXPECT_EQ(report(8), report(1));
}

}  // namespace
}  // namespace catena::monitor::testing
