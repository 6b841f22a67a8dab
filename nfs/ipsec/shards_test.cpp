// SPDX-License-Identifier: Apache-2.0
// Several NFs with one configuration that divide the packets: each packet fares as with one NF.
#include "ipsec_testing.hpp"

#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/testing/migration.hpp>
#include <catena/nf/testing/packet_store.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <thread>

namespace catena::ipsec::testing {
namespace {

namespace fs = std::filesystem;
using nf::testing::make_frame;
using nf::testing::PacketStore;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr std::uint32_t kShardCounts[] = {1, 2, 3, 8};
const nf::RunContext kLive{.live_tx = true};
const nf::RunContext kLiveNewKeys{.live_tx = true, .new_keys = test_spis()};

/// Five associations of all kinds; number 0 comes to the end of the low half of its numbers, number 1 to its last one.
constexpr std::string_view kFive = R"(associations:
  - spi: 4096
    source: 192.0.2.1
    destination: 198.51.100.1
    encryption_key: 000102030405060708090a0b0c0d0e0ff0f1f2f3
    authentication_key: 303132333435363738393a3b3c3d3e3f40414243
    selector: {destination: 10.0.0.0/16, protocol: udp, destination_port: 53}
    esn: true
    first_sequence: 4294967200
  - spi: 4097
    source: 192.0.2.1
    destination: 198.51.100.1
    encryption_key: a0a1a2a3a4a5a6a7a8a9aaabacadaeafdeadbeef
    authentication_key: 505152535455565758595a5b5c5d5e5f60616263
    selector: {destination: 10.1.0.0/16, protocol: tcp, destination_port: 443}
    first_sequence: 4294967196
  - spi: 4098
    source: 192.0.2.1
    destination: 198.51.100.2
    encryption_key: b0b1b2b3b4b5b6b7b8b9babbbcbdbebfdeadbee0
    authentication_key: 606162636465666768696a6b6c6d6e6f70717273
    selector: {destination: 10.2.0.0/16}
    udp_encapsulation: {}
    replay_window: 128
  - spi: 4099
    source: 192.0.2.1
    destination: 198.51.100.1
    encryption_key: c0c1c2c3c4c5c6c7c8c9cacbcccdcecfdeadbee1
    authentication_key: 707172737475767778797a7b7c7d7e7f80818283
    selector: {protocol: tcp, destination_port: opaque}
    df: clear
  - spi: 4096
    source: 192.0.2.1
    destination: 198.51.100.3
    encryption_key: d0d1d2d3d4d5d6d7d8d9dadbdcdddedfdeadbee2
    authentication_key: 808182838485868788898a8b8c8d8e8f90919293
    selector: {destination: 10.4.0.0/16}
    df: set
    udp_encapsulation: {source_port: 5000, destination_port: 5001}
)";
constexpr std::size_t kAssociations = 5;

/// What becomes of one packet: all that anybody can see of it.
struct Fate {
  Frame frame;
  packet::Verdict verdict = packet::Verdict::kPass;
  std::uint16_t mtu = 0;
  std::string record;  ///< reason and fields
  bool operator==(Fate const&) const = default;
};

/// One NF on the CPU, with what it says of each packet.
class OneNf {
 public:
  explicit OneNf(std::unique_ptr<nf::Nf> nf)
      : nf_(std::move(nf)), outcome_(catena_nf_ipsec().drop_reasons.size(), true) {}

  nf::Nf& nf() { return *nf_; }
  std::vector<nf::RecordLine>& lines() { return outcome_.lines(); }
  void process(packet::Batch const& unit) {
    std::vector<std::uint32_t> slots(unit.slots().begin(), unit.slots().end());
    std::erase_if(slots, [&](std::uint32_t slot) { return !is_theirs(unit.meta().layers[slot]); });
    std::vector<Aux> aux(slots.size());
    nf_->prepare(unit.subset(slots), std::as_writable_bytes(std::span(aux)), outcome_);
    std::vector<std::uint32_t> left;
    std::vector<Aux> aux_left;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (packet::ended(unit.meta().verdict[slots[i]]) == 0) {
        left.push_back(slots[i]);
        aux_left.push_back(aux[i]);
      }
    }
    std::vector<PacketResult> results(left.size());
    const packet::Batch batch = unit.subset(left);
    const auto inputs = std::as_bytes(std::span(aux_left));
    nf_->compute(batch, inputs, std::as_writable_bytes(std::span(results)));
    nf_->complete(nf::Completion(batch, inputs, std::as_bytes(std::span(results)), outcome_));
  }

