// SPDX-License-Identifier: Apache-2.0
#include "bench/common/results.hpp"

#include "gpu/device/subprocess.hpp"

#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace catena::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// What a part may be told: names, numbers, a list, a text.
Part some_part() {
  return {
      .name = "some",
      .help = "for tests",
      .seconds = 2,
      .quick_seconds = 0.4,
      .settings =
          {groups_setting({"fast", "slow"}),
           {.name = "modes",
            .help = "",
            .usual = "",
            .quick = nullptr,
            .names = {"copy, staged", "copy"},
            .is_list = true,
            .chooses = true},
           {.name = "sizes",
            .help = "",
            .usual = "64,1518",
            .quick = "64",
            .least = 64,
            .most = 1518,
            .is_list = true,
            .chooses = true},
           {.name = "copies", .help = "", .usual = "best", .quick = nullptr, .names = {"best"}, .least = 1, .most = 64},
           {.name = "run_seconds", .help = "", .usual = "0.03", .quick = "0.005", .least = 0.0001, .most = 60},
           {.name = "tuning", .help = "", .usual = "pool_slots: 65536, a: 1", .quick = nullptr}},
      .run = nullptr};
}

class ResultsTest : public ::testing::Test {
 protected:
  ResultsTest() : folder_(*device::TemporaryFolder::create()) {
    told_.out = (folder_.path() / "deep" / "out.json").string();
    told_.command = "as typed";
    told_.repeats = 2;
  }

  Result<Request> request() const { return Request::create(part_, told_); }
  Result<Results> begin(Json how = Json::object()) {
    CATENA_ASSIGN_OR_RETURN(const Request made, request());
    return Results::begin(
        made, [this](std::string const& line) { lines_.push_back(line); }, {{"device", "a device"}}, std::move(how));
  }
  /// Each repeat gives `speed_`, which is another one for every repeat.
  Work work() {
    Work work;
    work.measure = [this](std::size_t number, Json& cell) -> Status {
      ++measured_;
      if (number == fails_) {
        return absl::DataLossError("the device fell out");
      }
      for (std::uint32_t i = 0; i < told_.repeats; ++i) {
        cell["repeats"].push_back({{"speed", ++speed_}});
      }
      return absl::OkStatus();
    };
    work.summary = [](Json const& cell) { return cell.at("repeats").dump(); };
    return work;
  }
  /// Cells of two chains and two sizes.
  static std::vector<Json> keys() {
    std::vector<Json> keys;
    for (const char* chain : {"C1", "C4"}) {
      for (const int size : {64, 1518}) {
        keys.push_back({{"group", "fast"}, {"chain", chain}, {"size", size}, {"units", 0}});
      }
    }
    return keys;
  }
  Json file() const {
    std::ifstream in(told_.out);
    return Json::parse(in);
  }
  void write_file(std::string const& text) const { std::ofstream(told_.out) << text; }
  /// What the first run leaves, which is gone on with from here on.
  Json first_run(Work const& work) {
    Result<Results> results = begin();
    EXPECT_TRUE(results.ok()) << results.status();
    EXPECT_TRUE(results->measure(keys(), work).ok());
    told_.resume = true;
    lines_.clear();
    measured_ = 0;
    fails_ = kNone;
    return file();
  }

  static constexpr std::size_t kNone = 99;
  device::TemporaryFolder folder_;
  Told told_;
  const Part part_ = some_part();
  std::vector<std::string> lines_;
  std::size_t measured_ = 0;
  std::size_t fails_ = kNone;
  double speed_ = 0;
};

// ---- what is asked for

