// SPDX-License-Identifier: Apache-2.0
#include "lb.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>

#include "lb_testing.hpp"

namespace catena::lb::testing {
namespace {

using namespace nf::testing;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

/// The web service of kYaml with other states; backends that are left out are not listed.
std::vector<Service> web(std::map<std::string, BackendState> const& states) {
  Service service{{kServiceAddress, 80, kTcp}, {}};
  for (auto const& [name, state] : states) {
    const auto last = static_cast<std::uint32_t>(name.back() - '0');
    service.backends.push_back({.name = name, .address = 0x0A000000 + last, .port = 8080, .weight = 1, .state = state});
  }
  return {service};
}
constexpr BackendState kUp = BackendState::kUp;
constexpr BackendState kDrain = BackendState::kDrain;
constexpr BackendState kDown = BackendState::kDown;

TEST(Lb, a_request_goes_to_a_backend_and_its_answer_comes_from_the_service) {
  const std::uint32_t backend = destination_of(run({request(1)}).packets[0].frame);
  EXPECT_THAT(backend, AllOf(Ge(0x0A000001U), Le(0x0A000003U)));
  const RunResult result = run({request(1), answer(1, backend)});
  EXPECT_EQ(result.packets[0].frame,
            make_segment(client_address(1), backend, client_port(1), 8080, kAck, "GET / HTTP/1.1"));
  EXPECT_EQ(result.packets[1].frame,
            make_segment(kServiceAddress, client_address(1), 80, client_port(1), kAck, "HTTP/1.1 200"));
  const std::string name = concat("web", backend - 0x0A000000);
  EXPECT_THAT(result.records,
              ElementsAre(concat(R"({"packet":0,"nf":"lb","verdict":"pass","backend":")", name, R"("})"),
                          concat(R"({"packet":1,"nf":"lb","verdict":"pass","backend":")", name, R"("})")));
  EXPECT_EQ(value_of(result.statistics, concat("backend_", name, "_packets")), 2U);
  EXPECT_EQ(value_of(result.statistics, "flows"), 1U);
  EXPECT_EQ(value_of(result.statistics, "flows_created"), 1U);
}

TEST(Lb, requests_are_shared_by_weight_and_each_service_has_its_own_backends) {
  constexpr std::string_view kWeighted = R"(services:
  - address: 203.0.113.10
    port: 80
    protocol: tcp
    backends:
      - {name: a, address: 10.0.0.1, weight: 1}
      - {name: b, address: 10.0.0.2, weight: 2}
      - {name: c, address: 10.0.0.3, weight: 5}
  - {address: 203.0.113.10, port: 80, protocol: udp, backends: [{name: d, address: 10.0.1.1}]}
)";
  constexpr std::uint32_t kFlows = 40000;
  std::vector<Frame> frames;
  for (std::uint32_t i = 0; i < kFlows; ++i) {
    frames.push_back(request(i));
  }
  frames.push_back(make_frame(kUdp, kClientAddress, kServiceAddress, 1024, 80, "x"));
  const RunResult result = run(frames, kWeighted);
  // five standard deviations of a fair choice
  const auto near = [](double share) { return 5 * std::sqrt(kFlows * share * (1 - share)); };
  EXPECT_NEAR(static_cast<double>(value_of(result.statistics, "backend_a_packets")), kFlows / 8.0, near(1 / 8.0));
  EXPECT_NEAR(static_cast<double>(value_of(result.statistics, "backend_b_packets")), kFlows / 4.0, near(1 / 4.0));
  EXPECT_NEAR(static_cast<double>(value_of(result.statistics, "backend_c_packets")), kFlows * 5 / 8.0, near(5 / 8.0));
  EXPECT_EQ(destination_of(result.packets.back().frame), 0x0A000101U);
  EXPECT_EQ(value_of(result.statistics, "backend_d_packets"), 1U);
}

TEST(Lb, the_order_of_backends_in_the_file_does_not_matter) {
  constexpr std::string_view kReversed = R"(services:
  - address: 203.0.113.10
    port: 80
    protocol: tcp
    backends:
      - {name: web3, address: 10.0.0.3, port: 8080}
      - {name: web1, address: 10.0.0.1, port: 8080}
      - {name: web2, address: 10.0.0.2, port: 8080}
)";
  std::vector<Frame> frames;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    frames.push_back(request(i));
  }
  EXPECT_TRUE(run(frames).packets == run(frames, kReversed).packets);
}

