// SPDX-License-Identifier: Apache-2.0
#include "router.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/testing/test_data.hpp>
#include <catena/nf/testing/harness.hpp>
#include <catena/nf/testing/run_everywhere.hpp>
#include <catena/nf/text_file.hpp>
#include <catena/packet/headers.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <random>

#include "functions/lpm/lpm_oracle.hpp"

namespace catena::router {
namespace {

using nf::testing::Frame;
using nf::testing::kL3;
using nf::testing::make_frame;
using nf::testing::RunResult;
using nf::testing::with_header_checksum;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Frame frame_to(std::uint32_t dst, std::uint8_t ttl = 64) { return make_frame(17, 0xC0A80001, dst, 1, 2, "data", ttl); }

std::uint16_t checksum_in(Frame const& frame) { return packet::load_be16(&frame[kL3 + 10]); }

/// What forwarding by the book makes of `frame`.
Frame forwarded(Frame frame, std::size_t l3 = kL3) {
  --frame[l3 + 8];
  return with_header_checksum(std::move(frame), l3);
}

class Router : public ::testing::Test {
 protected:
  void write_routes(std::string_view text) { folder_.write("routes.txt", text); }
  Result<std::unique_ptr<nf::Nf>> make(std::string_view yaml = "routes: routes.txt") {
    return nf::testing::make_nf(catena_nf_router(), yaml, folder_.path());
  }
  RunResult run(std::vector<Frame> const& frames, std::string_view yaml = "routes: routes.txt",
                nf::testing::RunOptions const& options = {}) {
    return nf::testing::run_everywhere(
        catena_nf_router(), [&] { return make(yaml); }, frames, options);
  }

