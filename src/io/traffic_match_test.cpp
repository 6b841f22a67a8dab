// SPDX-License-Identifier: Apache-2.0
#include "io/traffic_match.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/ether_type.hpp>
#include <catena/packet/headers.hpp>
#include <catena/packet/testing/frames.hpp>
#include <catena/packet/testing/traffic.hpp>

#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace catena::io {
namespace {

using packet::testing::ends_after;
using packet::testing::make_arp_request;
using packet::testing::make_echo;
using packet::testing::make_frame;
using packet::testing::with_fragment;
using Frame = std::vector<std::uint8_t>;

constexpr std::uint16_t kLaterFragment = 10;
constexpr std::uint16_t kMoreFragments = 0x2000;

Frame tagged(Frame frame, std::uint16_t tci, std::uint16_t type = packet::kVlanTag) {
  const std::array<std::uint8_t, packet::kTagBytes> tag{
      static_cast<std::uint8_t>(type >> 8), static_cast<std::uint8_t>(type), static_cast<std::uint8_t>(tci >> 8),
      static_cast<std::uint8_t>(tci)};
  frame.insert(frame.begin() + packet::kEtherTypeAt, tag.begin(), tag.end());
  return frame;
}

/// A few values of everything that a match speaks of, each with each.
std::vector<Frame> all_kinds() {
  std::vector<Frame> untagged{make_arp_request(0x0A000001, 0x0A000002), Frame(60, 0)};
  const std::string payload(20, 'x');
  for (const std::uint32_t src : {0x0A010000U, 0x0A010203U, 0x0A020203U, 0xC0A80001U}) {
    for (const std::uint32_t dst : {0x0A010203U, 0xAC100001U}) {
      for (const std::uint8_t protocol : {packet::kProtocolTcp, packet::kProtocolUdp}) {
        for (const std::uint16_t dport : std::initializer_list<std::uint16_t>{53, 80, 1024}) {
          untagged.push_back(make_frame(protocol, src, dst, 1000, dport, payload));
        }
        const Frame whole = make_frame(protocol, src, dst, 1000, 53, payload);
        untagged.push_back(with_fragment(whole, kLaterFragment));
        for (const std::size_t bytes : {4, 8, 16, 19}) {
          untagged.push_back(with_fragment(ends_after(whole, bytes), kMoreFragments));
          untagged.push_back(ends_after(whole, bytes));
        }
      }
      untagged.push_back(make_echo(src, dst, 1, 1, payload));
    }
  }
  std::vector<Frame> frames = untagged;
  for (Frame const& frame : untagged) {
    frames.push_back(tagged(frame, 10));
    frames.push_back(tagged(frame, 0x6000 | 20));  // with a priority
  }
  return frames;
}

TrafficMatch random_match(std::mt19937& random) {
  const auto pick = [&random](auto const& values) { return values[random() % values.size()]; };
  TrafficMatch match;
  match.vlan = pick(std::array<std::optional<std::uint16_t>, 5>{std::nullopt, std::nullopt, kUntagged, 10, 20});
  const std::array<std::optional<packet::Ipv4Prefix>, 6> prefixes{std::nullopt,
                                                                  std::nullopt,
                                                                  packet::Ipv4Prefix{0x0A000000, 8},
                                                                  packet::Ipv4Prefix{0x0A010000, 16},
                                                                  packet::Ipv4Prefix{0x0A010203, 32},
                                                                  packet::Ipv4Prefix{0, 0}};
  match.source = pick(prefixes);
  match.destination = pick(prefixes);
  match.protocol = pick(std::array<std::optional<std::uint8_t>, 4>{std::nullopt, std::nullopt, packet::kProtocolTcp,
                                                                   packet::kProtocolUdp});
  match.destination_ports = pick(std::array<std::optional<PortRange>, 6>{
      std::nullopt, std::nullopt, std::nullopt, PortRange{53, 53}, PortRange{0, 80}, PortRange{60, 2000}});
  match.source_ports =
      pick(std::array<std::optional<PortRange>, 4>{std::nullopt, std::nullopt, std::nullopt, PortRange{1000, 1000}});
  return match;
}

bool meets(TrafficMatch const& match, Frame const& frame) {
  return TrafficTable({{match, 0}}).owner_of(frame.data(), static_cast<std::uint32_t>(frame.size())).owner.has_value();
}

/// libpcap's filter, which asks the same of frames with and without a tag.
class Filter {
 public:
  explicit Filter(TrafficMatch const& match) : pcap_(pcap_open_dead(DLT_EN10MB, 65535), &pcap_close) {
    const std::string inner = conditions(match);
    std::string text = concat("(", inner, ") or (vlan and (", inner, "))");
    if (match.vlan) {
      text = *match.vlan == kUntagged ? concat("(", inner, ") and not vlan")
                                      : concat("vlan ", *match.vlan, " and (", inner, ")");
    }
    if (pcap_compile(pcap_.get(), &program_, text.c_str(), 1, PCAP_NETMASK_UNKNOWN) != 0) {
      throw std::runtime_error(concat(text, ": ", pcap_geterr(pcap_.get())));
    }
  }
  ~Filter() { pcap_freecode(&program_); }
  Filter(Filter const&) = delete;
  Filter& operator=(Filter const&) = delete;