TEST(Lb, traffic_of_no_service_and_no_flow_passes_unchanged_and_unrecorded) {
  const std::vector<Frame> frames{
      make_frame(kTcp, kClientAddress, kServiceAddress, 1024, 81, "another port"),
      make_frame(kUdp, kClientAddress, kServiceAddress, 1024, 80, "another protocol"),
      make_frame(kTcp, kClientAddress, kServiceAddress + 1, 1024, 80, "another address"),
      make_frame(kTcp, kClientAddress, 0x0A000001, 1024, 8080, "straight to a backend"),
      make_frame(kTcp, 0x0A000001, kClientAddress, 8081, 1024, "from another port of a backend"),
      make_frame(1, kClientAddress, kServiceAddress, 0x0800, 0, "an ICMP echo"),
      make_frame(47, kClientAddress, kServiceAddress, 0, 0, "GRE"),
  };
  const RunResult result = run(frames);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    EXPECT_EQ(result.packets[i].frame, frames[i]) << i;
    EXPECT_EQ(result.packets[i].verdict, packet::Verdict::kPass) << i;
  }
  EXPECT_TRUE(result.records.empty());
  EXPECT_EQ(value_of(result.statistics, "flows"), 0U);
}

TEST(Lb, what_a_backend_of_one_service_sends_to_unknown_clients_comes_from_the_service) {
  const Frame from_service = make_segment(kServiceAddress, client_address(1), 80, client_port(1), kAck, "HTTP/1.1 200");
  const RunResult result = run({answer(1, 0x0A000001), answer(1, 0x0A000003)});
  EXPECT_EQ(result.packets[0].frame, from_service);
  EXPECT_EQ(result.packets[1].frame, from_service);
  EXPECT_EQ(result.records[1], R"({"packet":1,"nf":"lb","verdict":"pass","backend":"web3"})");
  EXPECT_EQ(value_of(result.statistics, "flows"), 0U);
}

TEST(Lb, what_a_backend_of_several_services_sends_to_unknown_clients_passes_unchanged) {
  const Frame unknown = answer(1, 0x0A000001);
  const RunResult result = run({unknown, answer(1, 0x0A000002)}, R"(services:
  - address: 203.0.113.10
    port: 80
    protocol: tcp
    backends: [{name: a, address: 10.0.0.1, port: 8080}, {name: b, address: 10.0.0.2, port: 8080}]
  - {address: 203.0.113.11, port: 80, protocol: tcp, backends: [{name: a, address: 10.0.0.1, port: 8080}]}
)");
  EXPECT_EQ(result.packets[0].frame, unknown);
  EXPECT_EQ(source_of(result.packets[1].frame), kServiceAddress);
}

TEST(Lb, only_the_flows_own_client_and_backend_are_translated_back_where_a_flow_is_asked_for) {
  const std::uint32_t backend = destination_of(run({request(1)}).packets[0].frame);
  const std::uint32_t another = backend == 0x0A000001 ? 0x0A000002 : 0x0A000001;
  const std::vector<Frame> frames{
      request(1),
      answer(1, another),
      answer(2, backend),
      make_frame(kTcp, backend, client_address(1), 8081, client_port(1), "another port"),
      make_frame(kUdp, backend, client_address(1), 8080, client_port(1), "another protocol"),
  };
  const RunResult result = run(frames, concat("answers_without_flow: pass\n", kYaml));
  for (std::size_t i = 1; i < frames.size(); ++i) {
    EXPECT_EQ(result.packets[i].frame, frames[i]) << i;
  }
}