  /// Whether a chain gives such packets to this NF.
  static bool is_theirs(packet::Layers const& layers) {
    return (layers.flags & (packet::kIpv4 | packet::kTruncated)) == packet::kIpv4;
  }
  static std::string_view name_of(std::int32_t reason) {
    return reason < 0 ? "" : catena_nf_ipsec().drop_reasons[static_cast<std::size_t>(reason)].name;
  }

 private:
  std::unique_ptr<nf::Nf> nf_;
  nf::Outcome outcome_;
};

/// The shards of one NF as a chain runs them.
class Shards {
 public:
  /// `count` 0: one NF that was told nothing of shards.
  Shards(std::string_view direction, std::string_view sa_text, std::uint32_t count, std::string_view more = "",
         ScratchFolder const* folder = nullptr) {
    const ScratchFolder own;
    ScratchFolder const& where = folder != nullptr ? *folder : own;
    where.write("sa.yaml", sa_text);
    auto config =
        nf::Config::parse(concat("direction: ", direction, "\nsa: sa.yaml\n", more, "\n"), where.path("test.yaml"));
    if (count > 0) {
      config->set_shard({.index = 0, .count = count});
    }
    std::unique_ptr<nf::Nf> first = std::move(catena_nf_ipsec().create(*config)).value();
    fs::remove(where.path("sa.yaml"));  // who reads it again is found out
    sharder_ = first->sharder();
    add(std::move(first));
    for (std::uint32_t shard = 1; shard < count; ++shard) {
      add(std::move(instances_.front()->nf().replicate(shard)).value());
    }
  }

  /// Takes the place of NFs in any number of shards.
  void take_over(Shards& before) {
    const Status ready = nf::testing::prepare_migration(before.all(), all());
    ASSERT_TRUE(ready.ok()) << ready;
    nf::testing::migrate_state(before.all(), all());
  }
  std::size_t size() const { return instances_.size(); }
  nf::Nf& nf(std::size_t shard) { return instances_[shard]->nf(); }
  Status start(nf::RunContext const& context) {
    for (auto const& instance : instances_) {
      CATENA_RETURN_IF_ERROR(dynamic_cast<nf::Persistent&>(instance->nf()).start(context));
    }
    return absl::OkStatus();
  }
  Status finish() {
    Status status;
    for (auto const& instance : instances_) {
      status.Update(instance->nf().finish());
    }
    return status;
  }

  /// The slots of `unit` for each shard. Packets of no shard go to any.
  std::vector<std::vector<std::uint32_t>> divide(packet::Batch const& unit) {
    std::vector<std::vector<std::uint32_t>> parts(size());
    for (std::uint32_t i = 0; i < unit.size(); ++i) {
      const auto shard = OneNf::is_theirs(unit[i].layers()) ? sharder_->shard_of(unit[i]) : std::nullopt;
      EXPECT_LT(shard.value_or(0), size());
      parts[shard.value_or(7 * unit.slots()[i] % size())].push_back(unit.slots()[i]);
    }
    return parts;
  }
  void process(std::size_t shard, packet::Batch const& part) { instances_[shard]->process(part); }

  /// Decides the frames in units of 50, the last shard first.
  std::vector<Fate> run(std::vector<Frame> const& frames, std::vector<std::uint64_t> const& arrivals_ns = {}) {
    PacketStore store(frames, arrivals_ns);
    for (std::size_t first = 0; first < store.size(); first += kUnit) {
      const packet::Batch unit = store.batch(first, std::min(kUnit, store.size() - first));
      const auto parts = divide(unit);
      for (std::size_t shard = size(); shard-- > 0;) {
        process(shard, unit.subset(parts[shard]));
      }
    }
    return fates(store);
  }