TEST_F(ResultsTest, a_request_has_what_was_said_and_else_what_is_usual) {
  told_.settings = {{"copies", "3"}, {"modes", "copy, staged,copy"}};
  const Result<Request> said = request();
  ASSERT_TRUE(said.ok()) << said.status();
  EXPECT_EQ(said->seconds(), 2);
  EXPECT_EQ(said->repeats(), 2U);
  EXPECT_EQ(said->count("copies"), 3U);
  EXPECT_THAT(said->texts("modes"), ElementsAre("copy, staged", "copy"));
  EXPECT_THAT(said->counts("sizes"), ElementsAre(64, 1518));
  EXPECT_EQ(said->number("run_seconds"), 0.03);
  EXPECT_EQ(said->text("tuning"), "pool_slots: 65536, a: 1") << "no list: commas are its own";
  EXPECT_TRUE(said->wants("modes", "copy"));
  EXPECT_TRUE(said->wants("groups", "slow")) << "none are named: all";
  EXPECT_EQ(said->how(), Json::parse(R"({"copies": "3", "run_seconds": "0.03", "tuning": "pool_slots: 65536, a: 1"})"))
      << "what chooses cells is not in it";
}

TEST_F(ResultsTest, a_quick_request_is_short_where_nothing_else_was_said) {
  told_.quick = true;
  told_.seconds = 3;
  told_.settings = {{"run_seconds", "1"}, {"groups", "fast"}};
  const Result<Request> quick = request();
  ASSERT_TRUE(quick.ok()) << quick.status();
  EXPECT_EQ(quick->seconds(), 0.4);
  EXPECT_EQ(quick->repeats(), 1U);
  EXPECT_THAT(quick->counts("sizes"), ElementsAre(64));
  EXPECT_EQ(quick->number("run_seconds"), 1);
  EXPECT_FALSE(quick->wants("groups", "slow"));
}

TEST_F(ResultsTest, what_may_not_be_said_is_answered_with_what_may) {
  const auto refused = [this](const char* name, const char* value) {
    told_.settings = {{name, value}};
    const Status status = request().status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << name << ' ' << value;
    return std::string(status.message());
  };
  EXPECT_EQ(refused("groups", "fast,all"), "--groups: there is no 'all'; allowed: fast, slow");
  EXPECT_EQ(refused("sizes", "64,63"), "--sizes: there is no '63'; allowed: 64 to 1518");
  EXPECT_EQ(refused("sizes", "64, 128"), "--sizes: there is no '64, 128'; allowed: 64 to 1518");
  EXPECT_EQ(refused("sizes", "64B"), "--sizes: there is no '64B'; allowed: 64 to 1518");
  EXPECT_EQ(refused("copies", "many"), "--copies: there is no 'many'; allowed: best, or 1 to 64");
  EXPECT_EQ(refused("copies", "1,2"), "--copies: there is no '1,2'; allowed: best, or 1 to 64") << "it is no list";
  EXPECT_EQ(refused("sizes", "64,0128"), "--sizes: '0128' is no decimal number; write 128 without leading zeros");
  EXPECT_EQ(refused("copies", "08"), "--copies: '08' is no decimal number; write 8 without leading zeros");
  EXPECT_EQ(refused("run_seconds", "0"), "--run-seconds: there is no '0'; allowed: 0.0001 to 60");
  EXPECT_EQ(refused("run_seconds", "nan"), "--run-seconds: there is no 'nan'; allowed: 0.0001 to 60");
  told_.settings = {};
  told_.repeats = 0;
  EXPECT_FALSE(request().ok());
  told_.repeats = 1;
  told_.seconds = -1;
  EXPECT_FALSE(request().ok());
  told_.seconds = 0;
  told_.out = "";
  EXPECT_THAT(std::string(request().status().message()), HasSubstr("--out FILE.json"));
}

// ---- what is written

