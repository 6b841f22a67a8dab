// SPDX-License-Identifier: Apache-2.0
// What an NF whose packets leave for a network takes from one run to the next. Runs that are killed:
// tests/system/ipsec_restart_test.py.
#include "ipsec_testing.hpp"

#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/testing/packet_store.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

namespace catena::ipsec::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const nf::RunContext kLive{.live_tx = true};
const nf::RunContext kRestartNewKeys{.live_tx = true, .new_keys = test_spis()};

std::vector<Frame> plain_frame(std::uint32_t count, char first = 'a') {
  std::vector<Frame> frames;
  for (std::uint32_t i = 0; i < count; ++i) {
    frames.push_back(nf::testing::make_frame(packet::kProtocolUdp, 0x0A010001, 0x0A020001, 1000, 2000,
                                             std::string(40, static_cast<char>(first + i % 20))));
  }
  return frames;
}

/// One run of an NF. It ends as if it were killed, unless end() is called.
class Life {
 public:
  Life(ScratchFolder const& folder, std::string_view direction, nf::RunContext const& context,
       std::string_view sa_file = one_tunnel(), std::string_view more = "") {
    folder.write("sa.yaml", sa_file);
    auto nf = nf::testing::make_nf(catena_nf_ipsec(), concat("direction: ", direction, "\nsa: sa.yaml\n", more, "\n"),
                                   folder.path());
    if (!nf.ok()) {
      status_ = nf.status();
      return;
    }
    status_ = dynamic_cast<nf::Persistent&>(**nf).start(context);
    instance_ = std::make_unique<nf::testing::CpuNf>(catena_nf_ipsec(), std::move(*nf), true);
  }
  Status const& status() const { return status_; }
  nf::Nf& nf() { return instance_->nf(); }

  /// What becomes of the frames; those that were dropped are left out.
  std::vector<Frame> run(std::vector<Frame> const& frames) {
    nf::testing::PacketStore store(frames);
    std::vector<Frame> out;
    for (std::size_t first = 0; first < store.size(); first += 256) {
      instance_->process(store.batch(first, std::min<std::size_t>(256, store.size() - first)));
    }
    const packet::Batch all = store.all();
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      if (all[i].verdict() != packet::Verdict::kDrop) {
        out.emplace_back(all[i].frame(), all[i].frame() + all[i].length());
      }
    }
    return out;
  }
  std::uint64_t dropped(std::string_view reason) const { return instance_->dropped(reason); }
  Status end() { return instance_->nf().finish(); }

 private:
  Status status_;
  std::unique_ptr<nf::testing::CpuNf> instance_;
};

std::uint64_t iv_of(Frame const& esp) {
  return std::uint64_t{packet::load_be32(esp.data() + 42)} << 32 | packet::load_be32(esp.data() + 46);
}
std::vector<std::uint64_t> ivs_of(std::vector<Frame> const& frames) {
  std::vector<std::uint64_t> ivs;
  std::transform(frames.begin(), frames.end(), std::back_inserter(ivs), iv_of);
  return ivs;
}

/// How many pairs of packets of two runs show the XOR of their plaintexts to whoever has both ciphertexts.
std::size_t readable_pairs(std::vector<Frame> const& plain_a, std::vector<Frame> const& a,
                           std::vector<Frame> const& plain_b, std::vector<Frame> const& b) {
  constexpr std::size_t kText = 14 + 20 + 16;
  std::size_t pairs = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t k = 0; k < b.size(); ++k) {
      bool same = true;
      for (std::size_t at = 20; at < 40 && same; ++at) {
        same = (a[i][kText + at] ^ b[k][kText + at]) == (plain_a[i][14 + at] ^ plain_b[k][14 + at]);
      }
      pairs += same ? 1 : 0;
    }
  }
  return pairs;
}

