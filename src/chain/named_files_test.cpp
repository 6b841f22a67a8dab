// SPDX-License-Identifier: Apache-2.0
#include "chain/named_files.hpp"

#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

namespace catena::chain {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

NamedFile read(std::string path) { return {"rx", "c.yaml:5:14", std::move(path), false}; }
NamedFile written(std::string path, std::string who = "--record") {
  return {std::move(who), "", std::move(path), true};
}

std::string error_of(std::vector<NamedFile> const& files) { return std::string(check_files(files).message()); }

TEST(CheckFiles, a_file_that_is_read_is_not_written_under_any_name) {
  ScratchFolder folder;
  folder.write("in.pcap", "frames");
  fs::create_symlink("in.pcap", folder.path("symlink"));
  fs::create_symlink(folder.path("symlink"), folder.path("symlink-of-symlink"));
  fs::create_hard_link(folder.path("in.pcap"), folder.path("hard-link"));
  fs::create_directory(folder.path("inner"));
  fs::create_directory_symlink(folder.path(""), folder.path("inner/out"));
  for (const std::string name :
       {"in.pcap", "symlink", "symlink-of-symlink", "hard-link", "inner/../in.pcap", "inner/out/in.pcap"}) {
    const std::string error = error_of({read(folder.path("in.pcap")), written(folder.path(name))});
    EXPECT_THAT(error, HasSubstr("--record: " + folder.path(name) + " would be overwritten: rx at c.yaml:5:14 reads"))
        << name;
    // whichever of the two is the link
    EXPECT_THAT(error_of({written(folder.path("in.pcap")), read(folder.path(name))}), HasSubstr("overwritten")) << name;
  }
  EXPECT_EQ(error_of({read(folder.path("in.pcap")), written(folder.path("out.pcap"))}), "");
  EXPECT_EQ(error_of({read(folder.path("in.pcap")), read(folder.path("symlink"))}), "") << "read by two";
}

TEST(CheckFiles, two_do_not_write_one_file_though_it_is_not_there_yet) {
  ScratchFolder folder;
  folder.write("there", "");
  fs::create_symlink("new", folder.path("dangling"));
  fs::create_symlink("dangling", folder.path("twice-dangling"));
  fs::create_directory_symlink(folder.path(""), folder.path("same-folder"));
  for (const auto& [one, other] : std::vector<std::pair<std::string, std::string>>{{"there", "there"},
                                                                                   {"new", "new"},
                                                                                   {"new", "dangling"},
                                                                                   {"dangling", "new"},
                                                                                   {"twice-dangling", "new"},
                                                                                   {"new", "same-folder/new"}}) {
    EXPECT_THAT(error_of({written(folder.path(one)), written(folder.path(other), "--trace")}),
                HasSubstr("--trace: " + folder.path(other) + " would be overwritten: --record writes the same file"))
        << one << ' ' << other;
  }
  EXPECT_EQ(error_of({written(folder.path("new")), written(folder.path("newer"))}), "");
  EXPECT_EQ(error_of({written("/dev/null"), written("/dev/null", "--trace")}), "") << "that is no harm";
  EXPECT_FALSE(fs::exists(folder.path("new"))) << "nothing was made";
}

TEST(CheckFiles, what_cannot_be_written_is_said_all_at_once) {
  ScratchFolder folder;
  folder.write("file", "");
  const std::string error = error_of({written(folder.path("no/such/out.pcap"), "tx"),
                                      written(folder.path("")),
                                      {"'file'", "c.yaml:9:3", folder.path("file/below"), true}});
  EXPECT_EQ(error, "tx: " + folder.path("no/such/out.pcap") + " cannot be written: no such folder: " +
                       folder.path("no/such") + "; create it first\n--record: " + folder.path("") +
                       " is a folder; write the name of a file\nc.yaml:9:3: 'file': " + folder.path("file/below") +
                       " cannot be written: no such folder: " + folder.path("file") + "; create it first");
}

TEST(CheckFiles, a_file_of_others_is_not_written) {
  ScratchFolder folder;
  folder.write("mine", "");
  fs::create_directory(folder.path("locked"));
  for (const char* name : {"mine", "locked"}) {
    fs::permissions(folder.path(name), fs::perms::owner_read);
  }
  if (::access(folder.path("mine").c_str(), W_OK) == 0) {
    GTEST_SKIP() << "this user may write everywhere";
  }
  EXPECT_THAT(error_of({written(folder.path("mine"))}), HasSubstr("mine: Permission denied"));
  EXPECT_THAT(error_of({written(folder.path("locked/out"))}), HasSubstr("locked: Permission denied"));
}

TEST(CheckKeys, no_two_nfs_have_the_same_ones) {
  const KeysOfNf a{"a", "c.yaml:7:7", {{"one", "association 1"}, {"two", "association 2"}}};
  const KeysOfNf b{"b", "c.yaml:8:7", {{"three", "association 3"}, {"two", "association 4"}, {"one", "association 5"}}};
  const KeysOfNf c{"c", "c.yaml:9:7", {{"three", "association 6"}, {"four", "association 7"}}};
  const KeysOfNf d{"d", "c.yaml:10:7", {{"five", "association 8"}}};
  EXPECT_TRUE(check_keys(std::vector<KeysOfNf>{}).ok());
  EXPECT_TRUE(check_keys(std::vector<KeysOfNf>{a, c, d}).ok());
  const Status status = check_keys(std::vector<KeysOfNf>{a, b, c, d});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const auto line = [](std::string_view position, std::string_view nf, int mine, int theirs, std::string_view other) {
    return concat(position, ": NF '", nf, "': association ", mine, " has the keys of association ", theirs, " of NF '",
                  other, "', and both would encrypt with the same key stream; give one of them keys of its own");
  };
  EXPECT_EQ(status.message(), concat(line("c.yaml:8:7", "b", 4, 2, "a"), "\n", line("c.yaml:9:7", "c", 6, 3, "b")));
}

TEST(CheckKeys, new_keys_have_spis_of_the_chain) {
  const KeysOfNf out{"out", "c.yaml:7:7", {{"one", "association 1", 4096}, {"two", "association 2", 4097}}};
  const KeysOfNf in{"in", "c.yaml:8:7", {{"", "", 5000}, {"", "", 5001}}};
  const std::vector<KeysOfNf> nfs{out, in};
  EXPECT_TRUE(check_keys(nfs).ok());
  EXPECT_TRUE(check_new_keys({}, {}).ok());
  EXPECT_TRUE(check_new_keys(nfs, {4097, 5000}).ok());
  EXPECT_EQ(check_new_keys(nfs, {4096, 4711, 4712}),
            absl::InvalidArgumentError(
                "--new-keys: no association of the chain has SPI 4711, 4712; write SPIs of its SA files"));
}

}  // namespace
}  // namespace catena::chain
