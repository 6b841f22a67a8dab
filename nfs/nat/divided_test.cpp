// SPDX-License-Identifier: Apache-2.0
// Several NATs that divide the packets, against one that sees them all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <catena/core/text.hpp>
#include <catena/nf/testing/packet_store.hpp>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <tuple>
#include <utility>

#include "nat_testing.hpp"

namespace catena::nat::testing {
namespace {

using namespace nf::testing;
using packet::load_be16;
using packet::load_be32;
using packet::store_be16;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;
using Sent = DividedNat::Sent;

constexpr std::string_view kFourAddresses = "inside: [10.0.0.0/8]\nexternal: [203.0.113.1-203.0.113.4]\n";
constexpr std::uint64_t kStart = 1'700'000'000 * kSecond;
constexpr std::uint32_t kInnerRouter = 0x0A0000FE;
constexpr std::uint32_t kOuterRouter = 0xC0000201;
bool is_external(std::uint32_t address) { return address >= kExternal && address < kExternal + 4; }
bool is_icmp_error(Frame const& frame, std::size_t l3) {
  return frame[l3 + 9] == kIcmpProtocol && frame[l3 + 20] != 0 && frame[l3 + 20] != 8;
}

/// One NAT and several that divide the packets, with the same traffic. What leaves them must be the same but for the
/// external ports, of which each of one stands for one of the other.
class Pair {
 public:
  explicit Pair(std::uint32_t shards)
      : one_(kFourAddresses, 1), many_(kFourAddresses, shards), ports_({1024, 65535}, shards) {}

  struct Outcomes {
    Sent one;
    Sent many;
    bool passed() const { return !one.frame.empty() && !many.frame.empty(); }
  };
  Outcomes send(Frame const& for_one, Frame const& for_many) {
    now_ns_ += 100'000;
    Outcomes sent{one_.send(for_one, now_ns_), many_.send(for_many, now_ns_)};
    EXPECT_EQ(sent.one.drop_reason, sent.many.drop_reason);
    ++reasons_[sent.one.drop_reason];
    if (sent.passed()) {
      Frame a = sent.one.frame;
      Frame b = sent.many.frame;
      blank_ports(a, b, kL3);
      EXPECT_EQ(a, b);
    }
    return sent;
  }
  Outcomes send(Frame const& frame) { return send(frame, frame); }
  /// Sends echo requests to an external address.
  void ping(Frame const& for_one, Frame const& for_many) {
    now_ns_ += 10'000'000;  // below the rate of answers
    EXPECT_EQ(one_.send(for_one, now_ns_).frame, echo_answer(for_one));
    EXPECT_EQ(many_.send(for_many, now_ns_).frame, echo_answer(for_many));
  }

  /// Other NATs take the place of the divided ones.
  void change_shards(std::uint32_t shards) {
    DividedNat next(kFourAddresses, shards);
    next.take_over(many_);
    many_ = std::move(next);
  }

  /// How many packets left, by the reason for which others were dropped.
  std::map<std::string_view, std::uint32_t> const& reasons() const { return reasons_; }
  std::size_t renamed() const {
    std::size_t count = 0;
    for (auto const& [many, one] : one_for_many_) {
      count += many != one ? 1 : 0;
    }
    return count;
  }
  void expect_same_statistics() {
    for (const std::string_view name : {"mappings", "mappings_created", "mappings_expired", "half_open", "sessions"}) {
      EXPECT_EQ(one_.statistic(name), many_.statistic(name)) << name;
    }
  }

 private:
  using End = std::tuple<std::uint8_t, std::uint32_t, std::uint16_t>;  // protocol, external address, port