TEST_F(ResultsTest, the_file_has_everything_after_each_cell) {
  Result<Results> results = begin({{"parts", "green"}});
  ASSERT_TRUE(results.ok()) << results.status();
  std::vector<std::size_t> cells_in_file;
  Work counting = work();
  const auto measure = counting.measure;
  counting.measure = [&](std::size_t number, Json& cell) {
    cells_in_file.push_back(file().at("cells").size());
    return measure(number, cell);
  };
  ASSERT_TRUE(results->measure(keys(), counting).ok());
  EXPECT_THAT(cells_in_file, ElementsAre(0, 1, 2, 3));
  results->describe_chain("C1", {{"title", "firewall"}});
  results->add_to_run("cost_profile", "measured");
  results->add_note("one is left out");
  ASSERT_TRUE(results->measure({}, counting).ok());
  const Json json = file();
  EXPECT_EQ(json, results->to_json());
  EXPECT_EQ(json.at("part"), "some");
  EXPECT_EQ(json.at("seconds"), 2);
  EXPECT_EQ(json.at("repeats"), 2);
  EXPECT_EQ(json.at("device"), "a device");
  EXPECT_EQ(json.at("command"), "as typed");
  EXPECT_EQ(json.at("settings").at("parts"), "green");
  EXPECT_EQ(json.at("settings").at("copies"), "best");
  EXPECT_EQ(json.at("notes"), Json::parse(R"(["one is left out"])"));
  EXPECT_EQ(json.at("chains").at("C1").at("title"), "firewall");
  ASSERT_THAT(json.at("runs"), SizeIs(1));
  EXPECT_EQ(json.at("runs")[0].at("cost_profile"), "measured");
  EXPECT_EQ(json.at("runs")[0].at("machine"), json.at("machine"));
  EXPECT_EQ(json.at("cells")[1].dump(),
            R"({"group":"fast","chain":"C1","size":1518,"units":0,"run":0,"repeats":[{"speed":3.0},{"speed":4.0}]})");
  EXPECT_THAT(lines_[3],
              ::testing::StartsWith(R"([4/4] fast, C4, size 1518: [{"speed":7.0},{"speed":8.0}]; about 0 s left)"));
  EXPECT_THAT(values_of(json.at("cells")[1], "/speed"), ElementsAre(3, 4));
  EXPECT_THAT(values_of(json.at("cells")[1], "/weight"), IsEmpty());
}

TEST_F(ResultsTest, a_cell_that_fails_has_its_error_and_the_others_go_on) {
  Result<Results> results = begin();
  ASSERT_TRUE(results.ok()) << results.status();
  fails_ = 1;
  ASSERT_TRUE(results->measure(keys(), work()).ok());
  EXPECT_EQ(results->failed_cells(), 1U);
  EXPECT_EQ(file().at("cells")[1].at("error"), "the device fell out");
  EXPECT_THAT(lines_[1], HasSubstr("FAILED: the device fell out"));
  EXPECT_EQ(results->find(keys()[1]), nullptr);
  EXPECT_NE(results->find(keys()[2]), nullptr);
  EXPECT_THAT(results->find_all({{"chain", "C1"}}), SizeIs(1));
}

TEST_F(ResultsTest, different_output_is_counted_and_said) {
  Result<Results> results = begin();
  ASSERT_TRUE(results.ok()) << results.status();
  Work compared = work();
  compared.measure = [](std::size_t number, Json& cell) {
    cell["samples"] = {{"compared", 10}, {"different", number}};
    if (number > 0) {
      cell["samples"]["first_difference"] = "packet 5: byte 1";
    }
    return absl::OkStatus();
  };
  ASSERT_TRUE(results->measure(keys(), compared).ok());
  EXPECT_EQ(results->samples_compared(), 40U);
  EXPECT_EQ(results->samples_different(), 0U + 1 + 2 + 3);
  EXPECT_THAT(lines_[3], HasSubstr("DIFFERENT OUTPUT: packet 5: byte 1"));
}

TEST_F(ResultsTest, a_cell_may_have_another_one_measured_first) {
  Result<Results> results = begin();
  ASSERT_TRUE(results.ok()) << results.status();
  const Json alone{{"group", "alone"}, {"nf", "router"}};
  Work outer = work();
  const auto measure = outer.measure;
  outer.measure = [&](std::size_t number, Json& cell) -> Status {
    if (results->find(alone) == nullptr) {
      CATENA_RETURN_IF_ERROR(results->measure(std::vector<Json>{alone}, work()));
    }
    cell["alone"] = values_of(*results->find(alone), "/speed");
    return measure(number, cell);
  };
  ASSERT_TRUE(results->measure(keys(), outer).ok());
  EXPECT_EQ(results->cells(), 5U);
  EXPECT_EQ(measured_, 5U);
  EXPECT_EQ(results->find(keys()[3])->at("alone"), Json::parse("[1.0, 2.0]"));
}

