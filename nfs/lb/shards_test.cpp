// SPDX-License-Identifier: Apache-2.0
// Several load balancers that divide packets among them decide as one does.
#include "shards.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <catena/nf/testing/migration.hpp>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "lb_testing.hpp"

namespace catena::lb::testing {
namespace {

using namespace nf::testing;
using ::testing::IsEmpty;

constexpr std::uint32_t kOtherService = 0xCB00710B;  // 203.0.113.11
constexpr std::uint32_t kIcmpRouter = 0xC0000221;    // 192.0.2.33

/// Answers need their flow, time-outs are short, and two services have one backend in common.
constexpr std::string_view kShort = R"(answers_without_flow: pass
timeouts: {tcp_opening: 3, tcp_established: 9, tcp_closing: 2, udp: 4}
services:
  - address: 203.0.113.10
    port: 80
    protocol: tcp
    backends:
      - {name: web1, address: 10.0.0.1, port: 8080}
      - {name: web2, address: 10.0.0.2, port: 8080}
      - {name: web3, address: 10.0.0.3, port: 8080}
  - {address: 203.0.113.11, port: 80, protocol: tcp, backends: [{name: web1, address: 10.0.0.1, port: 8080}]}
  - address: 203.0.113.10
    port: 53
    protocol: udp
    backends:
      - {name: dns1, address: 10.0.1.1}
      - {name: dns2, address: 10.0.1.2}
)";
constexpr std::string_view kLimits = "max_flows: 100000\n";

struct Traffic {
  std::vector<Frame> frames;
  std::vector<std::uint64_t> arrivals_ns;

