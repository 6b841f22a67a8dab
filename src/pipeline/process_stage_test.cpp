// SPDX-License-Identifier: Apache-2.0
// Chains whose NFs are in a process that lies (tests/programs/misbehaving_nf_main.cpp).
#include "base/sandbox/own_groups.hpp"
#include "chain/chain_file.hpp"
#include "pipeline/report.hpp"
#include "pipeline/session.hpp"

#include <catena/core/text.hpp>

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace catena::runtime {
namespace {

constexpr std::uint64_t kPackets = 60'000;  // more than the slots: several incarnations get some

chain::ChainConfig chain_of(std::string const& type, std::string const& isolation = "process") {
  return chain::parse_chain(concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: c}\nspec:\n"
                                   "  rx: {generator: {count: ",
                                   kPackets,
                                   ", packet: 64}}\n  tx: null\n  device: none\n  tuning: {device_limit_ms: 10}\n"
                                   "  nfs:\n    - {name: nf, type: ",
                                   type, ", isolation: ", isolation, "}\n"),
                            "chain.yaml")
      .value();
}

Result<std::unique_ptr<Session>> session_of(chain::ChainConfig chain, std::string const& record_path = {}) {
  RunOptions options;
  options.record_path = record_path;
  options.processes.program = CATENA_LYING_NF;
  return Session::create(std::move(chain), options, nf::Registry());
}

Result<std::unique_ptr<Session>> session_of(std::string const& type, std::string const& record_path = {}) {
  return session_of(chain_of(type), record_path);
}

/// Two NFs in one process, "nf" and "second", whose type says how it lies.
chain::ChainConfig group_of(std::string const& type) {
  chain::ChainConfig chain = chain_of("honest", "{group: g}");
  chain.nfs.push_back(chain_of(type, "{group: g}").nfs[0]);
  chain.nfs[1].name = "second";
  return chain;
}

TEST(ProcessStage, packets_go_to_a_process_and_come_back) {
  const Result<std::unique_ptr<Session>> session = session_of("honest");
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ((*session)->run(), absl::OkStatus());
  const Report report = (*session)->report();
  EXPECT_EQ(report.tx.sent, kPackets);
  EXPECT_EQ(report.nfs[0].placement, "process");
  EXPECT_EQ(report.nfs[0].packets.in, kPackets);
  EXPECT_EQ(report.nfs[0].lines, std::vector<std::string>{"done"});
  EXPECT_EQ(report.nfs[0].isolation.restarts, 0);
}

using Frames = std::vector<std::vector<std::uint8_t>>;

class FrameSink final : public io::Sink {
 public:
  /// `port`: gets the highest number of one that a frame leaves through.
  FrameSink(Frames& frames, std::uint16_t& port) : frames_(&frames), port_(&port) {}
  Status send(memory::PacketPool& pool, memory::Unit& unit) override {
    const packet::Batch batch = pool.batch(unit);
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      if (batch[i].verdict() != packet::Verdict::kDrop) {
        frames_->emplace_back(batch[i].frame(), batch[i].frame() + batch[i].length());
        *port_ = std::max(*port_, batch[i].port());
        ++sent_;
      }
    }
    pool.release_slots(unit, 0, unit.count);
    return absl::OkStatus();
  }
  Status finish() override { return absl::OkStatus(); }
  io::SinkCounts counts() const override { return {sent_, {}}; }
  std::string describe() const override { return "frames"; }

 private:
  Frames* frames_;
  std::uint16_t* port_;
  std::uint64_t sent_ = 0;
};

struct Sent {
  Frames frames;
  Report report;
  std::uint16_t port = 0;  ///< the highest number of one that a frame leaves through
};

/// What comes out of a process of this type, of packets with a payload.
Sent sent_by(std::string const& type) {
  Sent sent;
  RunOptions options;
  options.processes.program = CATENA_LYING_NF;
  options.make_sink = [&sent]() -> Result<std::unique_ptr<io::Sink>> {
    return std::make_unique<FrameSink>(sent.frames, sent.port);
  };
  chain::ChainConfig config = chain_of(type);
  config.rx.as<io::GeneratorConfig>().packet_bytes = 512;
  config.rx.as<io::GeneratorConfig>().count = 20'000;
  const auto session = Session::create(config, options, nf::Registry());
  EXPECT_TRUE(session.ok()) << session.status();
  (*session)->run().IgnoreError();
  sent.report = (*session)->report();
  return sent;
}