/// The only state file of a folder.
std::string state_file(ScratchFolder const& folder, std::string const& name = "sa.yaml.state") {
  std::string found;
  for (auto const& entry : fs::directory_iterator(folder.path(name))) {
    const std::string path = entry.path().string();
    if (!path.ends_with(".lock") && !path.ends_with(".new")) {  // what is being written is not there yet
      EXPECT_EQ(found, "");
      found = path;
    }
  }
  return found;
}
std::string read(std::string const& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}
std::uint64_t reserved(ScratchFolder const& folder) {
  const std::string text = read(state_file(folder));
  return std::strtoull(text.c_str() + text.find("next: ") + 6, nullptr, 10);
}

TEST(Restart, that_lacks_a_state_is_refused_unless_keys_are_new) {
  for (const char* direction : {"encrypt", "decrypt"}) {
    const ScratchFolder folder;
    const Life refused(folder, direction, kLive);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument) << refused.status();
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr("no state of the association with SPI 4096"));
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr("pass --new-keys 4096 to"));
    const Life of_others(folder, direction, {.live_tx = true, .new_keys = {4097, 4098}});
    EXPECT_EQ(of_others.status(), refused.status()) << "another SPI is named";
    EXPECT_TRUE(Life(folder, direction, kRestartNewKeys).status().ok());
    const Life after(folder, direction, kLive);
    EXPECT_TRUE(after.status().ok()) << after.status();
  }
}

TEST(Restart, that_lacks_several_states_is_told_all_their_spis) {
  const ScratchFolder folder;
  const std::string both = two_tunnels("{destination: 10.2.0.0/16}", "{destination: 10.3.0.0/16}");
  const auto refusal = [&](std::set<std::uint32_t> const& new_keys) {
    const Life life(folder, "encrypt", {.live_tx = true, .new_keys = new_keys}, both);
    return std::string(life.status().message());
  };
  EXPECT_THAT(refusal({}), HasSubstr("pass --new-keys 4096,4097 to"));
  EXPECT_THAT(refusal({4096}), HasSubstr("pass --new-keys 4097 to"));
  EXPECT_EQ(refusal({4096, 4097}), "");
  EXPECT_EQ(refusal({}), "") << "they have states now";
}

TEST(Restart, into_a_capture_needs_no_state_and_gives_the_same_bytes) {
  const ScratchFolder folder;
  for (const nf::RunContext& context : {nf::RunContext{}, nf::RunContext{.live_tx = false, .new_keys = test_spis()}}) {
    Life life(folder, "encrypt", context, one_tunnel("    first_sequence: 77\n"));
    ASSERT_TRUE(life.status().ok()) << life.status();
    EXPECT_THAT(ivs_of(life.run(plain_frame(3))), ::testing::ElementsAre(77, 78, 79));
    EXPECT_TRUE(life.end().ok());
  }
  EXPECT_FALSE(fs::exists(folder.path("sa.yaml.state")));
}

TEST(Restart, never_uses_a_key_stream_twice) {
  const std::vector<Frame> first_plain = plain_frame(60, 'a');
  const std::vector<Frame> second_plain = plain_frame(60, 'A');
  for (const bool killed : {false, true}) {
    const ScratchFolder folder;
    std::vector<Frame> first;
    {
      Life life(folder, "encrypt", kRestartNewKeys);
      ASSERT_TRUE(life.status().ok()) << life.status();
      first = life.run(first_plain);
      if (!killed) {
        ASSERT_TRUE(life.end().ok());
      }
    }
    Life life(folder, "encrypt", kLive);
    ASSERT_TRUE(life.status().ok()) << life.status();
    const std::vector<Frame> second = life.run(second_plain);
    ASSERT_EQ(first.size() + second.size(), 120U);
    EXPECT_EQ(readable_pairs(first_plain, first, second_plain, second), 0U);
    // a run that ended by itself loses no number, one that did not loses those that it had reserved
    EXPECT_EQ(iv_of(second[0]), killed ? 1 + Reservations::smallest_block(Direction::kEncrypt) : 61U);
  }
}