  void add(Frame frame, std::uint64_t at_ns) {
    frames.push_back(std::move(frame));
    arrivals_ns.push_back(at_ns);
  }
};

Frame shard_query(std::uint32_t number) {
  return make_frame(kUdp, client_address(number), kServiceAddress, client_port(number), 53, "what is the address?");
}
Frame shard_reply(std::uint32_t number, std::uint32_t backend) {
  return make_frame(kUdp, backend, client_address(number), 53, client_port(number), "this is");
}
Frame other_request(std::uint32_t number, std::uint8_t flags) {
  return make_segment(client_address(number), kOtherService, client_port(number), 80, flags, "GET");
}

/// Backends of the clients' connections and queries while all are up.
struct Chosen {
  explicit Chosen(std::uint32_t clients) {
    LiveLb live(kShort);
    for (std::uint32_t i = 0; i < clients; ++i) {
      web.push_back(live.backend_for(request(i)));
      dns.push_back(live.backend_for(shard_query(i)));
    }
  }
  std::vector<std::uint32_t> web;
  std::vector<std::uint32_t> dns;
};

/// What `number`'s client, its backends or a router near them may send.
Frame frame_of(std::uint32_t number, std::uint32_t kind, Chosen const& chosen) {
  const std::uint32_t web = chosen.web[number];
  const std::uint32_t dns = chosen.dns[number];
  const Frame to_web = make_segment(client_address(number), web, client_port(number), 8080, kAck, "GET / HTTP/1.1");
  const Frame from_service =
      make_frame(kTcp, kServiceAddress, client_address(number), 80, client_port(number), "HTTP/1.1 200");
  const std::vector<std::function<Frame()>> makers{
      [&] { return request(number, kSyn); },
      [&] { return answer(number, web, kSyn | kAck); },
      [&] { return request(number); },
      [&] { return answer(number, web); },
      [&] { return request(number, kFinAck); },
      [&] { return answer(number, web, kFinAck); },
      [&] { return request(number, kRst); },
      [&] { return shard_query(number); },
      [&] { return shard_reply(number, dns); },
      [&] { return other_request(number, kSyn); },
      [&] { return make_error(3, kIcmpRouter, from_service, 16); },
      [&] { return make_error(11, web, to_web); },
      [&] { return make_error(3, dns, make_frame(kUdp, client_address(number), dns, client_port(number), 53, "q")); },
      [&] { return with_fragment(request(number), 0x2000); },
      [&] { return with_fragment(request(number), 0x0010); },
      [&] { return with_fragment(answer(number, web), 0x2000); },
      [&] { return with_fragment(answer(number, web), 0x0010); },
      [&] { return make_echo(client_address(number), kServiceAddress, 7, 1, "echo"); },
      [&] { return make_frame(kTcp, client_address(number), web, client_port(number), 22, "ssh"); },
  };
  return makers[kind % makers.size()]();
}

/// Mixed traffic of `clients`, in the order of time, with pauses about as long as the time-outs and a flood of SYNs.
Traffic mixed_traffic(std::uint32_t clients, std::size_t packets) {
  auto random = [engine = std::mt19937(5)]() mutable { return static_cast<std::uint32_t>(engine()); };
  const Chosen chosen(clients);
  Traffic traffic;
  std::uint64_t now_ns = 1000 * kSecondNs + 900'000'000;
  for (std::size_t i = 0; i < packets; ++i) {
    now_ns += random() % 500 == 0 ? random() % (5 * kSecondNs) : random() % 4'000'000;
    traffic.add(frame_of(random() % clients, random(), chosen), now_ns);
    if (random() % 8 == 0) {
      traffic.add(request(1'000'000 + static_cast<std::uint32_t>(i), kSyn), now_ns);
    }
  }
  return traffic;
}

/// Load balancers that divide packets among them, each in a thread of its own.
class ShardedLb {
 public:
  ShardedLb(std::string const& yaml, std::uint32_t count) {
    auto config = nf::Config::parse(yaml, "test.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    config->set_shard({0, count});
    add(catena_nf_lb().create(*config));
    for (std::uint32_t i = 1; i < count; ++i) {
      add(lbs_.front()->replicate(i));
    }
    sharder_ = lbs_.front()->sharder();
  }

  std::uint32_t count() const { return static_cast<std::uint32_t>(lbs_.size()); }
  Lb& lb(std::size_t shard) { return *lbs_[shard]; }
  nf::Sharder& sharder() { return *sharder_; }

  /// What became of the packets, in their order. The sharder is one round ahead of the load balancers.
  std::vector<PacketResult> process(Traffic const& traffic) {
    constexpr std::size_t kRound = 3000;
    std::vector<PacketResult> results(traffic.frames.size());
    std::vector<std::thread> threads;
    for (std::size_t first = 0; first < traffic.frames.size(); first += kRound) {
      const std::size_t count = std::min(kRound, traffic.frames.size() - first);
      std::vector<std::vector<std::size_t>> parts = divide(traffic, first, count);
      join(threads);
      for (std::uint32_t shard = 0; shard < this->count(); ++shard) {
        threads.emplace_back([this, &traffic, &results, shard, part = std::move(parts[shard])] {
          process_part(shard, traffic, part, results);
        });
      }
    }
    join(threads);
    return results;
  }
  /// Takes the place of load balancers in any number of shards.
  void take_over(ShardedLb& before) {
    const std::vector<nf::Nf*> old(before.lbs_.begin(), before.lbs_.end());
    const std::vector<nf::Nf*> next(lbs_.begin(), lbs_.end());
    const Status ready = nf::testing::prepare_migration(old, next);
    ASSERT_TRUE(ready.ok()) << ready;
    nf::testing::migrate_state(old, next);
  }
  void update(std::span<const Service> services) {
    for (Lb* lb : lbs_) {
      ASSERT_TRUE(lb->update(services).ok());
    }
  }
  /// Added up, as the framework does.
  std::uint64_t statistic(std::string_view name) const {
    std::uint64_t sum = 0;
    for (Lb const* lb : lbs_) {
      sum += value_of(lb->statistics(), name);
    }
    return sum;
  }
  /// Instead of the sharder: packets in turn.
  bool ignores_sharder = false;

 private:
  void add(Result<std::unique_ptr<nf::Nf>> made) {
    ASSERT_TRUE(made.ok()) << made.status();
    lbs_.push_back(static_cast<Lb*>(made->get()));
    instances_.push_back(std::make_unique<nf::testing::CpuNf>(catena_nf_lb(), *std::move(made)));
  }
  std::vector<std::vector<std::size_t>> divide(Traffic const& traffic, std::size_t first, std::size_t count) {
    nf::testing::PacketStore store(std::span(traffic.frames).subspan(first, count),
                                   std::span(traffic.arrivals_ns).subspan(first, count));
    std::vector<std::vector<std::size_t>> parts(this->count());
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto shard = ignores_sharder ? std::nullopt : sharder_->shard_of(store.all()[i]);
      // what the sharder leaves open may go anywhere
      parts[shard.value_or(static_cast<std::uint32_t>((first + i) % this->count()))].push_back(first + i);
    }
    return parts;
  }
  void process_part(std::uint32_t shard, Traffic const& traffic, std::vector<std::size_t> const& part,
                    std::vector<PacketResult>& results) {
    Traffic own;
    for (const std::size_t i : part) {
      own.add(traffic.frames[i], traffic.arrivals_ns[i]);
    }
    nf::testing::PacketStore store(own.frames, own.arrivals_ns);
    for (std::size_t first = 0; first < part.size(); first += 50) {
      instances_[shard]->process(store.batch(first, std::min<std::size_t>(50, part.size() - first)));
    }
    for (std::uint32_t i = 0; i < part.size(); ++i) {
      const packet::Packet packet = store.all()[i];
      results[part[i]] = {Frame(packet.frame(), packet.frame() + packet.length()), packet.verdict(), packet.port()};
    }
  }
  static void join(std::vector<std::thread>& threads) {
    for (std::thread& thread : threads) {
      thread.join();
    }
    threads.clear();
  }

