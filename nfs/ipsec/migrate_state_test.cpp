// SPDX-License-Identifier: Apache-2.0
// An NF that takes the place of another one in a running chain.
#include "ipsec_testing.hpp"

#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/testing/migration.hpp>
#include <catena/nf/testing/packet_store.hpp>
#include <catena/nf/testing/portable.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace catena::ipsec::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const nf::RunContext kLiveNewKeys{.live_tx = true, .new_keys = test_spis()};
const nf::RunContext kCapture{.live_tx = false};

/// An NF of a chain, with the SA file as it is when it is made.
class Version {
 public:
  Version(ScratchFolder const& folder, std::string_view direction, std::string_view sa_file) {
    folder.write("sa.yaml", sa_file);
    auto nf =
        nf::testing::make_nf(catena_nf_ipsec(), concat("direction: ", direction, "\nsa: sa.yaml\n"), folder.path());
    EXPECT_TRUE(nf.ok()) << nf.status();
    instance_ = std::make_unique<nf::testing::CpuNf>(catena_nf_ipsec(), std::move(*nf));
  }
  void start(nf::RunContext const& context) {
    const Status status = dynamic_cast<nf::Persistent&>(nf()).start(context);
    ASSERT_TRUE(status.ok()) << status;
  }
  Status prepare(Version& before, std::set<std::uint32_t> const& new_keys) {
    dynamic_cast<nf::Persistent&>(nf()).join({.live_tx = true, .new_keys = new_keys});
    return nf::testing::prepare_migration(before.nf(), nf());
  }
  /// As prepare(), for a preview.
  Status preview(Version& before, std::set<std::uint32_t> const& new_keys) {
    dynamic_cast<nf::Persistent&>(nf()).join({.live_tx = true, .new_keys = new_keys, .is_trial = true});
    return nf::testing::prepare_migration(before.nf(), nf());
  }
  /// For a state from another process.
  Status prepare_to_load(std::set<std::uint32_t> const& new_keys) {
    dynamic_cast<nf::Persistent&>(nf()).join({.live_tx = true, .new_keys = new_keys});
    return dynamic_cast<nf::Portable&>(nf()).prepare_to_load();
  }
  void take_over(Version& before) {
    const Status ready = prepare(before, test_spis());
    ASSERT_TRUE(ready.ok()) << ready;
    nf::testing::migrate_state(before.nf(), nf());
  }
  /// What becomes of the frames; those that were dropped are left out.
  std::vector<Frame> run(std::vector<Frame> const& frames) {
    nf::testing::PacketStore store(frames);
    instance_->process(store.all());
    std::vector<Frame> out;
    const packet::Batch all = store.all();
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      if (all[i].verdict() != packet::Verdict::kDrop) {
        out.emplace_back(all[i].frame(), all[i].frame() + all[i].length());
      }
    }
    return out;
  }
  std::uint64_t dropped(std::string_view reason) const { return instance_->dropped(reason); }
  /// The end of the run, with its rights to states.
  void end() {
    const Status status = nf().finish();
    EXPECT_TRUE(status.ok()) << status;
    instance_.reset();
  }
  /// Its files are closed, and say what they said.
  void crash() { instance_.reset(); }
  nf::Nf& nf() { return instance_->nf(); }

 private:
  std::unique_ptr<nf::testing::CpuNf> instance_;
};

std::vector<Frame> to(std::uint32_t destination, std::uint32_t count) {
  std::vector<Frame> frames;
  for (std::uint32_t i = 0; i < count; ++i) {
    frames.push_back(nf::testing::make_frame(packet::kProtocolUdp, 0x0A010001, destination, 1000, 2000,
                                             std::string(40, static_cast<char>('a' + i))));
  }
  return frames;
}

/// SPI and sequence number of each.
std::vector<std::pair<std::uint32_t, std::uint32_t>> numbers_of(std::vector<Frame> const& esp) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> numbers;
  for (Frame const& frame : esp) {
    const std::size_t at = frame[23] == packet::kProtocolUdp ? 42 : 34;
    numbers.emplace_back(packet::load_be32(frame.data() + at), packet::load_be32(frame.data() + at + 4));
  }
  return numbers;
}

constexpr std::uint32_t kFirst = 0x0A020001;   // 10.2.0.1, of the first tunnel
constexpr std::uint32_t kSecond = 0x0A030001;  // 10.3.0.1