TEST(Restart, without_a_state_would_use_every_key_stream_twice) {
  // that the check above can fail
  const ScratchFolder folder;
  const std::vector<Frame> first = Life(folder, "encrypt", {}).run(plain_frame(60, 'a'));
  const std::vector<Frame> second = Life(folder, "encrypt", {}).run(plain_frame(60, 'A'));
  EXPECT_EQ(readable_pairs(plain_frame(60, 'a'), first, plain_frame(60, 'A'), second), 60U);
}

TEST(Restart, knows_the_keys_under_another_name) {
  const ScratchFolder folder;
  {
    Life life(folder, "encrypt", kRestartNewKeys);
    ASSERT_EQ(life.run(plain_frame(5)).size(), 5U);
    ASSERT_TRUE(life.end().ok());
  }
  std::string renamed = one_tunnel();
  renamed.replace(renamed.find("4096"), 4, "5000");
  Life life(folder, "encrypt", kLive, renamed);
  ASSERT_TRUE(life.status().ok()) << life.status();
  EXPECT_THAT(ivs_of(life.run(plain_frame(1))), ::testing::ElementsAre(6));
}

TEST(Restart, other_keys_are_other_keys) {
  const ScratchFolder folder;
  ASSERT_TRUE(Life(folder, "encrypt", kRestartNewKeys).status().ok());
  std::string other = one_tunnel();
  other.replace(other.find("f0f1f2f3"), 8, "f0f1f2f4");
  EXPECT_EQ(Life(folder, "encrypt", kLive, other).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Restart, new_keys_that_are_not_new_go_on_where_they_were) {
  const ScratchFolder folder;
  {
    Life life(folder, "encrypt", kRestartNewKeys);
    ASSERT_EQ(life.run(plain_frame(5)).size(), 5U);
    ASSERT_TRUE(life.end().ok());
  }
  Life life(folder, "encrypt", kRestartNewKeys);
  EXPECT_THAT(ivs_of(life.run(plain_frame(1))), ::testing::ElementsAre(6));
  EXPECT_THAT(life.nf().start_report(), ::testing::Contains(HasSubstr("0 new, 1 continued")));
}

TEST(Restart, starts_no_earlier_than_the_file_says) {
  const ScratchFolder folder;
  {
    Life life(folder, "encrypt", kRestartNewKeys);
    ASSERT_EQ(life.run(plain_frame(5)).size(), 5U);
    ASSERT_TRUE(life.end().ok());
  }
  Life life(folder, "encrypt", kLive, one_tunnel("    first_sequence: 1000000\n"));
  EXPECT_THAT(ivs_of(life.run(plain_frame(1))), ::testing::ElementsAre(1000000));
}

TEST(Restart, state_goes_where_the_configuration_says) {
  const ScratchFolder folder;
  ASSERT_TRUE(Life(folder, "encrypt", kRestartNewKeys, one_tunnel(), "state: elsewhere/deep").status().ok());
  EXPECT_FALSE(fs::exists(folder.path("sa.yaml.state")));
  const std::string file = state_file(folder, "elsewhere/deep");
  EXPECT_THAT(read(file), ::testing::Not(HasSubstr("000102030405")));
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(Restart, a_second_run_with_the_same_keys_is_refused) {
  const ScratchFolder folder;
  const Life first(folder, "encrypt", kRestartNewKeys);
  ASSERT_TRUE(first.status().ok()) << first.status();
  const Life second(folder, "encrypt", kLive);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("another run uses these keys"));
  EXPECT_TRUE(Life(folder, "decrypt", kRestartNewKeys).status().ok());  // the other direction is another state
}

TEST(Restart, a_missing_state_is_said_though_another_run_has_the_rest) {
  const ScratchFolder folder;
  const Life first(folder, "encrypt", kRestartNewKeys);
  ASSERT_TRUE(first.status().ok()) << first.status();
  std::string second = one_tunnel();
  second.replace(second.find("4096"), 4, "5000");
  second.replace(second.find("f0f1f2f3"), 8, "f0f1f2f4");
  const std::string both = concat(one_tunnel(), second.substr(second.find("  - spi")));
  const Status refused = Life(folder, "encrypt", kLive, both).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("no state of the association with SPI 5000"));
  EXPECT_EQ(Life(folder, "encrypt", kRestartNewKeys, both).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Restart, every_number_is_reserved_on_the_disk_before_it_is_used) {
  const ScratchFolder folder;
  Life life(folder, "encrypt", kRestartNewKeys);
  ASSERT_TRUE(life.status().ok()) << life.status();
  std::uint64_t last = 0;
  for (std::uint32_t i = 0; i < 100; ++i) {  // 300,000 packets, several blocks
    const std::vector<Frame> sent = life.run(plain_frame(3000));
    ASSERT_EQ(sent.size(), 3000U);
    ASSERT_EQ(iv_of(sent.front()), last + 1);
    last = iv_of(sent.back());
    ASSERT_GT(reserved(folder), last);
  }
  EXPECT_GT(last, 2 * Reservations::smallest_block(Direction::kEncrypt));
  ASSERT_TRUE(life.end().ok());
  EXPECT_EQ(reserved(folder), last + 1);
}

TEST(Restart, a_state_that_cannot_be_written_ends_the_traffic_and_is_told) {
  const ScratchFolder folder;
  Life sender(folder, "encrypt", nf::RunContext{});
  const std::vector<Frame> sent = sender.run(plain_frame(3000));
  Life life(folder, "decrypt", kRestartNewKeys);
  ASSERT_TRUE(life.status().ok()) << life.status();
  fs::remove_all(folder.path("sa.yaml.state"));
  const std::size_t passed = life.run(sent).size();
  EXPECT_EQ(passed, 1024U);  // the first block
  EXPECT_EQ(life.dropped("state_failed"), 3000 - passed);
  EXPECT_EQ(life.end().code(), absl::StatusCode::kDataLoss);
}

TEST(Restart, the_replay_window_goes_on) {
  const ScratchFolder folder;
  const std::vector<Frame> sent = Life(folder, "encrypt", nf::RunContext{}).run(plain_frame(200));
  std::vector<Frame> arrived(sent.begin(), sent.begin() + 100);
  arrived.erase(arrived.begin() + 90);  // number 91 is late
  {
    Life life(folder, "decrypt", kRestartNewKeys);
    ASSERT_TRUE(life.status().ok()) << life.status();
    ASSERT_EQ(life.run(arrived).size(), 99U);
    ASSERT_TRUE(life.end().ok());
  }
  Life life(folder, "decrypt", kLive);
  EXPECT_EQ(life.run(arrived).size(), 0U);
  EXPECT_EQ(life.dropped("replay"), 99U);
  EXPECT_EQ(life.run({sent[90]}).size(), 1U);
  EXPECT_EQ(life.run({sent.begin() + 100, sent.end()}).size(), 100U);
}

TEST(Restart, a_wide_replay_window_goes_on_and_may_change) {
  const ScratchFolder folder;
  const auto with_window = [](int packets) { return one_tunnel(concat("    replay_window: ", packets, "\n")); };
  const std::vector<Frame> sent = Life(folder, "encrypt", nf::RunContext{}).run(plain_frame(400));
  const auto part = [&sent](std::size_t begin, std::size_t end) {
    return std::vector<Frame>(sent.begin() + static_cast<std::ptrdiff_t>(begin),
                              sent.begin() + static_cast<std::ptrdiff_t>(end));
  };
  std::vector<Frame> arrived = part(0, 200);
  arrived.erase(arrived.begin() + 150);  // numbers 151 and 51 are late
  arrived.erase(arrived.begin() + 50);
  {
    Life life(folder, "decrypt", kRestartNewKeys, with_window(200));
    ASSERT_TRUE(life.status().ok()) << life.status();
    ASSERT_EQ(life.run(arrived).size(), 198U);
    ASSERT_TRUE(life.end().ok());
  }
  {
    Life life(folder, "decrypt", kLive, with_window(200));
    ASSERT_TRUE(life.status().ok()) << life.status();
    EXPECT_EQ(life.run(arrived).size(), 0U);
    EXPECT_EQ(life.run({sent[50]}).size(), 1U);
    ASSERT_TRUE(life.end().ok());
  }
  {
    Life narrow(folder, "decrypt", kLive);
    ASSERT_TRUE(narrow.status().ok()) << narrow.status();
    EXPECT_EQ(narrow.run(part(0, 150)).size(), 0U);
    EXPECT_EQ(narrow.run({sent[150]}).size(), 1U);
    ASSERT_TRUE(narrow.end().ok());
  }
  Life wide(folder, "decrypt", kLive, with_window(4096));
  ASSERT_TRUE(wide.status().ok()) << wide.status();
  EXPECT_EQ(wide.run(part(0, 200)).size(), 0U) << "all of them were seen, or are not known any more";
  EXPECT_EQ(wide.run({sent[399]}).size(), 1U);
  EXPECT_EQ(wide.run(part(200, 399)).size(), 199U);
}

TEST(Restart, reads_the_replay_window_of_earlier_versions) {
  const ScratchFolder folder;
  const std::vector<Frame> sent = Life(folder, "encrypt", nf::RunContext{}).run(plain_frame(200));
  ASSERT_TRUE(Life(folder, "decrypt", kRestartNewKeys).status().ok());
  // number 98 was not seen
  std::ofstream(state_file(folder))
      << "version: 1\ndirection: decrypt\nspi: 4096\nnext: 101\nseen: \"0xfffffffffffffffb\"\n";
  Life life(folder, "decrypt", kLive, one_tunnel("    replay_window: 128\n"));
  ASSERT_TRUE(life.status().ok()) << life.status();
  EXPECT_EQ(life.run({sent.begin(), sent.begin() + 97}).size(), 0U);
  EXPECT_EQ(life.run({sent[97]}).size(), 1U);
  EXPECT_EQ(life.run({sent.begin() + 98, sent.begin() + 100}).size(), 0U);
  EXPECT_EQ(life.run({sent.begin() + 100, sent.end()}).size(), 100U);
}

TEST(Restart, after_a_crash_accepts_nothing_that_was_seen) {
  const ScratchFolder folder;
  Life sender(folder, "encrypt", nf::RunContext{});
  const std::vector<Frame> sent = sender.run(plain_frame(3000));
  {
    Life life(folder, "decrypt", kRestartNewKeys);
    ASSERT_EQ(life.run(sent).size(), 3000U);
  }
  Life life(folder, "decrypt", kLive);
  ASSERT_TRUE(life.status().ok()) << life.status();
  EXPECT_EQ(life.run(sent).size(), 0U);
  EXPECT_EQ(life.dropped("replay"), 3000U);
  // what was reserved and not seen is lost too, and no more than that
  const std::uint64_t beyond = reserved(folder);
  Life later(folder, "encrypt", nf::RunContext{}, one_tunnel(concat("    first_sequence: ", beyond, "\n")));
  EXPECT_EQ(life.run(later.run(plain_frame(10))).size(), 10U);
}

TEST(Restart, extended_numbers_go_on_beyond_32_bits) {
  const ScratchFolder folder;
  const std::string tunnel = one_tunnel("    esn: true\n    first_sequence: 4294967290\n");
  std::vector<Frame> sent;
  {
    Life life(folder, "encrypt", kRestartNewKeys, tunnel);
    sent = life.run(plain_frame(10));
    ASSERT_TRUE(life.end().ok());
  }
  Life sender(folder, "encrypt", kLive, tunnel);
  const std::vector<Frame> more = sender.run(plain_frame(10));
  EXPECT_EQ(iv_of(more.front()), 4294967300U);
  {
    Life life(folder, "decrypt", kRestartNewKeys, tunnel);
    ASSERT_EQ(life.run(sent).size(), 10U);
    ASSERT_TRUE(life.end().ok());
  }
  Life life(folder, "decrypt", kLive, tunnel);
  EXPECT_EQ(life.run(more).size(), 10U);
}

TEST(Restart, numbers_end_where_they_end) {
  const ScratchFolder folder;
  const std::string tunnel = one_tunnel("    first_sequence: 4294967294\n");
  {
    Life life(folder, "encrypt", kRestartNewKeys, tunnel);
    ASSERT_EQ(life.run(plain_frame(5)).size(), 2U);
    EXPECT_EQ(life.dropped("sequence_exhausted"), 3U);
    ASSERT_TRUE(life.end().ok());
  }
  Life life(folder, "encrypt", kLive, tunnel);
  ASSERT_TRUE(life.status().ok()) << life.status();
  EXPECT_EQ(life.run(plain_frame(5)).size(), 0U);
  EXPECT_EQ(life.dropped("sequence_exhausted"), 5U);
}

TEST(Restart, without_a_replay_window_decrypt_keeps_nothing) {
  const ScratchFolder folder;
  EXPECT_TRUE(Life(folder, "decrypt", kLive, one_tunnel("    anti_replay: false\n")).status().ok());
  EXPECT_FALSE(fs::exists(folder.path("sa.yaml.state")));
}

TEST(StateFile, with_a_damaged_window_is_refused) {
  const ScratchFolder folder;
  ASSERT_TRUE(Life(folder, "decrypt", kRestartNewKeys).status().ok());
  const std::string path = state_file(folder);
  for (std::string const& seen : {std::string("0x"), std::string("0xg"), std::string("0x-1"), std::string("-1"),
                                  concat("0x", std::string(1025, '0'))}) {
    std::ofstream(path) << "version: 1\ndirection: decrypt\nspi: 1\nnext: 5\nseen: \"" << seen << "\"\n";
    const Life life(folder, "decrypt", kLive);
    EXPECT_EQ(life.status().code(), absl::StatusCode::kInvalidArgument) << seen;
    EXPECT_THAT(std::string(life.status().message()), HasSubstr(concat(path, ":5:7: 'seen' is '", seen))) << seen;
  }
}

TEST(StateFile, that_is_damaged_is_refused_with_its_position) {
  struct Case {
    const char* text;
    const char* message;
  };
  const Case cases[] = {
      {"", "expected a mapping"},
      {"version: 2\ndirection: encrypt\nspi: 1\nnext: 5\n", ":1:10: 'version' is '2'"},
      {"version: 1\ndirection: decrypt\nspi: 1\nnext: 5\n", ":2:12: 'direction' is 'decrypt'"},
      {"version: 1\ndirection: encrypt\nspi: 1\n", "missing key 'next'"},
      {"version: 1\ndirection: encrypt\nspi: 1\nnext: 0\n", ":4:7: 'next' is 0"},
      {"version: 1\ndirection: encrypt\nspi: 1\nnext: 18446744073709551616\n",
       ":4:7: 'next' is '18446744073709551616'"},
      {"version: 1\ndirection: encrypt\nspi: 1\nnext: -5\n", ":4:7: 'next' is '-5'"},
      {"version: 1\ndirection: encrypt\nspi: 1\nnext: 5\nmore: 1\n", "unknown key 'more'"},
  };
  const ScratchFolder folder;
  ASSERT_TRUE(Life(folder, "encrypt", kRestartNewKeys).status().ok());
  const std::string path = state_file(folder);
  for (Case const& test : cases) {
    std::ofstream(path) << test.text;
    const Life life(folder, "encrypt", kRestartNewKeys);
    EXPECT_EQ(life.status().code(), absl::StatusCode::kInvalidArgument) << test.text;
    EXPECT_THAT(std::string(life.status().message()), HasSubstr(path));
    EXPECT_THAT(std::string(life.status().message()), HasSubstr(test.message));
  }
}

}  // namespace
}  // namespace catena::ipsec::testing
