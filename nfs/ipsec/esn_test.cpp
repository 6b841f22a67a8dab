// SPDX-License-Identifier: Apache-2.0
// Extended sequence numbers (RFC 4303 section 2.2.1 and Appendix A), and the end of those that are not.
#include "ipsec_testing.hpp"

#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/testing/oracle.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>

namespace catena::ipsec::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t k32Bits = std::uint64_t{1} << 32;

std::string extended_from(std::uint64_t first, bool udp = false) {
  return one_tunnel(
      concat(udp ? "    udp_encapsulation: {}\n" : "", "    esn: true\n    first_sequence: ", first, "\n"));
}

std::vector<Frame> encrypted_from(std::uint64_t first, std::vector<Frame> const& frames) {
  const RunResult result = run_everywhere("encrypt", extended_from(first), frames, "", {64});
  EXPECT_EQ(survivors(result).size(), frames.size());
  return frames_of(result);
}

std::string record(std::uint64_t packet, std::uint64_t sequence) {
  return concat(R"({"packet":)", packet, R"(,"nf":"ipsec","verdict":"pass","spi":4096,"seq":)", sequence, "}");
}

class Peer : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!nf::testing::can_import("scapy.layers.ipsec, cryptography")) {
      GTEST_SKIP() << "python3-scapy with cryptography is not installed";
    }
  }
  std::vector<Frame> run(std::string const& command, std::uint64_t first, bool udp, std::vector<Frame> const& frames) {
    folder_.write("sa.json", concat(R"([{"spi": 4096, "source": "192.0.2.1", "destination": "198.51.100.1", "udp": )",
                                    udp ? "[4500, 4500]" : "null", R"(, "esn": )", first,
                                    R"(, "key": "000102030405060708090a0b0c0d0e0ff0f1f2f3",)",
                                    R"( "authentication_key": "303132333435363738393a3b3c3d3e3f40414243"}])"));
    nf::testing::write_capture(folder_.path("in.pcap"), frames);
    const auto done =
        nf::testing::run_oracle("ipsec", "scapy_peer.py",
                                {command, folder_.path("sa.json"), folder_.path("in.pcap"), folder_.path("out.pcap")});
    EXPECT_EQ(done.status, 0) << done.output;
    auto out = nf::testing::read_capture(folder_.path("out.pcap"));
    EXPECT_TRUE(out.ok()) << out.status();
    return std::move(out).value_or(std::vector<Frame>());
  }
  ScratchFolder folder_;
};

// every size modulo 4, 16 and 64, while the low half wraps
constexpr std::uint64_t kBeforeWrap = k32Bits - 200;

TEST_F(Peer, decrypts_extended_numbers_beyond_the_wrap_of_the_low_half) {
  const std::vector<Frame> frames = frames_of_every_size(400);
  for (const bool udp : {false, true}) {
    const RunResult result = run_everywhere("encrypt", extended_from(kBeforeWrap, udp), frames);
    ASSERT_EQ(survivors(result).size(), frames.size());
    EXPECT_EQ(result.records.at(199), record(199, k32Bits - 1));
    EXPECT_EQ(result.records.at(200), record(200, k32Bits));
    expect_frames(run("decrypt", kBeforeWrap, udp, frames_of(result)), frames);
  }
}

TEST_F(Peer, sends_extended_numbers_that_are_inferred_beyond_the_wrap_of_the_low_half) {
  const std::vector<Frame> frames = frames_of_every_size(400);
  for (const bool udp : {false, true}) {
    const RunResult result =
        run_everywhere("decrypt", extended_from(kBeforeWrap, udp), run("encrypt", kBeforeWrap, udp, frames));
    expect_frames(survivors(result), frames);
    EXPECT_EQ(result.records.at(199), record(199, k32Bits - 1));
    EXPECT_EQ(result.records.at(200), record(200, k32Bits));
  }
}

TEST_F(Peer, sends_numbers_with_a_high_half_of_any_size) {
  constexpr std::uint64_t kFirstNumber = 0x7ABCDEF0FFFFFFFE;
  const std::vector<Frame> frames = frames_of_every_size(4);
  const RunResult result =
      run_everywhere("decrypt", extended_from(kFirstNumber), run("encrypt", kFirstNumber, false, frames));
  expect_frames(survivors(result), frames);
  EXPECT_EQ(result.records.at(2), record(2, 0x7ABCDEF100000000));
}

TEST(ExtendedSequence, is_in_the_icv_even_while_its_high_half_is_zero) {
  const std::vector<Frame> sent = encrypted_from(1, frames_of_every_size(3));
  const RunResult plain = run_everywhere("decrypt", one_tunnel(""), sent);
  EXPECT_EQ(plain.dropped("bad_icv"), 3U);
  const RunResult extended = run_everywhere("decrypt", extended_from(1), sent);
  EXPECT_EQ(survivors(extended).size(), 3U);
}