  std::vector<Fate> fates(PacketStore& store) {
    const packet::Batch all = store.all();
    std::vector<Fate> fates(store.size());
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      fates[i] = {{all[i].frame(), all[i].frame() + all[i].length()}, all[i].verdict(), all[i].mtu(), ""};
    }
    for (auto const& instance : instances_) {
      for (nf::RecordLine const& line : instance->lines()) {
        fates[line.packet].record = concat(OneNf::name_of(line.reason), " ", line.fields);
      }
      instance->lines().clear();
    }
    return fates;
  }

  static constexpr std::size_t kUnit = 50;

 private:
  std::vector<nf::Nf*> all() const {
    std::vector<nf::Nf*> all;
    for (auto const& instance : instances_) {
      all.push_back(&instance->nf());
    }
    return all;
  }
  void add(std::unique_ptr<nf::Nf> nf) { instances_.push_back(std::make_unique<OneNf>(std::move(nf))); }

  std::vector<std::unique_ptr<OneNf>> instances_;
  std::unique_ptr<nf::Sharder> sharder_;
};

/// How many packets met which end: the name of the reason, or the verdict.
std::map<std::string, std::size_t> ends_of(std::vector<Fate> const& fates) {
  std::map<std::string, std::size_t> ends;
  for (Fate const& fate : fates) {
    const std::string reason = fate.record.substr(0, fate.record.find(' '));
    ++ends[!reason.empty() ? reason : fate.verdict == packet::Verdict::kReply ? "reply" : "pass"];
  }
  return ends;
}

void expect_same(std::vector<Fate> const& actual, std::vector<Fate> const& expected, std::string const& where) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(actual[i].record, expected[i].record) << where << ", packet " << i;
    ASSERT_TRUE(actual[i] == expected[i]) << where << ", packet " << i;
  }
}

/// Packets for all associations and for none, parts among them, and long ones.
std::vector<Frame> plain_traffic(std::uint32_t count, std::uint32_t seed = 1) {
  auto random = [engine = std::mt19937(seed)]() mutable { return static_cast<std::uint32_t>(engine()); };
  std::vector<Frame> frames;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint8_t protocol = random() % 2 == 0 ? packet::kProtocolTcp : packet::kProtocolUdp;
    const std::uint32_t destination = 0x0A000000 | (random() % 6) << 16 | random() % 9;
    const std::uint16_t port = random() % 5 == 0 ? 80 : protocol == packet::kProtocolTcp ? 443 : 53;
    const std::uint32_t bytes = random() % 16 == 0 ? 1400 + random() % 200 : random() % 300;
    const auto source_port = static_cast<std::uint16_t>(1024 + random() % 50);
    Frame frame = make_frame(protocol, 0x0A640000 | random() % 99, destination, source_port, port,
                             std::string(bytes, static_cast<char>('a' + i % 26)));
    const std::uint16_t words[] = {0, 0, 0, 0, 0x4000, 0x2000, 0x2005, 0x0005};
    frame = with_fragment_word(std::move(frame), words[random() % std::size(words)]);
    if (random() % 50 == 0) {
      frame[12] = 0x86;  // IPv6
    }
    frames.push_back(std::move(frame));
  }
  return frames;
}