TEST(Lb, a_flow_stays_with_its_backend_while_that_drains_and_new_ones_go_elsewhere) {
  LiveLb live;
  std::map<std::uint32_t, std::uint32_t> backends;
  for (std::uint32_t i = 0; i < 3000; ++i) {
    backends[i] = live.backend_for(request(i));
  }
  ASSERT_TRUE(live.lb().update(web({{"web1", kUp}, {"web2", kDrain}, {"web3", kUp}})).ok());
  std::set<std::uint32_t> seen;
  for (auto const& [client, backend] : backends) {
    ASSERT_EQ(live.backend_for(request(client)), backend);
    ASSERT_EQ(source_of(live.send(answer(client, backend)).frame), kServiceAddress);
    seen.insert(backend);
  }
  EXPECT_EQ(seen.size(), 3U);
  for (std::uint32_t i = 3000; i < 6000; ++i) {
    ASSERT_NE(live.backend_for(request(i)), 0x0A000002U);
  }
  ASSERT_TRUE(live.lb().update(web({{"web1", kUp}, {"web2", kUp}, {"web3", kUp}, {"web4", kUp}})).ok());
  for (auto const& [client, backend] : backends) {
    ASSERT_EQ(live.backend_for(request(client)), backend) << "a backend that joins takes no flow away";
  }
}

TEST(Lb, flows_of_a_backend_that_is_down_or_removed_move_and_no_others) {
  for (const bool removed : {false, true}) {
    LiveLb live;
    std::map<std::uint32_t, std::uint32_t> backends;
    for (std::uint32_t i = 0; i < 3000; ++i) {
      backends[i] = live.backend_for(request(i));
    }
    std::map<std::string, BackendState> states{{"web1", kUp}, {"web3", kUp}};
    if (!removed) {
      states["web2"] = kDown;
    }
    ASSERT_TRUE(live.lb().update(web(states)).ok());
    std::uint32_t moved = 0;
    for (auto const& [client, backend] : backends) {
      const std::uint32_t now = live.backend_for(request(client));
      ASSERT_NE(now, 0x0A000002U);
      if (backend == 0x0A000002) {
        ++moved;
        ASSERT_EQ(source_of(live.send(answer(client, now)).frame), kServiceAddress);
      } else {
        ASSERT_EQ(now, backend);
      }
    }
    EXPECT_GT(moved, 500U);
    EXPECT_EQ(live.statistic("flows"), 3000U);
  }
}

TEST(Lb, without_a_memory_of_flows_a_lost_backend_moves_at_most_one_percent_of_the_others) {
  const auto service = [](std::size_t backends, std::size_t without) {
    std::string yaml = "max_flows: 1\nservices: [{address: 203.0.113.10, port: 80, protocol: tcp, backends: [";
    for (std::size_t i = 0; i < backends; ++i) {
      yaml += i == without ? "" : concat("{name: web", i, ", address: 10.0.0.", i + 1, "},");
    }
    return yaml + "]}]";
  };
  constexpr std::uint32_t kFlows = 50000;
  for (const std::size_t count : {3U, 20U, 100U}) {
    LiveLb before(service(count, count));
    LiveLb after(service(count, 1));
    before.send(request(kFlows));  // takes the one place in the table of flows
    after.send(request(kFlows));
    std::uint32_t others = 0;
    std::uint32_t moved = 0;
    for (std::uint32_t i = 0; i < kFlows; ++i) {
      const std::uint32_t backend = before.backend_for(request(i));
      const std::uint32_t now = after.backend_for(request(i));
      ASSERT_NE(now, 0x0A000002U);
      others += backend != 0x0A000002 ? 1U : 0U;
      moved += backend != 0x0A000002 && backend != now ? 1U : 0U;
    }
    EXPECT_LE(moved, others / 100) << count << " backends";
    RecordProperty(concat("moved_flows_of_", count), concat(moved, " of ", others));
  }
}