TEST(ProcessStage, an_nf_that_reads_headers_gets_no_byte_behind_them) {
  const Sent sent = sent_by("headers-peek");
  EXPECT_EQ(sent.frames.size(), 20'000U) << to_text(sent.report);
}

TEST(ProcessStage, what_an_nf_does_not_say_that_it_writes_it_cannot_change) {
  Frames expected = sent_by("honest").frames;
  ASSERT_EQ(expected.size(), 20'000U);
  EXPECT_EQ(sent_by("reads-scribble").frames, expected);
  for (auto& frame : expected) {
    frame[22] = 7;
  }
  EXPECT_EQ(sent_by("headers-scribble").frames, expected);
}

TEST(ProcessStage, an_nf_that_says_nothing_of_lengths_cannot_change_one) {
  const auto [frames, report, port] = sent_by("headers-move");
  EXPECT_TRUE(frames.empty());
  EXPECT_TRUE(report.accounted()) << to_text(report);
  ASSERT_EQ(report.nfs[0].packets.drops.size(), 1U) << to_text(report);
  EXPECT_EQ(report.nfs[0].packets.drops[0].name, "process_failed");
}

TEST(ProcessStage, only_an_nf_that_says_so_chooses_the_port_of_a_packet) {
  EXPECT_EQ(sent_by("reads-and-sets-the-port").port, 0U);
  EXPECT_EQ(sent_by("sets-the-port").port, 1U);
}

// more than is kept of what is said about one unit, but of many: they are on the way at the same time
TEST(ProcessStage, an_nf_may_say_much_about_each_unit) {
  chain::ChainConfig chain = chain_of("says-much");
  chain.rx.as<io::GeneratorConfig>().count = 4096;
  chain.tuning.unit_packets = 256;
  const Result<std::unique_ptr<Session>> session = session_of(chain, "/dev/null");
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ((*session)->run(), absl::OkStatus());
  const Report report = (*session)->report();
  EXPECT_EQ(report.tx.sent, 4096U) << to_text(report);
  EXPECT_EQ(report.nfs[0].isolation.restarts, 0U);
}

// whatever it makes of them, there is a verdict for each packet
TEST(ProcessStage, a_process_may_write_anything_anywhere_at_any_time) {
  for (const char* record : {"", "/dev/null"}) {
    for (int i = 0; i < 4; ++i) {
      const Result<std::unique_ptr<Session>> session = session_of(group_of("writes-everywhere"), record);
      ASSERT_TRUE(session.ok()) << session.status();
      (*session)->run().IgnoreError();
      const Report report = (*session)->report();
      EXPECT_EQ(report.rx.received, kPackets);
      EXPECT_TRUE(report.accounted()) << to_text(report);
      EXPECT_EQ(report.rx.slots_in_use, 0U);
    }
  }
}

class Lies : public ::testing::TestWithParam<const char*> {};

TEST_P(Lies, cost_the_nf_its_own_packets_and_are_counted) {
  const Result<std::unique_ptr<Session>> session = session_of(GetParam());
  ASSERT_TRUE(session.ok()) << session.status();
  const Status status = (*session)->run();
  const Report report = (*session)->report();
  EXPECT_TRUE(report.accounted()) << to_text(report);
  EXPECT_EQ(report.rx.received, kPackets);
  ASSERT_EQ(report.nfs[0].packets.drops.size(), 1U) << to_text(report);
  EXPECT_EQ(report.nfs[0].packets.drops[0].name, "process_failed");
  EXPECT_EQ(report.rx.slots_in_use, 0U);
  EXPECT_TRUE(absl::IsUnavailable(status)) << "no incarnation has finished: " << status;
}

class LiesOfAGroup : public ::testing::TestWithParam<const char*> {};

TEST_P(LiesOfAGroup, cost_its_packets_and_are_counted_by_its_first_nf) {
  const std::string record = std::string(GetParam()).starts_with("line-of-") ? "/dev/null" : "";
  const Result<std::unique_ptr<Session>> session = session_of(group_of(GetParam()), record);
  ASSERT_TRUE(session.ok()) << session.status();
  const Status status = (*session)->run();
  const Report report = (*session)->report();
  EXPECT_TRUE(report.accounted()) << to_text(report);
  EXPECT_EQ(report.rx.received, kPackets);
  ASSERT_EQ(report.nfs[0].packets.drops.size(), 1U) << to_text(report);
  EXPECT_EQ(report.nfs[0].packets.drops[0].name, "process_failed");
  EXPECT_EQ(report.nfs[0].packets.in, report.nfs[0].packets.passed + report.nfs[0].packets.drops[0].count);
  EXPECT_EQ(report.nfs[1].packets.in, report.nfs[0].packets.passed);
  EXPECT_TRUE(report.nfs[1].packets.drops.empty()) << to_text(report);
  EXPECT_EQ(report.nfs[1].isolation.restarts, report.nfs[0].isolation.restarts);
  EXPECT_EQ(report.rx.slots_in_use, 0U);
  EXPECT_TRUE(absl::IsUnavailable(status)) << "no incarnation has finished: " << status;
}

INSTANTIATE_TEST_SUITE_P(Kinds, LiesOfAGroup,
                         ::testing::Values("drop-by-nobody", "reply-by-nobody", "alert-by-nobody", "alert-after-a-drop",
                                           "line-of-1", "line-of-2", "wrong-slot", "crash", "ends-early"),
                         [](auto const& lie) {
                           std::string name = lie.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(ProcessStage, what_each_nf_of_a_group_did_is_counted_as_its_own) {
  const Result<std::unique_ptr<Session>> session = session_of(group_of("both-decide"));
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ((*session)->run(), absl::OkStatus());
  const Report report = (*session)->report();
  EXPECT_TRUE(report.accounted()) << to_text(report);
  EXPECT_EQ(report.nfs[0].packets.in, kPackets);
  EXPECT_GT(report.nfs[0].packets.replies, 0U);
  EXPECT_EQ(report.nfs[0].packets.passed, kPackets - report.nfs[0].packets.replies);
  EXPECT_EQ(report.nfs[1].packets.in, report.nfs[0].packets.passed);
  EXPECT_EQ(report.nfs[1].packets.replies, 0U);
  ASSERT_EQ(report.nfs[1].packets.drops.size(), 1U) << to_text(report);
  EXPECT_EQ(report.nfs[1].packets.drops[0].name, "own");
  EXPECT_EQ(report.nfs[1].packets.drops[0].count, report.nfs[0].packets.alerts) << "one of each unit";
  EXPECT_GE(report.nfs[0].packets.alerts, kPackets / memory::kMaxUnitPackets);
  EXPECT_EQ(report.nfs[1].packets.alerts, 0U);
  EXPECT_EQ(report.tx.sent, report.nfs[1].packets.passed + report.nfs[0].packets.replies);
  for (NfReport const& nf : report.nfs) {
    EXPECT_EQ(nf.placement, "process");
    EXPECT_EQ(nf.lines, std::vector<std::string>{"done"});
  }
}

TEST(ProcessStage, lines_of_the_nf_that_dropped_a_packet_are_taken) {
  const Result<std::unique_ptr<Session>> session = session_of(group_of("line-of-0"), "/dev/null");
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ((*session)->run(), absl::OkStatus());
  EXPECT_EQ((*session)->report().nfs[0].isolation.restarts, 0U);
}

TEST(ProcessStage, a_group_that_speaks_of_more_nfs_than_it_has_is_refused) {
  const Status status = session_of(group_of("one-more")).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
}

INSTANTIATE_TEST_SUITE_P(Kinds, Lies,
                         ::testing::Values("wrong-slot", "no-slot", "long-frame", "far-frame", "short-frame",
                                           "no-frame", "bad-verdict", "bad-output", "small-mtu", "less", "too-many",
                                           "ends-early", "lie-and-die", "blocking-bell", "exit", "crash", "hang",
                                           "chatter", "unasked", "many-messages", "asks-for-files", "writes-unasked",
                                           "writes-too-much", "asks-and-never-reads"),
                         [](auto const& lie) {
                           std::string name = lie.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(ProcessStage, a_process_is_refused_what_it_may_not_write_and_that_is_counted) {
  const Result<std::unique_ptr<Session>> session = session_of("asks-for-files");
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_FALSE((*session)->run().ok());
  EXPECT_GE((*session)->report().nfs[0].isolation.refusals, 16U);
}

TEST(ProcessStage, one_that_still_has_something_written_after_the_last_packet_is_let_end) {
  const Result<std::unique_ptr<Session>> session = session_of("asks-long");  // for longer than it may be mute
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ((*session)->run(), absl::OkStatus());
  EXPECT_EQ((*session)->report().nfs[0].isolation.restarts, 0);
}

TEST(ProcessStage, a_process_with_too_little_memory_ends_and_is_counted_and_others_lose_nothing) {
  RunOptions options;
  options.processes.program = CATENA_LYING_NF;
  const auto hungry = Session::create(chain_of("eats-memory", "{memory_mb: 256}"), options, nf::Registry());
  const auto other = Session::create(chain_of("honest"), options, nf::Registry());
  ASSERT_TRUE(hungry.ok() && other.ok());
  std::thread thread([&other] { EXPECT_EQ((*other)->run(), absl::OkStatus()); });
  EXPECT_TRUE(absl::IsUnavailable((*hungry)->run()));
  thread.join();
  EXPECT_GT((*hungry)->report().nfs[0].isolation.restarts, 0U);
  EXPECT_EQ((*hungry)->report().nfs[0].packets.drops[0].name, "process_failed");
  EXPECT_EQ((*other)->report().tx.sent, kPackets);
  EXPECT_EQ((*other)->report().dropped(), 0U);
}

TEST(ProcessStage, a_process_that_hides_its_memory_from_resource_limits_is_ended_by_its_group_which_is_said) {
  if (const auto groups = sandbox::find_group_places(); !groups.ok()) {
    GTEST_SKIP() << "this user cannot make control groups: " << groups.status().message();
  }
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  const auto session = session_of(chain_of("hides-memory", "{memory_mb: 64}"));
  ASSERT_TRUE(session.ok()) << session.status();
  const Status status = (*session)->run();
  const Report report = (*session)->report();
  spdlog::set_default_logger(before);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(report.accounted()) << to_text(report);
  EXPECT_GT(report.nfs[0].isolation.restarts, 0U);
  EXPECT_NE(log.str().find("nf: its process used more memory than its control group may have"), std::string::npos)
      << log.str();
}

// "honest" gives units back and says nothing about any, not even that this was all
TEST(ProcessStage, lines_that_cannot_be_end_a_process) {
  for (const char* type : {"many-lines", "honest"}) {
    const Result<std::unique_ptr<Session>> session = session_of(type, "/dev/null");
    ASSERT_TRUE(session.ok()) << session.status();
    EXPECT_TRUE(absl::IsUnavailable((*session)->run())) << type;
    const Report report = (*session)->report();
    EXPECT_TRUE(report.accounted()) << to_text(report);
    ASSERT_EQ(report.nfs[0].packets.drops.size(), 1U) << to_text(report);
    EXPECT_EQ(report.nfs[0].packets.drops[0].name, "process_failed");
    EXPECT_EQ(report.rx.slots_in_use, 0U);
  }
}

TEST(ProcessStage, a_drop_reason_that_is_none_is_counted_under_another_name) {
  const Result<std::unique_ptr<Session>> session = session_of("odd-reason");
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ((*session)->run(), absl::OkStatus());
  const Report report = (*session)->report();
  EXPECT_TRUE(report.accounted()) << to_text(report);
  ASSERT_EQ(report.nfs[0].packets.drops.size(), 1U) << to_text(report);
  EXPECT_EQ(report.nfs[0].packets.drops[0].name, "kernel_fault");
}

TEST(ProcessStage, words_that_cannot_be_end_a_process) {
  for (const char* type : {"nonsense", "bad-statistics", "statistics-of-nobody", "hands-unasked"}) {
    const Result<std::unique_ptr<Session>> session = session_of(type);
    ASSERT_TRUE(session.ok()) << session.status();
    (*session)->run().IgnoreError();
    const Report report = (*session)->report();
    EXPECT_TRUE(report.accounted()) << to_text(report);
  }
}

TEST(ProcessStage, what_is_said_at_the_start_is_checked) {
  for (const char* type : {"babble", "other-type", "evil-reason", "evil-output"}) {
    const Status status = session_of(type).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << type << ": " << status;
    EXPECT_EQ(status.message().find("chain.yaml:10:"), 0U) << status;
  }
  EXPECT_TRUE(absl::IsDataLoss(session_of("refuses-with-nothing").status()));
  EXPECT_TRUE(absl::IsDataLoss(session_of("wants-devices").status()));
}

TEST(ProcessStage, packets_do_not_wait_for_one_that_is_mute_when_it_is_started_again) {
  Result<std::unique_ptr<Session>> session = absl::UnavailableError("not tried");
  // its first incarnation must start before it falls silent, however busy the machine is
  for (auto delay = std::chrono::milliseconds(300); !session.ok() && delay < std::chrono::minutes(1); delay *= 3) {
    const auto since = std::chrono::system_clock::now() + delay;
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(since.time_since_epoch()).count();
    session = session_of(concat("mute-from-", ms));
  }
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE(absl::IsUnavailable((*session)->run()));
  const Report report = (*session)->report();
  EXPECT_TRUE(report.accounted()) << to_text(report);
  EXPECT_EQ(report.dropped(), kPackets);
}

/// What the processes of an NF do where another chain takes over.
struct Passing {
  const char* before;
  const char* next;
  bool may_lose = false;  ///< packets, if they were on their way to one that fails
};
std::ostream& operator<<(std::ostream& out, Passing const& passing) {
  return out << passing.before << ", then " << passing.next;
}

class Passings : public ::testing::TestWithParam<Passing> {};

/// Of `packets`, the first ones through one session, the others through the next. False: the first one had all of them
/// before the next one was made.
bool passes_on(Passing const& passing, std::uint64_t packets) {
  const auto chain_with = [packets](const char* type) {
    chain::ChainConfig chain = chain_of(type);
    chain.rx.as<io::GeneratorConfig>().count = packets;
    chain.rx.as<io::GeneratorConfig>().packets_per_s = 40'000;
    return chain;
  };
  const std::shared_ptr<Session> before = session_of(chain_with(passing.before)).value();
  std::future<Status> ended = std::async(std::launch::async, [&before] { return before->run(); });
  while (before->progress().sent < 2000 && ended.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
  }
  RunOptions options;
  options.processes.program = CATENA_LYING_NF;
  const auto next =
      Session::create(chain_with(passing.next), options, nf::Registry(), {}, PreviousPipeline{before.get(), before})
          .value();
  if (absl::IsFailedPrecondition(next->start())) {
    EXPECT_EQ(before->progress().sent, packets);
    return false;
  }
  next->run().IgnoreError();
  ended.get().IgnoreError();
  const Report first = before->report();
  const Report second = next->report();
  EXPECT_TRUE(first.accounted()) << to_text(first);
  EXPECT_TRUE(second.accounted()) << to_text(second);
  EXPECT_EQ(second.rx.received, packets) << "counts go on";
  EXPECT_GT(second.tx.sent, first.tx.sent) << to_text(second);
  if (!passing.may_lose) {
    EXPECT_EQ(second.dropped(), 0U) << to_text(first) << to_text(second);
  }
  EXPECT_EQ(second.rx.slots_in_use, 0U);
  return true;
}

TEST_P(Passings, go_on_whatever_a_process_leaves_and_another_makes_of_it) {
  // a busy machine may need more than a second for the next process
  EXPECT_TRUE(passes_on(GetParam(), 40'000) || passes_on(GetParam(), 800'000));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, Passings,
    ::testing::Values(Passing{"hands-nothing", "begins-well"}, Passing{"hands-garbage", "begins-well"},
                      Passing{"hands-twice", "begins-well"}, Passing{"hands-too-much", "begins-well"},
                      Passing{"hands-of-nobody", "begins-well"}, Passing{"hands-and-hangs", "begins-well"},
                      Passing{"honest", "begins-well"}, Passing{"hands-garbage", "honest"},
                      Passing{"hands-garbage", "begins-refusing"},
                      Passing{"hands-garbage", "begins-with-nonsense", true},
                      Passing{"hands-garbage", "begins-for-many", true}, Passing{"hands-garbage", "begins-dying", true},
                      Passing{"hands-garbage", "begins-never", true}),
    [](auto const& kind) {
      std::string name = concat(kind.param.before, "_then_", kind.param.next);
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST(ProcessStage, without_a_program_the_file_is_refused) {
  const Status status = Session::create(chain_of("honest"), {}, nf::Registry()).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(status.message().find("isolation: none"), absl::string_view::npos) << status;
}

TEST(ProcessStage, a_session_that_never_runs_ends_its_process) {
  EXPECT_TRUE(session_of("honest").ok());
  EXPECT_TRUE(session_of("hang").ok());
}

}  // namespace
}  // namespace catena::runtime