/// What the other end sends, in nearly that order: some of it damaged, repeated, in parts, without its UDP header, for
/// nobody; and packets in the clear.
std::vector<Frame> protected_traffic(std::uint32_t count) {
  auto random = [engine = std::mt19937(2)]() mutable { return static_cast<std::uint32_t>(engine()); };
  std::vector<Frame> frames;
  for (Fate const& sent : Shards("encrypt", kFive, 0).run(plain_traffic(count))) {
    frames.push_back(sent.frame);  // dropped ones are in the clear
    Frame& frame = frames.back();
    switch (random() % 12) {
      case 0:
        frame.back() ^= 1U;
        break;
      case 1:
        frame = with_fragment_word(std::move(frame), random() % 2 == 0 ? 0x2000 : 0x0005);
        break;
      case 2:
        frame[33] ^= 8U;  // the outer destination, if it is one
        break;
      case 3:
        frames.push_back(frames[frames.size() - 1 - random() % std::min<std::size_t>(frames.size(), 100)]);
        break;
      case 4:
        if (frame[23] == packet::kProtocolUdp && frame.size() > 60) {
          frame.erase(frame.begin() + 34, frame.begin() + 42);
          packet::store_be16(frame.data() + 16, static_cast<std::uint16_t>(frame.size() - 14));
          frame[23] = packet::kProtocolEsp;
        }
        break;
      case 5:
        frames.push_back(make_frame(packet::kProtocolUdp, 0x01020304, 0xC6336402, 4500, 4500,
                                    random() % 2 == 0 ? "\xFF" : std::string_view("\0\0\0\0IKE", 7)));
        break;
      default:
        break;
    }
  }
  for (std::size_t i = 0; i + 90 < frames.size(); i += 10) {  // a window is 64 packets of one association
    std::swap(frames[i], frames[i + random() % 90]);
  }
  return frames;
}

TEST(Shards, of_encrypt_give_every_packet_what_one_nf_gives_it) {
  const std::vector<Frame> frames = plain_traffic(3000);
  const std::vector<Fate> expected = Shards("encrypt", kFive, 0).run(frames);
  const auto ends = ends_of(expected);
  for (const char* end : {"pass", "reply", "no_sa", "fragment", "too_long", "sequence_exhausted"}) {
    EXPECT_THAT(ends, Contains(::testing::Key(end)));
  }
  EXPECT_THAT(expected, Contains(::testing::Field(&Fate::record, HasSubstr("\"seq\":4294967297"))));  // beyond 32 bits
  for (const std::uint32_t count : kShardCounts) {
    expect_same(Shards("encrypt", kFive, count).run(frames), expected, concat(count, " shards"));
  }
}

/// Sends frames through NFs in one number of shards after another.
std::vector<Fate> run_in_changing_shards(std::string_view direction, std::vector<Frame> const& frames) {
  constexpr std::array kCounts{1U, 3U, 1U, 4U, 2U, 2U, 16U, 3U};
  const std::size_t part = frames.size() / kCounts.size();
  std::vector<Fate> fates;
  auto shards = std::make_unique<Shards>(direction, kFive, 2);
  for (std::size_t i = 0; i < kCounts.size(); ++i) {
    auto next = std::make_unique<Shards>(direction, kFive, kCounts[i]);
    next->take_over(*shards);
    shards = std::move(next);
    const auto first = frames.begin() + static_cast<std::ptrdiff_t>(i * part);
    std::ranges::move(shards->run({first, first + static_cast<std::ptrdiff_t>(part)}), std::back_inserter(fates));
  }
  return fates;
}

TEST(ChangeOfShards, gives_every_packet_what_one_nf_gives_it) {
  const std::vector<Frame> plain = plain_traffic(2400);
  expect_same(run_in_changing_shards("encrypt", plain), Shards("encrypt", kFive, 0).run(plain), "encrypt");
  std::vector<Frame> sealed = protected_traffic(2400);
  sealed.resize(sealed.size() / 8 * 8);
  expect_same(run_in_changing_shards("decrypt", sealed), Shards("decrypt", kFive, 0).run(sealed), "decrypt");
}

TEST(Shards, of_decrypt_have_windows_as_wide_as_one_nf) {
  std::vector<Frame> frames;
  for (std::uint32_t i = 0; i < 129; ++i) {
    frames.push_back(make_frame(packet::kProtocolUdp, 0x0A090001, 0x0A020001, 1, 2, "data"));
  }
  const std::vector<Fate> sent = Shards("encrypt", kFive, 0).run(frames);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    frames[i] = sent[sent.size() - 1 - i].frame;  // the last one comes first
  }
  for (const std::uint32_t count : kShardCounts) {
    const auto ends = ends_of(Shards("decrypt", kFive, count).run(frames));
    EXPECT_EQ(ends.at("pass"), 128U) << count;
    EXPECT_EQ(ends.at("replay"), 1U) << count;
  }
}

