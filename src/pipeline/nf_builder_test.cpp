// SPDX-License-Identifier: Apache-2.0
#include "pipeline/nf_builder.hpp"

#include "pipeline/isolation.hpp"
#include "pipeline/test_support.hpp"

#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/alert.hpp>
#include <catena/nf/portable.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace catena::runtime {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Notes how it is started. Its configuration may say that it cannot be made, or not be started.
class NotingNf final : public testing::IdleNf, public nf::Persistent, public nf::Portable {
 public:
  explicit NotingNf(std::string refuses) : refuses_(std::move(refuses)) {}
  Status start(nf::RunContext const& context) override {
    notes().push_back(context.new_keys.contains(4096) ? "start with new keys" : "start");
    return refuses_ == "start" ? absl::UnavailableError("in use") : absl::OkStatus();
  }
  void join(nf::RunContext const& /*context*/) override { notes().emplace_back("join"); }
  Status prepare_to_load() override {
    notes().emplace_back("prepare_to_load");
    return absl::OkStatus();
  }
  void save(nf::StateWriter& /*state*/) const override {}
  Status load(nf::StateReader& /*state*/) override { return absl::OkStatus(); }

  /// Of all of them.
  static std::vector<std::string>& notes() {
    static std::vector<std::string> notes;
    return notes;
  }

 private:
  std::string refuses_;
};

Result<std::unique_ptr<nf::Nf>> make_noting(nf::Config& config) {
  CATENA_ASSIGN_OR_RETURN(std::string refuses, config.string("refuses"));
  if (config.has("file")) {
    CATENA_RETURN_IF_ERROR(config.output_path("file").status());
  }
  CATENA_RETURN_IF_ERROR(config.finish());
  if (refuses == "make") {
    return absl::InvalidArgumentError("not on a Sunday");
  }
  return std::make_unique<NotingNf>(std::move(refuses));
}

constexpr nf::ConfigKey kNotingKeys[] = {{"refuses", "text", "", ""}, {"file", "path", "", ""}};
constexpr nf::Descriptor kNoting{.type = "noting",
                                 .help = "",
                                 .drop_reasons = {},
                                 .config = kNotingKeys,
                                 .sharding = nf::Sharding::kFlow,
                                 .create = &make_noting};

class NfBuilderTest : public ::testing::Test {
 protected:
  NfBuilderTest() {
    NotingNf::notes().clear();
    EXPECT_TRUE(registry_.add(kNoting).ok());
  }
  /// A chain of NFs with these configurations.
  chain::ChainConfig chain_of(std::vector<std::string> const& configs, std::uint32_t shards = 1) {
    std::string text = concat(
        "apiVersion: catena/v1\nkind: Chain\nmetadata: {name: test}\nspec:\n  rx: {generator: {}}\n  tx: null\n  "
        "shards: ",
        shards, "\n  nfs:\n");
    for (std::size_t i = 0; i < configs.size(); ++i) {
      text += concat("    - {name: nf", i, ", type: noting, config: {", configs[i], "}}\n");
    }
    Result<chain::ChainConfig> config = chain::parse_chain(text, "chain.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    return *std::move(config);
  }
  Result<Pipeline> make(chain::ChainConfig& config) { return NfBuilder(config, options_, registry_).make_all(7); }

  nf::Registry registry_;
  RunOptions options_;
};

TEST_F(NfBuilderTest, each_shard_has_all_nfs) {
  chain::ChainConfig config = chain_of({"refuses: nothing", "refuses: start"}, 2);
  Result<Pipeline> pipeline = make(config);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  ASSERT_EQ(pipeline->segments().size(), 1U);
  EXPECT_EQ(pipeline->segments()[0].part.shards, 2U);
  ASSERT_EQ(pipeline->entries().size(), 2U);
  for (std::vector<NfEntry*> const& entries : pipeline->entries()) {
    ASSERT_EQ(entries.size(), 2U);
    EXPECT_NE(entries[0]->instance, entries[1]->instance);
    EXPECT_TRUE(entries[0]->content.has_value());
  }
  EXPECT_EQ(pipeline->first_of(1).config.name, "nf1");
  EXPECT_TRUE(NotingNf::notes().empty()) << "nothing is started";
}

TEST_F(NfBuilderTest, a_chain_without_nfs_has_one_segment) {
  chain::ChainConfig config = testing::config_of("{generator: {}}", "null");
  Result<Pipeline> pipeline = make(config);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  EXPECT_EQ(pipeline->segments().size(), 1U);
  EXPECT_TRUE(pipeline->entries().empty());
}

TEST_F(NfBuilderTest, a_user_sees_the_errors_of_all_nfs) {
  chain::ChainConfig config = chain_of({"refuses: make", "refuses: nothing", "refuses: make"});
  const Status status = make(config).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("\n")) << "a line for each";
}

TEST_F(NfBuilderTest, two_nfs_cannot_write_one_file) {
  const ScratchFolder folder;
  const std::string same = concat("refuses: nothing, file: ", folder.path("out.txt"));
  chain::ChainConfig one = chain_of({same, "refuses: nothing"});
  const Result<Pipeline> pipeline = make(one);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  ASSERT_EQ(pipeline->first_of(0).files.size(), 1U);
  EXPECT_EQ(pipeline->first_of(0).files[0].path, folder.path("out.txt"));
  EXPECT_TRUE(pipeline->first_of(1).files.empty());
  chain::ChainConfig two = chain_of({same, same});
  EXPECT_THAT(make(two).status().message(), HasSubstr("out.txt"));
}

TEST_F(NfBuilderTest, an_aborted_start_makes_nothing) {
  std::stop_source source;
  source.request_stop();
  options_.processes.give_up = source.get_token();
  chain::ChainConfig config = chain_of({"refuses: make"});
  EXPECT_EQ(make(config).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(NfBuilderTest, nfs_are_started_until_one_fails) {
  chain::ChainConfig config = chain_of({"refuses: nothing", "refuses: start", "refuses: nothing"});
  Result<Pipeline> pipeline = make(config);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  const Status status = start_nfs(*pipeline, run_context_of(config, options_, {4096}), nullptr);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("chain.yaml:10:"), HasSubstr("NF 'nf1': in use")));
  EXPECT_THAT(NotingNf::notes(), ElementsAre("start with new keys", "start with new keys"));
}

TEST_F(NfBuilderTest, nfs_that_continue_those_of_another_process_are_not_started) {
  chain::ChainConfig config = chain_of({"refuses: start"});
  options_.context = nf::RunContext{.continues = true};
  Result<Pipeline> pipeline = make(config);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  EXPECT_EQ(start_nfs(*pipeline, run_context_of(config, options_, {}), nullptr), absl::OkStatus());
  EXPECT_THAT(NotingNf::notes(), ElementsAre("join", "prepare_to_load"));
}

TEST_F(NfBuilderTest, a_process_of_a_chain_without_a_layout_has_the_default_unit_size) {
  chain::ChainConfig config = chain_of({"refuses: nothing"});
  config.tuning.unit_packets = chain::kAutoUnitPackets;
  const nf_process::Setup setup = setup_of(config.nfs, config);
  EXPECT_EQ(setup.unit_packets, memory::kDefaultUnitPackets);
  EXPECT_GE(setup.slots, memory::kMinSlots);
}

}  // namespace
}  // namespace catena::runtime