  ScratchFolder folder_;
};

TEST_F(Router, longest_prefix_gives_the_port) {
  write_routes("0.0.0.0/0 9\n10.0.0.0/8 1\n10.1.0.0/16 3\n10.1.2.0/25 4\n10.1.2.3/32 65533\n10.1.2.128/26 0\n");
  const RunResult result = run({frame_to(0x08080808), frame_to(0x0A020000), frame_to(0x0A01FFFF), frame_to(0x0A010204),
                                frame_to(0x0A010203), frame_to(0x0A010280), frame_to(0x0A0102C0)});
  std::vector<int> ports;
  for (auto const& packet : result.packets) {
    EXPECT_EQ(packet.verdict, packet::Verdict::kPass);
    ports.push_back(packet.port);
  }
  EXPECT_THAT(ports, ElementsAre(9, 1, 3, 4, 65533, 0, 3));
  EXPECT_EQ(result.records[1], R"({"packet":1,"nf":"router","verdict":"pass","port":1})");
  EXPECT_EQ(result.records[4], R"({"packet":4,"nf":"router","verdict":"pass","port":65533})");
}

TEST_F(Router, without_default_route_others_drop_unchanged_as_no_route) {
  write_routes("10.0.0.0/8 1\n");
  const std::vector<Frame> frames{frame_to(0x0A000001), frame_to(0x0B000000), frame_to(0x09FFFFFF)};
  const RunResult result = run(frames);
  EXPECT_EQ(result.packets[0].frame, forwarded(frames[0]));
  for (const std::size_t i : {1U, 2U}) {
    EXPECT_EQ(result.packets[i].verdict, packet::Verdict::kDrop);
    EXPECT_EQ(result.packets[i].frame, frames[i]);
    EXPECT_EQ(result.packets[i].port, 0);
  }
  EXPECT_EQ(result.dropped("no_route"), 2U);
  EXPECT_EQ(result.records[1], R"({"packet":1,"nf":"router","verdict":"drop","reason":"no_route"})");
}

TEST_F(Router, ttl_is_checked_before_the_route) {
  write_routes("10.0.0.0/8 1\n");
  const std::vector<Frame> frames{frame_to(0x0A000001, 0), frame_to(0x0A000001, 1), frame_to(0x0A000001, 2),
                                  frame_to(0x0B000001, 1), frame_to(0x0A000001, 255)};
  const RunResult result = run(frames);
  EXPECT_EQ(result.dropped("ttl_expired"), 3U);
  EXPECT_EQ(result.dropped("no_route"), 0U);
  EXPECT_EQ(result.packets[1].frame, frames[1]);
  EXPECT_EQ(result.packets[2].frame, forwarded(frames[2]));
  EXPECT_EQ(result.packets[4].frame, forwarded(frames[4]));
  EXPECT_EQ(result.records[3], R"({"packet":3,"nf":"router","verdict":"drop","reason":"ttl_expired"})");
}

TEST_F(Router, checksums_around_zero_equal_recomputed_ones) {
  write_routes("0.0.0.0/0 1\n");
  std::vector<Frame> frames;
  for (std::uint32_t id = 0; id <= 0xFFFF; ++id) {
    Frame frame = frame_to(0x0A000001, static_cast<std::uint8_t>(2 + id % 254));
    packet::store_be16(&frame[kL3 + 4], static_cast<std::uint16_t>(id));
    frame = with_header_checksum(std::move(frame));
    const std::uint16_t checksum = checksum_in(frame);
    if (checksum < 0x0202 || checksum > 0xFDFD) {
      frames.push_back(std::move(frame));
    }
  }
  ASSERT_GT(frames.size(), 1000U);
  const RunResult result = run(frames);
  std::uint32_t zeros = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    ASSERT_EQ(result.packets[i].frame, forwarded(frames[i])) << i;
    zeros += checksum_in(result.packets[i].frame) == 0 ? 1U : 0U;
  }
  EXPECT_GT(zeros, 0U);
}

TEST_F(Router, options_vlan_tags_and_fragments_are_forwarded) {
  write_routes("0.0.0.0/0 5\n");
  const Frame plain = frame_to(0x0A000001);
  const Frame options = with_header_checksum(nf::testing::with_options(plain, 1));
  const Frame tagged = nf::testing::with_vlan(plain, 1);
  const Frame fragment = with_header_checksum(nf::testing::with_fragment(plain, 0x0010));
  const RunResult result = run({options, tagged, fragment});
  EXPECT_EQ(result.packets[0].frame, forwarded(options));
  EXPECT_EQ(result.packets[1].frame, forwarded(tagged, 18));
  EXPECT_EQ(result.packets[2].frame, forwarded(fragment));
  EXPECT_EQ(result.packets[2].port, 5);
}

TEST_F(Router, frames_that_are_not_ipv4_are_not_bridged) {
  write_routes("0.0.0.0/0 5\n");
  Frame ipv6(60, 0);
  ipv6[12] = 0x86;
  ipv6[13] = 0xDD;
  const std::vector<Frame> frames{ipv6, Frame(), Frame(13, 0xFF), frame_to(0x0A000001)};
  const RunResult result = run(frames);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(result.packets[i].frame, frames[i]);
    EXPECT_EQ(result.packets[i].verdict, packet::Verdict::kDrop);
  }
  EXPECT_EQ(result.dropped("not_routable"), 3U);
  EXPECT_EQ(result.counters.unsupported, 3U);
}

TEST_F(Router, a_port_with_an_entry_gives_its_mac_addresses) {
  write_routes("10.0.0.0/8 1\n11.0.0.0/8 2\n");
  const std::string_view yaml =
      "routes: routes.txt\n"
      "ports:\n"
      "  - {port: 2, mac: 02:aa:00:00:00:01, next_hop_mac: fe:dc:ba:98:76:54}\n"
      "  - {port: 7, mac: 02:aa:00:00:00:02, next_hop_mac: 02:bb:00:00:00:02}\n";
  const std::vector<Frame> frames{frame_to(0x0A000001), frame_to(0x0B000001), frame_to(0x0B000001, 1),
                                  frame_to(0x0C000001)};
  const RunResult result = run(frames, yaml);
  EXPECT_EQ(result.packets[0].frame, forwarded(frames[0]));
  Frame expected = forwarded(frames[1]);
  const Frame macs{0xFE, 0xDC, 0xBA, 0x98, 0x76, 0x54, 0x02, 0xAA, 0x00, 0x00, 0x00, 0x01};
  std::copy(macs.begin(), macs.end(), expected.begin());
  EXPECT_EQ(result.packets[1].frame, expected);
  EXPECT_EQ(result.packets[2].frame, frames[2]);
  EXPECT_EQ(result.packets[3].frame, frames[3]);
}

