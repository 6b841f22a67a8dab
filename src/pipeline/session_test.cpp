// SPDX-License-Identifier: Apache-2.0
#include "pipeline/session.hpp"
#include "pipeline/test_support.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/persistent.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace catena::runtime {
namespace {

using testing::config_of;

/// A port that goes on counting: the packets of a moment ago are never all.
class RunningPort final : public io::Source {
 public:
  explicit RunningPort(std::uint32_t bytes = 60) : bytes_(bytes) {}
  Status receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index, bool& starved) override {
    starved = !pool.acquire_slots(unit, 1);
    if (!starved) {
      pool.set_arrived(unit.slots()[0], bytes_, next_index++, 0);
      unit.count = 1;
      ++delivered_;
    }
    return absl::OkStatus();
  }
  bool finished() const override { return delivered_ == 1000; }
  io::SourceCounts counts() const override {
    lost_ += 7;
    return {delivered_ + lost_, {{"backlog_full", lost_}}};
  }
  std::string describe() const override { return "running"; }

 private:
  std::uint32_t bytes_;
  std::uint64_t delivered_ = 0;
  mutable std::uint64_t lost_ = 0;
};

TEST(Session, counters_of_a_port_that_runs_on_are_read_at_one_moment) {
  RunOptions options;
  options.make_source = [] { return std::make_unique<RunningPort>(); };
  auto chain = Session::create(config_of("{generator: {}}", "null"), options, nf::Registry());
  ASSERT_TRUE(chain.ok()) << chain.status();
  ASSERT_TRUE((*chain)->run().ok());
  const Report report = (*chain)->report();
  EXPECT_TRUE(report.accounted()) << report.rx.seen << " seen, " << report.tx.sent << " sent, " << report.dropped()
                                  << " dropped";
  EXPECT_EQ(report.tx.sent, 1000U);
  EXPECT_GT(report.dropped(), 0U);
}

/// A generator that is held up for 5 ms now and then, as by a machine that does something else.
class HeldUpGenerator final : public io::Source {
 public:
  explicit HeldUpGenerator(io::GeneratorConfig const& config) : generator_(io::make_generator(config).value()) {}
  Status receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index, bool& starved) override {
    constexpr std::uint64_t kBetween = 2'000;
    if (generator_->seen() / kBetween > times_) {
      ++times_;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return generator_->receive(pool, unit, next_index, starved);
  }
  bool finished() const override { return generator_->finished(); }
  io::SourceCounts counts() const override { return generator_->counts(); }
  std::string describe() const override { return "held up"; }

 private:
  std::unique_ptr<io::Source> generator_;
  std::uint64_t times_ = 0;
};

TEST(Session, packets_wait_from_when_they_were_due) {
  RunOptions options;
  io::GeneratorConfig config;
  config.packet_bytes = 64;
  config.packets_per_s = 100'000;
  config.count = 20'000;
  options.make_source = [&config] { return std::make_unique<HeldUpGenerator>(config); };
  auto chain = Session::create(config_of("{generator: {}}", "null"), options, nf::Registry());
  ASSERT_TRUE(chain.ok()) << chain.status();
  ASSERT_TRUE((*chain)->run().ok());
  const Histogram latency = (*chain)->report().tx.latency;
  ASSERT_EQ(latency.count(), config.count);
  // a fifth of the time it is held up, and who was due then has waited for what was left of 5 ms
  EXPECT_GE(latency.percentile(90), 2'000'000U);
  EXPECT_GE(latency.percentile(99), 4'000'000U);
  EXPECT_GE(latency.max(), 4'900'000U);
}

/// Says what it is told of the run.
class ToldPort final : public io::Source {
 public:
  ToldPort(std::vector<std::string>& told, bool fails) : told_(&told), fails_(fails) {}
  void start() override { told_->push_back("start"); }
  void stop() override { told_->push_back("stop"); }
  Status receive(memory::PacketPool& /*pool*/, memory::Unit& /*unit*/, std::uint64_t& /*next_index*/,
                 bool& /*starved*/) override {
    told_->push_back("receive");
    return fails_ ? absl::UnavailableError("gone") : absl::OkStatus();
  }
  bool finished() const override { return told_->back() == "receive"; }
  io::SourceCounts counts() const override { return {}; }
  std::string describe() const override { return "told"; }

 private:
  std::vector<std::string>* told_;
  bool fails_;
};

TEST(Session, a_source_is_told_when_the_run_begins_and_ends) {
  for (const bool fails : {false, true}) {
    std::vector<std::string> told;
    RunOptions options;
    options.make_source = [&] { return std::make_unique<ToldPort>(told, fails); };
    auto chain = Session::create(config_of("{generator: {}}", "null"), options, nf::Registry());
    ASSERT_TRUE(chain.ok()) << chain.status();
    EXPECT_TRUE(told.empty()) << "packets until here are others'";
    EXPECT_EQ((*chain)->run().ok(), !fails);
    ASSERT_GE(told.size(), 3U);
    EXPECT_EQ(told[0], "start");
    EXPECT_EQ(told[1], "receive");
    EXPECT_EQ(told[2], "stop");
  }
}

