// SPDX-License-Identifier: Apache-2.0
#include "esp.hpp"

#include "ipsec_testing.hpp"

#include <catena/nf/testing/harness.hpp>
#include <catena/nf/testing/packet_store.hpp>

#include <gtest/gtest.h>

namespace catena::ipsec {
namespace {

using nf::testing::Frame;
using nf::testing::internet_checksum;
using nf::testing::PacketStore;
using testing::EcnCase;
using testing::kEcnDrop;
using testing::kEcnTable;

Association tunnel() {
  Association association;
  association.spi = 0x01020304;
  association.source = 0xC0000201;
  association.destination = 0xC6336401;
  return association;
}

Aux aux_for(packet::Packet const& packet, std::uint32_t sequence, OuterHeaders const& outer) {
  Aux aux{};
  aux.sequence = sequence;
  aux.l3 = packet.layers().l3;
  aux.inner_length = static_cast<std::uint16_t>(packet.l3_length());
  aux.shift = static_cast<std::uint16_t>(outer.front);
  aux.text_length = static_cast<std::uint16_t>(text_length(aux.inner_length));
  aux.action = kProcess;
  return aux;
}

Frame frame_of(packet::Packet const& packet) { return {packet.frame(), packet.frame() + packet.length()}; }

Frame datagram(std::uint32_t payload, std::uint8_t tos = 0, std::uint16_t flags = 0) {
  const std::string text(payload, 'x');
  const Frame plain = nf::testing::make_frame(packet::kProtocolUdp, 0x0A000001, 0x0A000002, 1, 2, text);
  return testing::with_fragment_word(nf::testing::with_tos(plain, tos), flags);
}

TEST(EspSizes, text_is_the_shortest_multiple_of_four_that_holds_datagram_and_trailer) {
  for (std::uint32_t inner = 20; inner < 2000; ++inner) {
    EXPECT_EQ(text_length(inner) % 4, 0U);
    EXPECT_GE(text_length(inner), inner + 2);
    EXPECT_LT(text_length(inner), inner + 2 + 4);
  }
}

TEST(Encapsulate, writes_the_headers_that_the_rfcs_describe) {
  const std::vector<Frame> frames{datagram(5)};  // 33-byte datagram: 1 byte of padding
  PacketStore store(frames);
  const packet::Packet packet = store.all()[0];
  const OuterHeaders outer(tunnel());
  encapsulate(packet, aux_for(packet, 0x00070001, outer), outer);
  const Frame out = frame_of(packet);
  ASSERT_EQ(out.size(), 14U + 20 + 16 + 36 + 12);
  EXPECT_TRUE(std::equal(out.begin(), out.begin() + 14, frames[0].begin()));  // L2 as it was
  EXPECT_EQ(packet::load_be32(out.data() + 14), 0x45000000U | (20 + 16 + 36 + 12));
  EXPECT_EQ(packet::load_be32(out.data() + 18), 0x00010000U);  // identification: low half of the sequence number
  EXPECT_EQ(out[22], 64);
  EXPECT_EQ(out[23], 50);
  EXPECT_EQ(internet_checksum({out.data() + 14, 20}), 0);
  EXPECT_EQ(packet::load_be32(out.data() + 26), 0xC0000201U);
  EXPECT_EQ(packet::load_be32(out.data() + 30), 0xC6336401U);
  EXPECT_EQ(packet::load_be32(out.data() + 34), 0x01020304U);
  EXPECT_EQ(packet::load_be32(out.data() + 38), 0x00070001U);
  EXPECT_EQ(packet::load_be32(out.data() + 42), 0U);
  EXPECT_EQ(packet::load_be32(out.data() + 46), 0x00070001U);
  EXPECT_TRUE(std::equal(out.begin() + 50, out.begin() + 50 + 33, frames[0].begin() + 14));
  EXPECT_EQ(Frame(out.begin() + 83, out.begin() + 86), (Frame{1, 1, 4}));
}

TEST(Encapsulate, puts_udp_without_checksum_in_between) {
  const std::vector<Frame> frames{datagram(6)};
  PacketStore store(frames);
  const packet::Packet packet = store.all()[0];
  Association association = tunnel();
  association.udp = UdpPorts{4500, 4501};
  const OuterHeaders outer(association);
  encapsulate(packet, aux_for(packet, 1, outer), outer);
  const Frame out = frame_of(packet);
  EXPECT_EQ(out[23], 17);
  EXPECT_EQ(packet::load_be32(out.data() + 34), 4500U << 16 | 4501U);
  EXPECT_EQ(packet::load_be16(out.data() + 38), out.size() - 34);
  EXPECT_EQ(packet::load_be16(out.data() + 40), 0);
  EXPECT_EQ(packet::load_be32(out.data() + 42), 0x01020304U);
  packet.reparse();
  EXPECT_TRUE(packet.is(packet::kUdp));
}

TEST(Encapsulate, keeps_vlan_tags_in_front) {
  Frame tagged = datagram(10);
  const Frame tags{0x88, 0xA8, 0x00, 0x05, 0x81, 0x00, 0x00, 0x06};
  tagged.insert(tagged.begin() + 12, tags.begin(), tags.end());
  const std::vector<Frame> frames{tagged};
  PacketStore store(frames);
  const packet::Packet packet = store.all()[0];
  const OuterHeaders outer(tunnel());
  encapsulate(packet, aux_for(packet, 1, outer), outer);
  const Frame out = frame_of(packet);
  EXPECT_TRUE(std::equal(tagged.begin(), tagged.begin() + 22, out.begin()));
  EXPECT_EQ(out[22], 0x45);
  packet.reparse();
  EXPECT_TRUE(packet.is(packet::kIpv4));
  EXPECT_EQ(packet.layers().l3, 22);
}

struct PolicyCase {
  const char* name;
  HeaderPolicy policy;
  std::uint8_t inner_tos;
  std::uint16_t inner_flags;
  std::uint8_t outer_tos;
  std::uint16_t outer_flags;
};

TEST(Encapsulate, builds_tos_and_df_by_policy) {
  const PolicyCase cases[] = {
      {"copied", {}, 0xBA, 0x4000, 0xBA, 0x4000},
      {"copied, without DF", {}, 0x01, 0x0000, 0x01, 0x0000},
      {"a fragment's offset and MF are never copied", {}, 0, 0x6005, 0, 0x4000},
      {"fixed DSCP, copied ECN", {.tos_keep = 3, .tos_set = 46 << 2}, 0x29, 0, 0xB9, 0},
      {"DF set", {.df_keep = 0, .df_set = 0x4000}, 0, 0, 0, 0x4000},
      {"DF cleared", {.df_keep = 0, .df_set = 0}, 0, 0x4000, 0, 0},
  };
  for (PolicyCase const& test : cases) {
    const std::vector<Frame> frames{datagram(8, test.inner_tos, test.inner_flags)};
    PacketStore store(frames);
    const packet::Packet packet = store.all()[0];
    Association association = tunnel();
    association.policy = test.policy;
    const OuterHeaders outer(association);
    encapsulate(packet, aux_for(packet, 1, outer), outer);
    EXPECT_EQ(packet.frame()[15], test.outer_tos) << test.name;
    EXPECT_EQ(packet::load_be16(packet.frame() + 20), test.outer_flags) << test.name;
    EXPECT_EQ(internet_checksum({packet.frame() + 14, 20}), 0) << test.name;
  }
}

/// The packet encapsulated, not encrypted, as decapsulate() sees it after decryption; `change` may alter it.
template <typename Change>
PacketStatus open_after(PacketStore& store, Change change) {
  const packet::Packet packet = store.all()[0];
  const OuterHeaders outer(tunnel());
  const Aux aux = aux_for(packet, 1, outer);
  encapsulate(packet, aux, outer);
  change(packet.frame(), 14U + 20 + 16 + aux.text_length);
  return decapsulate(packet, aux);
}

TEST(Decapsulate, gives_the_frame_back) {
  for (std::uint32_t payload = 0; payload < 70; ++payload) {
    const std::vector<Frame> frames{datagram(payload)};
    PacketStore store(frames);
    EXPECT_EQ(open_after(store, [](std::uint8_t*, std::uint32_t) {}), kDone);
    EXPECT_EQ(frame_of(store.all()[0]), frames[0]);
  }
}

TEST(Decapsulate, refuses_what_is_no_tunnel) {
  struct Case {
    const char* name;
    std::int32_t from_end;  ///< bytes from the end of the text
    std::int32_t from_inner;
    std::uint8_t value;
    PacketStatus expected;
  };
  const Case cases[] = {
      {"next header 59", 1, -1, 59, kDummy},
      {"next header TCP", 1, -1, 6, kMalformedInner},
      {"pad length beyond the text", 2, -1, 255, kMalformedInner},
      {"pad length into the inner header", 2, -1, 30, kMalformedInner},
      {"pad length into the datagram", 2, -1, 9, kMalformedInner},
      {"inner version 6", -1, 0, 0x65, kMalformedInner},
      {"inner header of 16 bytes", -1, 0, 0x44, kMalformedInner},
      {"inner header longer than the datagram", -1, 0, 0x4F, kMalformedInner},
      {"inner length above 255", -1, 2, 1, kMalformedInner},
      {"inner length shorter than its header", -1, 3, 19, kMalformedInner},
  };
  for (Case const& test : cases) {
    const std::vector<Frame> frames{datagram(8)};
    PacketStore store(frames);
    Frame before;
    const PacketStatus status = open_after(store, [&](std::uint8_t* frame, std::uint32_t text_end) {
      frame[test.from_inner >= 0 ? 50U + static_cast<std::uint32_t>(test.from_inner)
                                 : text_end - static_cast<std::uint32_t>(test.from_end)] = test.value;
      before = frame_of(store.all()[0]);
    });
    EXPECT_EQ(status, test.expected) << test.name;
    EXPECT_EQ(frame_of(store.all()[0]), before) << test.name;
  }
}

TEST(Decapsulate, cuts_off_flow_confidentiality_padding_behind_the_datagram) {
  const std::vector<Frame> frames{datagram(40)};
  PacketStore store(frames);
  // the same text with a datagram that says it is 21 bytes shorter
  EXPECT_EQ(open_after(store, [](std::uint8_t* frame, std::uint32_t) { packet::store_be16(frame + 52, 47); }), kDone);
  EXPECT_EQ(store.all()[0].length(), 14U + 47);
}

TEST(Decapsulate, makes_the_ecn_field_that_rfc_6040_says) {
  for (EcnCase const& test : kEcnTable) {
    const auto inner_tos = static_cast<std::uint8_t>(0xB8 | test.inner);
    const std::vector<Frame> frames{datagram(8, inner_tos)};
    PacketStore store(frames);
    const PacketStatus status = open_after(
        store, [&](std::uint8_t* frame, std::uint32_t) { frame[15] = static_cast<std::uint8_t>(0x10 | test.outer); });
    const packet::Packet packet = store.all()[0];
    if (test.leaving == kEcnDrop) {
      EXPECT_EQ(status, kCongested);
      EXPECT_EQ(packet.length(), frames[0].size() + 20 + 16 + 2 + 12 + 2);  // as it arrived
      continue;
    }
    EXPECT_EQ(status, kDone);
    EXPECT_EQ(packet.frame()[15], 0xB8 | test.leaving) << +test.inner << ' ' << +test.outer;
    EXPECT_EQ(internet_checksum({packet.frame() + 14, 20}), 0);
  }
}

}  // namespace
}  // namespace catena::ipsec