TEST_F(Router, every_port_number_can_be_a_next_hop) {
  std::string text;
  std::vector<Frame> frames;
  for (std::uint32_t port = 0; port <= lpm::kMaxPort; ++port) {  // a /32 each, each in a /24 of its own
    const std::uint32_t address = 0x0A000001 + (port << 8);
    text += concat(to_string(packet::Ipv4Prefix{address, 32}), " ", port, "\n");
    if (port % 16 == 13 || port > lpm::kMaxPort - 3 || (port > 32760 && port < 32775)) {
      frames.push_back(frame_to(address));
      frames.push_back(frame_to(address + 1));
    }
  }
  write_routes(text);
  const RunResult result = run(frames);
  for (std::size_t i = 0; i < frames.size(); i += 2) {
    const std::uint32_t dst = nf::testing::destination_of(frames[i]);
    ASSERT_EQ(result.packets[i].port, (dst - 0x0A000001) >> 8);
    ASSERT_EQ(result.packets[i].verdict, packet::Verdict::kPass);
    ASSERT_EQ(result.packets[i + 1].verdict, packet::Verdict::kDrop);
  }
}

TEST_F(Router, cutting_packets_into_other_batches_changes_nothing) {
  write_routes("10.0.0.0/8 1\n10.128.0.0/9 2\n");
  std::vector<Frame> frames;
  auto random = [engine = std::mt19937(3)]() mutable { return static_cast<std::uint32_t>(engine()); };
  for (int i = 0; i < 300; ++i) {
    frames.push_back(frame_to(0x0A000000 + (random() & 0x01FFFFFF), static_cast<std::uint8_t>(random() % 4)));
  }
  const RunResult expected = run(frames);
  nf::testing::expect_same_in_units_of(
      {1, 31, 32, 33, 63, 65, 256, 300}, expected, catena_nf_router(), [this] { return make(); }, frames);
}

TEST_F(Router, hints_name_mac_addresses_only_with_a_port_table) {
  write_routes("10.0.0.0/8 1\n");
  const packet::FieldSet macs = packet::fields(packet::kEthDst, packet::kEthSrc);
  const packet::FieldSet always = packet::fields(packet::kIpv4Ttl, packet::kIpv4Checksum);
  const packet::FieldSet header =
      always | packet::fields(packet::kIpv4Version, packet::kIpv4Tos, packet::kIpv4Length, packet::kIpv4Id,
                              packet::kIpv4Fragment, packet::kIpv4Protocol, packet::kIpv4Src, packet::kIpv4Dst);
  const nf::Hints plain = (*make())->hints();
  EXPECT_EQ(plain.gr, header);
  EXPECT_EQ(plain.gw, plain.cw);
  EXPECT_EQ(plain.cw, always | packet::fields(packet::kMetaPort));
  const nf::Hints rewriting =
      (*make("{routes: routes.txt, ports: [{port: 1, mac: 02:00:00:00:00:01, next_hop_mac: 02:00:00:00:00:02}]}"))
          ->hints();
  EXPECT_EQ(rewriting.gr, plain.gr | macs);
  EXPECT_FALSE(packet::contains(rewriting.complete_reads, packet::kPayload)) << "nothing is answered";
  EXPECT_EQ(rewriting.gw, plain.gw | macs);
  EXPECT_EQ(rewriting.cw, plain.cw | macs);
}

TEST_F(Router, wrong_configuration_is_an_error_with_position) {
  write_routes("10.0.0.0/8 1\n10.0.0.0/8 2\n");
  EXPECT_THAT(std::string(make().status().message()), HasSubstr("routes.txt:2:1: prefix 10.0.0.0/8"));
  EXPECT_THAT(std::string(make("{routes: nowhere.txt}").status().message()), HasSubstr("nowhere.txt"));
  EXPECT_THAT(std::string(make("{route: routes.txt}").status().message()), HasSubstr("routes"));
  EXPECT_THAT(std::string(make("{routes: routes.txt, port: []}").status().message()), HasSubstr("'ports'"));
}