TEST(Session, progress_counts_as_sent_what_the_port_took) {
  RunOptions options;
  options.make_source = [] { return std::make_unique<RunningPort>(16); };  // below what a port carries
  auto chain = Session::create(config_of("{generator: {}}", "{dpdk: net_null_progress}"), options, nf::Registry());
  ASSERT_TRUE(chain.ok()) << chain.status();
  ASSERT_TRUE((*chain)->run().ok());
  const RunProgress progress = (*chain)->progress();
  EXPECT_EQ(progress.received, 1000U);
  EXPECT_EQ(progress.sent, 0U);
  EXPECT_EQ(progress.dropped, 1000U);
}

constexpr std::uint32_t kSpi = 4096;
const std::set<std::uint32_t> kNewKeys{kSpi};

/// Refuses what its configuration says, with the code it says.
class PickyNf final : public nf::Nf, public nf::Persistent {
 public:
  explicit PickyNf(std::string refuses) : refuses_(std::move(refuses)) {}
  nf::Hints hints() const override { return {}; }
  void compute(packet::Batch const& /*batch*/, std::span<const std::byte> /*aux*/,
               std::span<std::byte> /*results*/) override {}
  Status start(nf::RunContext const& context) override {
    contexts().push_back(context);
    return refuses_ == "start"   ? absl::InvalidArgumentError("unknown keys")
           : refuses_ == "taken" ? absl::FailedPreconditionError("another run has them")
                                 : absl::OkStatus();
  }
  void join(nf::RunContext const& context) override { contexts().push_back(context); }
  Status prepare_migration(std::span<nf::Nf const* const> /*before*/) override {
    return refuses_ == "adopt"  ? absl::FailedPreconditionError("another table")
           : refuses_ == "keys" ? absl::InvalidArgumentError("unknown keys")
                                : absl::OkStatus();
  }

  /// Of all of them, as they were told.
  static std::vector<nf::RunContext>& contexts() {
    static std::vector<nf::RunContext> contexts;
    return contexts;
  }

 private:
  std::string refuses_;
};

Result<std::unique_ptr<nf::Nf>> make_picky(nf::Config& config) {
  CATENA_ASSIGN_OR_RETURN(std::string refuses, config.string("refuses"));
  nf::Config::decrypts_with(kSpi);
  if (refuses == "create") {
    return absl::FailedPreconditionError("not on a Sunday");
  }
  return std::make_unique<PickyNf>(std::move(refuses));
}