TEST(Shards, of_decrypt_give_every_packet_what_one_nf_gives_it) {
  const std::vector<Frame> frames = protected_traffic(3000);
  for (const char* more : {"cleartext: drop", "cleartext: pass"}) {
    const std::vector<Fate> expected = Shards("decrypt", kFive, 0, more).run(frames);
    const auto ends = ends_of(expected);
    for (const char* end : {"pass", "bad_icv", "replay", "malformed", "no_sa"}) {
      EXPECT_THAT(ends, Contains(::testing::Key(end)));
    }
    EXPECT_EQ(ends.contains("cleartext"), std::string_view(more) == "cleartext: drop");
    EXPECT_THAT(expected, Contains(::testing::Field(&Fate::record, HasSubstr("\"seq\":4294967297"))));
    for (const std::uint32_t count : kShardCounts) {
      expect_same(Shards("decrypt", kFive, count, more).run(frames), expected, concat(count, " shards, ", more));
    }
  }
}

/// As Shards::run(), with the sharder and each shard on a thread of its own.
std::vector<Fate> run_on_threads(Shards& shards, std::vector<Frame> const& frames) {
  PacketStore store(frames);
  std::vector<packet::Batch> units;
  for (std::size_t first = 0; first < store.size(); first += Shards::kUnit) {
    units.push_back(store.batch(first, std::min(Shards::kUnit, store.size() - first)));
  }
  std::vector<std::vector<std::vector<std::uint32_t>>> parts(units.size());
  std::atomic<std::size_t> divided{0};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    for (std::size_t i = 0; i < units.size(); ++i) {
      parts[i] = shards.divide(units[i]);
      divided.store(i + 1, std::memory_order_release);
    }
  });
  for (std::size_t shard = 0; shard < shards.size(); ++shard) {
    threads.emplace_back([&, shard] {
      for (std::size_t i = 0; i < units.size(); ++i) {
        while (divided.load(std::memory_order_acquire) <= i) {
          std::this_thread::yield();
        }
        shards.process(shard, units[i].subset(parts[i][shard]));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return shards.fates(store);
}

TEST(Shards, work_beside_each_other_and_the_sharder) {
  for (const char* direction : {"encrypt", "decrypt"}) {
    const std::vector<Frame> frames = direction[0] == 'e' ? plain_traffic(2000) : protected_traffic(2000);
    Shards shards(direction, kFive, 3);
    expect_same(run_on_threads(shards, frames), Shards(direction, kFive, 0).run(frames), direction);
  }
}

TEST(Shards, are_chosen_by_association_and_not_by_flow) {
  Shards shards("encrypt", kFive, 8);
  // the third association carries all of 10.2/16, the fourth what hides its ports of TCP
  const Frame whole = make_frame(packet::kProtocolTcp, 1, 0x0A010001, 1000, 443, "hello");
  const std::vector<Frame> frames{
      make_frame(packet::kProtocolUdp, 1, 0x0A020001, 1000, 2000, "hello"),
      make_frame(packet::kProtocolTcp, 9, 0x0A020007, 3000, 4000, "hello"),
      whole,
      with_fragment_word(whole, 0x0005),
  };
  PacketStore store(frames);
  const auto parts = shards.divide(store.all());
  EXPECT_THAT(parts[2], ::testing::ElementsAre(0, 1));
  EXPECT_THAT(parts[1], ::testing::ElementsAre(2));
  EXPECT_THAT(parts[3], ::testing::ElementsAre(3));
}

TEST(Shards, use_no_number_of_an_association_that_is_not_theirs) {
  const Frame plain = make_frame(packet::kProtocolUdp, 1, 0x0A020001, 1000, 2000, "hello");  // association 2
  const Frame esp = Shards("encrypt", kFive, 0).run({plain}).at(0).frame;
  for (const char* direction : {"encrypt", "decrypt"}) {
    Shards shards(direction, kFive, 3);
    PacketStore store(std::vector<Frame>(2, direction[0] == 'e' ? plain : esp));
    shards.process(1, store.batch(0, 1));
    shards.process(2, store.batch(1, 1));
    const std::vector<Fate> fates = shards.fates(store);
    EXPECT_THAT(fates[0].record, HasSubstr("state_failed"));
    EXPECT_EQ(fates[1].record, " \"spi\":4098,\"seq\":1");
  }
}

TEST(Shards, share_what_a_device_needs_and_it_is_all_associations) {
  for (const char* direction : {"encrypt", "decrypt"}) {
    const auto whole = Shards(direction, kFive, 0).nf(0).kernel_side();
    Shards shards(direction, kFive, 3);
    for (std::size_t shard = 0; shard < shards.size(); ++shard) {
      EXPECT_TRUE(shards.nf(shard).kernel_side()->state == whole->state);
      EXPECT_EQ(shards.nf(shard).grows_by(), Shards(direction, kFive, 0).nf(0).grows_by());
    }
    EXPECT_THAT(shards.nf(0).start_report().front(), HasSubstr("5 associations"));
  }
}

/// Packets that are too long for the tunnel of association `number` and may not be cut, all at once.
std::vector<Frame> too_long(std::uint32_t number, std::uint32_t count) {
  const Frame frame =
      make_frame(packet::kProtocolUdp, 0x0A640001, 0x0A000001 | number << 16, 1000, 53, std::string(1600, 'x'));
  return std::vector<Frame>(count, with_fragment_word(frame, 0x4000));
}

TEST(Shards, share_the_budget_of_errors) {
  for (const std::uint32_t count : {1U, 2U, 3U}) {
    Shards shards("encrypt", kFive, count);
    std::size_t replies = 0;
    for (const std::uint32_t number : {0U, 4U, 2U}) {  // with two shards all are of shard 0
      replies += ends_of(shards.run(too_long(number, 1200), std::vector<std::uint64_t>(1200, 0)))["reply"];
    }
    EXPECT_EQ(replies, 1000U) << count;
  }
}

TEST(Shards, say_of_soft_limits_what_adds_up) {
  Shards shards("encrypt", kFive, 3);
  shards.run(plain_traffic(300));
  std::vector<std::uint64_t> passed;
  for (std::size_t shard = 0; shard < shards.size(); ++shard) {
    passed.push_back(shards.nf(shard).statistics().at(0).value);
  }
  // association 1 begins beyond its limit; association 0 has 64 bits
  EXPECT_THAT(passed, ::testing::ElementsAre(0, 1, 0));
}

// state files

/// The state files of a folder with what they hold; without the files that are locked, and those being written.
std::map<std::string, std::string> states_in(ScratchFolder const& folder) {
  std::map<std::string, std::string> states;
  for (auto const& entry : fs::directory_iterator(folder.path("sa.yaml.state"))) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".lock") && !name.ends_with(".new")) {
      states[name] = folder.read("sa.yaml.state/" + name);
    }
  }
  return states;
}

