// SPDX-License-Identifier: Apache-2.0
#include "pipeline/nf_replacer.hpp"

#include "pipeline/resource_builder.hpp"
#include "pipeline/stage_builder.hpp"
#include "pipeline/test_support.hpp"

#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace catena::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Says its name, and may refuse the state of another one.
class NamedNf final : public testing::IdleNf {
 public:
  explicit NamedNf(std::string name) : name_(std::move(name)) {}
  Status prepare_migration(std::span<nf::Nf const* const> /*before*/) override {
    return name_ == "refusing" ? absl::FailedPreconditionError("another table")
           : name_ == "wrong"  ? absl::InvalidArgumentError("unknown keys")
                               : absl::OkStatus();
  }
  std::vector<std::string> start_report() const override { return {concat("is ", name_)}; }
  std::string const& name() const { return name_; }

 private:
  std::string name_;
};
Result<std::unique_ptr<nf::Nf>> make_named(nf::Config& config) {
  CATENA_ASSIGN_OR_RETURN(std::string name, config.string("name"));
  return std::make_unique<NamedNf>(std::move(name));
}
constexpr nf::ConfigKey kNamedKeys[] = {{"name", "text", "", ""}};
constexpr nf::Descriptor named(std::string_view type, nf::Sharding sharding) {
  return {
      .type = type, .help = "", .drop_reasons = {}, .config = kNamedKeys, .sharding = sharding, .create = &make_named};
}
constexpr nf::Descriptor kStateful = named("stateful", nf::Sharding::kFlow);
constexpr nf::Descriptor kStateless = named("stateless", nf::Sharding::kPacket);

/// A chain of NF a, of either type, and NF b without state.
class NfReplacerTest : public ::testing::Test {
 protected:
  NfReplacerTest() { EXPECT_TRUE(registry_.add(kStateful).ok() && registry_.add(kStateless).ok()); }
  static chain::ChainConfig config_of(std::string_view type, std::string_view a, std::string_view b) {
    Result<chain::ChainConfig> config = chain::parse_chain(
        concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: test}\nspec:\n  rx: {generator: {count: 1000}}\n"
               "  tx: null\n  nfs:\n    - {name: a, type: ",
               type, ", config: {name: ", a, "}}\n    - {name: b, type: stateless, config: {name: ", b, "}}\n"),
        "chain.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    return *std::move(config);
  }
  void build(std::string_view type) {
    config_ = config_of(type, "one", "two");
    Result<Pipeline> pipeline = NfBuilder(config_, options_, registry_).make_all(config_, 7);
    ASSERT_TRUE(pipeline.ok()) << pipeline.status();
    pipeline_ = *std::move(pipeline);
    auto limits = ResourceBuilder(config_, options_, pipeline_, ends_, devices_, nullptr).make_pools();
    ASSERT_TRUE(limits.ok()) << limits.status();
    flow_.emplace(*std::move(limits));
    ASSERT_EQ(ends_.open_ports(config_, options_, ShardMap(1, 7)), absl::OkStatus());
    StageBuilder stages({.chain = config_,
                         .options = options_,
                         .pipeline = pipeline_,
                         .ends = ends_,
                         .devices = devices_,
                         .flow = *flow_,
                         .telemetry = telemetry_,
                         .stop = stop_,
                         .version = replacer_.version()});
    ASSERT_EQ(stages.make_all(nullptr, {}), absl::OkStatus());
  }
  /// What the chain of `type`, with NFs of these names, reports of its new NFs.
  Result<std::vector<std::string>> change(std::string_view type, std::string_view a, std::string_view b) {
    const std::unique_lock lock = replacer_.lock();
    return replacer_.change(config_of(type, a, b), registry_, {}, {});
  }
  std::string name_of(std::size_t nf) { return dynamic_cast<NamedNf&>(pipeline_.first_of(nf).instance->nf()).name(); }

  nf::Registry registry_;
  chain::ChainConfig config_;
  RunOptions options_;
  std::atomic<bool> stop_{false};
  Ends ends_;
  DeviceManager devices_{nullptr};
  std::optional<FlowControl> flow_;
  Telemetry telemetry_{false};
  Pipeline pipeline_;
  NfReplacer replacer_{config_, options_, pipeline_, devices_};
};

TEST_F(NfReplacerTest, packets_after_a_change_have_the_new_nf) {
  build("stateful");
  const auto lines = change("stateful", "three", "two");
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_THAT(*lines, ElementsAre("a: is three")) << "the other one is the same";
  EXPECT_EQ(replacer_.version().load(), 1U);
  EXPECT_EQ(replacer_.waiting(), 1U) << "no packet has come";
  EXPECT_EQ(name_of(0), "one");
  EXPECT_FALSE(replacer_.admit_recovery().owns_lock());
  EXPECT_EQ(pipeline_.run(1, {}, stop_), absl::OkStatus());
  EXPECT_EQ(replacer_.waiting(), 0U);
  EXPECT_EQ(name_of(0), "three");
  EXPECT_EQ(name_of(1), "two");
  EXPECT_TRUE(replacer_.admit_recovery().owns_lock());
  EXPECT_EQ(pipeline_.first_of(0).instance->counters().in, 1000U) << "counts stay";
}

TEST_F(NfReplacerTest, the_same_chain_changes_nothing) {
  build("stateless");
  const auto lines = change("stateless", "one", "two");
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_THAT(*lines, IsEmpty());
  EXPECT_EQ(replacer_.waiting(), 0U);
}

TEST_F(NfReplacerTest, a_preview_changes_nothing) {
  build("stateless");
  const std::unique_lock lock = replacer_.lock();
  const auto lines = replacer_.preview(config_of("stateless", "three", "four"), registry_, {}, {});
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_THAT(*lines, ElementsAre("a: is three", "b: is four"));
  EXPECT_EQ(replacer_.version().load(), 0U);
  EXPECT_EQ(replacer_.waiting(), 0U);
  EXPECT_FALSE(std::async(std::launch::async, [this] { return replacer_.admit_recovery().owns_lock(); }).get());
}

TEST_F(NfReplacerTest, changes_wait_for_packets_up_to_a_limit) {
  build("stateless");
  for (const char* name : {"c", "d", "e", "f"}) {
    ASSERT_TRUE(change("stateless", name, "two").ok()) << name;
  }
  EXPECT_EQ(change("stateless", "g", "two").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(pipeline_.run(1, {}, stop_), absl::OkStatus());
  EXPECT_EQ(name_of(0), "f") << "the last one";
}

TEST_F(NfReplacerTest, of_an_nf_with_state_one_change_waits) {
  build("stateful");
  ASSERT_TRUE(change("stateful", "three", "two").ok());
  const Status status = change("stateful", "four", "two").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("NF 'a': no packets have come since the last change"));
}

TEST_F(NfReplacerTest, a_refusal_of_the_nf_is_no_other_chain) {
  build("stateful");
  EXPECT_EQ(change("stateful", "refusing", "two").status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(change("stateful", "wrong", "two").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(change("stateless", "one", "two").status().code(), absl::StatusCode::kFailedPrecondition)
      << "that is for another chain";
  EXPECT_EQ(replacer_.version().load(), 0U);
}

}  // namespace
}  // namespace catena::runtime