/// Chains of picky NFs, one of which is there and another one to follow.
class PickyChain : public ::testing::Test {
 protected:
  void SetUp() override {
    static constexpr nf::ConfigKey kKeys[] = {{"refuses", "text", "", ""}};
    static constexpr nf::Descriptor kPicky{.type = "picky",
                                           .help = "",
                                           .drop_reasons = {},
                                           .config = kKeys,
                                           .sharding = nf::Sharding::kFlow,
                                           .create = &make_picky};
    PickyNf::contexts().clear();
    ASSERT_TRUE(registry_.add(kPicky).ok());
    auto first = create({"nothing"}, kNewKeys, nullptr);
    ASSERT_TRUE(first.ok()) << first.status();
    first_ = *std::move(first);
  }
  static chain::ChainConfig config(std::vector<std::string> const& refuses) {
    std::string text =
        "apiVersion: catena/v1\nkind: Chain\nmetadata: {name: test}\nspec:\n  rx: {generator: {}}\n  tx: null\n  "
        "nfs:\n";
    for (std::size_t i = 0; i < refuses.size(); ++i) {
      text += concat("    - {name: nf", i, ", type: picky, config: {refuses: ", refuses[i], "}}\n");
    }
    Result<chain::ChainConfig> config = chain::parse_chain(text, "chain.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    return *std::move(config);
  }
  Result<std::unique_ptr<Session>> create(std::vector<std::string> const& refuses,
                                          std::set<std::uint32_t> const& new_keys, Session* before) {
    RunOptions options;
    options.new_keys = new_keys;
    return Session::create(config(refuses), options, registry_, {},
                           before == nullptr ? std::nullopt : std::optional(PreviousPipeline{before, nullptr}));
  }
  Status follow(std::vector<std::string> const& refuses) { return create(refuses, {}, first_.get()).status(); }

  nf::Registry registry_;
  std::unique_ptr<Session> first_;
};

TEST_F(PickyChain, what_an_nf_refuses_is_no_other_shape) {
  for (const char* refuses : {"create", "keys"}) {
    EXPECT_EQ(follow({refuses}).code(), absl::StatusCode::kInvalidArgument) << refuses;
    EXPECT_EQ(follow({"nothing", refuses}).code(),
              refuses == std::string_view("keys") ? absl::StatusCode::kOk : absl::StatusCode::kInvalidArgument)
        << "an NF that comes has none before it";
  }
  EXPECT_EQ(follow({"adopt"}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(follow({"nothing", "start"}).code(), absl::StatusCode::kInvalidArgument) << "whatever runs";
  EXPECT_EQ(follow({"nothing", "taken"}).code(), absl::StatusCode::kFailedPrecondition)
      << "by the one that runs, perhaps";
  EXPECT_EQ(follow({"nothing", "nothing"}), absl::OkStatus());
}

TEST_F(PickyChain, a_preview_has_the_refusal_of_an_nf_with_stored_state) {
  const auto preview = [this](std::string const& refuses) {
    return Session::preview_replacement(config({refuses, "nothing"}), {}, registry_, {}, {first_.get(), nullptr})
        .status()
        .code();
  };
  EXPECT_EQ(preview("keys"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(preview("adopt"), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(preview("something"), absl::StatusCode::kOk);
  ASSERT_FALSE(PickyNf::contexts().empty());
  EXPECT_TRUE(PickyNf::contexts().back().is_trial);
}

TEST_F(PickyChain, a_start_after_its_end_restarts_the_nfs_with_state) {
  EXPECT_EQ(first_->restarted_nfs_of(config({"something", "nothing"}), registry_), std::vector<std::string>{"nf0"});
  chain::ChainConfig other = config({"nothing"});
  other.nfs.front().name = "other";
  EXPECT_TRUE(first_->restarted_nfs_of(other, registry_).empty()) << "its NF has no successor";
}

TEST_F(PickyChain, that_keys_are_new_is_said_of_one_start) {
  const auto told = [] {
    std::vector<bool> new_keys;
    for (nf::RunContext const& context : std::exchange(PickyNf::contexts(), {})) {
      new_keys.push_back(context.new_keys == kNewKeys);
    }
    return new_keys;
  };
  EXPECT_EQ(told(), std::vector<bool>{true}) << "the first start";
  auto next = create({"something", "nothing"}, kNewKeys, first_.get());
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(told(), (std::vector<bool>{true, true})) << "where it is said of what takes over";
  next = create({"something", "nothing"}, {}, first_.get());
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(told(), (std::vector<bool>{false, false}));
  next = create({"nothing", "nothing"}, kNewKeys, first_.get());
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(told(), std::vector<bool>{true}) << "one that is kept has started";
}

TEST_F(PickyChain, the_changes_of_a_replacement_are_told) {
  EXPECT_TRUE(*first_->is_same(config({"nothing"})));
  EXPECT_FALSE(*first_->is_same(config({"something"})));
  EXPECT_FALSE(*first_->is_same(config({"nothing", "nothing"})));
  const auto changes = [this](std::vector<std::string> const& refuses) {
    auto next = create(refuses, {}, first_.get());
    EXPECT_TRUE(next.ok()) << next.status();
    return next.ok() ? (*next)->changes() : std::vector<std::string>();
  };
  EXPECT_EQ(changes({"something"}), std::vector<std::string>{"nf0"});
  EXPECT_EQ(changes({"nothing", "nothing"}), std::vector<std::string>{"nf1"});
  chain::ChainConfig other = config({"nothing"});
  other.nfs.front().name = "other";
  auto next = Session::create(other, {}, registry_, {}, PreviousPipeline{first_.get(), nullptr});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ((*next)->changes(), (std::vector<std::string>{"other", "nf0: removed"}));
}

// of a chain with a device this takes milliseconds
TEST(SessionReplaced, packets_do_not_wait_for_its_end) {
  RunOptions options;
  options.make_source = [] { return std::make_unique<testing::OnePacketSource>(); };
  auto first = Session::create(config_of("{generator: {}}", "null"), options, nf::Registry());
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE((*first)->start().ok());
  std::jthread running([&first] { EXPECT_TRUE((*first)->run().ok()); });

  Session* next = nullptr;
  std::promise<bool> outcome;
  const auto wait_for_packets = [&next, &outcome](void* /*nothing*/) {
    const std::uint64_t before = next->progress().sent;
    bool is_running = false;
    for (int polls = 0; polls < 5000 && !is_running; ++polls) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      is_running = next->progress().sent > before;
    }
    outcome.set_value(is_running);
  };
  auto second = Session::create(
      config_of("{generator: {}}", "null"), options, nf::Registry(), {},
      PreviousPipeline{first->get(), std::shared_ptr<void>(static_cast<void*>(nullptr), wait_for_packets)});
  ASSERT_TRUE(second.ok()) << second.status();
  next = second->get();
  ASSERT_TRUE(next->start().ok());
  std::jthread following([next] { EXPECT_TRUE(next->run().ok()); });
  EXPECT_TRUE(outcome.get_future().get()) << "no packet was sent while it ended";
  next->stop();
}

}  // namespace
}  // namespace catena::runtime