  /// Notes which external port of the second frame is which of the first, and clears them and what covers them.
  void blank_ports(Frame& one, Frame& many, std::size_t l3) {
    ASSERT_EQ(one.size(), many.size());
    const std::uint8_t protocol = one[l3 + 9];
    const std::size_t l4 = l3 + 20;
    if ((load_be16(&one[l3 + 6]) & 0x1FFF) != 0) {
      return;  // a later fragment
    }
    if (is_icmp_error(one, l3)) {
      blank_ports(one, many, l4 + 8);
    } else if (protocol == kIcmpProtocol) {
      blank_port(one, many, l4 + 4, protocol, is_external(load_be32(&one[l3 + 12])) ? l3 + 12 : l3 + 16);
    } else {
      blank_port(one, many, l4, protocol, l3 + 12);
      blank_port(one, many, l4 + 2, protocol, l3 + 16);
    }
    const std::size_t checksum = l4 + (protocol == kTcpProtocol ? 16 : protocol == kUdpProtocol ? 6 : 2);
    if (checksum + 2 <= one.size()) {
      store_be16(&one[checksum], 0);
      store_be16(&many[checksum], 0);
    }
  }
  void blank_port(Frame& one, Frame& many, std::size_t at, std::uint8_t protocol, std::size_t address_at) {
    const std::uint32_t address = load_be32(&one[address_at]);
    if (is_external(address)) {
      const End a{protocol, address, load_be16(&one[at])};
      const End b{protocol, address, load_be16(&many[at])};
      EXPECT_EQ(one_for_many_.emplace(b, a).first->second, a);
      EXPECT_EQ(many_for_one_.emplace(a, b).first->second, b);
      EXPECT_EQ(std::get<2>(a) % 2, std::get<2>(b) % 2) << "parity";
      store_be16(&one[at], 0);
      store_be16(&many[at], 0);
    }
  }

  DividedNat one_;
  DividedNat many_;
  PortParts ports_;
  std::map<End, End> one_for_many_;
  std::map<End, End> many_for_one_;
  std::map<std::string_view, std::uint32_t> reasons_;
  std::uint64_t now_ns_ = kStart;
};

/// Sends random packets of every kind to a Pair, most of them about those that it has sent.
class Traffic {
 public:
  Traffic(Pair& pair, unsigned seed) : pair_(&pair), engine_(seed) {}

  void send_one() {
    const std::uint32_t kind = below(16);
    if (flows_.empty() || kind < 5) {
      open_flow();
    } else if (kind < 8) {
      answer();
    } else if (kind < 9) {
      outer_error();
    } else if (kind < 10) {
      inner_error();
    } else if (kind < 12) {
      hairpin();
    } else if (kind < 14) {
      fragments();
    } else {
      send_to_nobody();
    }
  }
  void change_shards(std::uint32_t shards) {
    pair_->change_shards(shards);
    for (Flow& each : flows_) {
      each.shard = std::nullopt;
    }
  }
  std::uint32_t cross_hairpins() const { return cross_hairpins_; }
  std::uint32_t later_fragments() const { return later_fragments_; }

 private:
  /// A packet that left for outside, before and behind the NATs.
  struct Flow {
    Frame sent;
    Frame one;
    Frame many;
    std::optional<std::uint32_t> shard;  ///< nullopt: there were other ones
    bool has_ports() const { return sent[kL3 + 9] != kIcmpProtocol; }
  };

  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(engine_() % limit); }
  std::uint32_t host() { return 0x0A000000 + below(60); }
  std::uint32_t server() { return 0x08000000 + below(1U << 24); }
  std::uint16_t port() { return static_cast<std::uint16_t>(below(3) == 0 ? below(65536) : 5000 + below(8)); }
  Flow const& flow() { return flows_[below(static_cast<std::uint32_t>(flows_.size()))]; }
  std::uint8_t flags() {
    constexpr std::array kFlags{kSyn, kAck, kAck, std::uint8_t{kFin | kAck}, kRst};
    return kFlags.at(below(kFlags.size()));
  }