TEST(Lb, without_a_backend_that_is_up_packets_are_dropped) {
  const RunResult result =
      run({request(1), request(2)},
          "services: [{address: 203.0.113.10, port: 80, protocol: tcp, backends: "
          "[{name: a, address: 10.0.0.1, state: drain}, {name: b, address: 10.0.0.2, state: down}]}]");
  EXPECT_EQ(result.dropped("no_backend"), 2U);
  EXPECT_EQ(result.packets[0].frame, request(1)) << "a dropped packet keeps its bytes";
  EXPECT_EQ(result.records[0], R"({"packet":0,"nf":"lb","verdict":"drop","reason":"no_backend"})");
  EXPECT_EQ(value_of(result.statistics, "flows"), 0U);

  LiveLb live;
  const std::uint32_t backend = live.backend_for(request(1));
  ASSERT_TRUE(live.lb().update(web({{"web1", kDrain}, {"web2", kDrain}, {"web3", kDrain}})).ok());
  EXPECT_EQ(live.backend_for(request(1)), backend);
  EXPECT_EQ(live.send(request(2)).verdict, packet::Verdict::kDrop);
  ASSERT_TRUE(live.lb().update(web({{"web1", kDown}, {"web2", kDown}, {"web3", kDown}})).ok());
  EXPECT_EQ(live.send(request(1)).verdict, packet::Verdict::kDrop);
  EXPECT_EQ(live.no_backend(), 2U);
}

TEST(Lb, an_update_with_a_mistake_changes_nothing) {
  LiveLb live;
  const std::uint32_t backend = live.backend_for(request(1));
  EXPECT_TRUE(absl::IsInvalidArgument(live.lb().update({})));
  EXPECT_TRUE(absl::IsInvalidArgument(live.lb().update(web({{"we\"b1", kUp}}))));
  EXPECT_EQ(live.backend_for(request(1)), backend);
  EXPECT_EQ(live.backend_for(make_frame(kUdp, kClientAddress, kServiceAddress, 5, 53, "")) & 0xFFFFFF00U, 0x0A000100U);
}

TEST(Lb, a_service_that_is_removed_is_no_service_any_more) {
  LiveLb live;
  const Frame query = make_frame(kUdp, kClientAddress, kServiceAddress, 5, 53, "");
  ASSERT_NE(live.send(query).frame, query);
  ASSERT_TRUE(live.lb().update(web({{"web1", kUp}})).ok());
  EXPECT_EQ(live.send(query).frame, query);
}

/// A client whose connection is on a backend that drains: only a new flow would go elsewhere.
class Draining : public ::testing::Test {
 protected:
  Draining() : backend_(live_.backend_for(request(1, kSyn))) {
    live_.send(answer(1, backend_, kSyn | kAck));
    live_.send(request(1));
    drain(live_);
  }
  void drain(LiveLb& live) const {
    std::map<std::string, BackendState> states{{"web1", kUp}, {"web2", kUp}, {"web3", kUp}};
    states[concat("web", backend_ - 0x0A000000)] = kDrain;
    EXPECT_TRUE(live.lb().update(web(states)).ok());
  }
  LiveLb live_{concat("timeouts: {tcp_opening: 5, tcp_established: 300, tcp_closing: 10}\n", kYaml)};
  std::uint32_t backend_;
};

TEST_F(Draining, a_syn_that_is_sent_again_belongs_to_the_flow) {
  EXPECT_EQ(live_.backend_for(request(1, kSyn)), backend_);
}

TEST_F(Draining, what_follows_a_fin_of_the_client_belongs_to_the_flow_but_a_syn_starts_another) {
  ASSERT_EQ(live_.backend_for(request(1, kFinAck)), backend_);
  EXPECT_EQ(live_.backend_for(request(1, kAck)), backend_);
  EXPECT_EQ(live_.backend_for(request(1, kSyn | kAck)), backend_) << "no SYN of a client that connects";
  EXPECT_NE(live_.backend_for(request(1, kSyn)), backend_);
}

TEST_F(Draining, a_syn_after_a_rst_starts_another_flow) {
  ASSERT_EQ(live_.backend_for(request(1, kRst)), backend_);
  EXPECT_NE(live_.backend_for(request(1, kSyn)), backend_);
}

TEST_F(Draining, a_syn_in_an_open_connection_belongs_to_the_flow) {
  EXPECT_EQ(live_.backend_for(request(1, kSyn)), backend_);
  live_.send(answer(1, backend_, kFinAck));
  EXPECT_EQ(live_.backend_for(request(1, kSyn)), backend_) << "the client has not closed";
}

