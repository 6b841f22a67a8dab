// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/tcp_state.hpp>

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace catena::nf {
namespace {

/// The phase after segments as in "S< SA> A<": flags, then < from the initiator or > from the responder; D is for the
/// reader, that there is data.
TcpPhase after(std::string_view segments) {
  std::uint8_t state = 0;
  TcpSegment segment{};
  for (const char c : segments) {
    segment.flags = static_cast<std::uint8_t>(segment.flags | (c == 'S'   ? kTcpSyn
                                                               : c == 'A' ? kTcpAck
                                                               : c == 'F' ? kTcpFin
                                                               : c == 'R' ? kTcpRst
                                                                          : 0));
    if (c == '<' || c == '>') {
      segment.is_from_initiator = c == '<';
      state = next_tcp_state(state, segment);
      segment = {};
    }
  }
  return tcp_phase(state);
}
const std::string kOpen = "S< SA> A< ";

TEST(TcpState, a_connection_is_opened_by_the_initiators_second_step) {
  EXPECT_EQ(after("S<"), TcpPhase::kOpening);
  EXPECT_EQ(after("S< SA>"), TcpPhase::kOpening);
  EXPECT_EQ(after("S< SA> A<"), TcpPhase::kEstablished);
  EXPECT_EQ(after("S< SA> AD<"), TcpPhase::kEstablished) << "with data at once";
}

TEST(TcpState, nobody_opens_a_connection_alone) {
  EXPECT_EQ(after("S< A< A< AD< AF<"), TcpPhase::kOpening) << "an initiator that nobody answers";
  EXPECT_EQ(after("S< SA> A> AD> S> SA> AF>"), TcpPhase::kOpening) << "the responder";
  EXPECT_EQ(after("S< SA> S< SA> S<"), TcpPhase::kOpening) << "SYNs that are sent again";
}

TEST(TcpState, simultaneous_open_is_an_open) {
  EXPECT_EQ(after("S< S> SA< SA>"), TcpPhase::kOpening);
  EXPECT_EQ(after("S< S> SA< SA> A<"), TcpPhase::kEstablished);
}

TEST(TcpState, a_connection_met_in_its_middle_opens_when_both_sides_have_sent) {
  EXPECT_EQ(after("A< AD>"), TcpPhase::kOpening);
  EXPECT_EQ(after("A< AD> A<"), TcpPhase::kEstablished);
}

TEST(TcpState, closing_needs_the_fins_of_both_sides) {
  EXPECT_EQ(after(kOpen + "AF< A>"), TcpPhase::kEstablished) << "half closed";
  EXPECT_EQ(after(kOpen + "AF> A< AD<"), TcpPhase::kEstablished) << "half closed";
  EXPECT_EQ(after(kOpen + "AF< AF> A<"), TcpPhase::kClosing);
  EXPECT_EQ(after(kOpen + "AF> A< AF< A>"), TcpPhase::kClosing);
  EXPECT_EQ(after(kOpen + "AF> AF< AF< A< A>"), TcpPhase::kClosing) << "segments that are sent again";
}

TEST(TcpState, a_rst_closes_until_the_initiator_goes_on) {
  for (const std::string_view rst : {"R> ", "RA> ", "R< "}) {
    EXPECT_EQ(after(kOpen + std::string(rst)), TcpPhase::kClosing);
    EXPECT_EQ(after(kOpen + std::string(rst) + "A> AD>"), TcpPhase::kClosing) << "the responder alone";
    EXPECT_EQ(after(kOpen + std::string(rst) + "A<"), TcpPhase::kEstablished);
    EXPECT_EQ(after(kOpen + std::string(rst) + "A< R>"), TcpPhase::kClosing);
  }
  EXPECT_EQ(after("S< RA>"), TcpPhase::kOpening) << "refused";
  EXPECT_EQ(after("S< RA> A<"), TcpPhase::kOpening) << "a RST is no answer";
}

TEST(TcpState, what_follows_a_forged_rst_and_a_forged_syn_keeps_a_connection) {
  EXPECT_EQ(after(kOpen + "R> S> A<"), TcpPhase::kEstablished);
  EXPECT_EQ(after(kOpen + "S>"), TcpPhase::kEstablished);
  EXPECT_EQ(after(kOpen + "S<"), TcpPhase::kEstablished);
}

TEST(TcpState, a_syn_of_the_initiator_begins_a_closing_one_anew) {
  for (const std::string_view end : {"AF< AF> A< ", "R> ", "R< "}) {
    EXPECT_EQ(after(kOpen + std::string(end) + "S<"), TcpPhase::kOpening);
    EXPECT_EQ(after(kOpen + std::string(end) + "S>"), TcpPhase::kClosing);
    EXPECT_EQ(after(kOpen + std::string(end) + "S< SA> A<"), TcpPhase::kEstablished);
  }
}

TEST(TcpState, every_state_and_segment_leads_to_known_bits_and_the_responder_alone_to_nothing_longer) {
  for (std::uint32_t state = 0; state < 32; ++state) {
    for (std::uint32_t bits = 0; bits < 512; ++bits) {
      const TcpSegment segment{static_cast<std::uint8_t>(bits), (bits & 256) != 0};
      const std::uint8_t next = next_tcp_state(static_cast<std::uint8_t>(state), segment);
      ASSERT_LT(next, 32);
      const bool becomes_established = tcp_phase(next) == TcpPhase::kEstablished &&
                                       tcp_phase(static_cast<std::uint8_t>(state)) != TcpPhase::kEstablished;
      ASSERT_TRUE(segment.is_from_initiator || !becomes_established) << state << " " << bits;
    }
  }
}

}  // namespace
}  // namespace catena::nf