TEST(ExtendedSequence, survives_reordering_around_the_wrap) {
  const std::vector<Frame> frames = frames_of_every_size(80);
  std::vector<Frame> sent = encrypted_from(k32Bits - 40, frames);
  std::reverse(sent.begin() + 10, sent.begin() + 70);  // 60 numbers, both sides of the wrap
  const RunResult result = run_everywhere("decrypt", extended_from(k32Bits - 40), sent);
  EXPECT_EQ(survivors(result).size(), frames.size());
}

TEST(ExtendedSequence, seen_before_the_wrap_is_a_replay_after_it) {
  const std::vector<Frame> sent = encrypted_from(k32Bits - 100, frames_of_every_size(200));
  std::vector<Frame> frames = sent;
  frames.push_back(sent[199]);  // the newest
  frames.push_back(sent[150]);  // inside the window
  frames.push_back(sent[50]);   // left of it, before the wrap
  const RunResult result = run_everywhere("decrypt", extended_from(k32Bits - 100), frames);
  EXPECT_EQ(result.dropped("replay"), 3U);
  EXPECT_EQ(result.dropped("bad_icv"), 0U);
  EXPECT_EQ(result.records.at(202), concat(R"({"packet":202,"nf":"ipsec","verdict":"drop","reason":"replay",)",
                                           R"("spi":4096,"seq":)", k32Bits - 50, "}"));
}

TEST(ExtendedSequence, takes_a_jump_over_nearly_all_low_halves) {
  constexpr std::uint64_t kFar = 5 + k32Bits - (1U << 24);
  std::vector<Frame> sent = encrypted_from(1, frames_of_every_size(5));
  const std::vector<Frame> later = encrypted_from(kFar, frames_of_every_size(2));
  sent.insert(sent.end(), later.begin(), later.end());
  const RunResult result = run_everywhere("decrypt", extended_from(1), sent);
  EXPECT_EQ(result.records.at(6), record(6, kFar + 1));
}

TEST(ExtendedSequence, a_forged_low_half_moves_nothing) {
  std::vector<Frame> sent = encrypted_from(k32Bits - 2, frames_of_every_size(4));
  Frame forged = sent[0];
  packet::store_be32(forged.data() + 38, 1U << 31);
  sent.insert(sent.begin() + 1, forged);
  const RunResult result = run_everywhere("decrypt", extended_from(k32Bits - 2), sent);
  EXPECT_EQ(result.dropped("bad_icv"), 1U);
  EXPECT_EQ(survivors(result).size(), 4U);
}

TEST(SequenceNumbers, that_are_extended_do_not_end_with_32_bits) {
  const std::vector<Frame> frames = frames_of_every_size(4);
  const RunResult plain = run_everywhere("encrypt", one_tunnel("    first_sequence: 4294967294\n"), frames);
  EXPECT_EQ(plain.dropped("sequence_exhausted"), 2U);
  const RunResult extended = run_everywhere("encrypt", extended_from(4294967294), frames);
  EXPECT_EQ(extended.dropped("sequence_exhausted"), 0U);
}

/// What is logged while it lives.
class LoggedText {
 public:
  LoggedText() : before_(spdlog::default_logger()) {
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)));
  }
  ~LoggedText() { spdlog::set_default_logger(before_); }
  LoggedText(LoggedText const&) = delete;
  LoggedText& operator=(LoggedText const&) = delete;
  std::string str() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

std::uint64_t statistic(RunResult const& result, std::string_view name) {
  for (nf::Statistic const& statistic : result.statistics) {
    if (statistic.name == name) {
      return statistic.value;
    }
  }
  ADD_FAILURE() << "no statistic " << name;
  return 0;
}

TEST(SoftLimit, is_told_of_once_and_packets_go_on) {
  nf::testing::devices();  // says in the log what is not there
  const LoggedText log;
  const std::string tunnel = one_tunnel("    soft_limit: 5\n");
  const RunResult before = run_everywhere("encrypt", tunnel, frames_of_every_size(4), "", {1});
  EXPECT_EQ(statistic(before, "soft_limits_passed"), 0U);
  EXPECT_EQ(log.str(), "");
  const RunResult after = run_everywhere("encrypt", tunnel, frames_of_every_size(50), "", {33});
  EXPECT_EQ(survivors(after).size(), 50U);
  EXPECT_EQ(statistic(after, "soft_limits_passed"), 1U);
  EXPECT_THAT(log.str(),
              HasSubstr("the association with SPI 4096 needs new keys: it is at sequence number 5 of 4294967295"));
}

TEST(SoftLimit, is_three_quarters_of_the_numbers_unless_said_otherwise) {
  for (const auto& [first, passed] : {std::pair{3221225470ULL, 0U}, std::pair{3221225472ULL, 1U}}) {
    const RunResult result = run_everywhere("encrypt", one_tunnel(concat("    first_sequence: ", first, "\n")),
                                            frames_of_every_size(2), "", {1});
    EXPECT_EQ(statistic(result, "soft_limits_passed"), passed) << first;
  }
  const RunResult extended = run_everywhere("encrypt", extended_from(4294967290), frames_of_every_size(2), "", {1});
  EXPECT_EQ(statistic(extended, "soft_limits_passed"), 0U);
}

}  // namespace
}  // namespace catena::ipsec::testing