TEST_F(Draining, one_fin_ends_no_flow) {
  live_.send(answer(1, backend_, kFinAck));
  live_.now_ns += 299 * kSecondNs;
  EXPECT_EQ(live_.backend_for(request(1)), backend_) << "half closed connections may go on for long";
}

TEST_F(Draining, fins_of_both_sides_end_a_flow) {
  live_.send(answer(1, backend_, kFinAck));
  live_.send(request(1, kFinAck));
  live_.now_ns += 10 * kSecondNs;
  EXPECT_EQ(live_.backend_for(request(1)), backend_) << "the last ACK, sent again";
  live_.now_ns += 12 * kSecondNs;
  EXPECT_NE(live_.backend_for(request(1)), backend_);
}

TEST_F(Draining, one_forged_rst_ends_no_connection_that_goes_on) {
  live_.send(answer(1, backend_, kRst));
  EXPECT_EQ(live_.backend_for(request(1)), backend_);
  live_.now_ns += 299 * kSecondNs;
  EXPECT_EQ(live_.backend_for(request(1)), backend_);
  live_.send(answer(1, backend_, kRst));
  live_.now_ns += 12 * kSecondNs;
  EXPECT_NE(live_.backend_for(request(1)), backend_) << "nobody went on";
}

TEST_F(Draining, a_handshake_that_nobody_completes_ends_soon) {
  LiveLb live(concat("timeouts: {tcp_opening: 5}\n", kYaml));
  live.send(request(1, kSyn));
  live.now_ns += 4 * kSecondNs;
  live.send(answer(1, backend_, kSyn | kAck));  // sent again and again: it keeps nothing
  live.now_ns += 2 * kSecondNs;
  live.send(answer(2, backend_));
  EXPECT_EQ(live.statistic("flows"), 0U);
  live.send(request(1, kSyn));
  live.send(answer(1, backend_, kSyn | kAck));
  live.send(request(1));
  EXPECT_EQ(live.statistic("half_open"), 0U);
  live.now_ns += 7000 * kSecondNs;
  live.send(answer(2, backend_));
  EXPECT_EQ(live.statistic("flows"), 1U);
}

TEST_F(Draining, a_flow_ends_after_the_timeout_without_packets) {
  live_.now_ns += 299 * kSecondNs;
  EXPECT_EQ(live_.backend_for(request(1)), backend_);
  live_.now_ns += 299 * kSecondNs;
  EXPECT_EQ(source_of(live_.send(answer(1, backend_)).frame), kServiceAddress) << "an answer counts as well";
  live_.now_ns += 300 * kSecondNs;
  EXPECT_EQ(live_.backend_for(request(1)), backend_);
  live_.now_ns += 302 * kSecondNs;
  EXPECT_NE(live_.backend_for(request(1)), backend_);
  EXPECT_EQ(live_.statistic("flows_expired"), 1U);
  EXPECT_EQ(live_.statistic("flows_created"), 2U);
}

TEST_F(Draining, stamps_that_go_back_neither_end_nor_prolong_a_flow) {
  live_.now_ns = 0;
  EXPECT_EQ(live_.backend_for(request(1)), backend_);
  live_.now_ns = 1302 * kSecondNs;
  EXPECT_NE(live_.backend_for(request(1)), backend_);
}

TEST_F(Draining, after_one_stamp_far_ahead_flows_still_end) {
  live_.now_ns += 400'000'000 * kSecondNs;
  live_.send(request(9));
  ASSERT_EQ(live_.statistic("flows"), 1U);
  live_.now_ns -= 400'000'000 * kSecondNs;
  for (std::uint32_t i = 0; i < packet::PacketClock::kStepPackets; ++i) {
    live_.send(request(7));
  }
  ASSERT_EQ(live_.statistic("flows"), 2U);
  live_.now_ns += 302 * kSecondNs;
  live_.send(request(8));
  EXPECT_EQ(live_.statistic("flows_expired"), 3U);
}