TEST_F(Router, start_report_counts_routes_and_ports) {
  write_routes("10.0.0.0/8 1\n11.0.0.0/8 2\n12.0.0.0/8 1\n");
  EXPECT_THAT((*make())->start_report(),
              ElementsAre(HasSubstr("3 routes to 2 ports"), HasSubstr("sends no ICMP errors")));
}

TEST_F(Router, a_route_that_is_there_twice_is_reported) {
  write_routes("10.0.0.0/8 1\n11.0.0.0/8 2\n11.0.0.0/8 2\n");
  EXPECT_THAT((*make())->start_report(),
              ElementsAre(HasSubstr("2 routes to 2 ports"), HasSubstr("sends no ICMP errors"),
                          ::testing::AllOf(::testing::StartsWith(nf::kWarning),
                                           HasSubstr("routes.txt:3: 11.0.0.0/8 2 is on line 2 already; delete one"))));
  write_routes("10.0.0.0/8 1\n10.0.0.0/8 1\n11.0.0.0/8 2\n11.0.0.0/8 2\n11.0.0.0/8 2\n");
  EXPECT_THAT((*make())->start_report().back(), HasSubstr("(2 routes are repeated)"));
}

/// The full Internet table: parsed here on its own, ports assigned as line number mod kPorts.
class FullTable : public Router {
 protected:
  static constexpr std::uint32_t kPorts = 64;

  void SetUp() override {
    const std::string data = shared_data();
    if (data.empty()) {
      GTEST_SKIP() << "the shared test data is not beside the checkout";
    }
    std::FILE* unzip = ::popen(("gzip -dc '" + data + "/routes/tier1_ipv4_901899.txt.gz'").c_str(), "r");
    ASSERT_NE(unzip, nullptr);
    std::ofstream routes(folder_.path("routes.txt"));
    unsigned a = 0, b = 0, c = 0, d = 0, length = 0;
    while (std::fscanf(unzip, "%u.%u.%u.%u/%u", &a, &b, &c, &d, &length) == 5) {
      const std::uint32_t address = a << 24 | b << 16 | c << 8 | d;
      const std::uint32_t port = (prefixes_.size() + 1) % kPorts;
      routes << a << '.' << b << '.' << c << '.' << d << '/' << length << ' ' << port << '\n';
      oracle_.add(address, static_cast<int>(length), static_cast<std::uint16_t>(port));
      prefixes_.emplace_back(address, length);
    }
    ASSERT_EQ(::pclose(unzip), 0);
    // the whole table, or the part of it in tests/data/oracles
    ASSERT_THAT(prefixes_.size(), ::testing::AnyOf(901899U, 45094U));
  }

  /// First and last address of each prefix longer than /24 and its neighbours, then addresses inside random prefixes
  /// and anywhere, up to `count`.
  std::vector<std::uint32_t> addresses(std::size_t count) const {
    std::vector<std::uint32_t> result;
    for (auto const& [address, length] : prefixes_) {
      if (length > 24) {
        const std::uint32_t last = address | static_cast<std::uint32_t>((std::uint64_t{1} << (32 - length)) - 1);
        result.insert(result.end(), {address - 1, address, last, last + 1});
      }
    }
    EXPECT_EQ(result.size(), 4U * (prefixes_.size() == 901899U ? 961 : 55));
    auto random = [engine = std::mt19937(20)]() mutable { return static_cast<std::uint32_t>(engine()); };
    while (result.size() < count) {
      auto const& [address, length] = prefixes_[random() % prefixes_.size()];
      const std::uint64_t size = std::uint64_t{1} << (32 - length);
      result.push_back(address + static_cast<std::uint32_t>(random() % size));
      result.push_back(random());
    }
    return result;
  }