  void open_flow() {
    Frame sent;
    switch (below(3)) {
      case 0:
        sent = echo_request(host(), server(), port());
        break;
      case 1:
        sent = make_segment(host(), server(), port(), 80, kSyn);
        break;
      default:
        sent = udp(host(), port(), server(), 53);
        break;
    }
    const auto outcomes = pair_->send(sent);
    ASSERT_TRUE(outcomes.passed());
    EXPECT_TRUE(has_right_checksums(outcomes.many.frame));
    flows_.push_back({sent, outcomes.one.frame, outcomes.many.frame, outcomes.many.shard});
  }
  void answer() {
    Flow const& about = flow();
    Frame to_one = answer_to(about.one);
    Frame to_many = answer_to(about.many);
    if (about.sent[kL3 + 9] == kTcpProtocol) {
      to_one[kL4 + 13] = to_many[kL4 + 13] = flags();
      to_one = with_checksums(std::move(to_one));
      to_many = with_checksums(std::move(to_many));
    }
    const auto outcomes = pair_->send(to_one, to_many);
    ASSERT_TRUE(outcomes.passed());
    EXPECT_TRUE(has_right_checksums(outcomes.many.frame));
    EXPECT_EQ(outcomes.many.shard, about.shard.value_or(outcomes.many.shard)) << "both directions of a flow";
    received_.emplace_back(outcomes.one.frame, outcomes.many.frame);
  }
  void outer_error() {
    Flow const& about = flow();
    constexpr std::array<std::size_t, 4> kQuoted{8, 12, 18, 28};  // 17 would cut a TCP checksum in two
    const std::size_t quoted = kQuoted.at(below(kQuoted.size()));
    const auto outcomes =
        pair_->send(make_error(11, kOuterRouter, about.one, quoted), make_error(11, kOuterRouter, about.many, quoted));
    ASSERT_TRUE(outcomes.passed());
    EXPECT_TRUE(has_right_checksums(outcomes.many.frame));
    EXPECT_EQ(outcomes.many.frame, make_error(11, kOuterRouter, about.sent, quoted));
  }
  /// By the host that got a packet, or a router near it; also about hairpinned ones.
  void inner_error() {
    if (received_.empty()) {
      return;
    }
    auto const& [one, many] = received_[below(static_cast<std::uint32_t>(received_.size()))];
    const std::uint32_t from = below(2) == 0 ? kInnerRouter : destination_of(one);
    const auto outcomes = pair_->send(make_error(3, from, one), make_error(3, from, many));
    ASSERT_TRUE(outcomes.passed());
    EXPECT_TRUE(has_right_checksums(outcomes.many.frame));
  }
  void hairpin() {
    Flow const& to = flow();
    const std::uint8_t protocol = to.sent[kL3 + 9];
    const std::uint32_t from = host();
    const std::uint16_t from_port = port();
    const auto make = [&](Frame const& receiver) {
      return protocol == kTcpProtocol
                 ? make_segment(from, source_of(receiver), from_port, source_port_of(receiver), kSyn)
             : protocol == kUdpProtocol ? udp(from, from_port, source_of(receiver), source_port_of(receiver))
                                        : echo_request(from, source_of(receiver), load_be16(&receiver[kL4 + 4]));
    };
    if (!to.has_ports()) {
      pair_->ping(make(to.one), make(to.many));
      return;
    }
    const auto outcomes = pair_->send(make(to.one), make(to.many));
    ASSERT_TRUE(outcomes.passed());
    EXPECT_TRUE(has_right_checksums(outcomes.many.frame));
    EXPECT_EQ(destination_of(outcomes.many.frame), source_of(to.sent));
    EXPECT_EQ(destination_port_of(outcomes.many.frame), source_port_of(to.sent));
    cross_hairpins_ += outcomes.many.shard != to.shard ? 1 : 0;
    received_.emplace_back(outcomes.one.frame, outcomes.many.frame);
  }
  /// In both directions and hairpinned; sometimes the later one comes first.
  void fragments() {
    Flow const& about = flow();
    if (!about.has_ports()) {
      return;
    }
    const std::uint32_t direction = below(3);
    const std::uint32_t neighbour = host();
    const auto make = [&](Frame const& external) {
      const auto datagram = [&about](std::uint32_t source, std::uint16_t source_port, std::uint32_t destination,
                                     std::uint16_t destination_port) {
        return make_frame(about.sent[kL3 + 9], source, destination, source_port, destination_port,
                          std::string(100, 'f'));
      };
      return direction == 0   ? datagram(source_of(about.sent), source_port_of(about.sent), kServer, 53)
             : direction == 1 ? datagram(kServer, 53, source_of(external), source_port_of(external))
                              : datagram(neighbour, 4000, source_of(external), source_port_of(external));
    };
    const auto id = static_cast<std::uint16_t>(next_id_++);
    const auto [first_one, second_one] = in_two(make(about.one), id, 64);
    const auto [first_many, second_many] = in_two(make(about.many), id, 64);
    const bool is_late = below(5) == 0;
    if (is_late) {
      EXPECT_EQ(pair_->send(second_one, second_many).many.drop_reason, "fragment");
    }
    EXPECT_TRUE(pair_->send(first_one, first_many).passed());
    EXPECT_TRUE(pair_->send(second_one, second_many).passed());
    ++later_fragments_;
  }
  void send_to_nobody() {
    const std::vector<std::uint8_t> nothing;
    const std::array frames{
        udp(server(), 53, kExternal + below(4), static_cast<std::uint16_t>(1 + below(1023))),
        udp(host(), port(), kExternal, 700),
        echo_reply(host(), server(), port()),
        make_frame(50, host(), server(), 0, 0, "esp"),
        make_frame(47, server(), kExternal, 0, 0, "gre"),
        udp(server(), port(), host(), port()),
        udp(host(), port(), host(), port()),
        udp(host(), 5353, 0xE00000FB, 5353),
        udp(server(), port(), server(), port()),
        make_error(3, host(), udp(server(), 1, 0x0A630000, 9)),
        make_error(3, kOuterRouter, udp(kExternal, 701, server(), 9)),
        make_error(11, host(), udp(server(), 1, kServer, 9)),
        make_icmp(3, 3, server(), kExternal, 0, nothing),
        make_icmp(13, 0, server(), kExternal, 0, nothing),
    };
    pair_->send(frames.at(below(frames.size())));
    const Frame request = echo_request(server(), kExternal, port());
    pair_->ping(request, request);
  }

