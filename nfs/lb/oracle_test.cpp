// SPDX-License-Identifier: Apache-2.0
// Others that translate packets judge our translation: scapy, and the Linux kernel's destination NAT.
#include <gtest/gtest.h>

#include <catena/core/testing/scratch_folder.hpp>
#include <catena/nf/testing/oracle.hpp>

#include "lb_testing.hpp"

namespace catena::lb::testing {
namespace {

using namespace nf::testing;

std::vector<Frame> frames_of(RunResult const& result) {
  std::vector<Frame> frames;
  for (PacketResult const& packet : result.packets) {
    frames.push_back(packet.frame);
  }
  return frames;
}

constexpr std::uint32_t kClients = 40;

/// A query whose UDP checksum is computed as 0 when it goes to `backend`.
Frame query_that_sums_to_zero(std::uint32_t number, std::uint32_t backend) {
  for (std::uint32_t value = 0; value < 0x10000; ++value) {
    const std::string payload{static_cast<char>(value >> 8), static_cast<char>(value)};
    const Frame sent = make_frame(kUdp, client_address(number), backend, client_port(number), 53, payload);
    if (packet::load_be16(&sent[40]) == 0xFFFF) {
      return make_frame(kUdp, client_address(number), kServiceAddress, client_port(number), 53, payload);
    }
  }
  ADD_FAILURE() << "no payload gives this checksum";
  return {};
}

/// Connections and queries of many clients with the answers of the backends that the load balancer chose.
class Oracle : public ::testing::Test {
 protected:
  Oracle() {
    std::vector<Frame> requests;
    for (std::uint32_t i = 0; i < kClients; ++i) {
      requests.push_back(request(i, kSyn));
      requests.push_back(query(i));
    }
    const std::vector<Frame> chosen = frames_of(run(requests));
    std::string rules;
    for (std::uint32_t i = 0; i < kClients; ++i) {
      const std::uint32_t web = destination_of(chosen[2 * i]);
      const std::uint32_t dns = destination_of(chosen[2 * i + 1]);
      rules += concat(rules.empty() ? "[" : ",\n", rule("tcp", i, 80, web, 8080), ",\n", rule("udp", i, 53, dns, 53));
      add(request(i, kSyn));
      add(answer(i, web, kSyn | kAck));
      add(query(i));
      add(make_frame(kUdp, dns, client_address(i), 53, client_port(i), "an address"));
      add_errors(i, web, dns);
      add(query_that_sums_to_zero(i, dns));
      Frame unchecked = query(i);
      packet::store_be16(&unchecked[40], 0);
      add(unchecked);
      add(request(i, kFinAck));
      add(answer(i, web, kRst));
    }
    folder_.write("rules.json", rules + "]");
  }

  ScratchFolder folder_;
  std::vector<Frame> frames_;

 private:
  static Frame query(std::uint32_t number) {
    return make_frame(kUdp, client_address(number), kServiceAddress, client_port(number), 53, std::string(number, 'q'));
  }
  static std::string rule(std::string_view protocol, std::uint32_t number, std::uint16_t service_port,
                          std::uint32_t backend, std::uint16_t backend_port) {
    const auto end = [](std::uint32_t address, std::uint16_t port) {
      return concat("[\"", packet::to_string(packet::Address::of_v4(address)), "\", ", port, "]");
    };
    return concat("{\"protocol\": \"", protocol, "\", \"client\": ", end(client_address(number), client_port(number)),
                  ", \"service\": ", end(kServiceAddress, service_port), ", \"backend\": ", end(backend, backend_port),
                  "}");
  }
  /// What may come back for a connection and a query: from the client or a router near it about what it got, from the
  /// backend or a router near it about what that got.
  void add_errors(std::uint32_t number, std::uint32_t web, std::uint32_t dns) {
    const Frame got =
        make_segment(kServiceAddress, client_address(number), 80, client_port(number), kAck, "HTTP/1.1 200");
    const Frame sent = make_frame(kTcp, client_address(number), web, client_port(number), 8080, "GET / HTTP/1.1");
    const std::size_t quoted = 8 + 4 * (number % 8);
    add(make_error(3, client_address(number), got, quoted));
    add(make_error(11, 0xC0000221, got, quoted));
    add(make_error(3, web, sent, quoted));
    add(make_error(11, 0x0A00FE01, sent, quoted));
    add(make_error(3, client_address(number),
                   make_frame(kUdp, kServiceAddress, client_address(number), 53, client_port(number), "an address"),
                   quoted));
    add(make_error(3, dns, make_frame(kUdp, client_address(number), dns, client_port(number), 53, "q"), quoted));
  }
  /// With an IP identification of its own, by which the kernel's oracle knows it again.
  void add(Frame frame) {
    packet::store_be16(&frame[18], static_cast<std::uint16_t>(frames_.size() + 1));
    frames_.push_back(with_header_checksum(std::move(frame)));
  }
};

TEST_F(Oracle, scapy_translates_every_packet_to_the_same_bytes) {
  if (!nf::testing::can_import("scapy.all")) {
    GTEST_SKIP() << "python3-scapy is not installed";
  }
  std::erase_if(frames_, [](Frame const& frame) { return frame[23] == packet::kProtocolIcmp; });
  write_capture(folder_.path("before.pcap"), frames_);
  write_capture(folder_.path("after.pcap"), frames_of(run(frames_)));
  const CommandResult result =
      run_oracle("lb", "scapy_check.py", {folder_.path("before.pcap"), folder_.path("after.pcap")});
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_NE(result.output.find(concat(frames_.size(), " frames translated as scapy does")), std::string::npos)
      << result.output;
}

TEST_F(Oracle, the_kernels_destination_nat_translates_every_packet_to_the_same_bytes) {
  if (!succeeds("unshare --net ip link") || !succeeds("nft --version")) {
    GTEST_SKIP() << "needs root, ip and nft";
  }
  write_capture(folder_.path("before.pcap"), frames_);
  const CommandResult result = run_oracle(
      "lb", "kernel_dnat.py", {folder_.path("rules.json"), folder_.path("before.pcap"), folder_.path("after.pcap")},
      "unshare --net");
  if (result.status == nf::testing::kOracleCannot) {
    GTEST_SKIP() << result.output;
  }
  ASSERT_EQ(result.status, 0) << result.output;
  const auto routed = nf::testing::read_capture(folder_.path("after.pcap"));
  ASSERT_TRUE(routed.ok()) << routed.status();
  const std::vector<Frame> ours = frames_of(run(frames_));
  ASSERT_EQ(routed->size(), ours.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    // a router also takes one off the TTL and gives the frame its own addresses
    Frame expected = ours[i];
    --expected[22];
    expected = with_header_checksum(std::move(expected));
    Frame const& actual = (*routed)[i];
    ASSERT_EQ(Frame(actual.begin() + 14, actual.end()), Frame(expected.begin() + 14, expected.end())) << i;
  }
}

}  // namespace
}  // namespace catena::lb::testing
