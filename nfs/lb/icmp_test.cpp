// SPDX-License-Identifier: Apache-2.0
// ICMP errors about packets that the load balancer translated (RFC 5508, sections 4 and 5).
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lb_testing.hpp"

namespace catena::lb::testing {
namespace {

using namespace nf::testing;

constexpr std::uint32_t kRouter = 0xC0000221;  // 192.0.2.33
constexpr std::uint32_t kWeb1 = 0x0A000001;

Frame query(std::uint32_t number, std::uint32_t to = kServiceAddress) {
  return make_frame(kUdp, client_address(number), to, client_port(number), 53, "what is the address?");
}
Frame reply(std::uint32_t number, std::uint32_t from) {
  return make_frame(kUdp, from, client_address(number), 53, client_port(number), "this is");
}
std::uint32_t web_for(std::uint32_t number) { return destination_of(run({request(number)}).packets[0].frame); }
std::uint32_t dns_for(std::uint32_t number) { return destination_of(run({query(number)}).packets[0].frame); }
Frame to_web(std::uint32_t number, std::uint32_t backend) {
  return make_segment(client_address(number), backend, client_port(number), 8080, kAck, "GET / HTTP/1.1");
}
Frame from_service(std::uint32_t number) {
  return make_segment(kServiceAddress, client_address(number), 80, client_port(number), kAck, "HTTP/1.1 200");
}

class Errors : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Flows, Errors, ::testing::Bool(),
                         [](auto const& flow) { return flow.param ? "known" : "unknown"; });

TEST_P(Errors, about_answers_go_to_the_backend_as_if_about_what_it_sent) {
  const std::uint32_t web = web_for(1);
  const std::uint32_t dns = dns_for(2);
  for (const std::uint8_t type : std::initializer_list<std::uint8_t>{3, 4, 11, 12}) {
    for (const std::size_t quoted : {8U, 16U, 18U, 28U}) {
      std::vector<Frame> frames;
      if (GetParam()) {
        frames = {request(1), query(2)};
      }
      const std::size_t first = frames.size();
      for (const std::uint32_t from : {client_address(1), kRouter}) {
        frames.push_back(make_error(type, from, from_service(1), quoted));
      }
      frames.push_back(make_error(type, kRouter, reply(2, kServiceAddress), quoted));
      const RunResult result = run(frames);
      EXPECT_EQ(result.packets[first].frame, make_error(type, client_address(1), answer(1, web), quoted));
      EXPECT_EQ(result.packets[first + 1].frame, make_error(type, kRouter, answer(1, web), quoted));
      EXPECT_EQ(result.packets[first + 2].frame, make_error(type, kRouter, reply(2, dns), quoted));
      EXPECT_EQ(result.records[first], concat(R"({"packet":)", first, R"(,"nf":"lb","verdict":"pass","icmp_error":)",
                                              int{type}, R"(,"backend":"web)", web - 0x0A000000, R"("})"));
    }
  }
}

TEST_P(Errors, about_requests_go_to_the_client_from_the_service_whoever_sent_them) {
  const std::uint32_t web = web_for(1);
  const std::uint32_t dns = dns_for(2);
  std::vector<Frame> frames;
  if (GetParam()) {
    frames = {request(1), query(2)};
  }
  const std::size_t first = frames.size();
  frames.push_back(make_error(3, web, to_web(1, web), 28));
  frames.push_back(make_error(11, 0x0A0000FE, to_web(1, web)));
  frames.push_back(make_error(3, dns, query(2, dns)));
  const RunResult result = run(frames);
  EXPECT_EQ(result.packets[first].frame, make_error(3, kServiceAddress, request(1), 28));
  EXPECT_EQ(result.packets[first + 1].frame, make_error(11, kServiceAddress, request(1)));
  EXPECT_EQ(result.packets[first + 2].frame, make_error(3, kServiceAddress, query(2)));
}

TEST(Lb, errors_about_others_and_damaged_ones_pass_unchanged) {
  const std::uint32_t web = web_for(1);
  std::vector<Frame> frames{
      request(1),
      make_error(3, kRouter, make_frame(kUdp, kServiceAddress, client_address(1), 54, 9, "of another port")),
      make_error(3, kRouter, make_frame(47, kServiceAddress, client_address(1), 80, 9, "of another protocol")),
      make_error(3, kRouter, make_frame(kTcp, 0x08080808, client_address(1), 80, 9, "of somebody else")),
      make_error(3, web, make_frame(kTcp, client_address(1), web, 9, 22, "to another port")),
  };
  const Frame good = make_error(3, kRouter, from_service(1), 18);
  for (std::size_t at = 34; at < good.size(); ++at) {  // the ICMP checksum sees any of these
    frames.push_back(good);
    frames.back()[at] ^= 0x40;
  }
  Frame astray = good;  // goes to another address than the quoted source
  packet::store_be32(&astray[30], kServiceAddress + 1);
  frames.push_back(astray);
  frames.push_back(with_fragment(good, 0x2000));
  const RunResult result = run(frames);
  for (std::size_t i = 1; i < frames.size(); ++i) {
    EXPECT_EQ(result.packets[i].frame, frames[i]) << i;
    EXPECT_EQ(result.packets[i].verdict, packet::Verdict::kPass);
  }
  EXPECT_EQ(result.records.size(), 1U);
}

TEST(Lb, errors_change_no_flow_and_make_none) {
  const RunResult result = run({make_error(3, kRouter, from_service(1)), make_error(3, kWeb1, to_web(1, kWeb1))});
  EXPECT_EQ(value_of(result.statistics, "flows"), 0U);
  LiveLb live(concat("timeouts: {tcp_opening: 5}\n", kYaml));
  live.send(request(1, kSyn));
  live.now_ns += 4 * kSecondNs;
  live.send(make_error(3, kRouter, from_service(1)));
  live.now_ns += 2 * kSecondNs;
  live.send(make_error(3, kRouter, from_service(1)));
  EXPECT_EQ(live.statistic("flows"), 0U);
}

TEST(Lb, errors_for_a_service_without_a_backend_are_dropped) {
  const RunResult result = run({make_error(3, kRouter, from_service(1))},
                               "services: [{address: 203.0.113.10, port: 80, protocol: tcp, backends: "
                               "[{name: a, address: 10.0.0.1, state: down}]}]");
  EXPECT_EQ(result.dropped("no_backend"), 1U);
}

TEST(Lb, errors_pass_unchanged_where_the_configuration_says_so) {
  const std::vector<Frame> frames{request(1), make_error(3, kRouter, from_service(1)),
                                  make_error(3, web_for(1), to_web(1, web_for(1)))};
  const RunResult result = run(frames, concat("icmp_errors: pass\n", kYaml));
  EXPECT_EQ(result.packets[1].frame, frames[1]);
  EXPECT_EQ(result.packets[2].frame, frames[2]);
}

TEST(Lb, prepare_marks_the_packets_whose_payload_it_rewrites) {
  const std::vector<Frame> frames{request(1), make_error(3, kRouter, from_service(1)), request(2),
                                  make_error(3, kRouter, make_frame(kUdp, 1, 2, 3, 4, "of others"))};
  nf::testing::PacketStore store(frames);
  std::vector<std::byte> aux(frames.size() * catena_nf_lb().aux_bytes);
  nf::Outcome outcome(catena_nf_lb().drop_reasons.size(), false);
  make_lb()->prepare(store.all(), aux, outcome);
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(store.all()[i].is_rewritten(), i == 1) << i;
  }
}

}  // namespace
}  // namespace catena::lb::testing