  Pair* pair_;
  std::mt19937 engine_;
  std::vector<Flow> flows_;
  std::vector<std::pair<Frame, Frame>> received_;
  std::uint32_t next_id_ = 0;
  std::uint32_t cross_hairpins_ = 0;
  std::uint32_t later_fragments_ = 0;
};

class Divided : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  std::uint32_t shards() const { return GetParam(); }
  DividedNat make_divided(std::string_view more = "") const { return {concat(kOneAddress, more), shards()}; }
};
INSTANTIATE_TEST_SUITE_P(Shards, Divided, ::testing::Values(2U, 3U, 8U));

TEST_P(Divided, several_nats_do_what_one_does_but_for_the_numbers_of_external_ports) {
  Pair pair(shards());
  Traffic traffic(pair, shards());
  for (std::uint32_t i = 0; i < 6000 && !HasFailure(); ++i) {
    traffic.send_one();
  }
  EXPECT_GT(traffic.cross_hairpins(), 100U);
  EXPECT_GT(traffic.later_fragments(), 100U);
  EXPECT_GT(pair.renamed(), 100U);
  for (const std::string_view reason :
       {"", "no_mapping", "fragment", "malformed", "unsupported_protocol", "inbound_to_inside"}) {
    EXPECT_THAT(pair.reasons(), Contains(Key(reason)));
  }
  pair.expect_same_statistics();
}

TEST(ChangeOfShards, mappings_sessions_and_ports_stay_whichever_shard_has_them) {
  Pair pair(1);
  Traffic traffic(pair, 1);
  for (const std::uint32_t shards : {1U, 3U, 1U, 4U, 2U, 2U, 16U, 3U}) {
    traffic.change_shards(shards);
    for (std::uint32_t i = 0; i < 1000 && !HasFailure(); ++i) {
      traffic.send_one();
    }
    pair.expect_same_statistics();
  }
  EXPECT_GT(traffic.cross_hairpins(), 100U);
  EXPECT_GT(pair.renamed(), 100U);
}

TEST(ChangeOfShards, a_port_belongs_to_one_shard_before_and_after_its_mapping) {
  const std::string yaml = concat(kOneAddress, "ports: 3001-3033\ntimeouts: {udp: 300}\n");
  const auto fill = [](DividedNat& nat, std::uint32_t first_host, std::uint64_t now_ns) {
    std::set<std::uint16_t> ports;
    for (std::uint32_t i = 0; i < 2000; ++i) {
      const Sent sent = nat.send(udp(kHost + first_host + i, 3001, kServer, 53), now_ns);
      if (!sent.frame.empty()) {
        EXPECT_TRUE(ports.insert(source_port_of(sent.frame)).second);
        EXPECT_EQ(nat.send(answer_to(sent.frame), now_ns).shard, sent.shard);
      }
    }
    return ports;
  };
  DividedNat one(yaml, 1);
  std::set<std::uint16_t> ports;
  for (std::uint32_t i = 0; i < 20; ++i) {
    ports.insert(source_port_of(one.send(udp(kHost + i, 3001, kServer, 53), kStart).frame));
  }
  DividedNat four(yaml, 4);
  four.take_over(one);
  ports.merge(fill(four, 20, kStart));
  EXPECT_EQ(ports.size(), 33U) << "each is given out once";
  EXPECT_EQ(fill(four, 5000, kStart + 400 * kSecond).size(), 33U) << "and again";
  DividedNat two(yaml, 2);
  two.take_over(four);
  EXPECT_TRUE(fill(two, 9000, kStart + 400 * kSecond).empty());
  EXPECT_EQ(fill(two, 9000, kStart + 800 * kSecond).size(), 33U);
}

