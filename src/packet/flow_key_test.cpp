// SPDX-License-Identifier: Apache-2.0
#include <catena/packet/flow_key.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace catena::packet {
namespace {

const FlowKey kWeb = FlowKey::of_v4(0xC0000201, 0xC6336402, 40'000, 443, kProtocolTcp);

Address v6(const char* text) { return Address::parse(text).value(); }

FlowKey random_key(std::mt19937_64& random) {
  const auto port = [&random] { return static_cast<std::uint16_t>(random()); };
  const auto address = [&random] {
    return random() % 2 == 0 ? Address::of_v4(static_cast<std::uint32_t>(random()))
                             : Address::of_words(random(), random());
  };
  return {address(), address(), port(), port(), static_cast<std::uint8_t>(random())};
}

/// Keys that differ in one part each.
std::vector<FlowKey> different_keys() {
  std::vector<FlowKey> keys{kWeb,
                            kWeb.reversed(),
                            FlowKey::of_v4(0xC0000202, 0xC6336402, 40'000, 443, kProtocolTcp),
                            FlowKey::of_v4(0xC0000201, 0xC6336403, 40'000, 443, kProtocolTcp),
                            FlowKey::of_v4(0xC0000201, 0xC6336402, 40'001, 443, kProtocolTcp),
                            FlowKey::of_v4(0xC0000201, 0xC6336402, 40'000, 444, kProtocolTcp),
                            FlowKey::of_v4(0xC0000201, 0xC6336402, 443, 40'000, kProtocolTcp),
                            FlowKey::of_v4(0xC0000201, 0xC6336402, 40'000, 443, kProtocolUdp)};
  for (const char* address : {"::c000:201", "2001:db8::1", "2001:db8:0:1::1"}) {
    keys.push_back(kWeb);
    keys.back().source = v6(address);
  }
  return keys;
}

TEST(FlowKey, differs_where_any_part_differs) {
  const std::vector<FlowKey> keys = different_keys();
  EXPECT_EQ(std::set<FlowKey>(keys.begin(), keys.end()).size(), keys.size());
  for (FlowKey const& key : keys) {
    EXPECT_EQ(std::count(keys.begin(), keys.end(), key), 1) << to_string(key);
  }
}

TEST(FlowKey, reversed_twice_is_the_same) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const FlowKey key = random_key(random);
    const FlowKey reversed = key.reversed();
    EXPECT_EQ(reversed.source, key.destination);
    EXPECT_EQ(reversed.destination_port, key.source_port);
    EXPECT_EQ(reversed.protocol, key.protocol);
    EXPECT_EQ(reversed.reversed(), key);
  }
}

TEST(FlowKey, has_a_text) {
  EXPECT_EQ(to_string(kWeb), "192.0.2.1:40000 > 198.51.100.2:443 protocol 6");
  EXPECT_EQ(to_string({v6("2001:db8::1"), v6("::"), 1, 65535, 17}), "[2001:db8::1]:1 > [::]:65535 protocol 17");
}

TEST(FlowKey, both_directions_have_one_hash) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 10'000; ++i) {
    const FlowKey key = random_key(random);
    const std::uint64_t secret = random();
    EXPECT_EQ(hash_both_ways(key, secret), hash_both_ways(key.reversed(), secret));
    EXPECT_NE(hash_both_ways(key, secret), hash_both_ways(key, secret + 1));
  }
}

TEST(FlowKey, different_flows_have_different_hashes) {
  std::set<std::uint64_t> hashes;
  for (FlowKey const& key : different_keys()) {
    hashes.insert(hash_both_ways(key, 7));
  }
  EXPECT_EQ(hashes.size(), different_keys().size() - 1) << "all but the reversed one";
  constexpr std::uint32_t kFlows = 1 << 16;
  for (const bool is_v4 : {true, false}) {
    std::set<std::uint64_t> buckets;
    for (std::uint32_t number = 0; number < kFlows; ++number) {
      FlowKey key = FlowKey::of_v4(0x0A000000 + number, 0x0B000000, 1024, 80, kProtocolTcp);
      if (!is_v4) {
        key.source = Address::of_words(0x20010DB800000000 + number, 1);
      }
      buckets.insert(hash_both_ways(key, 7) % kFlows);
    }
    EXPECT_NEAR(static_cast<double>(buckets.size()) / kFlows, 1 - 1 / 2.71828, 0.01) << "as random numbers";
  }
}

TEST(Ipv4FlowKey, gives_back_what_it_was_made_of) {
  const FlowKey key = FlowKey::of_v4(0xC0000201, 0xFEDCBA98, 0xFFFE, 0x8001, 255);
  EXPECT_EQ(Ipv4FlowKey::of(key).whole(), key);
  EXPECT_EQ(Ipv4FlowKey::of(key).addresses, 0xC0000201'FEDCBA98U);
  EXPECT_EQ(Ipv4FlowKey::of(key).transport, 0xFFFE8001'000000FFU);
}

TEST(Ipv4FlowKey, differs_where_any_part_differs) {
  std::vector<Ipv4FlowKey> keys;
  for (FlowKey const& key : different_keys()) {
    if (key.source.is_v4()) {
      keys.push_back(Ipv4FlowKey::of(key));
    }
  }
  for (Ipv4FlowKey const& key : keys) {
    EXPECT_EQ(std::count(keys.begin(), keys.end(), key), 1) << to_string(key.whole());
  }
}

}  // namespace
}  // namespace catena::packet