/// One run with `count` shards over frames [first, first + number).
std::vector<Fate> live_run(ScratchFolder const& folder, std::string_view direction, std::uint32_t count,
                           nf::RunContext const& context, std::vector<Frame> const& frames, std::size_t first,
                           std::size_t number) {
  Shards shards(direction, kFive, count, "", &folder);
  const Status started = shards.start(context);
  EXPECT_TRUE(started.ok()) << started;
  auto fates = shards.run({frames.begin() + static_cast<std::ptrdiff_t>(first),
                           frames.begin() + static_cast<std::ptrdiff_t>(first + number)});
  const Status finished = shards.finish();
  EXPECT_TRUE(finished.ok()) << finished;
  return fates;
}

TEST(ShardStates, go_on_where_they_ended_whatever_the_number_of_shards) {
  for (const char* direction : {"encrypt", "decrypt"}) {
    const std::vector<Frame> frames = direction[0] == 'e' ? plain_traffic(1200) : protected_traffic(1000);
    const std::vector<Fate> expected = Shards(direction, kFive, 0).run(frames);
    const ScratchFolder folder;
    std::vector<Fate> fates;
    for (const std::uint32_t count : {3U, 1U, 8U}) {
      const std::size_t number = count == 8 ? frames.size() - fates.size() : frames.size() / 3;
      const auto more =
          live_run(folder, direction, count, count == 3 ? kLiveNewKeys : kLive, frames, fates.size(), number);
      fates.insert(fates.end(), more.begin(), more.end());
      EXPECT_EQ(states_in(folder).size(), kAssociations);
    }
    expect_same(fates, expected, direction);
  }
}