TEST(ChangeOfShards, limits_that_a_shard_has_reached_end_no_mapping) {
  const std::string yaml = concat(kOneAddress, "max_mappings: 60\nmax_sessions: 90\n");
  DividedNat one(yaml, 1);
  for (std::uint32_t i = 0; i < 60; ++i) {
    one.send(make_segment(kHost + i / 30, kServer, static_cast<std::uint16_t>(5000 + i), 80, kSyn), kStart);
    one.send(make_segment(kHost + i / 30, kServer + 1, static_cast<std::uint16_t>(5000 + i), 80, kSyn), kStart);
  }
  DividedNat four(yaml, 4);
  four.take_over(one);
  EXPECT_EQ(four.statistic("mappings"), one.statistic("mappings"));
  EXPECT_EQ(four.statistic("sessions"), one.statistic("sessions"));
  EXPECT_GT(four.statistic("mappings"), 15U);
  EXPECT_EQ(four.statistic("mappings_peak"), one.statistic("mappings_peak"));
  DividedNat again(yaml, 1);
  again.take_over(four);
  EXPECT_EQ(again.statistic("mappings"), one.statistic("mappings"));
  EXPECT_EQ(again.statistic("mappings_peak"), one.statistic("mappings_peak"));
}

TEST(ChangeOfShards, a_shard_beyond_its_part_of_a_limit_makes_no_mapping) {
  const std::string yaml = concat(kOneAddress, "max_mappings: 40\ntimeouts: {udp: 300}\n");
  const auto send = [](DividedNat& nat, std::uint32_t flow, std::uint64_t second) {
    const auto port = static_cast<std::uint16_t>(5000 + flow);
    return nat.send(udp(kHost, port, kServer, 53), kStart + second * kSecond).drop_reason;
  };
  DividedNat one(yaml, 1);
  for (std::uint32_t flow = 0; flow < 40; ++flow) {
    EXPECT_EQ(send(one, flow, 0), "");
  }
  DividedNat four(yaml, 4);
  four.take_over(one);
  for (std::uint32_t flow = 0; flow < 20; ++flow) {
    EXPECT_EQ(send(four, flow, 200), "");
  }
  EXPECT_EQ(send(four, 50, 400), "pool_exhausted") << "20 are left, and 10 are its part";
  EXPECT_EQ(send(four, 51, 600), "");
  EXPECT_LE(four.statistic("mappings"), 10U);
}

TEST(ChangeOfShards, a_peak_is_counted_once) {
  constexpr std::uint32_t kHosts = 60;
  auto nat = std::make_unique<DividedNat>(kOneAddress, 1);
  std::uint64_t now_ns = kStart;
  for (const std::uint32_t shards : {1U, 4U, 1U, 3U}) {
    auto next = std::make_unique<DividedNat>(kOneAddress, shards);
    next->take_over(*nat);
    nat = std::move(next);
    now_ns += 1000 * kSecond;  // the last ones have ended
    for (std::uint32_t i = 0; i < kHosts; ++i) {
      nat->send(udp(kHost + i, 1234, kServer, 53), now_ns);
    }
    EXPECT_EQ(nat->statistic("mappings_peak"), kHosts) << shards;
  }
}

TEST(ChangeOfShards, counts_continue) {
  DividedNat before(concat(kOneAddress, "echo_rate: 2\n"), 2);
  for (std::uint32_t i = 0; i < 20; ++i) {
    before.send(echo_request(kServer + i, kExternal, 7), kStart);
  }
  const std::uint64_t replies = before.statistic("echo_replies");
  EXPECT_GT(replies, 0U);
  for (const std::uint32_t shards : {1U, 2U, 3U}) {
    DividedNat from(concat(kOneAddress, "echo_rate: 2\n"), shards);
    from.take_over(before);
    EXPECT_EQ(from.statistic("echo_replies"), replies) << shards;
    EXPECT_EQ(from.statistic("echo_replies_over_rate"), 20 - replies) << shards;
  }
}

TEST(ChangeOfShards, idle_time_counts_from_the_last_packet_in_any_shard) {
  DividedNat three(kOneAddress, 3);
  std::vector<Frame> sent;
  for (std::uint32_t i = 0; i < 30; ++i) {
    sent.push_back(three.send(udp(kHost + i, 1234, kServer, 53), kStart + i * 5 * kSecond).frame);
  }
  DividedNat two(kOneAddress, 2);
  two.take_over(three);
  for (std::uint32_t i = 0; i < 30; ++i) {
    const Sent answer = two.send(answer_to(sent[i]), kStart + 350 * kSecond);
    EXPECT_EQ(answer.drop_reason, i < 10 ? "no_mapping" : "") << i;
  }
}