  bool meets(Frame const& frame) const {
    pcap_pkthdr header{};
    header.caplen = header.len = static_cast<bpf_u_int32>(frame.size());
    return pcap_offline_filter(&program_, &header, frame.data()) != 0;
  }

 private:
  static std::string conditions(TrafficMatch const& match) {
    std::string text = "len >= 0";
    if (match.source) {
      text += concat(" and ip src net ", packet::to_string(*match.source));
    }
    if (match.destination) {
      text += concat(" and ip dst net ", packet::to_string(*match.destination));
    }
    if (match.protocol) {
      text += concat(" and ip proto ", int{*match.protocol});
    }
    if (match.source_ports) {
      text += concat(" and ip and src portrange ", match.source_ports->first, "-", match.source_ports->last);
    }
    if (match.destination_ports) {
      text += concat(" and ip and dst portrange ", match.destination_ports->first, "-", match.destination_ports->last);
    }
    return text;
  }

  std::unique_ptr<pcap_t, decltype(&pcap_close)> pcap_;
  bpf_program program_{};
};

TEST(TrafficMatch, takes_what_libpcap_takes) {
  const std::vector<Frame> frames = all_kinds();
  std::mt19937 random(7);
  std::size_t met = 0;
  for (int round = 0; round < 300; ++round) {
    const TrafficMatch match = random_match(random);
    const Filter filter(match);
    for (std::size_t i = 0; i < frames.size(); ++i) {
      ASSERT_EQ(meets(match, frames[i]), filter.meets(frames[i])) << to_string(match) << ", frame " << i;
      met += filter.meets(frames[i]) ? 1 : 0;
    }
  }
  EXPECT_GT(met, 1000U) << "or the frames are none that matches speak of";
}

TEST(TrafficMatch, a_tag_that_has_a_priority_alone_is_no_vlan) {
  const Frame frame = tagged(make_arp_request(1, 2), 0xE000);
  EXPECT_TRUE(meets({.vlan = kUntagged}, frame));
  EXPECT_FALSE(meets({.vlan = 10}, frame));
}

TEST(TrafficMatch, the_outer_of_two_tags_counts) {
  const Frame frame = tagged(tagged(make_frame(packet::kProtocolUdp, 1, 2, 3, 4, "x"), 10), 20, 0x88A8);
  EXPECT_TRUE(meets({.vlan = 20, .destination_ports = PortRange{4, 4}}, frame));
  EXPECT_FALSE(meets({.vlan = 10}, frame));
}

TEST(TrafficMatch, a_tag_of_every_type_names_the_vlan) {
  for (const std::uint16_t type : std::initializer_list<std::uint16_t>{0x8100, 0x88A8, 0x9100, 0x9200}) {
    const Frame frame = tagged(tagged(make_frame(packet::kProtocolUdp, 1, 2, 3, 4, "x"), 10), 20, type);
    EXPECT_TRUE(meets({.vlan = 20, .destination_ports = PortRange{4, 4}}, frame)) << std::hex << type;
    EXPECT_FALSE(meets({.vlan = kUntagged}, frame)) << std::hex << type;
  }
}

TEST(TrafficMatch, reads_nothing_behind_a_frame) {
  for (Frame const& whole : packet::testing::hostile_frames()) {
    const Frame frame(whole);  // as long as it is, for AddressSanitizer
    meets({.vlan = 10, .source = packet::Ipv4Prefix{0, 0}, .destination_ports = PortRange{1, 2}}, frame);
    meets({.source_ports = PortRange{1, 2}}, frame);
  }
}

TEST(TrafficMatch, overlaps_are_as_frames_show_them) {
  const std::vector<Frame> frames = all_kinds();
  std::mt19937 random(11);
  std::array<int, 5> seen{};
  for (int round = 0; round < 4000; ++round) {
    const TrafficMatch a = random_match(random);
    const TrafficMatch b = round % 50 == 0 ? a : random_match(random);
    const Overlap lie = overlap(a, b);
    ++seen[static_cast<std::size_t>(lie)];
    for (Frame const& frame : frames) {
      const bool of_a = meets(a, frame);
      const bool of_b = meets(b, frame);
      ASSERT_FALSE(lie == Overlap::kNone && of_a && of_b) << to_string(a) << " and " << to_string(b);
      ASSERT_FALSE(lie == Overlap::kSame && of_a != of_b) << to_string(a) << " and " << to_string(b);
      ASSERT_FALSE(lie == Overlap::kInside && of_a && !of_b) << to_string(a) << " and " << to_string(b);
      ASSERT_FALSE(lie == Overlap::kAround && of_b && !of_a) << to_string(a) << " and " << to_string(b);
    }
  }
  EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](int count) { return count > 5; })) << "too few of a kind";
}