TEST_F(Draining, a_tick_ends_flows_without_a_packet) {
  ASSERT_EQ(live_.statistic("flows"), 1U);
  live_.lb().tick(live_.now_ns + 300 * kSecondNs);
  EXPECT_EQ(live_.statistic("flows"), 1U);
  live_.lb().tick(live_.now_ns + 301 * kSecondNs);
  EXPECT_EQ(live_.statistic("flows"), 0U);
}

TEST(Lb, a_rst_begins_no_flow) {
  LiveLb live;
  EXPECT_NE(live.backend_for(request(1, kRst)), kServiceAddress);
  EXPECT_EQ(live.statistic("flows"), 0U);
  EXPECT_EQ(live.statistic("flows_not_tracked"), 0U);
}

TEST(Lb, beyond_max_flows_the_flow_longest_without_a_packet_is_forgotten) {
  const std::string small = concat("max_flows: 4\nmax_half_open: 4\n", kYaml);
  std::vector<Frame> frames;
  for (std::uint32_t i = 0; i < 100; ++i) {
    frames.push_back(request(i % 50));
  }
  const RunResult all = run(frames);
  const RunResult few = run(frames, small);
  EXPECT_TRUE(few.packets == all.packets);
  EXPECT_EQ(value_of(few.statistics, "flows"), 4U);
  EXPECT_EQ(value_of(few.statistics, "flows_created"), 100U);
  EXPECT_EQ(value_of(few.statistics, "flows_evicted"), 96U);
  EXPECT_EQ(value_of(all.statistics, "flows_evicted"), 0U);
  EXPECT_EQ(value_of(few.statistics, "flows_not_tracked"), 0U);

  LiveLb live(small);
  const std::uint32_t backend = live.backend_for(request(0));
  for (std::uint32_t i = 1; i < 5; ++i) {
    live.now_ns += kSecondNs;
    live.send(request(i));
    if (i == 3) {
      live.send(request(0));
    }
  }
  ASSERT_TRUE(live.lb().update(web({{"web4", kUp}})).ok()) << "only flows know where they were";
  EXPECT_EQ(live.statistic("flows_evicted"), 1U);
  EXPECT_EQ(source_of(live.send(answer(0, backend)).frame), kServiceAddress) << "not the first one: it went on";
}

TEST(Lb, a_client_port_used_for_two_services_with_one_backend_answers_to_the_later) {
  constexpr std::string_view kShared = R"(services:
  - {address: 203.0.113.10, port: 80, protocol: tcp, backends: [{name: a, address: 10.0.0.1, port: 8080}]}
  - {address: 203.0.113.11, port: 80, protocol: tcp, backends: [{name: a, address: 10.0.0.1, port: 8080}]}
)";
  LiveLb live(kShared);
  Frame second = make_frame(kTcp, client_address(1), kServiceAddress + 1, client_port(1), 80, "");
  live.send(request(1));
  live.send(second);
  EXPECT_EQ(source_of(live.send(answer(1, 0x0A000001)).frame), kServiceAddress + 1);
  EXPECT_EQ(live.backend_for(request(1)), 0x0A000001U);
  EXPECT_EQ(live.statistic("flows"), 2U);
  EXPECT_EQ(live.statistic("backend_a_packets"), 4U);
}

Frame fragment(Frame frame, std::uint16_t flags_and_offset) {
  return with_header_checksum(with_fragment(std::move(frame), flags_and_offset));
}

