// SPDX-License-Identifier: Apache-2.0
#include "nf/instance.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/testing/harness.hpp>
#include <catena/nf/testing/packet_store.hpp>
#include <catena/packet/testing/frames.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>

#include "nf/testing/marker.hpp"

namespace catena::nf {
namespace {

using testing::Frame;
using testing::RunOptions;
using testing::RunResult;

RunResult run_ok(std::vector<Frame> const& input, device::Device* device, RunOptions const& options = {}) {
  static const Descriptor kDescriptor = testing::marker_descriptor();
  Result<RunResult> result = testing::run(kDescriptor, testing::make_marker(), input, device, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : RunResult{};
}

class InstanceOnDevice : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(InstanceOnDevice, gives_what_the_cpu_gives) {
  const std::vector<Frame> input = testing::marker_frames(600);
  const RunResult expected = run_ok(input, nullptr, {.unit_size = 64});
  ASSERT_GT(expected.dropped("seven"), 0U);
  ASSERT_GT(expected.counters.unsupported, 0U);
  ASSERT_FALSE(testing::devices().empty());
  for (device::Device* device : testing::devices()) {
    for (const std::uint32_t units : {1U, 3U}) {
      const RunResult actual = run_ok(input, device, {.unit_size = GetParam(), .units_per_launch = units});
      EXPECT_TRUE(actual.packets == expected.packets) << device->info().name;
      std::vector<std::string> sorted = actual.records;
      std::vector<std::string> expected_sorted = expected.records;
      std::sort(sorted.begin(), sorted.end());
      std::sort(expected_sorted.begin(), expected_sorted.end());
      EXPECT_EQ(sorted, expected_sorted);
      EXPECT_EQ(actual.drops, expected.drops);
      EXPECT_EQ(actual.counters.device_packets, 600 - expected.counters.unsupported - expected.dropped("seven"));
      EXPECT_GT(actual.counters.bytes_to_device, 0U);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(UnitSizes, InstanceOnDevice, ::testing::Values(1, 31, 32, 33, 255, 256));

TEST(Instance, all_dropped_reach_nobody) {
  std::vector<Frame> input(50, testing::make_frame(packet::kProtocolUdp, 1, 2, 3, 4, "abc", 7));
  for (device::Device* device : testing::devices()) {
    const RunResult result = run_ok(input, device);
    EXPECT_EQ(result.dropped("seven"), 50U);
    EXPECT_EQ(result.counters.device_packets, 0U);
  }
  EXPECT_EQ(run_ok(input, nullptr).dropped("seven"), 50U);
}

TEST(Instance, unsupported_packets_are_dropped_where_the_chain_says_so) {
  const std::vector<Frame> input{Frame(60, 0), testing::make_frame(packet::kProtocolUdp, 1, 2, 3, 4, "abc"),
                                 Frame(3, 0), Frame()};
  const RunResult result = run_ok(input, nullptr, {.on_unsupported = OnUnsupported::kDrop});
  EXPECT_EQ(result.dropped("unsupported"), 3U);
  EXPECT_THAT(result.records,
              ::testing::Contains(R"({"packet":0,"nf":"marker","verdict":"drop","reason":"unsupported"})"));
}

TEST(Instance, link_local_frames_have_a_key_of_their_own) {
  const Frame arp = testing::make_arp_request(1, 2);
  const std::vector<Frame> input{arp, Frame(60, 0), testing::make_frame(packet::kProtocolUdp, 1, 2, 3, 4, "abc"), arp};
  const RunResult unless_told = run_ok(input, nullptr, {.on_unsupported = OnUnsupported::kDrop});
  EXPECT_EQ(unless_told.packets[0].verdict, packet::Verdict::kPass);
  EXPECT_EQ(unless_told.counters.link_local, 2U);
  EXPECT_EQ(unless_told.counters.unsupported, 1U);
  EXPECT_EQ(unless_told.dropped("unsupported"), 1U);
  const RunResult told =
      run_ok(input, nullptr, {.on_unsupported = OnUnsupported::kPass, .link_local = LinkLocal::kDrop});
  EXPECT_EQ(told.dropped("link_local"), 2U);
  EXPECT_EQ(told.dropped("unsupported"), 0U);
  EXPECT_EQ(told.packets[1].verdict, packet::Verdict::kPass);
  EXPECT_THAT(told.records,
              ::testing::Contains(R"({"packet":3,"nf":"marker","verdict":"drop","reason":"link_local"})"));
}

/// "REASON ETHERTYPE VERDICT" and the number of packets of each kind that the NF counted.
std::map<std::string, std::uint64_t> uninspected_by(Descriptor const& descriptor, std::vector<Frame> const& frames,
                                                    OnUnsupported on_unsupported) {
  testing::PacketStore store(frames);
  Instance instance("x", descriptor, testing::make_marker(), on_unsupported, false);
  instance.process(store.all());
  UninspectedCounts const& counted = instance.counters().uninspected;
  std::map<std::string, std::uint64_t> kinds;
  std::uint64_t total = 0;
  for (std::size_t number = 0; number < UninspectedCounts::kKinds; ++number) {
    const UninspectedKind kind = UninspectedCounts::kind(number);
    total += counted.counts[number];
    if (counted.counts[number] > 0) {
      kinds[concat(kind.reason, " ", kind.ether_type, " ", kind.verdict)] = counted.counts[number];
    }
  }
  EXPECT_EQ(counted.total, total);
  return kinds;
}

Frame of_type(std::uint16_t type) {
  Frame frame(60, 0);
  packet::store_be16(&frame[12], type);
  return frame;
}

TEST(Instance, counts_what_it_does_not_inspect_by_reason_and_ether_type) {
  const Frame udp = testing::make_frame(packet::kProtocolUdp, 1, 2, 3, 4, "cut short");
  const Frame truncated(udp.begin(), udp.begin() + 44);
  const Frame gre = testing::make_datagram(47, 1, 2, Frame(20, 0));
  const std::vector<Frame> frames{of_type(0x86DD),
                                  testing::with_vlan(of_type(0x86DD), 2),
                                  of_type(0x8847),
                                  testing::with_vlan(udp, 3),
                                  of_type(0x0800),  // no header
                                  of_type(0xFFFF),
                                  of_type(1500),
                                  Frame(3, 0),
                                  testing::make_arp_request(1, 2),
                                  truncated,
                                  gre,
                                  udp};
  Descriptor descriptor = testing::marker_descriptor();
  EXPECT_EQ(uninspected_by(descriptor, {gre}, OnUnsupported::kDrop),
            (std::map<std::string, std::uint64_t>{{"header ipv4 drop", 1}}))
      << "it needs UDP";
  descriptor.needs = packet::kIpv4;
  descriptor.is_inspector = true;
  std::map<std::string, std::uint64_t> expected{
      {"not_ipv4 ipv6 pass", 2},  {"not_ipv4 mpls pass", 1},   {"not_ipv4 vlan pass", 1},  {"malformed ipv4 pass", 1},
      {"not_ipv4 other pass", 1}, {"not_ipv4 llc pass", 1},    {"not_ipv4 short pass", 1}, {"link_local arp pass", 1},
      {"truncated ipv4 pass", 1}, {"tunnel_gre ipv4 outer", 1}};
  EXPECT_EQ(uninspected_by(descriptor, frames, OnUnsupported::kPass), expected);
  EXPECT_EQ(uninspected_by(descriptor, {gre, gre, udp}, OnUnsupported::kPass),
            (std::map<std::string, std::uint64_t>{{"tunnel_gre ipv4 outer", 2}}))
      << "a unit that the NF gets as a whole";
  descriptor.is_inspector = false;
  EXPECT_EQ(uninspected_by(descriptor, {gre, udp}, OnUnsupported::kPass), (std::map<std::string, std::uint64_t>{}));
  EXPECT_EQ(uninspected_by(descriptor, {of_type(0x86DD), testing::make_arp_request(1, 2)}, OnUnsupported::kDrop),
            (std::map<std::string, std::uint64_t>{{"not_ipv4 ipv6 drop", 1}, {"link_local arp pass", 1}}));
}

TEST(Uninspected, kinds_have_different_names) {
  std::set<std::string> names;
  for (std::size_t number = 0; number < UninspectedCounts::kKinds; ++number) {
    const UninspectedKind kind = UninspectedCounts::kind(number);
    EXPECT_FALSE(kind.reason.empty() || kind.ether_type.empty() || kind.verdict.empty()) << number;
    names.insert(concat(kind.reason, " ", kind.ether_type, " ", kind.verdict));
  }
  EXPECT_EQ(names.size(), UninspectedCounts::kKinds);
}

TEST(Instance, the_type_says_what_becomes_of_unsupported_packets_where_nobody_else_does) {
  const std::vector<Frame> input{Frame(60, 0)};
  Descriptor descriptor = testing::marker_descriptor();
  for (const OnUnsupported by_type : {OnUnsupported::kPass, OnUnsupported::kDrop}) {
    descriptor.on_unsupported_default = by_type;
    const auto result = testing::run(descriptor, testing::make_marker(), input);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->counters.unsupported, 1U) << "counted either way";
    EXPECT_EQ(result->dropped("unsupported"), by_type == OnUnsupported::kDrop ? 1U : 0U);
  }
}

/// Drops by a number that a result holds, as NFs do whose kernels decide: here one that no honest device gives.
class WildReason final : public Nf {
 public:
  Hints hints() const override { return {}; }
  void compute(packet::Batch const&, std::span<const std::byte>, std::span<std::byte>) override {}
  void complete(Completion const& completion) override {
    completion.outcome().drop(completion.batch()[0], 0xFFFFFFFE);
    completion.outcome().record(completion.batch()[0], packet::Verdict::kDrop, 0x7FFFFFFF, "");
  }
};

TEST(Instance, a_drop_for_a_reason_that_is_none_counts_as_a_fault_of_the_kernel) {
  const std::vector<Frame> input{testing::make_frame(packet::kProtocolUdp, 1, 2, 3, 4, "abc")};
  Descriptor descriptor{};
  descriptor.type = "wild";
  const auto result = testing::run(descriptor, std::make_unique<WildReason>(), input);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->packets[0].verdict, packet::Verdict::kDrop);
  EXPECT_EQ(result->dropped("kernel_fault"), 1U);
  EXPECT_THAT(result->records,
              ::testing::ElementsAre(R"({"packet":0,"nf":"wild","verdict":"drop","reason":"kernel_fault"})"));
}

TEST(Instance, layers_that_an_nf_refuses_make_a_packet_unsupported) {
  std::vector<Frame> input{testing::make_frame(packet::kProtocolUdp, 1, 2, 3, 4, "whole"),
                           testing::make_frame(packet::kProtocolUdp, 1, 2, 3, 4, "cut short")};
  input[1].resize(44);
  Descriptor descriptor = testing::marker_descriptor();
  EXPECT_EQ(testing::run(descriptor, testing::make_marker(), input)->counters.unsupported, 1U);
  descriptor.refuses = 0;
  EXPECT_EQ(testing::run(descriptor, testing::make_marker(), input)->counters.processed, 2U);
}

TEST(Instance, says_what_it_passes_unseen) {
  const auto unseen = [](Descriptor const& descriptor, OnUnsupported on_unsupported, LinkLocal link_local) {
    return Instance("x", descriptor, testing::make_marker(), on_unsupported, false, link_local).passes_unseen();
  };
  Descriptor descriptor = testing::marker_descriptor();
  descriptor.needs = packet::kIpv4;
  EXPECT_EQ(unseen(descriptor, OnUnsupported::kPass, LinkLocal::kPass),
            "forwards without inspection: non-IPv4, truncated datagrams, link-local control frames (ARP, LLDP, STP)");
  EXPECT_EQ(unseen(descriptor, OnUnsupported::kDrop, LinkLocal::kPass),
            "forwards without inspection: link-local control frames (ARP, LLDP, STP)");
  EXPECT_EQ(unseen(descriptor, OnUnsupported::kDrop, LinkLocal::kDrop), "");
  descriptor.refuses = 0;
  EXPECT_EQ(unseen(descriptor, OnUnsupported::kPass, LinkLocal::kDrop), "forwards without inspection: non-IPv4");
  descriptor.needs = 0;
  EXPECT_EQ(unseen(descriptor, OnUnsupported::kPass, LinkLocal::kPass), "");
}

/// A kernel that leaves its memory is stopped at the access, counted and reported; only its own packets are lost.
TEST(Isolation, packets_of_a_kernel_out_of_bounds_are_dropped_and_the_others_are_right) {
  std::vector<Frame> input = testing::marker_frames(100);
  std::vector<Frame> faulty = input;
  faulty[10] = testing::make_frame(packet::kProtocolUdp, 1, 2, 3, 6666, "read outside");
  faulty[40] = testing::make_frame(packet::kProtocolUdp, 1, 2, 3, 6667, "write outside");
  ASSERT_FALSE(testing::devices().empty());
  for (device::Device* device : testing::devices()) {
    const RunResult result = run_ok(faulty, device);
    const RunResult expected = run_ok(faulty, nullptr);
    EXPECT_EQ(result.dropped("kernel_fault"), 2U) << device->info().name;
    EXPECT_GT(result.counters.kernel_faults, 2U) << "every access outside counts";
    for (std::size_t i = 0; i < faulty.size(); ++i) {
      if (i == 10 || i == 40) {
        EXPECT_EQ(result.packets[i].verdict, packet::Verdict::kDrop);
        EXPECT_EQ(result.packets[i].frame, faulty[i]) << "what a faulty kernel wrote is not believed";
      } else {
        EXPECT_TRUE(result.packets[i] == expected.packets[i]) << i;
      }
    }
  }
}

/// The lines that are logged as errors while this lives.
class LoggedErrors {
 public:
  LoggedErrors() {
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)));
  }
  LoggedErrors(LoggedErrors const&) = delete;
  LoggedErrors& operator=(LoggedErrors const&) = delete;
  ~LoggedErrors() { spdlog::set_default_logger(before_); }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

TEST(Isolation, the_log_speaks_of_packets_that_were_dropped_and_of_no_others) {
  std::vector<Frame> input(10, testing::make_frame(packet::kProtocolUdp, 1, 2, 3, 99, "abc"));
  input[4] = testing::make_frame(packet::kProtocolUdp, 1, 2, 3, 6668, "reads for a row that has no packet");
  for (device::Device* device : testing::devices()) {
    const LoggedErrors log;
    const RunResult result = run_ok(input, device);
    EXPECT_GT(result.counters.kernel_faults, 0U);
    EXPECT_EQ(result.dropped("kernel_fault"), 0U) << device->info().name;
    EXPECT_THAT(log.text(), ::testing::HasSubstr("one: no packet of the batch"));
    EXPECT_THAT(log.text(), ::testing::HasSubstr("Packets dropped for it: 0."));

    input[7] = testing::make_frame(packet::kProtocolUdp, 1, 2, 3, 6667, "write outside");
    EXPECT_EQ(run_ok(input, device).dropped("kernel_fault"), 1U);
    EXPECT_THAT(log.text(), ::testing::HasSubstr("Packets dropped for it: 1."));
    input[7] = input[0];
  }
}

}  // namespace
}  // namespace catena::nf