TEST(TrafficMatch, both_sides_see_the_same_overlap) {
  std::mt19937 random(13);
  const auto mirrored = [](Overlap lie) {
    return lie == Overlap::kInside ? Overlap::kAround : lie == Overlap::kAround ? Overlap::kInside : lie;
  };
  for (int round = 0; round < 4000; ++round) {
    const TrafficMatch a = random_match(random);
    const TrafficMatch b = random_match(random);
    ASSERT_EQ(overlap(a, b), mirrored(overlap(b, a))) << to_string(a) << " and " << to_string(b);
    ASSERT_EQ(overlap(a, a), Overlap::kSame);
    ASSERT_NE(overlap(a, {}), Overlap::kCrossing) << "all frames are around any";
  }
}

TEST(TrafficTable, a_match_inside_another_goes_first) {
  const std::vector<Frame> frames = all_kinds();
  std::mt19937 random(17);
  std::size_t chosen = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<TrafficTable::Entry> entries;
    for (std::size_t owner = 0; owner < 6; ++owner) {
      const TrafficMatch match = random_match(random);
      const bool clashes = std::any_of(entries.begin(), entries.end(), [&match](TrafficTable::Entry const& entry) {
        const Overlap lie = overlap(match, entry.match);
        return lie == Overlap::kSame || lie == Overlap::kCrossing;
      });
      if (!clashes) {
        entries.push_back({match, owner});
      }
    }
    const TrafficTable table(entries);
    for (Frame const& frame : frames) {
      std::vector<TrafficTable::Entry> met;
      std::copy_if(entries.begin(), entries.end(), std::back_inserter(met),
                   [&frame](TrafficTable::Entry const& entry) { return meets(entry.match, frame); });
      const auto innermost = std::find_if(met.begin(), met.end(), [&met](TrafficTable::Entry const& entry) {
        return std::all_of(met.begin(), met.end(), [&entry](TrafficTable::Entry const& other) {
          return entry.owner == other.owner || overlap(entry.match, other.match) == Overlap::kInside;
        });
      });
      const std::optional<std::size_t> owner =
          table.owner_of(frame.data(), static_cast<std::uint32_t>(frame.size())).owner;
      ASSERT_EQ(owner.has_value(), innermost != met.end());
      if (owner) {
        ASSERT_EQ(*owner, innermost->owner);
        chosen += met.size() > 1 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(chosen, 100U) << "or there was nothing to choose";
}

TEST(TrafficTable, a_frame_that_hides_its_ports_is_nobodys_where_a_match_asks_for_them) {
  const TrafficTable table({{{.destination = packet::Ipv4Prefix{0x0A010000, 16},
                              .protocol = packet::kProtocolTcp,
                              .destination_ports = PortRange{53, 53}},
                             0},
                            {{}, 1}});
  const auto owner_of = [&table](Frame const& frame) {
    const TrafficTable::Found found = table.owner_of(frame.data(), static_cast<std::uint32_t>(frame.size()));
    return found.is_hidden ? -1 : static_cast<int>(found.owner.value());
  };
  const auto frame_to = [](std::uint8_t protocol, std::uint32_t destination) {
    return make_frame(protocol, 1, destination, 1000, 53, "text");
  };
  const Frame to_match = frame_to(packet::kProtocolTcp, 0x0A010203);
  EXPECT_EQ(owner_of(to_match), 0);
  EXPECT_EQ(owner_of(with_fragment(ends_after(to_match, 3), kMoreFragments)), -1);
  EXPECT_EQ(owner_of(ends_after(to_match, 3)), -1);
  EXPECT_EQ(owner_of(with_fragment(to_match, 1)), -1) << "it could overwrite the header";
  EXPECT_EQ(owner_of(with_fragment(to_match, 2)), 1);
  EXPECT_EQ(owner_of(with_fragment(frame_to(packet::kProtocolTcp, 0x0A020203), 1)), 1) << "no match asks for its ports";
  EXPECT_EQ(owner_of(ends_after(frame_to(packet::kProtocolUdp, 0x0A010203), 3)), 1);
}

TEST(TrafficMatch, only_tcp_and_udp_have_ports) {
  const TrafficMatch icmp{.protocol = packet::kProtocolIcmp};
  const TrafficMatch names{.destination_ports = PortRange{53, 53}};
  EXPECT_EQ(overlap(icmp, names), Overlap::kNone);
  EXPECT_EQ(overlap(names, icmp), Overlap::kNone);
  EXPECT_EQ(overlap(TrafficMatch{.protocol = packet::kProtocolUdp}, names), Overlap::kCrossing);
}

TEST(TrafficMatch, is_written_as_in_a_chain_file) {
  EXPECT_EQ(to_string(TrafficMatch{}), "everything else");
  EXPECT_EQ(to_string(TrafficMatch{.vlan = kUntagged,
                                   .source = packet::Ipv4Prefix{0x0A010000, 16},
                                   .protocol = 17,
                                   .destination_ports = PortRange{53, 53}}),
            "vlan untagged, src 10.1.0.0/16, protocol 17, dport 53");
  EXPECT_EQ(to_string(TrafficMatch{.vlan = 7, .source_ports = PortRange{1, 9}}), "vlan 7, sport 1-9");
}

}  // namespace
}  // namespace catena::io