TEST(ShardStates, are_each_of_one_shard) {
  const ScratchFolder folder;
  Shards shards("encrypt", kFive, 3, "", &folder);
  std::map<std::string, std::string> before;
  std::vector<std::size_t> opened;
  for (std::size_t shard = 0; shard < shards.size(); ++shard) {
    // a second lock of the same file would be refused
    const Status status = dynamic_cast<nf::Persistent&>(shards.nf(shard)).start(kLiveNewKeys);
    ASSERT_TRUE(status.ok()) << status;
    const auto after = states_in(folder);
    opened.push_back(after.size() - before.size());
    for (auto const& [name, text] : before) {
      EXPECT_EQ(after.at(name), text);  // nobody else writes it
    }
    before = after;
  }
  EXPECT_THAT(opened, ::testing::ElementsAre(2, 2, 1));
  EXPECT_THAT(shards.nf(0).start_report(), Contains(HasSubstr("5 new, 0 continued")));
}

TEST(ShardStates, of_more_shards_than_associations_leave_some_without) {
  const ScratchFolder folder;
  Shards shards("decrypt", kFive, 8, "", &folder);
  ASSERT_TRUE(dynamic_cast<nf::Persistent&>(shards.nf(7)).start(kLiveNewKeys).ok());
  EXPECT_FALSE(fs::exists(folder.path("sa.yaml.state")));
  EXPECT_TRUE(shards.nf(7).finish().ok());
}

TEST(ShardStates, that_another_shard_lacks_cost_nothing) {
  const ScratchFolder folder;
  live_run(folder, "decrypt", 3, kLiveNewKeys, {}, 0, 0);
  const auto before = states_in(folder);
  for (auto const& [name, text] : before) {
    if (text.find("spi: 4097\n") != std::string::npos) {  // association 1, of shard 1
      fs::remove(folder.path("sa.yaml.state/" + name));
    }
  }
  Shards shards("decrypt", kFive, 3, "", &folder);
  const Status refused = dynamic_cast<nf::Persistent&>(shards.nf(0)).start(kLive);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("no state of the association with SPI 4097"));
  const auto after = states_in(folder);
  ASSERT_EQ(after.size(), kAssociations - 1);
  for (auto const& [name, text] : after) {
    EXPECT_EQ(text, before.at(name));
  }
}

TEST(ShardStates, that_another_shard_cannot_take_cost_nothing) {
  const ScratchFolder folder;
  live_run(folder, "decrypt", 3, kLiveNewKeys, {}, 0, 0);
  auto before = states_in(folder);
  for (auto& [name, text] : before) {
    if (text.find("spi: 4097\n") != std::string::npos) {
      text = "spi: 4097\nnonsense\n";
      folder.write("sa.yaml.state/" + name, text);
    }
  }
  for (nf::RunContext const& context : {kLive, kLiveNewKeys}) {
    Shards shards("decrypt", kFive, 3, "", &folder);
    EXPECT_EQ(shards.start(context).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(states_in(folder), before);
  }
}

TEST(ShardStates, of_a_second_run_are_refused_whatever_its_number_of_shards) {
  const ScratchFolder folder;
  Shards first("encrypt", kFive, 3, "", &folder);
  ASSERT_TRUE(first.start(kLiveNewKeys).ok());
  for (const std::uint32_t count : kShardCounts) {
    const Status second = Shards("encrypt", kFive, count, "", &folder).start(kLive);
    EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(second.message()), HasSubstr("another run uses these keys"));
  }
}

}  // namespace
}  // namespace catena::ipsec::testing
