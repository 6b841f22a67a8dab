// SPDX-License-Identifier: Apache-2.0
#include "gpu/copy/columns.hpp"

#include <catena/packet/slot.hpp>

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <vector>

namespace catena::copy {
namespace {

constexpr std::uint32_t kColumnSlots = 12;
constexpr std::uint32_t kOffset = 130;  // of each frame in its slot
constexpr std::uint32_t kNoIp = 3;      // slots with other frames than UDP
constexpr std::uint32_t kIcmp = 5;
constexpr std::uint32_t kPadded = 16;
// of the header fields in these frames, as their RFCs have them: Ethernet II, then IPv4 without options
constexpr std::uint32_t kSourceAt = 26;
constexpr std::uint32_t kPortAt = 36;
constexpr std::uint32_t kIcmpAt = 34;

constexpr packet::FieldSet kSet =
    packet::fields(packet::kIpv4Src, packet::kIpv6Dst, packet::kL4Dport, packet::kIcmpHeader, packet::kMetaPort);
// columns stand by size, larger ones first
constexpr std::size_t kAddress6Column = 0;
constexpr std::size_t kIcmpColumn = std::size_t{kPadded} * 16;
constexpr std::size_t kSourceColumn = std::size_t{kPadded} * 22;
constexpr std::size_t kPortColumn = std::size_t{kPadded} * 26;
constexpr std::size_t kMetaColumn = std::size_t{kPadded} * 28;
constexpr std::size_t kColumnsBytes = std::size_t{kPadded} * 30;

class ColumnsTest : public ::testing::Test {
 protected:
  ColumnsTest() {
    for (std::size_t at = 0; at < bytes_.size(); ++at) {
      bytes_[at] = static_cast<std::uint8_t>(at * 31 + at / packet::kSlotBytes * 7);
    }
    offset_.fill(kOffset);
    length_.fill(100);
    for (std::uint32_t slot = 0; slot < kColumnSlots; ++slot) {
      port_[slot] = static_cast<std::uint16_t>(1000 + slot);
      layers_[slot] = {.l3 = 14,
                       .l4 = 34,
                       .payload = 42,
                       .family = packet::AddressFamily::kIpv4,
                       .flags = packet::kIpv4 | packet::kUdp | packet::kPorts,
                       .payload_length = 58};
    }
    layers_[kNoIp].flags = 0;
    layers_[kIcmp].flags = packet::kIpv4 | packet::kIcmp;
  }
  packet::Batch batch(std::vector<std::uint32_t> const& slots) { return {bytes_.data(), meta_, slots}; }
  std::uint8_t& frame(std::uint32_t slot, std::uint32_t at) {
    return bytes_[std::size_t{slot} * packet::kSlotBytes + kOffset + at];
  }
  std::uint8_t source_byte(std::uint32_t slot, std::uint32_t at) {
    return slot == kNoIp ? std::uint8_t{0} : frame(slot, kSourceAt + at);
  }
  std::uint8_t port_byte(std::uint32_t slot, std::uint32_t at) {
    return slot == kNoIp || slot == kIcmp ? std::uint8_t{0} : frame(slot, kPortAt + at);
  }
  /// Type and code, then what follows the checksum.
  std::uint8_t icmp_byte(std::uint32_t slot, std::uint32_t at) {
    return slot == kIcmp ? frame(slot, kIcmpAt + (at < 2 ? at : at + 2)) : std::uint8_t{0};
  }

