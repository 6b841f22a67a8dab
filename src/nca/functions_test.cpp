// SPDX-License-Identifier: Apache-2.0
// Classification, routes, ciphers and kernels of the caller on every device, against oracles that share no code with
// them: published traces and vectors, a linear search, a table for each prefix length.
#include <catena/core/testing/test_data.hpp>
#include <catena/nf/testing/harness.hpp>
#include <catena/nf/testing/vector_file.hpp>
#include <catena/packet/headers.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <random>

#include "functions/classify/linear_search.hpp"
#include "functions/classify/trace_file.hpp"
#include "functions/lpm/lpm_oracle.hpp"
#include "nca/testing/session.hpp"

namespace catena::nca::testing {
namespace {

using classify::testing::PlainRule;
using classify::testing::Tuple;
using nf::testing::read_vectors;
using ::testing::HasSubstr;

constexpr std::int64_t kNothing = -1;

Packet frame_of(Tuple const& tuple) {
  return packet::testing::make_frame(static_cast<std::uint8_t>(tuple.protocol), tuple.src, tuple.dst,
                                     static_cast<std::uint16_t>(tuple.sport), static_cast<std::uint16_t>(tuple.dport),
                                     "x");
}

/// The rule, or next hop, of every packet, kNothing for those that are not listed.
template <typename Config>
std::vector<std::int64_t> run_lookup(std::string const& device, nca_kind kind, Config config,
                                     std::vector<Packet> const& packets, nca_link link = NCA_ETHERNET) {
  config.size = sizeof config;
  const Context context = open(device);
  const std::vector<nca_function*> functions{add(*context, kind, &config)};
  if (functions[0] == nullptr) {
    return {};
  }
  nca_stream_config stream_config = small_buffers(functions);
  stream_config.link = link;
  const Stream stream = make_stream(*context, stream_config);
  std::vector<std::int64_t> found(packets.size(), kNothing);
  run(*stream, packets, [&](nca_results const& results, std::uint64_t first) {
    nca_function_results const& own = *results.functions[0];
    ASSERT_EQ(own.kind, kind);
    ASSERT_EQ(own.out_of_bounds, 0U);
    for (std::size_t i = 0; i < own.count; ++i) {
      const std::uint32_t packet = kind == NCA_CLASSIFY ? own.rules[i].packet : own.next_hops[i].packet;
      ASSERT_EQ(found[first + packet], kNothing) << "listed twice";
      found[first + packet] = kind == NCA_CLASSIFY ? own.rules[i].rule : own.next_hops[i].next_hop;
    }
  });
  return found;
}

class ClassBenchTrace : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Files, ClassBenchTrace, ::testing::Values("classbench_fw1_186", "classbench_acl1_188"),
                         [](auto const& name) { return name.param; });

TEST_P(ClassBenchTrace, every_packet_matches_the_expected_rule) {
  const std::string data = shared_data();
  const std::string base = data + "/firewall/" + GetParam();
  const std::vector<classify::testing::TraceLine> lines = classify::testing::read_trace(base + ".trace_expected.tsv");
  if (lines.empty()) {
    GTEST_SKIP() << "ClassBench's rules may not be redistributed and are not beside the checkout";
  }
  std::vector<Packet> packets;
  std::vector<std::int64_t> expected;
  for (auto const& [tuple, rule] : lines) {
    // packets of other protocols have no ports, which these lines have
    if (tuple.protocol == packet::kProtocolTcp || tuple.protocol == packet::kProtocolUdp) {
      packets.push_back(frame_of(tuple));
      expected.push_back(rule);
    }
  }
  ASSERT_GT(packets.size(), 2000U);
  const std::string rules = base + ".rules";
  for (std::string const& device : device_names()) {
    SCOPED_TRACE(device);
    nca_classify_config config{};
    config.rules_file = rules.c_str();
    EXPECT_EQ(run_lookup(device, NCA_CLASSIFY, config, packets), expected);
  }
}

/// Rules that overlap a lot, and packets near them.
TEST(Classify, finds_what_a_linear_search_finds) {
  std::mt19937 random(11);
  const auto below = [&](std::uint32_t bound) { return static_cast<std::uint32_t>(random() % bound); };
  const auto prefix = [&](std::uint32_t& address, std::uint8_t& length, std::uint32_t& low, std::uint32_t& high) {
    length = static_cast<std::uint8_t>(std::array{0U, 8U, 15U, 24U, 30U, 32U}[below(6)]);
    const std::uint32_t mask = length == 0 ? 0 : ~0U << (32 - length);
    address = (0x0A000000U | below(4) << 16 | below(8)) & mask;
    low = address;
    high = address | ~mask;
  };
  const auto ports = [&](std::uint16_t& first, std::uint16_t& last, std::uint32_t& low, std::uint32_t& high) {
    low = below(3) == 0 ? 0 : below(10);
    high = low == 0 ? 65535 : low + below(5);
    first = static_cast<std::uint16_t>(low);
    last = static_cast<std::uint16_t>(high);
  };
  std::vector<nca_rule> rules;
  std::vector<PlainRule> plain;
  for (int i = 0; i < 300; ++i) {
    nca_rule rule{};
    PlainRule same;
    prefix(rule.source, rule.source_length, same.src_low, same.src_high);
    prefix(rule.destination, rule.destination_length, same.dst_low, same.dst_high);
    ports(rule.source_port_first, rule.source_port_last, same.sport_low, same.sport_high);
    ports(rule.destination_port_first, rule.destination_port_last, same.dport_low, same.dport_high);
    if (below(2) == 0) {
      rule.protocol = below(2) == 0 ? packet::kProtocolTcp : packet::kProtocolUdp;
      rule.protocol_mask = 0xFF;
      same.protocol = rule.protocol;
    }
    rules.push_back(rule);
    plain.push_back(same);
  }
  std::vector<Packet> frames;
  std::vector<Packet> datagrams;
  std::vector<std::int64_t> expected;
  for (int i = 0; i < 3000; ++i) {
    const Tuple tuple{0x0A000000U | below(5) << 16 | below(9),
                      0x0A000000U | below(5) << 16 | below(9),
                      below(12),
                      below(12),
                      below(2) == 0 ? packet::kProtocolTcp : packet::kProtocolUdp,
                      true};
    Packet frame = frame_of(tuple);
    if (i % 10 == 0) {
      frame[12] = 0x86;  // IPv6 by its EtherType: no rule is for it
      expected.push_back(kNothing);
    } else if (i % 10 == 1) {
      frame[21] = 0x05;  // a later fragment: it has no ports
      Tuple later = tuple;
      later.has_ports = false;
      expected.push_back(classify::testing::first_match(plain, later));
    } else {
      expected.push_back(classify::testing::first_match(plain, tuple));
    }
    frames.push_back(frame);
    Packet datagram(frame.begin() + packet::kEthernetBytes, frame.end());
    if (i % 10 == 0) {
      datagram[0] = 0x65;  // IPv6 by its version
    }
    datagrams.push_back(datagram);
  }
  ASSERT_GT(std::set(expected.begin(), expected.end()).size(), 20U);
  for (std::string const& device : device_names()) {
    SCOPED_TRACE(device);
    nca_classify_config config{};
    config.rules = rules.data();
    config.rule_count = rules.size();
    EXPECT_EQ(run_lookup(device, NCA_CLASSIFY, config, frames), expected);
    EXPECT_EQ(run_lookup(device, NCA_CLASSIFY, config, datagrams, NCA_IPV4), expected);
  }
}

TEST(Classify, refuses_rules_that_make_no_sense) {
  const Context context = open("cpu");
  const nca_rule good{0x0A000000, 0, 8, 0, 6, 0xFF, 0, 65535, 80, 80};
  nca_function* function = nullptr;
  const auto code = [&](auto const& change) {
    nca_rule rule = good;
    change(rule);
    const nca_classify_config config{sizeof config, &rule, 1, nullptr};
    return nca_add_network_function(context.get(), NCA_CLASSIFY, &config, &function);
  };
  EXPECT_EQ(code([](nca_rule&) {}), NCA_OK);
  EXPECT_EQ(code([](nca_rule& rule) { rule.source = 0x0A000001; }), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(code([](nca_rule& rule) { rule.destination_length = 33; }), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(code([](nca_rule& rule) { rule.protocol_mask = 0xF0; }), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(code([](nca_rule& rule) { rule.source_port_last = 0, rule.source_port_first = 1; }), NCA_ERROR_ARGUMENT);
  EXPECT_THAT(text_of(*context), HasSubstr("rule 0: "));
  nca_classify_config config{sizeof config, &good, 0, nullptr};
  EXPECT_EQ(nca_add_network_function(context.get(), NCA_CLASSIFY, &config, &function), NCA_ERROR_ARGUMENT);
  config = {sizeof config, nullptr, 0, "/nowhere"};
  EXPECT_EQ(nca_add_network_function(context.get(), NCA_CLASSIFY, &config, &function), NCA_ERROR_FILE);
}

TEST(Route, finds_the_longest_prefix) {
  const std::string data = shared_data();
  // the table of the Internet, or a part of it; the file has no next hops, so that each takes one by its line
  std::vector<nca_prefix> prefixes;
  lpm::testing::LpmOracle oracle;
  std::FILE* unzip = ::popen(("gzip -dc '" + data + "/routes/tier1_ipv4_901899.txt.gz'").c_str(), "r");
  ASSERT_NE(unzip, nullptr);
  std::array<unsigned, 5> part{};
  while (std::fscanf(unzip, "%u.%u.%u.%u/%u", &part[0], &part[1], &part[2], &part[3], &part[4]) == 5) {
    const std::uint32_t address = part[0] << 24 | part[1] << 16 | part[2] << 8 | part[3];
    const auto hop = static_cast<std::uint16_t>(prefixes.size() % 251);
    prefixes.push_back({address, hop, static_cast<std::uint8_t>(part[4]), 0});
    oracle.add(address, static_cast<int>(part[4]), hop);
  }
  ::pclose(unzip);
  // the whole table, or the part of it in tests/data/oracles
  ASSERT_TRUE(prefixes.size() == 901'899U || prefixes.size() == 45'094U) << prefixes.size();
  std::mt19937 random(3);
  std::vector<Packet> packets;
  std::vector<std::int64_t> expected;
  for (int i = 0; i < 20'000; ++i) {
    // anywhere, or within or right beside a prefix
    nca_prefix const& near = prefixes[random() % prefixes.size()];
    const std::uint32_t beside = near.address + static_cast<std::uint32_t>(random() % 512) - 128;
    const auto address = i % 4 == 0 ? static_cast<std::uint32_t>(random()) : beside;
    packets.push_back(packet::testing::make_frame(packet::kProtocolUdp, 1, address, 1, 2, "", 0));
    const auto hop = oracle.find(address);
    expected.push_back(hop ? *hop : kNothing);
  }
  for (std::string const& device : device_names()) {
    SCOPED_TRACE(device);
    nca_route_config config{};
    config.prefixes = prefixes.data();
    config.prefix_count = prefixes.size();
    EXPECT_TRUE(run_lookup(device, NCA_ROUTE, config, packets) == expected);
  }
}

TEST(Route, takes_more_next_hops_than_entries_of_two_bytes_name) {
  std::vector<nca_prefix> prefixes;
  std::vector<Packet> packets;
  std::vector<std::int64_t> expected;
  for (std::uint32_t i = 0; i < 40'000; ++i) {
    prefixes.push_back({0x0A000000U + i * 256, static_cast<std::uint16_t>(i), 24, 0});
  }
  for (std::uint32_t i = 0; i < prefixes.size(); i += 17) {
    packets.push_back(packet::testing::make_frame(packet::kProtocolUdp, 1, 0x0A000005U + i * 256, 1, 2, ""));
    expected.push_back(i);
  }
  for (std::string const& device : device_names()) {
    SCOPED_TRACE(device);
    nca_route_config config{};
    config.prefixes = prefixes.data();
    config.prefix_count = prefixes.size();
    EXPECT_EQ(run_lookup(device, NCA_ROUTE, config, packets), expected);
  }
}

TEST(Route, a_table_too_large_for_a_device_is_refused_there) {
  std::vector<nca_prefix> prefixes;
  for (std::uint32_t i = 0; i <= 1U << 20; ++i) {
    prefixes.push_back({i << 8, 5, 25, 0});
  }
  const nca_route_config config{sizeof config, prefixes.data(), prefixes.size(), nullptr};
  for (std::string const& device : device_names()) {
    SCOPED_TRACE(device);
    const Context context = open(device);
    nca_function* function = nullptr;
    EXPECT_EQ(nca_add_network_function(context.get(), NCA_ROUTE, &config, &function),
              device == "cpu" ? NCA_OK : NCA_ERROR_MEMORY);
    if (device != "cpu") {
      EXPECT_THAT(text_of(*context), HasSubstr("in 1048577 networks; a device takes 1048576"));
    }
  }
}

TEST(Route, refuses_prefixes_that_make_no_sense) {
  const Context context = open("cpu");
  nca_function* function = nullptr;
  const auto code = [&](std::vector<nca_prefix> const& prefixes) {
    const nca_route_config config{sizeof config, prefixes.data(), prefixes.size(), nullptr};
    return nca_add_network_function(context.get(), NCA_ROUTE, &config, &function);
  };
  EXPECT_EQ(code({{0x0A000000, 5, 8, 0}}), NCA_OK);
  EXPECT_EQ(code({{0x0A000001, 5, 8, 0}}), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(code({{0x0A000000, 5, 33, 0}}), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(code({{0x0A000000, 65534, 8, 0}}), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(code({{0x0A000000, 5, 8, 0}, {0, 1, 0, 0}, {0x0A000000, 6, 8, 0}}), NCA_ERROR_ARGUMENT);
  EXPECT_THAT(text_of(*context), HasSubstr("are the same"));
  EXPECT_EQ(code({}), NCA_ERROR_ARGUMENT);
}

// --- ciphers ---

/// What became of one packet.
struct Ciphered {
  nca_cipher_state state;
  Packet bytes;
  bool operator==(Ciphered const&) const = default;
};
std::ostream& operator<<(std::ostream& out, Ciphered const& ciphered) {
  return out << "state " << ciphered.state << ", bytes " << ::testing::PrintToString(ciphered.bytes);
}

nca_cipher_config cipher_config(nca_direction direction, Packet const& key, Packet const& nonce,
                                Packet const& authentication_key, std::uint32_t text_offset = 8,
                                std::uint32_t iv_offset = 0) {
  nca_cipher_config config{};
  config.size = sizeof config;
  config.direction = direction;
  config.text_offset = text_offset;
  config.iv_offset = iv_offset;
  std::copy(key.begin(), key.end(), config.key);
  std::copy(nonce.begin(), nonce.end(), config.nonce);
  std::copy(authentication_key.begin(), authentication_key.end(), config.authentication_key);
  return config;
}

std::vector<Ciphered> run_cipher(std::string const& device, nca_cipher_config const& config,
                                 std::vector<Packet> const& packets) {
  const Context context = open(device);
  const std::vector<nca_function*> functions{add(*context, NCA_CIPHER, &config)};
  if (functions[0] == nullptr) {
    return {};
  }
  const Stream stream = make_stream(*context, small_buffers(functions));
  std::vector<Ciphered> all;
  run(*stream, packets, [&](nca_results const& results, std::uint64_t) {
    nca_function_results const& own = *results.functions[0];
    ASSERT_EQ(own.count, results.packet_count);
    ASSERT_EQ(own.out_of_bounds, 0U);
    for (std::size_t i = 0; i < own.count; ++i) {
      nca_cipher_packet const& packet = own.ciphered[i];
      EXPECT_EQ(packet.bytes == nullptr, packet.state != NCA_CIPHER_DONE);
      all.push_back({packet.state, Packet(packet.bytes, packet.bytes + packet.length)});
    }
  });
  return all;
}

Packet joined(std::initializer_list<std::span<const std::uint8_t>> parts) {
  Packet all;
  for (const std::span<const std::uint8_t> part : parts) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

class CipherVectors : public ::testing::Test {
 protected:
  const std::string root_ = shared_data();
};

TEST_F(CipherVectors, encrypts_as_rfc_3686_says) {
  const auto vectors = read_vectors(root_ + "/crypto/rfc3686_aes-128-ctr.txt", "KEY");
  ASSERT_EQ(vectors.size(), 3U);
  for (std::string const& device : device_names()) {
    for (auto const& vector : vectors) {
      const std::span<const std::uint8_t> counter = vector.at("IV");
      const Packet packet = joined({counter.subspan(4, 8), vector.at("PLAINTEXT")});
      const auto out = run_cipher(
          device,
          cipher_config(NCA_ENCRYPT, vector.at("KEY"), Packet(counter.begin(), counter.begin() + 4), Packet(20)),
          {packet});
      ASSERT_EQ(out.size(), 1U);
      const Packet expected = joined({counter.subspan(4, 8), vector.at("CIPHERTEXT")});
      ASSERT_EQ(out[0].bytes.size(), expected.size() + 12);
      EXPECT_EQ(Packet(out[0].bytes.begin(), out[0].bytes.end() - 12), expected) << device;
    }
  }
}

/// Decryption takes a packet exactly if it ends with the HMAC of what is before.
TEST_F(CipherVectors, signs_as_rfc_2202_says) {
  std::size_t used = 0;
  for (auto const& vector : read_vectors(root_ + "/crypto/rfc2202_hmac_sha1.txt", "Key")) {
    if (vector.at("Key").size() > 20 || vector.at("Msg").size() < 8) {
      continue;  // such keys are hashed first; and an IV has 8 bytes
    }
    ++used;
    const std::span<const std::uint8_t> digest = vector.at("MD");
    const Packet good = joined({vector.at("Msg"), digest.first(12)});
    Packet bad_icv = good;
    bad_icv.back() ^= 1;
    Packet bad_text = good;
    bad_text[0] ^= 0x80;
    const nca_cipher_config config = cipher_config(NCA_DECRYPT, Packet(16), Packet(4), vector.at("Key"));
    for (std::string const& device : device_names()) {
      const auto out = run_cipher(device, config, {good, bad_icv, bad_text});
      ASSERT_EQ(out.size(), 3U);
      EXPECT_EQ(out[0].state, NCA_CIPHER_DONE) << device;
      EXPECT_EQ(out[0].bytes.size(), vector.at("Msg").size());
      EXPECT_EQ(out[1], (Ciphered{NCA_CIPHER_BAD_ICV, {}})) << device;
      EXPECT_EQ(out[2], (Ciphered{NCA_CIPHER_BAD_ICV, {}})) << device;
    }
  }
  EXPECT_EQ(used, 4U);
}

TEST(Cipher, packets_of_every_length_are_the_same_everywhere_and_come_back) {
  std::mt19937 random(9);
  std::vector<Packet> packets;
  for (std::size_t bytes = 1; bytes < 700; ++bytes) {
    Packet packet(bytes == 699 ? 0xFFFF - 12 : bytes);
    std::generate(packet.begin(), packet.end(), [&] { return static_cast<std::uint8_t>(random()); });
    packets.push_back(packet);
  }
  const Packet key{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  const Packet nonce{17, 18, 19, 20};
  const Packet sign(20, 0x5A);
  for (const auto& [text_offset, iv_offset] : {std::pair(16U, 8U), std::pair(23U, 11U)}) {
    SCOPED_TRACE(text_offset);
    const auto seal = cipher_config(NCA_ENCRYPT, key, nonce, sign, text_offset, iv_offset);
    const auto open_seal = cipher_config(NCA_DECRYPT, key, nonce, sign, text_offset, iv_offset);
    const std::vector<Ciphered> sealed = run_cipher("cpu", seal, packets);
    ASSERT_EQ(sealed.size(), packets.size());
    std::vector<Packet> to_open;
    std::vector<Ciphered> expected;
    for (std::size_t i = 0; i < packets.size(); ++i) {
      if (packets[i].size() < text_offset) {
        EXPECT_EQ(sealed[i], (Ciphered{NCA_CIPHER_TOO_SHORT, {}}));
        to_open.push_back(packets[i]);
        expected.push_back({NCA_CIPHER_TOO_SHORT, {}});
        continue;
      }
      ASSERT_EQ(sealed[i].bytes.size(), packets[i].size() + 12);
      EXPECT_TRUE(std::equal(packets[i].begin(), packets[i].begin() + text_offset, sealed[i].bytes.begin()));
      to_open.push_back(sealed[i].bytes);
      expected.push_back({NCA_CIPHER_DONE, packets[i]});
    }
    for (std::string const& device : device_names()) {
      SCOPED_TRACE(device);
      EXPECT_TRUE(run_cipher(device, seal, packets) == sealed);
      EXPECT_TRUE(run_cipher(device, open_seal, to_open) == expected);
    }
  }
}

TEST(Cipher, refuses_places_that_make_no_sense) {
  const Context context = open("cpu");
  nca_function* function = nullptr;
  const auto code = [&](std::uint32_t direction, std::uint32_t text_offset, std::uint32_t iv_offset) {
    nca_cipher_config config{};
    config.size = sizeof config;
    config.direction = direction;
    config.text_offset = text_offset;
    config.iv_offset = iv_offset;
    return nca_add_network_function(context.get(), NCA_CIPHER, &config, &function);
  };
  EXPECT_EQ(code(NCA_ENCRYPT, 256, 248), NCA_OK);
  EXPECT_EQ(code(NCA_ENCRYPT, 256, 249), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(code(NCA_ENCRYPT, 257, 0), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(code(NCA_DECRYPT, 7, 0), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(code(NCA_DECRYPT, 16, 0xFFFFFFFF), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(code(0, 16, 8), NCA_ERROR_ARGUMENT);
}

// --- kernels of the caller ---

/// Counts the bytes of a packet that have a value of the state; it reads out of bounds where a packet begins with '!'.
constexpr const char* kCounter = R"(
#include <catena/kernel/context.hpp>
struct Wanted { catena::u32 value; };
CATENA_KERNEL(count_bytes) {
  const auto packet = ctx.packet();
  if (!packet.valid()) {
    return;
  }
  const auto bytes = packet.payload();
  const catena::u32 wanted = ctx.state<Wanted>().value;
  catena::u32 count = 0;
  for (catena::u32 i = 0; i < bytes.length(); ++i) {
    count += bytes[static_cast<catena::i32>(i)] == wanted ? 1 : 0;
  }
  if (bytes[0] == '!') {
    count = bytes[static_cast<catena::i32>(bytes.length())];
  }
  packet.result_array<catena::u32>().set(0, count);
  packet.result_array<catena::u32>().set(1, bytes.length());
}
)";

nca_kernel_config counter_config(const std::uint32_t& wanted) {
  nca_kernel_config config{};
  config.size = sizeof config;
  config.source = kCounter;
  config.name = "count_bytes";
  config.state = &wanted;
  config.state_bytes = sizeof wanted;
  config.result_bytes = 8;
  return config;
}

TEST(Kernel, of_the_caller_runs_over_the_packets) {
  const std::uint32_t wanted = 'a';
  const nca_kernel_config config = counter_config(wanted);
  std::vector<Packet> packets;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> expected;
  for (std::uint32_t i = 1; i <= 1100; ++i) {
    Packet packet(i, 'b');
    for (std::uint32_t at = 0; at < i; at += 1 + i % 5) {
      packet[at] = 'a';
    }
    expected.emplace_back((i + i % 5) / (1 + i % 5), i);
    if (i == 700) {
      packet[0] = '!';
      expected.back() = {0, 0};
    }
    packets.push_back(packet);
  }
  std::size_t devices = 0;
  for (std::string const& device : device_names()) {
    if (device == "cpu") {
      continue;
    }
    ++devices;
    const Context context = open(device);
    const std::vector<nca_function*> functions{add(*context, NCA_KERNEL, &config)};
    ASSERT_NE(functions[0], nullptr);
    const Stream stream = make_stream(*context, small_buffers(functions));
    std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
    std::uint32_t out_of_bounds = 0;
    run(*stream, packets, [&](nca_results const& results, std::uint64_t) {
      nca_function_results const& own = *results.functions[0];
      ASSERT_EQ(own.count, results.packet_count);
      out_of_bounds += own.out_of_bounds;
      for (std::size_t i = 0; i < own.count; ++i) {
        std::array<std::uint32_t, 2> words{};
        std::memcpy(words.data(), own.bytes + i * sizeof words, sizeof words);
        found.emplace_back(words[0], words[1]);
      }
    });
    EXPECT_EQ(found, expected);
    EXPECT_EQ(out_of_bounds, 1U);
  }
  if (devices == 0) {
    GTEST_SKIP() << "there is no device";
  }
}

TEST(Kernel, says_what_is_wrong_with_it) {
  const std::uint32_t wanted = 'a';
  const nca_kernel_config good = counter_config(wanted);
  for (std::string const& device : device_names()) {
    SCOPED_TRACE(device);
    const Context context = open(device);
    nca_function* function = nullptr;
    const auto code = [&](auto const& change) {
      nca_kernel_config config = good;
      change(config);
      return nca_add_network_function(context.get(), NCA_KERNEL, &config, &function);
    };
    EXPECT_EQ(code([](auto& config) { config.source = nullptr; }), NCA_ERROR_ARGUMENT);
    EXPECT_EQ(code([](auto& config) { config.name = nullptr; }), NCA_ERROR_ARGUMENT);
    EXPECT_EQ(code([](auto& config) { config.state = nullptr; }), NCA_ERROR_ARGUMENT);
    EXPECT_EQ(code([](auto& config) { config.result_bytes = 0; }), NCA_ERROR_ARGUMENT);
    EXPECT_EQ(code([](auto& config) { config.result_bytes = 7; }), NCA_ERROR_ARGUMENT);
    EXPECT_EQ(code([](auto& config) { config.result_bytes = 260; }), NCA_ERROR_ARGUMENT);
    EXPECT_EQ(code([](auto& config) { config.lanes = 3; }), NCA_ERROR_ARGUMENT);
    EXPECT_EQ(code([](auto& config) { config.group_size = 2048; }), NCA_ERROR_ARGUMENT);
    if (device == "cpu") {
      EXPECT_EQ(code([](auto&) {}), NCA_ERROR_UNSUPPORTED);
      EXPECT_THAT(text_of(*context), HasSubstr("opencl"));
      continue;
    }
    EXPECT_EQ(code([](auto& config) { config.source = "this is no kernel"; }), NCA_ERROR_KERNEL);
    EXPECT_FALSE(text_of(*context).empty());
    EXPECT_EQ(code([](auto& config) { config.name = "another"; }), NCA_ERROR_KERNEL);
    EXPECT_THAT(text_of(*context), HasSubstr("another"));
    EXPECT_EQ(code([](auto&) {}), NCA_OK);
  }
}

TEST(Functions, of_every_kind_share_a_stream) {
  const nca_pattern pattern{"x", 1, 0};
  const nca_match_config match{sizeof match, &pattern, 1, nullptr, nullptr, 0};
  const nca_rule rule{0, 0, 0, 0, packet::kProtocolUdp, 0xFF, 0, 65535, 0, 65535};
  const nca_classify_config classify{sizeof classify, &rule, 1, nullptr};
  const nca_prefix prefix{0x0A000000, 42, 8, 0};
  const nca_route_config route{sizeof route, &prefix, 1, nullptr};
  const nca_cipher_config seal = cipher_config(NCA_ENCRYPT, Packet(16, 3), Packet(4, 4), Packet(20, 5), 34, 26);
  std::vector<Packet> packets;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    packets.push_back(packet::testing::make_frame(i % 2 == 0 ? packet::kProtocolUdp : packet::kProtocolTcp, 1,
                                                  i % 3 == 0 ? 0x0A000001 : 0x0B000001, 1, 2, std::string(i % 5, 'x')));
  }
  const std::vector<Ciphered> sealed = run_cipher("cpu", seal, packets);
  for (std::string const& device : device_names()) {
    SCOPED_TRACE(device);
    const Context context = open(device);
    const std::vector<nca_function*> functions{add(*context, NCA_CIPHER, &seal), add(*context, NCA_MATCH, &match),
                                               add(*context, NCA_ROUTE, &route),
                                               add(*context, NCA_CLASSIFY, &classify)};
    ASSERT_THAT(functions, ::testing::Each(::testing::NotNull()));
    const Stream stream = make_stream(*context, small_buffers(functions));
    std::size_t ciphered = 0;
    std::array<std::size_t, 3> found{};
    run(*stream, packets, [&](nca_results const& results, std::uint64_t first) {
      ASSERT_EQ(results.function_count, 4U);
      for (std::size_t i = 0; i < results.packet_count; ++i) {
        nca_cipher_packet const& out = results.functions[0]->ciphered[i];
        ASSERT_EQ(Packet(out.bytes, out.bytes + out.length), sealed[first + i].bytes);
        ++ciphered;
      }
      for (std::size_t i = 0; i < found.size(); ++i) {
        found[i] += results.functions[1 + i]->count;
      }
      for (std::size_t i = 0; i < results.functions[3]->count; ++i) {
        EXPECT_EQ((first + results.functions[3]->rules[i].packet) % 2, 0U);
      }
    });
    EXPECT_EQ(ciphered, 1000U);
    EXPECT_THAT(found, ::testing::ElementsAre(2000U, 334U, 500U));
  }
}

}  // namespace
}  // namespace catena::nca::testing