TEST(ChangeOfShards, a_later_fragment_follows_a_first_one_from_before) {
  for (const std::uint32_t shards : {1U, 3U}) {
    DividedNat before(kOneAddress, 3);
    const Frame out = before.send(udp(kHost, 1234, kServer, 53), kStart).frame;
    const Frame datagram = make_frame(kUdpProtocol, kServer, kExternal, 53, source_port_of(out), std::string(100, 'f'));
    const auto [first, second] = in_two(datagram, 7, 64);
    EXPECT_EQ(before.send(first, kStart).drop_reason, "");
    DividedNat after(kOneAddress, shards);
    after.take_over(before);
    EXPECT_EQ(after.send(second, kStart).drop_reason, "");
  }
}

TEST_P(Divided, a_port_is_kept_where_it_is_of_the_host_s_shard_and_else_its_parity) {
  DividedNat nat = make_divided();
  const PortParts parts({1024, 65535}, shards());
  const PortParts identifiers({0, 65535}, shards());
  std::set<std::uint16_t> taken;
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < 400; ++i) {
    const auto port = static_cast<std::uint16_t>(2000 + i * 150);
    const Sent sent = nat.send(udp(kHost + i, port, kServer, 53), kStart);
    const std::uint16_t external = source_port_of(sent.frame);
    EXPECT_EQ(parts.part_with(external), sent.shard);
    EXPECT_EQ(external % 2, port % 2);
    kept += external == port ? 1 : 0;
    ASSERT_EQ(external == port, parts.part_with(port) == sent.shard && !taken.contains(port));
    ASSERT_TRUE(taken.insert(external).second);
    const Sent echo = nat.send(echo_request(kHost + i, kServer, port), kStart);
    EXPECT_EQ(identifiers.part_with(load_be16(&echo.frame[kL4 + 4])), sent.shard);
  }
  EXPECT_GT(kept, 0U);
  EXPECT_LT(kept, 400U);
}

TEST_P(Divided, limits_are_those_of_all) {
  DividedNat nat = make_divided("max_mappings: 50\nmax_half_open: 20\n");
  for (std::uint32_t i = 0; i < 1000; ++i) {
    nat.send(make_segment(kHost + i, kServer, 5000, 80, kSyn), kStart);
  }
  EXPECT_EQ(nat.statistic("half_open"), 20U);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    nat.send(udp(kHost + i, 5000, kServer, 53), kStart);
  }
  EXPECT_EQ(nat.statistic("mappings"), 50U);
  EXPECT_EQ(nat.statistic("mappings_peak"), 50U);
}

TEST_P(Divided, every_port_of_the_range_is_given_out_once) {
  DividedNat nat = make_divided("ports: 3001-3033\n");
  std::set<std::uint16_t> ports;
  std::uint32_t passed = 0;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    const Sent sent = nat.send(udp(kHost + i, 3001, kServer, 53), kStart);
    if (!sent.frame.empty()) {
      ++passed;
      ports.insert(source_port_of(sent.frame));
    } else {
      ASSERT_EQ(sent.drop_reason, "pool_exhausted");
    }
  }
  EXPECT_EQ(passed, 33U);
  EXPECT_EQ(ports.size(), 33U);
  EXPECT_EQ(*ports.begin(), 3001);
  EXPECT_EQ(*ports.rbegin(), 3033);
}

TEST_P(Divided, reports_of_all_shards_say_the_same) {
  DividedNat nat = make_divided("max_mappings: 800000\n");
  EXPECT_EQ(catena_nf_nat().sharding, nf::Sharding::kOwn);
  for (std::uint32_t shard = 0; shard < shards(); ++shard) {
    EXPECT_EQ(nat.nat(shard).nf().start_report(), nat.nat(0).nf().start_report());
  }
  EXPECT_THAT(nat.nat(0).nf().start_report().at(0), HasSubstr("ports 1024 to 65535, at most 800000 mappings in"));
}

TEST(Divided, one_nat_has_one_shard) {
  DividedNat nat(kOneAddress, 1);
  EXPECT_EQ(source_port_of(nat.send(udp(kHost, 1234, kServer, 53), kStart).frame), 1234);
  EXPECT_EQ(nat.statistic("mappings"), 1U);
}