std::string both() { return two_tunnels("{destination: 10.2.0.0/16}", "{destination: 10.3.0.0/16}"); }
std::string first_alone() { return one_tunnel("    selector: {destination: 10.2.0.0/16}\n"); }

TEST(MigrateState, numbers_continue_and_those_of_an_association_that_comes_begin) {
  for (nf::RunContext const& context : {kCapture, kLiveNewKeys}) {
    const ScratchFolder folder;
    Version before(folder, "encrypt", first_alone());
    before.start(context);
    EXPECT_THAT(numbers_of(before.run(to(kFirst, 2))), ElementsAre(std::pair(4096U, 1U), std::pair(4096U, 2U)));
    Version after(folder, "encrypt", both());
    after.take_over(before);
    EXPECT_THAT(numbers_of(after.run(to(kFirst, 1))), ElementsAre(std::pair(4096U, 3U))) << context.live_tx;
    EXPECT_THAT(numbers_of(after.run(to(kSecond, 2))), ElementsAre(std::pair(4097U, 1U), std::pair(4097U, 2U)));
  }
}

/// Files in the folder of states, without those that lock them.
std::size_t states_in(ScratchFolder const& folder) {
  const std::filesystem::directory_iterator files(folder.path("sa.yaml.state"));
  return static_cast<std::size_t>(
      std::ranges::count_if(files, [](auto const& file) { return file.path().extension().empty(); }));
}