TEST(Lb, fragments_to_a_service_are_dropped_and_others_pass) {
  const std::uint32_t backend = destination_of(run({request(1)}).packets[0].frame);
  const std::vector<Frame> dropped{fragment(request(1), 0x2000), fragment(request(1), 0x2010),
                                   fragment(request(1), 0x0010), fragment(answer(1, backend), 0x2000),
                                   fragment(answer(2, backend), 0x2000)};
  const std::vector<Frame> passed{
      fragment(make_frame(kTcp, kClientAddress, kServiceAddress + 1, 1, 80, "other address"), 0x2000),
      fragment(make_frame(132, kClientAddress, kServiceAddress, 1, 80, "other protocol"), 0x2000),
      fragment(answer(1, backend), 0x0010),
  };
  std::vector<Frame> frames{request(1)};
  frames.insert(frames.end(), dropped.begin(), dropped.end());
  frames.insert(frames.end(), passed.begin(), passed.end());
  const RunResult result = run(frames);
  for (std::size_t i = 1; i < frames.size(); ++i) {
    EXPECT_EQ(result.packets[i].frame, frames[i]) << i;
    EXPECT_EQ(result.packets[i].verdict, i <= dropped.size() ? packet::Verdict::kDrop : packet::Verdict::kPass) << i;
  }
  EXPECT_EQ(result.dropped("fragment"), dropped.size());
  EXPECT_EQ(result.records[1], R"({"packet":1,"nf":"lb","verdict":"drop","reason":"fragment"})");
}

TEST(Lb, checksums_equal_those_of_packets_made_for_the_backend) {
  // all payloads of two bytes: every value that a checksum can have
  std::vector<Frame> udp;
  std::vector<Frame> tcp;
  const auto payload = [](std::uint32_t value) {
    return std::string{static_cast<char>(value >> 8), static_cast<char>(value)};
  };
  for (std::uint32_t value = 0; value < 0x10000; ++value) {
    udp.push_back(make_frame(kUdp, kClientAddress, kServiceAddress, 4000, 53, payload(value)));
    tcp.push_back(make_frame(kTcp, kClientAddress, kServiceAddress, 4000, 80, payload(value)));
  }
  const RunResult of_udp = run(udp);
  const RunResult of_tcp = run(tcp);
  const std::uint32_t dns = destination_of(of_udp.packets[0].frame);
  const std::uint32_t web = destination_of(of_tcp.packets[0].frame);
  std::uint32_t all_ones = 0;
  std::uint32_t zeros = 0;
  for (std::uint32_t value = 0; value < 0x10000; ++value) {
    Frame const& query = of_udp.packets[value].frame;
    Frame const& segment = of_tcp.packets[value].frame;
    ASSERT_EQ(query, make_frame(kUdp, kClientAddress, dns, 4000, 53, payload(value)));
    ASSERT_EQ(segment, make_frame(kTcp, kClientAddress, web, 4000, 8080, payload(value)));
    ASSERT_TRUE(has_right_checksums(query) && has_right_checksums(segment));
    all_ones += packet::load_be16(&query[40]) == 0xFFFF ? 1U : 0U;
    zeros += packet::load_be16(&segment[50]) == 0 ? 1U : 0U;
  }
  EXPECT_EQ(all_ones, 1U);
  EXPECT_EQ(zeros, 1U);
}

TEST(Lb, a_udp_checksum_of_zero_stays_and_a_wrong_checksum_stays_wrong_by_as_much) {
  Frame none = make_frame(kUdp, kClientAddress, kServiceAddress, 4000, 53, "query");
  packet::store_be16(&none[40], 0);
  Frame wrong = request(1);
  wrong[50] ^= 0x40;
  wrong[24] ^= 0x20;
  const RunResult result = run({none, wrong, request(1)});
  EXPECT_EQ(packet::load_be16(&result.packets[0].frame[40]), 0);
  EXPECT_TRUE(has_right_checksums(result.packets[0].frame));
  const auto off_by = [](Frame const& a, Frame const& b, std::size_t at) {
    return (packet::load_be16(&a[at]) + 0xFFFFU - packet::load_be16(&b[at])) % 0xFFFFU;
  };
  for (const std::size_t at : {24U, 50U}) {
    EXPECT_EQ(off_by(result.packets[1].frame, result.packets[2].frame, at), off_by(wrong, request(1), at));
  }
}

TEST(Lb, packets_with_tags_and_options_are_translated) {
  const RunResult result =
      run({request(1), with_vlan(request(1), 1), with_header_checksum(with_options(request(1), 1))});
  Frame const& plain = result.packets[0].frame;
  EXPECT_EQ(result.packets[1].frame, with_vlan(plain, 1));
  EXPECT_EQ(result.packets[2].frame, with_header_checksum(with_options(plain, 1)));
}