// ---- Hairpins

/// Two hosts of different shards, each with an endpoint that it has mapped.
class Neighbours {
 public:
  Neighbours(std::string_view yaml, std::uint64_t now_ns) : nat_(yaml, 2) {
    for (std::uint32_t host = kHost; ends_[0].frame.empty() || ends_[1].frame.empty(); ++host) {
      const Sent sent = nat_.send(udp(host, 4444, kServer, 53), now_ns);
      ends_.at(sent.shard) = sent;
      hosts_.at(sent.shard) = host;
    }
  }
  DividedNat& nat() { return nat_; }
  std::uint32_t host(std::uint32_t shard) const { return hosts_.at(shard); }
  /// What the host of shard `from` gets through to the endpoint of the other one.
  Sent send(std::uint32_t from, std::uint64_t now_ns, std::uint16_t port = 4444) {
    Frame const& receiver = ends_.at(1 - from).frame;
    return nat_.send(udp(host(from), port, source_of(receiver), source_port_of(receiver)), now_ns);
  }
  /// What the server gets through to the endpoint of shard `to`.
  Sent answer(std::uint32_t to, std::uint64_t now_ns) { return nat_.send(answer_to(ends_.at(to).frame), now_ns); }

 private:
  DividedNat nat_;
  std::array<Sent, 2> ends_;
  std::array<std::uint32_t, 2> hosts_{};
};

TEST(DividedHairpin, reaches_the_host_of_another_shard_in_both_directions) {
  Neighbours neighbours(kOneAddress, kStart);
  for (const std::uint32_t from : {0U, 1U}) {
    const Sent sent = neighbours.send(from, kStart);
    ASSERT_EQ(sent.drop_reason, "");
    EXPECT_EQ(sent.shard, from);
    EXPECT_EQ(source_of(sent.frame), kExternal);
    EXPECT_EQ(destination_of(sent.frame), neighbours.host(1 - from));
    EXPECT_EQ(destination_port_of(sent.frame), 4444);
  }
}

TEST(DividedHairpin, refreshes_the_sender_and_not_the_receiver) {
  Neighbours neighbours(kOneAddress, kStart);
  EXPECT_EQ(neighbours.send(0, kStart + 299 * kSecond).drop_reason, "");
  EXPECT_EQ(neighbours.answer(0, kStart + 301 * kSecond).drop_reason, "");
  EXPECT_EQ(neighbours.answer(1, kStart + 301 * kSecond).drop_reason, "no_mapping");
}

TEST(DividedHairpin, that_reaches_nobody_makes_no_mapping) {
  Neighbours neighbours(kOneAddress, kStart);
  const std::uint64_t before = neighbours.nat().statistic("mappings_created");
  EXPECT_EQ(neighbours.nat().send(udp(neighbours.host(0), 7777, kExternal, 65535), kStart).drop_reason, "no_mapping");
  EXPECT_EQ(neighbours.nat().send(udp(neighbours.host(1), 7777, kExternal, 1026), kStart).drop_reason, "no_mapping");
  EXPECT_EQ(neighbours.nat().statistic("mappings_created"), before);
}

/// Stamps of one shard say nothing to another: one that is far ahead would end all its mappings, and stop its time.
TEST(DividedHairpin, leaves_the_receiver_s_shard_its_own_time) {
  constexpr std::uint64_t kFar = kStart + 500'000 * kSecond;
  Neighbours neighbours(kOneAddress, kStart);
  EXPECT_EQ(neighbours.send(0, kFar).drop_reason, "");
  EXPECT_EQ(neighbours.answer(1, kStart + 300 * kSecond).drop_reason, "");
  EXPECT_EQ(neighbours.answer(1, kStart + 301 * kSecond).drop_reason, "no_mapping");
  EXPECT_EQ(neighbours.send(0, kFar).drop_reason, "no_mapping");
}

/// TCP segments of two hosts of different shards to each other's endpoints, and flows that come and expire, in batches.
class Hammer {
 public:
  static constexpr std::uint16_t kConnections = 64;
  static constexpr std::uint32_t kBatches = 300;