TEST(MigrateState, a_preview_refuses_as_the_change_does_and_opens_nothing) {
  const ScratchFolder folder;
  Version before(folder, "encrypt", first_alone());
  before.start(kLiveNewKeys);
  before.run(to(kFirst, 2));
  for (const bool is_new : {false, true}) {
    Version after(folder, "encrypt", both());
    const Status status = after.preview(before, is_new ? test_spis() : std::set<std::uint32_t>());
    EXPECT_EQ(status.code(), is_new ? absl::StatusCode::kOk : absl::StatusCode::kInvalidArgument) << status;
  }
  EXPECT_EQ(states_in(folder), 1U);
  Version other(folder, "decrypt", both());
  EXPECT_EQ(other.preview(before, {}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(numbers_of(before.run(to(kFirst, 1))), ElementsAre(std::pair(4096U, 3U)));
  Version after(folder, "encrypt", both());
  after.take_over(before);
  EXPECT_THAT(numbers_of(after.run(to(kSecond, 1))), ElementsAre(std::pair(4097U, 1U)));
  after.end();
  EXPECT_EQ(states_in(folder), 2U);
}

/// Has sent three and five packets by its associations.
struct UsedVersion : Version {
  explicit UsedVersion(ScratchFolder const& folder) : Version(folder, "encrypt", both()) {
    start(kLiveNewKeys);
    run(to(kFirst, 3));
    run(to(kSecond, 5));
  }
};

/// What was left is right for both, after one more packet of each, whoever had them last.
void expect_left_for_next(ScratchFolder const& folder) {
  Version next(folder, "encrypt", both());
  next.start({.live_tx = true});
  EXPECT_THAT(numbers_of(next.run(to(kFirst, 1))), ElementsAre(std::pair(4096U, 5U)));
  EXPECT_THAT(numbers_of(next.run(to(kSecond, 1))), ElementsAre(std::pair(4097U, 7U)));
}

TEST(MigrateState, an_association_that_goes_and_comes_back_uses_no_number_twice) {
  const ScratchFolder folder;
  UsedVersion first(folder);
  Version second(folder, "encrypt", first_alone());
  second.take_over(first);
  EXPECT_THAT(second.run(to(kSecond, 1)), IsEmpty());
  EXPECT_EQ(second.dropped("no_sa"), 1U);
  Version third(folder, "encrypt", both());
  third.take_over(second);
  EXPECT_THAT(numbers_of(third.run(to(kSecond, 1))), ElementsAre(std::pair(4097U, 6U)));
  EXPECT_THAT(numbers_of(third.run(to(kFirst, 1))), ElementsAre(std::pair(4096U, 4U)));
  third.end();
  expect_left_for_next(folder);
}

/// Alone, with the keys that it has in both().
std::string second_alone() {
  const std::string text = both();
  return text.substr(0, text.find("  - spi: 4096")) + text.substr(text.find("  - spi: 4097"));
}

TEST(MigrateState, an_association_that_went_is_free_for_another_chain) {
  const ScratchFolder folder;
  UsedVersion first(folder);
  Version second(folder, "encrypt", first_alone());
  second.take_over(first);
  Status status;
  for (const auto begin = std::chrono::steady_clock::now();
       std::chrono::steady_clock::now() - begin < std::chrono::seconds(10);
       std::this_thread::sleep_for(std::chrono::milliseconds(1))) {  // it is closed meanwhile
    Version other(folder, "encrypt", second_alone());
    status = dynamic_cast<nf::Persistent&>(other.nf()).start({.live_tx = true});
    if (status.ok()) {
      EXPECT_THAT(numbers_of(other.run(to(kSecond, 1))), ElementsAre(std::pair(4097U, 6U)));
      other.end();
      break;
    }
  }
  EXPECT_EQ(status, absl::OkStatus());
  EXPECT_THAT(numbers_of(second.run(to(kFirst, 1))), ElementsAre(std::pair(4096U, 4U)));
  second.end();
  expect_left_for_next(folder);
}

/// Each opened state has a thread as long as it is open.
TEST(MigrateState, associations_that_come_and_go_leave_nothing_open) {
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  const ScratchFolder folder;
  auto now = std::make_unique<Version>(folder, "encrypt", first_alone());
  now->start(kLiveNewKeys);
  const auto at_start = threads();
  constexpr std::uint32_t kChanges = 20;
  for (std::uint32_t i = 1; i <= kChanges; ++i) {
    for (std::string const& sa_file : {both(), first_alone()}) {
      auto next = std::make_unique<Version>(folder, "encrypt", sa_file);
      next->take_over(*now);
      now = std::move(next);
      EXPECT_THAT(numbers_of(now->run(to(kSecond, 1))).size(), sa_file == both() ? 1 : 0);
    }
  }
  EXPECT_LE(threads(), at_start + 2);
  auto last = std::make_unique<Version>(folder, "encrypt", both());
  last->take_over(*now);
  EXPECT_THAT(numbers_of(last->run(to(kSecond, 1))), ElementsAre(std::pair(4097U, kChanges + 1)));
  EXPECT_EQ(threads(), at_start + 1);
}

/// The encrypting NFs of several shards.
class Shards {
 public:
  Shards(ScratchFolder const& folder, std::string_view sa_file, std::uint32_t count = 2) {
    folder.write("sa.yaml", sa_file);
    auto config = nf::Config::parse("{direction: encrypt, sa: sa.yaml}", folder.path("test.yaml"));
    EXPECT_TRUE(config.ok()) << config.status();
    config->set_shard({0, count});
    nfs_.emplace_back(catena_nf_ipsec(), *catena_nf_ipsec().create(*config));
    for (std::uint32_t shard = 1; shard < count; ++shard) {
      nfs_.emplace_back(catena_nf_ipsec(), *nfs_.front().nf().replicate(shard));
    }
  }
  Status start(nf::RunContext const& context = kLiveNewKeys) {
    for (nf::testing::CpuNf& each : nfs_) {
      CATENA_RETURN_IF_ERROR(dynamic_cast<nf::Persistent&>(each.nf()).start(context));
    }
    return absl::OkStatus();
  }
  void take_over(Shards& before) {
    for (nf::testing::CpuNf& each : nfs_) {
      dynamic_cast<nf::Persistent&>(each.nf()).join(kLiveNewKeys);
    }
    ASSERT_EQ(nf::testing::prepare_migration(before.all(), all()), absl::OkStatus());
    nf::testing::migrate_state(before.all(), all());
  }
  void end() {
    for (nf::testing::CpuNf& each : nfs_) {
      EXPECT_EQ(each.nf().finish(), absl::OkStatus());
    }
    nfs_.clear();
  }
  /// SPI and sequence number of what becomes of a packet.
  std::pair<std::uint32_t, std::uint32_t> number_of(std::uint32_t destination) {
    const std::vector<Frame> frames = to(destination, 1);
    nf::testing::PacketStore store(frames);
    nfs_[nfs_.front().nf().sharder()->shard_of(store.all()[0]).value()].process(store.all());
    return numbers_of({Frame(store.all()[0].frame(), store.all()[0].frame() + store.all()[0].length())}).front();
  }

 private:
  std::vector<nf::Nf*> all() {
    std::vector<nf::Nf*> all;
    for (nf::testing::CpuNf& each : nfs_) {
      all.push_back(&each.nf());
    }
    return all;
  }

  std::deque<nf::testing::CpuNf> nfs_;
};

TEST(MigrateState, numbers_continue_in_another_number_of_shards_and_on_the_disk) {
  const ScratchFolder folder;
  auto now = std::make_unique<Shards>(folder, both(), 1);
  ASSERT_EQ(now->start(), absl::OkStatus());
  std::uint32_t sent = 0;
  for (const std::uint32_t count : {3U, 1U, 4U, 2U, 2U, 16U, 3U}) {
    auto next = std::make_unique<Shards>(folder, count == 2 ? first_alone() : both(), count);
    next->take_over(*now);
    now = std::move(next);
    ++sent;
    EXPECT_EQ(now->number_of(kFirst), std::pair(4096U, sent)) << count;
    if (count != 2) {
      EXPECT_EQ(now->number_of(kSecond), std::pair(4097U, sent > 4 ? sent - 2 : sent)) << count;
    }
  }
  now->end();
  Shards again(folder, both(), 2);
  ASSERT_EQ(again.start({.live_tx = true}), absl::OkStatus());
  EXPECT_EQ(again.number_of(kFirst), std::pair(4096U, sent + 1));
  EXPECT_EQ(again.number_of(kSecond), std::pair(4097U, sent - 1));
}

TEST(MigrateState, associations_keep_their_shard_wherever_they_are_in_the_file) {
  const std::string both_in_order = both();
  const std::size_t second_at = both_in_order.find("  - spi: 4097");
  const std::size_t first_at = both_in_order.find("  - spi: 4096");
  const std::string second = both_in_order.substr(second_at);
  const std::string first = both_in_order.substr(first_at, second_at - first_at);
  const std::string none = both_in_order.substr(0, first_at);
  const ScratchFolder folder;
  Shards as_they_are(folder, none + first + second);
  ASSERT_EQ(as_they_are.start(), absl::OkStatus());
  EXPECT_EQ(as_they_are.number_of(kFirst), std::pair(4096U, 1U));
  EXPECT_EQ(as_they_are.number_of(kSecond), std::pair(4097U, 1U));
  Shards alone(folder, none + second);  // the first one of the file is not in the first shard
  alone.take_over(as_they_are);
  EXPECT_EQ(alone.number_of(kSecond), std::pair(4097U, 2U));
  Shards turned(folder, none + second + first);  // what comes back goes on where it was
  turned.take_over(alone);
  EXPECT_EQ(turned.number_of(kSecond), std::pair(4097U, 3U));
  EXPECT_EQ(turned.number_of(kFirst), std::pair(4096U, 2U));
}

TEST(MigrateState, an_association_that_went_has_its_last_number_on_the_disk) {
  const ScratchFolder folder;
  Version first(folder, "encrypt", both());
  first.start(kLiveNewKeys);
  first.run(to(kSecond, 5));
  Version second(folder, "encrypt", first_alone());
  second.take_over(first);
  second.end();
  Version next(folder, "encrypt", both());
  next.start({.live_tx = true});
  EXPECT_THAT(numbers_of(next.run(to(kSecond, 1))), ElementsAre(std::pair(4097U, 6U)));
}

TEST(MigrateState, a_packet_that_was_seen_before_stays_seen) {
  for (nf::RunContext const& context : {kCapture, kLiveNewKeys}) {
    const ScratchFolder sender;
    Version encrypt(sender, "encrypt", both());
    const std::vector<Frame> esp = encrypt.run(to(kFirst, 10));
    const ScratchFolder folder;
    Version before(folder, "decrypt", first_alone());
    before.start(context);
    EXPECT_THAT(before.run({esp[0], esp[2], esp[7]}), SizeIs(3));
    Version after(folder, "decrypt", both());
    after.take_over(before);
    EXPECT_THAT(after.run({esp[2], esp[7], esp[0]}), IsEmpty()) << context.live_tx;
    EXPECT_EQ(after.dropped("replay"), 3U);
    EXPECT_THAT(after.run({esp[1], esp[8]}), SizeIs(2)) << "not seen yet";
  }
}

// numbers 1 to 300, of which the first 100 come last
TEST(MigrateState, a_wide_window_continues_and_another_size_is_taken_at_once) {
  const ScratchFolder sender;
  Version encrypt(sender, "encrypt", both());
  const std::vector<Frame> esp = encrypt.run(to(kFirst, 300));
  const auto part = [&esp](std::size_t begin, std::size_t end) {
    return std::vector<Frame>(esp.begin() + static_cast<std::ptrdiff_t>(begin),
                              esp.begin() + static_cast<std::ptrdiff_t>(end));
  };
  constexpr std::string_view kWide = "    selector: {destination: 10.2.0.0/16}\n    replay_window: 300\n";
  const ScratchFolder folder;
  Version before(folder, "decrypt", one_tunnel(kWide));
  before.start(kCapture);
  EXPECT_THAT(before.run(part(100, 300)), SizeIs(200));
  Version after(folder, "decrypt", one_tunnel(kWide));
  after.take_over(before);
  EXPECT_THAT(after.run(part(0, 50)), SizeIs(50));
  Version loaded(folder, "decrypt", one_tunnel(kWide));
  loaded.start(kCapture);
  ASSERT_EQ(nf::testing::carry_over(after.nf(), loaded.nf()), absl::OkStatus());
  EXPECT_THAT(loaded.run(part(0, 60)), SizeIs(10)) << "50 were seen before";
  EXPECT_THAT(loaded.run(part(100, 300)), IsEmpty());
  Version narrow(folder, "decrypt", first_alone());
  narrow.take_over(loaded);
  EXPECT_THAT(narrow.run(part(60, 300)), IsEmpty());
  Version wide_again(folder, "decrypt", one_tunnel(kWide));
  wide_again.take_over(narrow);
  EXPECT_THAT(wide_again.run(esp), IsEmpty()) << "the narrow one knew no more of 61 to 100";
}

TEST(MigrateState, keys_that_are_not_said_to_be_new_are_refused_and_nothing_changes) {
  const ScratchFolder folder;
  Version first(folder, "encrypt", first_alone());
  first.start(kLiveNewKeys);
  first.end();
  Version before(folder, "encrypt", first_alone());
  before.start({.live_tx = true});
  before.run(to(kFirst, 1));
  Version after(folder, "encrypt", both());
  const Status status = after.prepare(before, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << "not that another chain could have them";
  EXPECT_THAT(std::string(status.message()), HasSubstr("no state of the association with SPI 4097"));
  EXPECT_THAT(numbers_of(before.run(to(kFirst, 1))), ElementsAre(std::pair(4096U, 2U)));
}

TEST(MigrateState, states_that_were_opened_in_vain_are_as_they_were) {
  const ScratchFolder sender;
  Version encrypt(sender, "encrypt", both());
  const std::vector<Frame> esp = encrypt.run(to(kSecond, 3));
  const ScratchFolder folder;
  Version before(folder, "decrypt", first_alone());
  before.start(kLiveNewKeys);
  {
    Version refused(folder, "decrypt", both());
    ASSERT_TRUE(refused.prepare(before, test_spis()).ok());
  }
  before.end();
  Version anew(folder, "decrypt", both());
  anew.start({.live_tx = true});
  EXPECT_THAT(anew.run(esp), SizeIs(3)) << "none of them was seen";
}

TEST(MigrateState, another_direction_is_refused) {
  const ScratchFolder folder;
  Version before(folder, "encrypt", first_alone());
  Version after(folder, "decrypt", first_alone());
  EXPECT_EQ(after.prepare(before, test_spis()).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Load, numbers_and_windows_go_on_in_another_process) {
  const ScratchFolder folder;
  Version before(folder, "encrypt", first_alone());
  before.start(kCapture);
  const std::vector<Frame> sent = before.run(to(kFirst, 2));
  Version after(folder, "encrypt", both());
  after.start(kCapture);
  ASSERT_EQ(nf::testing::carry_over(before.nf(), after.nf()), absl::OkStatus());
  EXPECT_THAT(numbers_of(after.run(to(kFirst, 1))), ElementsAre(std::pair(4096U, 3U)));
  EXPECT_THAT(numbers_of(after.run(to(kSecond, 1))), ElementsAre(std::pair(4097U, 1U)));

  Version receiver(folder, "decrypt", first_alone());
  receiver.start(kCapture);
  EXPECT_THAT(receiver.run(sent), SizeIs(2));
  Version next(folder, "decrypt", both());
  next.start(kCapture);
  EXPECT_EQ(nf::testing::carry_over(before.nf(), next.nf()).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_EQ(nf::testing::carry_over(receiver.nf(), next.nf()), absl::OkStatus());
  EXPECT_THAT(next.run(sent), IsEmpty()) << "seen before";
  EXPECT_EQ(next.dropped("replay"), 2U);
}

TEST(Load, states_in_files_are_opened_when_the_other_one_is_gone) {
  const ScratchFolder folder;
  Version before(folder, "encrypt", first_alone());
  before.start(kLiveNewKeys);
  before.run(to(kFirst, 2));
  Version after(folder, "encrypt", both());
  const Status refused = after.prepare_to_load({});
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("SPI 4097")) << "nobody has that one";
  Version next(folder, "encrypt", both());
  ASSERT_EQ(next.prepare_to_load(test_spis()), absl::OkStatus());
  before.run(to(kFirst, 1));
  const std::vector<std::byte> state = nf::testing::saved(before.nf());
  EXPECT_FALSE(nf::testing::load(next.nf(), state).ok()) << "the other one has its files";
  before.crash();
  ASSERT_EQ(nf::testing::load(next.nf(), state), absl::OkStatus());
  EXPECT_THAT(numbers_of(next.run(to(kFirst, 1))), ElementsAre(std::pair(4096U, 4U)));
  EXPECT_THAT(numbers_of(next.run(to(kSecond, 1))), ElementsAre(std::pair(4097U, 1U)));
  next.end();
  Version last(folder, "encrypt", both());
  last.start({.live_tx = true});
  EXPECT_THAT(numbers_of(last.run(to(kFirst, 1))), ElementsAre(std::pair(4096U, 5U)));
  last.end();
}

TEST(Load, without_a_state_it_starts_behind_what_was_reserved) {
  const ScratchFolder folder;
  Version before(folder, "encrypt", first_alone());
  before.start(kLiveNewKeys);
  before.run(to(kFirst, 2));
  Version after(folder, "encrypt", first_alone());
  ASSERT_EQ(after.prepare_to_load({}), absl::OkStatus());
  before.crash();
  after.start({.live_tx = true});
  const auto numbers = numbers_of(after.run(to(kFirst, 1)));
  ASSERT_THAT(numbers, SizeIs(1));
  EXPECT_GT(numbers[0].second, 2U);
  after.end();
}

// a window that was not kept for a while says nothing of what was seen before
TEST(Load, a_window_that_is_kept_again_forgets_nothing) {
  const ScratchFolder folder;
  Version sender(folder, "encrypt", first_alone());
  sender.start(kCapture);
  const std::vector<Frame> sent = sender.run(to(kFirst, 3));
  Version first(folder, "decrypt", first_alone());
  first.start(kLiveNewKeys);
  EXPECT_THAT(first.run(sent), SizeIs(3));
  first.end();
  Version without(folder, "decrypt", first_alone());
  without.start(kCapture);
  Version after(folder, "decrypt", first_alone());
  ASSERT_EQ(after.prepare_to_load({}), absl::OkStatus());
  ASSERT_EQ(nf::testing::carry_over(without.nf(), after.nf()), absl::OkStatus());
  EXPECT_THAT(after.run(sent), IsEmpty()) << "seen before";
  after.end();
}

TEST(Load, a_damaged_state_does_no_harm) {
  for (const char* direction : {"encrypt", "decrypt"}) {
    const ScratchFolder folder;
    Version before(folder, direction, both());
    before.start(kCapture);
    before.run(to(kFirst, 3));
    nf::testing::expect_damage_does_no_harm(
        before.nf(),
        [&] {
          return *nf::testing::make_nf(catena_nf_ipsec(), concat("direction: ", direction, "\nsa: sa.yaml\n"),
                                       folder.path());
        },
        [](std::unique_ptr<nf::Nf> nf) {
          const std::vector<Frame> frames = to(kFirst, 4);
          nf::testing::PacketStore store(frames);
          nf::testing::CpuNf ipsec(catena_nf_ipsec(), std::move(nf));
          ipsec.process(store.all());
        });
  }
}

}  // namespace
}  // namespace catena::ipsec::testing
