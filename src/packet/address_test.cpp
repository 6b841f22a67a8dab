// SPDX-License-Identifier: Apache-2.0
#include "packet/address_bytes.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace catena::packet {
namespace {

AddressBytes bytes_of(Address const& address) {
  AddressBytes bytes;
  for (std::size_t i = 0; i < 8; ++i) {
    bytes[i] = static_cast<std::uint8_t>(address.high() >> (56 - 8 * i));
    bytes[8 + i] = static_cast<std::uint8_t>(address.low() >> (56 - 8 * i));
  }
  return bytes;
}

/// What inet_pton() reads, with an IPv4 address in its mapped form.
std::optional<AddressBytes> read_by_libc(std::string const& text) {
  AddressBytes bytes{};
  if (inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) {
    return bytes;
  }
  bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  return inet_pton(AF_INET, text.c_str(), bytes.data() + 12) == 1 ? std::optional(bytes) : std::nullopt;
}

std::string written_by_libc(int family, const void* bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  return inet_ntop(family, bytes, text.data(), text.size());
}

void expect_like_libc(std::string const& text) {
  const std::optional<Address> read = Address::parse(text);
  const std::optional<AddressBytes> expected = read_by_libc(text);
  ASSERT_EQ(read.has_value(), expected.has_value()) << '\'' << text << '\'';
  if (read) {
    EXPECT_EQ(bytes_of(*read), *expected) << text;
    EXPECT_EQ(to_bytes(*read), *expected) << text;
    EXPECT_EQ(address_of(*expected), *read) << text;
  }
}

TEST(Address, ipv4_is_mapped) {
  constexpr Address kAddress = Address::of_v4(0xC0000201);
  EXPECT_TRUE(kAddress.is_v4());
  EXPECT_EQ(kAddress.v4(), 0xC0000201);
  EXPECT_EQ(bytes_of(kAddress), (AddressBytes{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 192, 0, 2, 1}));
  EXPECT_EQ(Address::parse("::ffff:192.0.2.1"), kAddress);
  EXPECT_EQ(Address::parse("::ffff:c000:201"), kAddress);
  EXPECT_EQ(Address::parse("192.0.2.1"), kAddress);
}

TEST(Address, neighbours_of_the_mapped_ones_are_ipv6) {
  for (const char* text : {"::", "::1", "::192.0.2.1", "::fffe:192.0.2.1", "::1:ffff:192.0.2.1", "1::ffff:192.0.2.1"}) {
    const std::optional<Address> address = Address::parse(text);
    ASSERT_TRUE(address) << text;
    EXPECT_FALSE(address->is_v4()) << text;
  }
  EXPECT_EQ(Address(), Address::parse("::"));
}

TEST(Address, the_order_is_that_of_the_bytes) {
  std::mt19937_64 random(1);
  std::vector<Address> addresses{Address(), Address::of_v4(0), Address::of_v4(0xFFFFFFFF)};
  for (int i = 0; i < 500; ++i) {
    addresses.push_back(Address::of_v4(static_cast<std::uint32_t>(random())));
    addresses.push_back(Address::of_words(random() % 3, random()));
  }
  for (std::size_t i = 1; i < addresses.size(); ++i) {
    Address const& a = addresses[i - 1];
    Address const& b = addresses[i];
    EXPECT_EQ(a < b, bytes_of(a) < bytes_of(b));
    EXPECT_EQ(a == b, bytes_of(a) == bytes_of(b));
  }
  EXPECT_LT(Address::of_v4(0x0A000001), Address::of_v4(0xC0000201));
}

TEST(Address, has_the_text_of_inet_ntop) {
  std::mt19937_64 random(2);
  std::vector<std::uint32_t> edges{0, 1, 0xFF, 0x0A000001, 0x7F000001, 0x64646464, 0xFFFFFFFF};
  for (int i = 0; i < 20'000; ++i) {
    const auto v4 =
        i < static_cast<int>(edges.size()) ? edges[static_cast<std::size_t>(i)] : static_cast<std::uint32_t>(random());
    const std::uint32_t network = htonl(v4);
    const std::string text = to_string(Address::of_v4(v4));
    ASSERT_EQ(text, written_by_libc(AF_INET, &network));
    ASSERT_EQ(Address::parse(text), Address::of_v4(v4));
  }
  for (int i = 0; i < 50'000; ++i) {
    // runs of zero words, which the text leaves out
    std::array<std::uint64_t, 2> words{};
    for (std::uint64_t& word : words) {
      for (int part = 0; part < 4; ++part) {
        const std::uint64_t value = random() % 3 != 0 ? 0 : random() % 5 == 0 ? 0xFFFF : random() & 0xFFFF;
        word = word << 16 | value;
      }
    }
    const Address address = Address::of_words(words[0], words[1]);
    const AddressBytes bytes = bytes_of(address);
    ASSERT_EQ(to_bytes(address), bytes);
    ASSERT_EQ(address_of(bytes), address);
    const std::string text = to_string(address);
    ASSERT_EQ(text,
              address.is_v4() ? written_by_libc(AF_INET, bytes.data() + 12) : written_by_libc(AF_INET6, bytes.data()));
    ASSERT_EQ(Address::parse(text), address);
  }
}

TEST(Address, reads_what_inet_pton_reads) {
  for (const char* text : {"",
                           " ",
                           "0.0.0.0",
                           "255.255.255.255",
                           "256.0.0.1",
                           "1.2.3",
                           "1.2.3.",
                           ".1.2.3",
                           "1.2.3.4.",
                           "1.2.3.4.5",
                           "01.2.3.4",
                           "1.2.3.04",
                           "00.0.0.0",
                           "1.2.3.4 ",
                           " 1.2.3.4",
                           "+1.2.3.4",
                           "-1.2.3.4",
                           "0x1.2.3.4",
                           "16909060",
                           "127.1",
                           "1..2.3",
                           "1.2.3.1000",
                           ":",
                           "::",
                           ":::",
                           "::1",
                           "1::",
                           "1::2::3",
                           "1:2:3:4:5:6:7:8",
                           "1:2:3:4:5:6:7",
                           "1:2:3:4:5:6:7:8:9",
                           "1:2:3:4:5:6:7::",
                           "::2:3:4:5:6:7:8",
                           "1:2:3:4::5:6:7:8",
                           "12345::",
                           "00001::",
                           "0001::",
                           "ABCD:EF01::",
                           "g::",
                           "::1.2.3.4",
                           "::1.2.3",
                           "::01.2.3.4",
                           "1:2:3:4:5:6:1.2.3.4",
                           "1:2:3:4:5:6:7:1.2.3.4",
                           "1.2.3.4::",
                           "::ffff:255.255.255.255",
                           "fe80::1%eth0",
                           "[::1]",
                           "::1/64",
                           "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255",
                           "0000:0000:0000:0000:0000:ffff:192.168.100.100",
                           "0000:0000:0000:0000:0000:0ffff:192.168.100.100"}) {
    expect_like_libc(text);
  }
}

TEST(Address, reads_what_inet_pton_reads_of_any_text) {
  std::mt19937_64 random(3);
  constexpr std::string_view kLetters = "0123456789abcdefABCDEFg:.:.:.% -+/x";
  int accepted = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string text = random() % 2 == 0
                           ? to_string(Address::of_v4(static_cast<std::uint32_t>(random())))
                           : to_string(Address::of_words(random() << random() % 64, random() >> random() % 64));
    for (auto changes = random() % 3; changes > 0; --changes) {
      const std::size_t at = random() % (text.size() + 1);
      const char letter = kLetters[random() % kLetters.size()];
      switch (random() % 3) {
        case 0:
          text.insert(at, 1, letter);
          break;
        case 1:
          text.erase(std::min(at, text.size() - 1), 1);
          break;
        default:
          text[std::min(at, text.size() - 1)] = letter;
      }
    }
    expect_like_libc(text);
    accepted += Address::parse(text) ? 1 : 0;
  }
  EXPECT_GT(accepted, 50'000);
  EXPECT_LT(accepted, 150'000);
}

TEST(Address, reads_no_text_with_a_zero_byte_and_none_beyond_its_end) {
  using namespace std::string_view_literals;
  EXPECT_FALSE(Address::parse("1.2.3.4\0"sv));
  EXPECT_FALSE(Address::parse("::1\0::"sv));
  EXPECT_EQ(Address::parse("1.2.3.45"sv.substr(0, 7)), Address::of_v4(0x01020304));
  EXPECT_FALSE(Address::parse(std::string(1'000'000, '1')));
}

}  // namespace
}  // namespace catena::packet