  std::vector<std::uint8_t> bytes_ = std::vector<std::uint8_t>(std::size_t{kColumnSlots} * packet::kSlotBytes);
  std::array<std::uint16_t, kColumnSlots> offset_{};
  std::array<std::uint16_t, kColumnSlots> length_{};
  std::array<packet::Layers, kColumnSlots> layers_{};
  std::array<std::uint16_t, kColumnSlots> port_{};
  packet::MetaColumns meta_{offset_.data(), length_.data(), layers_.data(), nullptr,
                            port_.data(),   nullptr,        nullptr,        nullptr};
};

std::vector<std::uint32_t> run_of_all() {
  std::vector<std::uint32_t> slots(kColumnSlots);
  std::iota(slots.begin(), slots.end(), 0U);
  return slots;
}

TEST_F(ColumnsTest, hold_the_fields_of_packets_in_a_row_and_of_scattered_ones) {
  for (std::vector<std::uint32_t> const& slots :
       {run_of_all(), std::vector<std::uint32_t>{5, 3, 11, 0}, std::vector<std::uint32_t>{}}) {
    std::vector<std::byte> columns(kColumnsBytes, std::byte{0xEE});
    const std::uint32_t first_row = 2;
    Columns(kSet).gather(batch(slots), columns.data(), kPadded, first_row);
    const auto entry = [&](std::size_t column, std::uint32_t bytes, std::size_t row, std::uint32_t at) {
      return std::to_integer<std::uint8_t>(columns[column + (first_row + row) * bytes + at]);
    };
    for (std::size_t row = 0; row < slots.size(); ++row) {
      const std::uint32_t slot = slots[row];
      for (std::uint32_t at = 0; at < 4; ++at) {
        EXPECT_EQ(entry(kSourceColumn, 4, row, at), source_byte(slot, at)) << slot;
      }
      for (std::uint32_t at = 0; at < 2; ++at) {
        EXPECT_EQ(entry(kPortColumn, 2, row, at), port_byte(slot, at)) << slot;
        EXPECT_EQ(entry(kMetaColumn, 2, row, at), port_[slot] >> 8 * at & 0xFF) << slot;
      }
      for (std::uint32_t at = 0; at < 16; ++at) {
        EXPECT_EQ(entry(kAddress6Column, 16, row, at), 0) << "no packet has an IPv6 header";
      }
      for (std::uint32_t at = 0; at < 6; ++at) {
        EXPECT_EQ(entry(kIcmpColumn, 6, row, at), icmp_byte(slot, at)) << slot;
      }
    }
    for (const std::size_t column : {kAddress6Column, kIcmpColumn, kSourceColumn, kPortColumn, kMetaColumn}) {
      EXPECT_EQ(columns[column], std::byte{0xEE}) << "rows in front of the batch are another batch's";
    }
  }
}

TEST_F(ColumnsTest, give_back_what_packets_have_a_header_for) {
  for (std::vector<std::uint32_t> const& slots : {run_of_all(), std::vector<std::uint32_t>{5, 3, 11, 0}}) {
    for (const bool skips : {false, true}) {
      const auto bytes_before = bytes_;
      const auto port_before = port_;
      const std::vector<std::byte> columns(kColumnsBytes, std::byte{0x5A});
      std::vector<std::byte> skip(slots.size());
      skip.back() = std::byte{1};
      Columns(kSet).scatter(batch(slots), columns.data(), kPadded, 1, skips ? skip.data() : nullptr);
      auto expected = bytes_before;
      auto expected_port = port_before;
      for (std::size_t row = 0; row < slots.size() - (skips ? 1 : 0); ++row) {
        const std::uint32_t slot = slots[row];
        expected_port[slot] = 0x5A5A;
        const auto write = [&](std::uint32_t at) {
          expected[std::size_t{slot} * packet::kSlotBytes + kOffset + at] = 0x5A;
        };
        for (std::uint32_t at = 0; at < 4 && slot != kNoIp; ++at) {
          write(kSourceAt + at);
        }
        for (std::uint32_t at = 0; at < 2 && slot != kNoIp && slot != kIcmp; ++at) {
          write(kPortAt + at);
        }
        for (const std::uint32_t at : {0U, 1U, 4U, 5U, 6U, 7U}) {
          if (slot == kIcmp) {
            write(kIcmpAt + at);
          }
        }
      }
      EXPECT_EQ(bytes_, expected);
      EXPECT_EQ(port_, expected_port);
      bytes_ = bytes_before;
      port_ = port_before;
    }
  }
}

TEST_F(ColumnsTest, leave_out_what_does_not_move) {
  std::vector<std::byte> columns(kColumnsBytes, std::byte{0xEE});
  Columns(kSet, packet::fields(packet::kL4Dport, packet::kIpv4Ttl)).gather(batch({1}), columns.data(), kPadded, 0);
  EXPECT_EQ(columns[kSourceColumn], std::byte{0xEE});
  EXPECT_EQ(columns[kMetaColumn], std::byte{0xEE});
  EXPECT_EQ(std::to_integer<std::uint8_t>(columns[kPortColumn]), frame(1, kPortAt));
}

}  // namespace
}  // namespace catena::copy