TEST_F(ResultsTest, a_file_that_cannot_be_written_is_an_error) {
  std::ofstream(folder_.path() / "deep") << "a file where a folder should be";
  EXPECT_TRUE(absl::IsPermissionDenied(begin().status()));
}

// ---- what is gone on with

TEST_F(ResultsTest, cells_of_earlier_runs_are_kept_and_the_others_measured) {
  fails_ = 3;
  const Json before = first_run(work());
  Result<Results> results = begin();
  ASSERT_TRUE(results.ok()) << results.status();
  std::vector<Json> more = keys();
  more.push_back({{"group", "fast"}, {"chain", "C5"}, {"size", 64}, {"units", 0}});
  ASSERT_TRUE(results->measure(more, work()).ok());
  EXPECT_EQ(measured_, 2U) << "the one that failed, and the one that is new";
  EXPECT_EQ(lines_[0], "kept 3 of 5 measurements of earlier runs");
  const Json after = file();
  ASSERT_THAT(after.at("runs"), SizeIs(2));
  ASSERT_THAT(after.at("cells"), SizeIs(5));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(after.at("cells")[i], before.at("cells")[i]);
  }
  EXPECT_EQ(after.at("cells")[3].at("run"), 1);
  EXPECT_FALSE(after.at("cells")[3].contains("error"));
  EXPECT_EQ(after.at("cells")[4].at("chain"), "C5");
}

TEST_F(ResultsTest, a_table_is_kept_as_a_whole_or_not_at_all) {
  Work tables = work();
  tables.table = {"group", "chain"};
  Json before = first_run(tables);
  before["cells"][1]["repeats"].erase(std::size_t{1});
  write_file(before.dump());
  Result<Results> results = begin();
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_TRUE(results->measure(keys(), tables).ok());
  EXPECT_EQ(lines_[0], "kept 2 of 4 measurements of earlier runs");
  std::vector<int> runs;
  const Json after = file();
  for (Json const& cell : after.at("cells")) {
    runs.push_back(cell.at("run").get<int>());
  }
  EXPECT_THAT(runs, ElementsAre(1, 1, 0, 0)) << "one cell of C1's lacked a repeat";
}

TEST_F(ResultsTest, cells_of_a_table_take_turns) {
  std::string calls;
  Work work;
  work.table = {"chain"};
  work.measure = [&](std::size_t number, Json& /*cell*/) {
    calls += concat("m", number, " ");
    return absl::OkStatus();
  };
  work.repeat = [&](std::size_t number, Json& cell) {
    calls += concat(number, " ");
    cell["repeats"].push_back({{"value", number}});
    return number == 1 ? absl::UnavailableError("broke") : absl::OkStatus();
  };
  work.finish = [&](std::size_t number, Json& cell) {
    calls += concat("f", number, " ");
    cell["void"] = "short of its load";
    return absl::OkStatus();
  };
  work.summary = [](Json const& /*cell*/) { return "fine"; };
  Result<Results> results = begin();
  ASSERT_TRUE(results.ok()) << results.status();
  const std::vector<Json> cells{{{"chain", "C1"}, {"mode", "a"}}, {{"chain", "C1"}, {"mode", "b"}}, {{"chain", "C2"}}};
  ASSERT_TRUE(results->measure(cells, work).ok());
  EXPECT_EQ(calls, "m0 m1 0 1 0 f0 m2 2 2 f2 ") << "what failed has no more turns";
  EXPECT_THAT(lines_,
              ElementsAre(HasSubstr("fine; VOID: short of its load"), HasSubstr("FAILED: broke"), HasSubstr("fine")));
  told_.resume = true;
  Result<Results> again = begin();
  ASSERT_TRUE(again.ok()) << again.status();
  calls.clear();
  ASSERT_TRUE(again->measure(cells, work).ok());
  EXPECT_EQ(calls, "m0 m1 0 1 0 f0 ") << "what is void stays: it had its repeats";
}