/// Requests, answers, other traffic, fragments, all with any TCP flags, some cut short or with bytes changed.
std::vector<Frame> hostile_frames(std::size_t count) {
  std::mt19937 random(17);
  const auto any = [&random](std::uint32_t limit) { return static_cast<std::uint32_t>(random()) % limit; };
  std::vector<Frame> frames;
  while (frames.size() < count) {
    const std::uint32_t client = any(40);
    Frame frame = any(3) == 0   ? answer(client, 0x0A000001 + any(3), static_cast<std::uint8_t>(any(64)))
                  : any(4) == 0 ? make_frame(kUdp, kClientAddress, kServiceAddress, client_port(client), 53, "q")
                                : request(client, static_cast<std::uint8_t>(any(64)));
    for (std::uint32_t changes = any(4) == 0 ? any(4) : 0; changes > 0; --changes) {
      frame[12 + any(static_cast<std::uint32_t>(frame.size()) - 12)] = static_cast<std::uint8_t>(any(256));
    }
    frame.resize(any(10) == 0 ? any(static_cast<std::uint32_t>(frame.size()) + 1) : frame.size());
    frames.push_back(std::move(frame));
  }
  return frames;
}

TEST(Lb, batches_and_devices_make_no_difference_to_hostile_traffic) {
  const std::vector<Frame> frames = hostile_frames(6000);
  const std::string small =
      concat("max_flows: 30\ntimeouts: {tcp_opening: 2, tcp_established: 2, tcp_closing: 1, udp: 2}\n", kYaml);
  RunOptions options;
  std::mt19937 random(4);
  std::uint64_t now = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    now += random() % (kSecondNs / 25);
    options.arrivals_ns.push_back(random() % 100 == 0 ? random() : now);
  }
  const RunResult expected = run(frames, small, options);
  EXPECT_GT(value_of(expected.statistics, "flows_expired"), 100U);
  EXPECT_GT(value_of(expected.statistics, "flows_evicted"), 100U);
  for (const std::uint32_t unit : {1U, 31U, 32U, 33U, 63U, 65U, 256U}) {
    options.unit_size = unit;
    options.units_per_launch = unit == 1 ? 64 : 4;
    const RunResult result = run(frames, small, options);
    EXPECT_TRUE(result.packets == expected.packets) << unit;
    EXPECT_EQ(result.records, expected.records) << unit;
    EXPECT_EQ(result.drops, expected.drops) << unit;
  }
}

TEST(Lb, a_request_cut_at_any_length_passes_unchanged) {
  std::vector<Frame> frames;
  for (std::size_t length = 0; length < request(1).size(); ++length) {
    frames.push_back(request(1));
    frames.back().resize(length);
  }
  const RunResult result = run(frames);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    EXPECT_EQ(result.packets[i].frame, frames[i]);
    EXPECT_EQ(result.packets[i].verdict, packet::Verdict::kPass);
  }
}

TEST(Lb, reports_tell_backends_memory_and_shares) {
  LiveLb live(
      "services: [{address: 203.0.113.10, port: 80, protocol: tcp, backends: [{name: web-1, address: 10.0.0.1, port: "
      "8080}, {name: web.2, address: 10.0.0.2, state: drain}]}]\nmax_flows: 1000000");
  EXPECT_THAT(live.lb().start_report(), ElementsAre(HasSubstr("1 service; backends: 1 up, 1 draining, 0 down")));
  EXPECT_THAT(live.lb().end_report(), ElementsAre("203.0.113.10:80/tcp: 0 packets"));
  live.send(request(1));
  EXPECT_THAT(live.lb().end_report(), ElementsAre("203.0.113.10:80/tcp: 1 packets, web-1 100.0 %, web.2 0.0 %"));
  EXPECT_EQ(live.statistic("backend_web_1_packets"), 1U);
  EXPECT_EQ(live.statistic("backend_web_2_packets"), 0U);
  EXPECT_GT(live.statistic("memory_bytes"), 60U * 1000000);
}

}  // namespace
}  // namespace catena::lb::testing