  std::vector<Lb*> lbs_;
  std::vector<std::unique_ptr<nf::testing::CpuNf>> instances_;
  std::unique_ptr<nf::Sharder> sharder_;
};

void expect_same(std::vector<PacketResult> const& results, std::vector<PacketResult> const& expected) {
  ASSERT_EQ(results.size(), expected.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    ASSERT_TRUE(results[i] == expected[i]) << "packet " << i;
  }
}

/// What one load balancer makes of it, without a sharder.
std::vector<PacketResult> by_one(std::string const& yaml, Traffic const& traffic) {
  RunOptions options;
  options.arrivals_ns = traffic.arrivals_ns;
  auto result = nf::testing::run(catena_nf_lb(), make_lb(yaml), traffic.frames, nullptr, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? std::move(result->packets) : std::vector<PacketResult>();
}

class Sharded : public ::testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Counts, Sharded, ::testing::Values(1U, 2U, 3U, 8U));

TEST_P(Sharded, every_packet_becomes_what_one_load_balancer_makes_of_it) {
  const std::string yaml = concat(kLimits, kShort);
  const Traffic traffic = mixed_traffic(300, 30'000);
  const std::vector<PacketResult> expected = by_one(yaml, traffic);
  ShardedLb sharded(yaml, GetParam());
  expect_same(sharded.process(traffic), expected);
  EXPECT_EQ(sharded.statistic("flows_evicted"), 0U);
  EXPECT_GT(sharded.statistic("flows_expired"), 1000U);
  EXPECT_EQ(sharded.statistic("flows_not_tracked"), 0U);
}

TEST(ChangeOfShards, every_packet_becomes_what_one_load_balancer_makes_of_it) {
  const std::string yaml = concat(kLimits, kShort);
  const Traffic traffic = mixed_traffic(300, 30'000);
  const std::vector<PacketResult> expected = by_one(yaml, traffic);
  constexpr std::array kCounts{1U, 3U, 1U, 4U, 2U, 2U, 16U, 3U};
  const std::size_t part = traffic.frames.size() / kCounts.size();
  auto sharded = std::make_unique<ShardedLb>(yaml, 2);
  for (std::size_t i = 0; i < kCounts.size(); ++i) {
    auto next = std::make_unique<ShardedLb>(yaml, kCounts[i]);
    next->take_over(*sharded);
    for (const std::string_view name : {"flows_created", "backend_web2_packets"}) {
      EXPECT_EQ(next->statistic(name), sharded->statistic(name)) << name;
    }
    // a shard that had no packets for a while has the time of all
    EXPECT_EQ(next->statistic("flows") + next->statistic("flows_expired"),
              sharded->statistic("flows") + sharded->statistic("flows_expired"));
    sharded = std::move(next);
    const auto first = static_cast<std::ptrdiff_t>(i * part);
    const auto end = first + static_cast<std::ptrdiff_t>(part);
    expect_same(sharded->process({{traffic.frames.begin() + first, traffic.frames.begin() + end},
                                  {traffic.arrivals_ns.begin() + first, traffic.arrivals_ns.begin() + end}}),
                {expected.begin() + first, expected.begin() + end});
  }
  EXPECT_EQ(sharded->statistic("flows_evicted"), 0U);
  EXPECT_GT(sharded->statistic("flows_expired"), 1000U);
}

TEST(ChangeOfShards, flows_stay_with_backends_that_are_listed_and_not_down) {
  constexpr std::string_view kFewer = R"(services:
  - address: 203.0.113.10
    port: 80
    protocol: tcp
    backends:
      - {name: web3, address: 10.0.0.3, port: 8080, state: drain}
      - {name: web1, address: 10.0.0.1, port: 8080}
)";
  constexpr std::uint32_t kAsking = 300;
  ShardedLb before(concat(kLimits, kYaml), 1);
  ShardedLb after(concat(kLimits, kFewer), 3);
  Traffic traffic;
  for (std::uint32_t client = 0; client < kAsking; ++client) {
    traffic.add(request(client), kSecondNs);
  }
  const std::vector<PacketResult> first = before.process(traffic);
  after.take_over(before);
  const std::vector<PacketResult> second = after.process(traffic);
  for (std::uint32_t client = 0; client < kAsking; ++client) {
    const std::uint32_t backend = destination_of(first[client].frame);
    EXPECT_EQ(destination_of(second[client].frame), backend == 0x0A000002 ? 0x0A000001 : backend) << client;
  }
}

TEST(ChangeOfShards, a_full_shard_keeps_the_flows_used_last) {
  const std::string yaml = concat("max_flows: 90\nmax_half_open: 30\n", kYaml);
  ShardedLb one(yaml, 1);
  Traffic traffic;
  for (std::uint32_t client = 0; client < 90; ++client) {
    traffic.add(make_frame(kUdp, client_address(client), kServiceAddress, client_port(client), 53, "query"),
                (1 + client) * kSecondNs);
  }
  one.process(traffic);
  ShardedLb three(yaml, 3);
  three.take_over(one);
  EXPECT_LE(three.statistic("flows"), 90U);
  EXPECT_GT(three.statistic("flows"), 60U);
  EXPECT_EQ(three.statistic("flows") + three.statistic("flows_evicted"), 90U);
}

TEST(ChangeOfShards, flows_of_a_removed_backend_evict_none) {
  constexpr std::string_view kOne = R"(services:
  - address: 203.0.113.10
    port: 80
    protocol: tcp
    backends:
      - {name: web1, address: 10.0.0.1, port: 8080}
)";
  constexpr std::string_view kSmall = "max_flows: 16\nmax_half_open: 16\n";
  constexpr std::size_t kOfEach = 8;
  Traffic all;
  for (std::uint32_t client = 0; client < 300; ++client) {
    all.add(request(client), kSecondNs);
  }
  const std::vector<PacketResult> chosen = ShardedLb(concat(kLimits, kYaml), 1).process(all);
  Traffic traffic;
  for (const bool is_kept : {true, false}) {
    for (std::uint32_t client = 0; traffic.frames.size() < (is_kept ? kOfEach : 2 * kOfEach); ++client) {
      if ((destination_of(chosen[client].frame) == 0x0A000001) == is_kept) {
        traffic.add(request(client), kSecondNs);
      }
    }
  }
  ShardedLb one(concat(kSmall, kYaml), 1);
  one.process(traffic);
  ShardedLb shards(concat(kSmall, kOne), 16);  // with a record each
  shards.take_over(one);
  nf::testing::PacketStore store(std::span(traffic.frames).first(kOfEach),
                                 std::span(traffic.arrivals_ns).first(kOfEach));
  std::set<std::uint32_t> used;
  for (std::uint32_t i = 0; i < kOfEach; ++i) {
    used.insert(shards.sharder().shard_of(store.all()[i]).value());
  }
  EXPECT_EQ(shards.statistic("flows"), used.size());
}

TEST_P(Sharded, statistics_and_the_report_are_those_of_one) {
  const std::string yaml = concat(kLimits, kShort);
  const Traffic traffic = mixed_traffic(300, 5000);
  LiveLb one(yaml);
  for (std::size_t i = 0; i < traffic.frames.size(); ++i) {
    one.now_ns = traffic.arrivals_ns[i];
    one.send(traffic.frames[i]);
  }
  ShardedLb sharded(yaml, GetParam());
  sharded.process(traffic);
  for (const std::string_view name : {"flows_created", "backend_web1_packets", "backend_web2_packets",
                                      "backend_web3_packets", "backend_dns1_packets", "backend_dns2_packets"}) {
    EXPECT_EQ(sharded.statistic(name), one.statistic(name)) << name;
    EXPECT_GT(one.statistic(name), 50U) << name;
  }
  EXPECT_EQ(sharded.lb(0).end_report(), one.lb().end_report());
  for (std::uint32_t shard = 1; shard < GetParam(); ++shard) {
    EXPECT_THAT(sharded.lb(shard).end_report(), IsEmpty());
  }
}

TEST_P(Sharded, flows_expire_at_the_packets_at_which_they_do_in_one) {
  // the clients' queries come half a second after the first packet of all, which one shard alone has
  constexpr std::uint32_t kShardClients = 60;
  const Chosen chosen(kShardClients);
  std::set<bool> seen;
  for (const std::uint64_t after_ms : {4499U, 4500U, 5499U, 5500U, 5501U}) {
    Traffic traffic;
    traffic.add(shard_query(kShardClients), 7 * kSecondNs);
    for (std::uint32_t i = 0; i < kShardClients; ++i) {
      traffic.add(shard_query(i), 7 * kSecondNs + 500'000'000);
    }
    for (std::uint32_t i = 0; i < kShardClients; ++i) {
      traffic.add(shard_reply(i, chosen.dns[i]), 7 * kSecondNs + 500'000'000 + after_ms * 1'000'000 - kSecondNs);
    }
    const std::vector<PacketResult> expected = by_one(std::string(kShort), traffic);
    ShardedLb sharded(std::string(kShort), GetParam());
    expect_same(sharded.process(traffic), expected);
    seen.insert(expected.back().frame == traffic.frames.back());
  }
  EXPECT_EQ(seen.size(), 2U) << "some are translated, some have expired";
}

/// The services of kShort with `drained` and `down` in these states.
std::vector<Service> services_with(std::string_view drained, std::string_view down) {
  std::vector<Service> services{{{kServiceAddress, 80, kTcp}, {}}, {{kServiceAddress, 53, kUdp}, {}}};
  const auto add = [&](Service& service, std::string_view name, std::uint32_t address, std::uint16_t port) {
    const BackendState state = name == drained ? BackendState::kDrain
                               : name == down  ? BackendState::kDown
                                               : BackendState::kUp;
    service.backends.push_back({.name = std::string(name), .address = address, .port = port, .state = state});
  };
  add(services[0], "web1", 0x0A000001, 8080);
  add(services[0], "web2", 0x0A000002, 8080);
  add(services[0], "web4", 0x0A000004, 8080);  // web3 is gone, and the other service
  add(services[1], "dns1", 0x0A000101, 53);
  add(services[1], "dns2", 0x0A000102, 53);
  return services;
}

TEST_P(Sharded, an_update_of_all_takes_effect_at_the_same_packet_as_in_one) {
  const std::string yaml = concat(kLimits, kShort);
  const Traffic traffic = mixed_traffic(300, 12'000);
  LiveLb one(yaml);
  ShardedLb sharded(yaml, GetParam());
  const std::vector<std::vector<Service>> updates{services_with("web1", "dns2"), services_with("dns1", "web2")};
  const std::size_t rounds = updates.size() + 1;
  for (std::size_t round = 0; round < rounds; ++round) {
    Traffic part;
    std::vector<PacketResult> expected;
    for (std::size_t i = traffic.frames.size() * round / rounds; i < traffic.frames.size() * (round + 1) / rounds;
         ++i) {
      part.add(traffic.frames[i], traffic.arrivals_ns[i]);
      one.now_ns = traffic.arrivals_ns[i];
      expected.push_back(one.send(traffic.frames[i]));
    }
    expect_same(sharded.process(part), expected);
    if (round < updates.size()) {
      ASSERT_TRUE(one.lb().update(updates[round]).ok());
      sharded.update(updates[round]);
    }
  }
  for (const std::string_view name : {"web2", "web4", "dns1", "dns2"}) {
    const std::string packets = concat("backend_", name, "_packets");
    EXPECT_EQ(sharded.statistic(packets), one.statistic(packets)) << name;
  }
}

TEST(Shards, another_number_of_shards_gives_other_packets) {
  const std::string yaml = concat(kLimits, kShort);
  const Traffic traffic = mixed_traffic(300, 3000);
  ShardedLb sharded(yaml, 3);
  sharded.ignores_sharder = true;
  EXPECT_FALSE(sharded.process(traffic) == by_one(yaml, traffic)) << "the tests above cannot fail";
}

TEST(Shards, requests_answers_and_errors_of_a_client_go_to_one_and_all_get_a_share) {
  constexpr std::uint32_t kShardClients = 4000;
  constexpr std::uint32_t kCount = 8;
  const Chosen chosen(kShardClients);
  ShardedLb sharded(std::string(kShort), kCount);
  const std::unique_ptr<nf::Sharder> another = sharded.lb(1).sharder();
  std::map<std::uint32_t, std::uint32_t> clients_of;
  for (std::uint32_t i = 0; i < kShardClients; ++i) {
    std::vector<Frame> tcp;
    for (std::uint32_t kind : {0U, 1U, 2U, 3U, 4U, 5U, 6U, 9U, 10U, 11U}) {
      tcp.push_back(frame_of(i, kind, chosen));
    }
    nf::testing::PacketStore store(tcp);
    const auto first = sharded.sharder().shard_of(store.all()[0]);
    ASSERT_TRUE(first.has_value());
    ASSERT_LT(*first, kCount);
    for (std::uint32_t at = 0; at < tcp.size(); ++at) {
      ASSERT_EQ(sharded.sharder().shard_of(store.all()[at]), first) << at;
      ASSERT_EQ(another->shard_of(store.all()[at]), first) << "sharders of several sources agree";
    }
    ++clients_of[*first];
  }
  for (std::uint32_t shard = 0; shard < kCount; ++shard) {
    EXPECT_NEAR(clients_of[shard], kShardClients / kCount, 120) << "over five standard deviations";
  }
}

TEST(Shards, errors_that_pass_unchanged_may_go_anywhere) {
  const Chosen chosen(1);
  ShardedLb sharded(concat("icmp_errors: pass\n", kShort), 2);
  nf::testing::PacketStore store(std::vector{frame_of(0, 10, chosen), frame_of(0, 11, chosen)});
  EXPECT_EQ(sharded.sharder().shard_of(store.all()[0]), std::nullopt);
  EXPECT_EQ(sharded.sharder().shard_of(store.all()[1]), std::nullopt);
}

TEST(Shards, limits_are_those_of_all_together) {
  constexpr std::uint32_t kCount = 3;
  Traffic flood;
  for (std::uint32_t i = 0; i < 6000; ++i) {
    flood.add(i % 2 == 0 ? request(i, kSyn) : shard_query(i), kSecondNs + i);
  }
  ShardedLb sharded(concat("max_flows: 100\nmax_half_open: 40\n", kYaml), kCount);
  sharded.process(flood);
  EXPECT_EQ(sharded.statistic("flows"), 100U);
  EXPECT_LE(sharded.statistic("half_open"), 40U);
  EXPECT_EQ(sharded.statistic("flows_created"), 100 + sharded.statistic("flows_evicted"));

  Traffic syns;
  for (std::uint32_t i = 0; i < 6000; ++i) {
    syns.add(request(i, kSyn), kSecondNs + i);
  }
  ShardedLb half_open(concat("max_flows: 100\nmax_half_open: 40\n", kYaml), kCount);
  half_open.process(syns);
  EXPECT_EQ(half_open.statistic("half_open"), 40U);
}

TEST(Shards, maglev_tables_are_there_once) {
  constexpr std::uint64_t kTables = 2 * 65537 * sizeof(std::uint16_t);
  const std::string yaml = concat("max_flows: 1000\n", kYaml);
  ShardedLb sharded(yaml, 8);
  EXPECT_GT(value_of(sharded.lb(0).statistics(), "memory_bytes"), kTables);
  for (std::uint32_t shard = 1; shard < 8; ++shard) {
    EXPECT_LT(value_of(sharded.lb(shard).statistics(), "memory_bytes"), kTables);
  }
  sharded.update(
      std::vector<Service>{{{kServiceAddress, 80, kTcp}, {{.name = "web1", .address = 0x0A000001, .port = 8080}}}});
  EXPECT_GT(value_of(sharded.lb(7).statistics(), "memory_bytes"), 65537 * sizeof(std::uint16_t))
      << "its own from now on";
}

TEST(Shards, the_start_report_counts_the_memory_of_all) {
  const auto memory = [](std::uint32_t count) { return ShardedLb(std::string(kYaml), count).lb(0).start_report(); };
  EXPECT_EQ(memory(8), memory(1));
}

}  // namespace
}  // namespace catena::lb::testing