TEST_F(ResultsTest, each_cell_of_a_table_is_first_in_some_repeat) {
  std::string calls;
  Work work;
  work.table = {"chain"};
  work.measure = [](std::size_t /*number*/, Json& /*cell*/) { return absl::OkStatus(); };
  work.repeat = [&](std::size_t number, Json& cell) {
    calls += concat(number, " ");
    cell["repeats"].push_back({{"value", number}});
    return absl::OkStatus();
  };
  work.finish = work.measure;
  work.summary = [](Json const& /*cell*/) { return "fine"; };
  Result<Results> results = begin();
  ASSERT_TRUE(results.ok()) << results.status();
  const std::vector<Json> cells{
      {{"chain", "C1"}, {"mode", "a"}}, {{"chain", "C1"}, {"mode", "b"}}, {{"chain", "C1"}, {"mode", "c"}}};
  ASSERT_TRUE(results->measure(cells, work).ok());
  EXPECT_EQ(calls, "0 1 2 1 2 0 ");
}

TEST_F(ResultsTest, what_every_run_measures_stays_beside_that_of_earlier_ones) {
  Work anchors = work();
  anchors.by_every_run = true;
  first_run(anchors);
  Result<Results> results = begin();
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_TRUE(results->measure(keys(), anchors).ok());
  EXPECT_EQ(measured_, 4U);
  EXPECT_EQ(results->cells(), 8U);
  EXPECT_EQ(results->find(keys()[0])->at("run"), 1) << "the last one";
}

TEST_F(ResultsTest, cells_with_another_number_of_repeats_are_kept_where_the_work_has_it) {
  told_.repeats = 1;
  Work once = work();
  once.repeats = 1;
  first_run(once);
  told_.repeats = 2;
  Result<Results> results = begin();
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_TRUE(results->measure(keys(), once).ok());
  EXPECT_EQ(measured_, 0U);
  ASSERT_TRUE(results->measure(keys(), work()).ok());
  EXPECT_EQ(measured_, 4U) << "of these two repeats are wanted";
}

TEST_F(ResultsTest, cells_that_are_not_asked_for_stay_in_the_file) {
  first_run(work());
  Result<Results> results = begin();
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_TRUE(results->measure({keys()[3]}, work()).ok());
  EXPECT_EQ(measured_, 0U);
  EXPECT_THAT(file().at("cells"), SizeIs(4));
}

TEST_F(ResultsTest, what_was_measured_otherwise_is_not_gone_on_with) {
  const Json before = first_run(work());
  for (const char* field : {"commit", "seconds"}) {
    Json other = before;
    other[field] = "another";
    write_file(other.dump());
    const Status status = begin().status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(field) + " \"another\""));
  }
  write_file(before.dump());
  told_.settings["tuning"] = "other: 1";
  EXPECT_TRUE(absl::IsFailedPrecondition(begin().status()));
  told_.settings = {{"sizes", "64"}};
  EXPECT_TRUE(begin().ok()) << "that chooses cells";
}

TEST_F(ResultsTest, what_is_no_result_of_the_part_is_refused) {
  const Json before = first_run(work());
  Json other_part = before;
  other_part["part"] = "another";
  Json no_repeats = before;
  no_repeats["cells"][0].erase("repeats");
  Json odd_repeats = before;
  odd_repeats["cells"][0]["repeats"] = 5;
  Json no_cells = before;
  no_cells["cells"] = "none";
  for (std::string const& text :
       {std::string("{"), std::string("[]"), std::string("{}"), std::string(R"({"part": "some"})"), other_part.dump(),
        no_repeats.dump(), odd_repeats.dump(), no_cells.dump()}) {
    write_file(text);
    EXPECT_TRUE(absl::IsInvalidArgument(begin().status())) << text;
  }
  std::filesystem::remove(told_.out);
  EXPECT_TRUE(absl::IsNotFound(begin().status()));
}

}  // namespace
}  // namespace catena::bench