  Hammer() : nat_(concat(kOneAddress, "timeouts: {udp: 1}\nmax_mappings: 4000\n"), 2) {
    for (std::uint32_t host = kHost; hosts_[0] == 0 || hosts_[1] == 0; ++host) {
      hosts_.at(nat_.send(echo_request(host, kServer, 1), kStart).shard) = host;
    }
    for (const std::uint32_t shard : {0U, 1U}) {
      for (std::uint16_t i = 0; i < kConnections; ++i) {
        const Sent sent = nat_.send(make_segment(hosts_.at(shard), kServer, port(i), 80, kSyn), kStart);
        external_.at(shard).push_back(source_port_of(sent.frame));
      }
    }
  }
  /// Of one shard; on a thread of its own.
  void run(std::uint32_t shard) {
    nf::testing::CpuNf& nat = nat_.nat(shard);
    std::uint64_t now_ns = kStart;
    for (std::uint32_t batch = 0; batch < kBatches; ++batch) {
      const std::vector<Frame> frames = batch_of(shard, batch);
      const std::vector<std::uint64_t> arrivals(frames.size(), now_ns += 20'000'000);
      nf::testing::PacketStore store(frames, arrivals);
      nat.process(store.all());
      for (std::uint32_t i = 0; i < kConnections; ++i) {
        is_right_.at(shard) &= reached(store.all()[i], hosts_.at(1 - shard), port(i));
      }
      nat.nf().tick(now_ns);
      is_right_.at(shard) &= nat.nf().statistics().at(0).value >= kConnections;
    }
  }
  /// The sharder, on another thread.
  void divide() {
    nf::testing::PacketStore store(batch_of(0, 0));
    for (std::uint32_t round = 0; round < kBatches; ++round) {
      for (std::uint32_t i = 0; i < store.size(); ++i) {
        is_divided_right_ &= nat_.sharder().shard_of(store.all()[i]) == 0U;
      }
    }
  }
  void expect_whole() {
    EXPECT_TRUE(is_right_[0]);
    EXPECT_TRUE(is_right_[1]);
    EXPECT_TRUE(is_divided_right_);
    EXPECT_GT(nat_.statistic("mappings_expired"), 1000U);
    EXPECT_EQ(nat_.nat(0).drops() + nat_.nat(1).drops(), 0U);
    for (const std::uint32_t shard : {0U, 1U}) {
      nat_.nat(shard).nf().tick(kStart + 100'000 * kSecond);
    }
    EXPECT_EQ(nat_.statistic("mappings"), 0U) << "every list is whole: all that was in one has expired";
    EXPECT_EQ(nat_.statistic("half_open"), 0U);
    EXPECT_EQ(nat_.statistic("sessions"), 0U);
  }

 private:
  static std::uint16_t port(std::uint32_t connection) { return static_cast<std::uint16_t>(3000 + connection); }
  /// The flags make the receivers' mappings change between time-outs, so that their neighbours change, too.
  std::vector<Frame> batch_of(std::uint32_t shard, std::uint32_t batch) const {
    constexpr std::array kFlags{kSyn, kAck, std::uint8_t{kFin | kAck}, kRst, kAck};
    std::vector<Frame> frames;
    for (std::uint32_t i = 0; i < kConnections; ++i) {
      frames.push_back(make_segment(hosts_.at(shard), kExternal, port(i), external_.at(1 - shard).at(i),
                                    kFlags.at((batch + i) % kFlags.size())));
    }
    for (std::uint32_t i = 0; i < 8; ++i) {
      frames.push_back(udp(hosts_.at(shard), static_cast<std::uint16_t>(10'000 + batch * 8 + i), kServer, 53));
    }
    return frames;
  }
  static bool reached(packet::Packet const& packet, std::uint32_t host, std::uint16_t port) {
    const Frame frame(packet.frame(), packet.frame() + packet.length());
    return packet.verdict() != packet::Verdict::kDrop && destination_of(frame) == host &&
           destination_port_of(frame) == port && source_of(frame) == kExternal;
  }

  DividedNat nat_;
  std::array<std::uint32_t, 2> hosts_{};
  std::array<std::vector<std::uint16_t>, 2> external_;
  std::array<bool, 2> is_right_{true, true};
  bool is_divided_right_ = true;
};

TEST(DividedHairpin, both_shards_at_once_disturb_neither) {
  Hammer hammer;
  {
    std::jthread first([&hammer] { hammer.run(0); });
    std::jthread second([&hammer] { hammer.run(1); });
    std::jthread sharder([&hammer] { hammer.divide(); });
  }
  hammer.expect_whole();
}

}  // namespace
}  // namespace catena::nat::testing
