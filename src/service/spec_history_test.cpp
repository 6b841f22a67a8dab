// SPDX-License-Identifier: Apache-2.0
#include "service/spec_history.hpp"

#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace catena::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

SpecRevision revision_of(std::string text, std::vector<HashedFile> files = {}) {
  chain::ChainSource source{"/a/chain.yaml", std::move(text), {{"/a/more.yaml", "spec: {}"}}, {{"workers", "3"}}};
  return make_revision(std::move(source), std::move(files), 1000);
}

std::vector<std::string> ids_of(std::vector<RevisionInfo> const& revisions) {
  std::vector<std::string> ids;
  for (RevisionInfo const& revision : revisions) {
    ids.push_back(revision.id);
  }
  return ids;
}

TEST(SpecRevision, comes_back_from_its_text_as_it_was) {
  const SpecRevision revision = revision_of("a: \"\\\"\n\xc3\xa4", {{"/a/rules", std::string(64, 'a')}});
  const Result<SpecRevision> again = revision_from(to_text(revision));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->id, revision.id);
  EXPECT_EQ(again->applied, revision.applied);
  EXPECT_EQ(again->uid, 1000U);
  EXPECT_EQ(again->source.text, revision.source.text);
  ASSERT_EQ(again->source.included.size(), 1U);
  EXPECT_EQ(again->source.included[0].text, "spec: {}");
  EXPECT_EQ(again->source.options, revision.source.options);
  EXPECT_EQ(again->files, revision.files);
}

TEST(SpecRevision, has_an_id_of_its_content_and_not_of_its_time) {
  const SpecRevision one = revision_of("a");
  EXPECT_EQ(one.id, revision_of("a").id);
  EXPECT_NE(one.id, revision_of("b").id);
  EXPECT_NE(one.id, revision_of("a", {{"/a/rules", std::string(64, 'a')}}).id);
}

TEST(SpecRevision, no_cut_or_changed_text_is_one) {
  const std::string text = to_text(revision_of("rate: 1000"));
  for (std::size_t bytes = 0; bytes + 2 < text.size(); ++bytes) {
    EXPECT_FALSE(revision_from(text.substr(0, bytes)).ok()) << bytes;
  }
  std::string changed = text;
  changed.replace(changed.find("rate: 1000"), 10, "rate: 1001");
  EXPECT_THAT(std::string(revision_from(changed).status().message()), HasSubstr("id"));
}

TEST(SpecHistory, lists_the_newest_first_and_one_that_ran_again_once) {
  const ScratchFolder folder;
  const SpecHistory history(folder.path("history"));
  EXPECT_TRUE(history.list("c").empty());
  ASSERT_TRUE(history.save("c", revision_of("a")).ok());
  ASSERT_TRUE(history.save("c", revision_of("b")).ok());
  ASSERT_TRUE(history.save("c", revision_of("a")).ok());
  ASSERT_TRUE(history.save("other", revision_of("x")).ok());
  EXPECT_THAT(ids_of(history.list("c")), ElementsAre(revision_of("a").id, revision_of("b").id));
  EXPECT_TRUE(history.load("c", revision_of("b").id).ok());
  EXPECT_TRUE(absl::IsNotFound(history.load("c", revision_of("x").id).status()));
}

TEST(SpecHistory, keeps_the_newest_within_its_limits) {
  const ScratchFolder folder;
  const SpecHistory history(folder.path("history"));
  const auto text = [](std::size_t number, std::size_t bytes) { return concat(number, std::string(bytes, 'x')); };
  for (std::size_t i = 0; i < SpecHistory::kMaxRevisions + 3; ++i) {
    ASSERT_TRUE(history.save("c", revision_of(text(i, 10))).ok());
  }
  EXPECT_EQ(history.list("c").size(), SpecHistory::kMaxRevisions);
  ASSERT_TRUE(history.save("c", revision_of(text(100, SpecHistory::kMaxBytes / 2))).ok());
  ASSERT_TRUE(history.save("c", revision_of(text(101, SpecHistory::kMaxBytes / 2))).ok());
  EXPECT_THAT(ids_of(history.list("c")), ElementsAre(revision_of(text(101, SpecHistory::kMaxBytes / 2)).id));
  ASSERT_TRUE(history.save("c", revision_of(text(102, 2 * SpecHistory::kMaxBytes))).ok());
  EXPECT_EQ(history.list("c").size(), 1U);
}

TEST(SpecHistory, has_the_last_saved_one_first_after_a_clock_was_ahead) {
  const ScratchFolder folder;
  const SpecHistory history(folder.path("history"));
  for (std::size_t i = 0; i < SpecHistory::kMaxRevisions; ++i) {
    SpecRevision ahead = revision_of(concat(i));
    ahead.applied += std::chrono::hours(24 * 365);
    ASSERT_TRUE(history.save("c", ahead).ok());
  }
  ASSERT_TRUE(history.save("c", revision_of("now"), revision_of("0").id).ok());
  ASSERT_TRUE(history.save("c", revision_of("later"), revision_of("0").id).ok());
  const std::vector<std::string> ids = ids_of(history.list("c"));
  ASSERT_GE(ids.size(), 3U);
  EXPECT_EQ(ids[0], revision_of("later").id);
  EXPECT_EQ(ids[1], revision_of("now").id);
  EXPECT_EQ(ids.back(), revision_of("0").id) << "spared";
}

TEST(SpecHistory, of_a_chain_with_the_name_of_a_folder_is_its_own) {
  const ScratchFolder folder;
  const SpecHistory history(folder.path("history"));
  for (const char* name : {".", "..", "..."}) {
    ASSERT_TRUE(history.save(name, revision_of("a")).ok());
    EXPECT_EQ(history.list(name).size(), 1U);
    ASSERT_TRUE(history.remove(name).ok());
    EXPECT_TRUE(history.list(name).empty());
  }
  EXPECT_TRUE(std::filesystem::exists(folder.path("history")));
  EXPECT_TRUE(history.remove("unknown").ok());
}

TEST(HashedFiles, are_those_that_a_spec_reads_and_does_not_have) {
  ScratchFolder folder;
  folder.write("rules", "deny\n");
  folder.write("chain.yaml", "x");
  folder.write("capture", "x");
  folder.write("flows", "x");
  const chain::ChainSource source{folder.path("chain.yaml")};
  const std::vector<chain::NamedFile> files{
      {"the chain file", "", folder.path("chain.yaml")}, {"rx", "1:1", folder.path("capture")},
      {"'rules'", "2:1", folder.path("rules")},          {"'rules'", "3:1", folder.path("rules")},
      {"'file'", "4:1", folder.path("flows"), true},     {"'file'", "5:1", "/dev/null"}};
  const Result<std::vector<HashedFile>> hashed = hash_files(source, files);
  ASSERT_TRUE(hashed.ok()) << hashed.status();
  // as sha256sum has it
  EXPECT_THAT(*hashed, ElementsAre(HashedFile{folder.path("rules"),
                                              "a29d20c44b5b445eb9e43ffc1c136950317ceb9736c1c9464839ee7af3d68cea"}));
  EXPECT_TRUE(check_unchanged(*hashed).ok());
  folder.write("rules", "allow\n");
  EXPECT_TRUE(absl::IsFailedPrecondition(check_unchanged(*hashed)));
  std::filesystem::remove(folder.path("rules"));
  EXPECT_TRUE(absl::IsFailedPrecondition(check_unchanged(*hashed)));
}

}  // namespace
}  // namespace catena::service