  /// Whether RFC 1812 forbids to forward to `address`, whatever the routes.
  static bool is_special(std::uint32_t address) {
    const std::uint32_t net = address >> 24;
    return net == 0 || net == 127 || net >= 224 || (address & 0xFFFF0000) == 0xA9FE0000;
  }

  lpm::testing::LpmOracle oracle_;
  std::vector<std::pair<std::uint32_t, unsigned>> prefixes_;
};

TEST_F(FullTable, every_lookup_equals_the_plain_longest_prefix_match) {
  std::vector<Frame> frames;
  const std::vector<std::uint32_t> wanted = addresses(20000);
  for (const std::uint32_t address : wanted) {
    frames.push_back(frame_to(address));
  }
  const RunResult result = run(frames);
  ASSERT_EQ(result.packets.size(), frames.size());
  std::uint32_t forwarded_packets = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const auto expected = is_special(wanted[i]) ? std::nullopt : oracle_.find(wanted[i]);
    ASSERT_EQ(result.packets[i].verdict, expected ? packet::Verdict::kPass : packet::Verdict::kDrop) << wanted[i];
    ASSERT_EQ(result.packets[i].port, expected.value_or(0)) << wanted[i];
    ASSERT_EQ(result.packets[i].frame, expected ? forwarded(frames[i]) : frames[i]) << wanted[i];
    forwarded_packets += expected ? 1U : 0U;
  }
  EXPECT_GT(forwarded_packets, 10000U);
  const std::uint64_t special =
      result.dropped("multicast") + result.dropped("broadcast") + result.dropped("martian_destination");
  EXPECT_EQ(result.dropped("no_route") + special, frames.size() - forwarded_packets);
}

TEST_F(Router, replicas_share_the_routes_whatever_becomes_of_their_file) {
  write_routes("10.0.0.0/8 1\n10.1.0.0/16 3\n");
  const Result<std::unique_ptr<nf::Nf>> first = make();
  ASSERT_TRUE(first.ok()) << first.status();
  const std::vector<Frame> frames{frame_to(0x0A000001), frame_to(0x0A010001), frame_to(0x0B000001)};
  write_routes("0.0.0.0/0 7\n");
  for (const char* file : {"replaced", "deleted"}) {
    const RunResult result = nf::testing::run_everywhere(
        catena_nf_router(), [&] { return (*first)->replicate(1); }, frames);
    EXPECT_EQ(result.packets[0].port, 1U) << file;
    EXPECT_EQ(result.packets[1].port, 3U) << file;
    EXPECT_EQ(result.dropped("no_route"), 1U) << file;
    std::filesystem::remove(folder_.path("routes.txt"));
  }
  const Result<std::unique_ptr<nf::Nf>> replica = (*first)->replicate(2);
  ASSERT_TRUE(replica.ok()) << replica.status();
  const auto& whole = dynamic_cast<catena::router::Router&>(**first);
  EXPECT_TRUE(whole.shares_tables_with(dynamic_cast<catena::router::Router&>(**replica)));
  EXPECT_EQ((*first)->start_report(), (*replica)->start_report());
}

TEST_F(Router, replicas_forward_beside_each_other) {
  write_routes("10.0.0.0/8 1\n10.1.0.0/16 3\n10.1.2.0/25 4\n");
  const Result<std::unique_ptr<nf::Nf>> first = make();
  ASSERT_TRUE(first.ok()) << first.status();
  std::vector<Frame> frames;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    frames.push_back(frame_to(0x0A000000 + i * 0x1234));
  }
  const auto run_replica = [&](std::uint32_t shard) {
    return nf::testing::run(catena_nf_router(), std::move((*first)->replicate(shard)).value(), frames);
  };
  const RunResult expected = run_replica(1).value();
  std::vector<std::future<Result<RunResult>>> replicas;
  for (std::uint32_t shard = 1; shard < 4; ++shard) {
    replicas.push_back(std::async(std::launch::async, run_replica, shard));
  }
  for (auto& replica : replicas) {
    EXPECT_TRUE(replica.get().value().packets == expected.packets);
  }
}

}  // namespace
}  // namespace catena::router
