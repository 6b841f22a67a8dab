// SPDX-License-Identifier: Apache-2.0
#include "service/audit_log.hpp"

#include "service/control.hpp"
#include "service/route.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <catena/core/text.hpp>
#include <nlohmann/json.hpp>

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace catena::service {
namespace {

using Json = nlohmann::ordered_json;

AuditRecord record(std::string operation) { return {std::move(operation), "a", {}, 7, 8, 200, {}}; }

class AuditLogTest : public ::testing::Test {
 protected:
  AuditLogTest() : folder_(std::filesystem::temp_directory_path() / concat("audit-", ::getpid())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~AuditLogTest() override { std::filesystem::remove_all(folder_); }
  std::string file(std::string const& name = "audit") const { return folder_ / name; }
  std::unique_ptr<AuditLog> open(std::string const& path) const {
    Result<std::unique_ptr<AuditLog>> log = AuditLog::open(path);
    EXPECT_TRUE(log.ok()) << log.status().message();
    return *std::move(log);
  }
  static std::vector<Json> lines(std::string const& path) {
    std::vector<Json> lines;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      lines.push_back(Json::parse(line));
    }
    return lines;
  }

 private:
  std::filesystem::path folder_;
};

/// The names of chains in requests are any text.
TEST_F(AuditLogTest, no_name_looks_like_another_line_in_the_log) {
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::ostream_sink_st>(log)));
  open({})->add({"stop", "v' by user 0: 200, \\'", {}, 7, 8, 404, {}, "owner"});
  spdlog::set_default_logger(before);
  EXPECT_THAT(log.str(),
              ::testing::HasSubstr("audit: stop of 'v\\' by user 0: 200, \\\\\\'' by user 7 (owner, process 8): 404"));
}

TEST_F(AuditLogTest, a_record_is_a_line_appended_to_a_file_of_its_owner) {
  open(file())->add({"apply", "a\n\"b", "abc", 7, 8, 201, {}, "owner"});
  const auto log = open(file());
  log->add({"delete", "a", {}, 7, 0, 403, "is another\nuser's"});
  log->add_own("return", "a", "abc", absl::NotFoundError("gone"));
  const std::vector<Json> all = lines(file());
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0]["operation"], "apply");
  EXPECT_EQ(all[0]["chain"], "a\n\"b");
  EXPECT_EQ(all[0]["revision"], "abc");
  EXPECT_EQ(all[0]["uid"], 7);
  EXPECT_EQ(all[0]["role"], "owner");
  EXPECT_EQ(all[0]["pid"], 8);
  EXPECT_EQ(all[0]["status"], 201);
  EXPECT_TRUE(all[0]["error"].is_null());
  EXPECT_TRUE(all[1]["pid"].is_null());
  EXPECT_TRUE(all[2]["role"].is_null());
  EXPECT_EQ(all[1]["error"], "is another\nuser's");
  EXPECT_EQ(all[2]["operation"], "own-return");
  EXPECT_EQ(all[2]["status"], 404);
  EXPECT_EQ(all[2]["pid"], ::getpid());
  struct stat status {};
  ASSERT_EQ(::stat(file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

/// A failed chain is started again every minute, for ever.
TEST_F(AuditLogTest, an_act_refused_again_for_the_same_reason_is_one_line) {
  const auto log = open(file());
  const Status busy = absl::UnavailableError("the port is busy");
  const auto count_after = [&](std::string_view operation, std::string const& chain, Status const& status) {
    log->add_own(operation, chain, "", status);
    return lines(file()).size();
  };
  EXPECT_EQ(count_after("start", "a", busy), 1U);
  EXPECT_EQ(count_after("start", "a", busy), 1U);
  EXPECT_EQ(count_after("start", "b", busy), 2U) << "of another chain";
  EXPECT_EQ(count_after("start", "a", busy), 2U);
  EXPECT_EQ(count_after("start", "a", absl::UnavailableError("no port")), 3U) << "another reason";
  EXPECT_EQ(count_after("start", "a", absl::NotFoundError("no port")), 4U) << "another status";
  EXPECT_EQ(count_after("return", "a", absl::NotFoundError("no port")), 5U) << "another act";
  EXPECT_EQ(count_after("start", "a", absl::OkStatus()), 6U);
  EXPECT_EQ(count_after("start", "a", absl::OkStatus()), 7U) << "it failed in between";
  EXPECT_EQ(count_after("start", "a", busy), 8U);
  EXPECT_EQ(count_after("start", "a", busy), 8U);
  log->add(record("apply"));  // of a
  EXPECT_EQ(count_after("start", "a", busy), 10U) << "after a request";
  EXPECT_EQ(count_after("start", "b", busy), 10U);
}

TEST_F(AuditLogTest, follows_its_name) {
  const auto log = open(file());
  log->add(record("stop"));
  std::filesystem::rename(file(), file("old"));
  check_names_of_outputs();
  log->add(record("start"));
  EXPECT_EQ(lines(file("old")).size(), 1U);
  ASSERT_EQ(lines(file()).size(), 1U);
  EXPECT_EQ(lines(file())[0]["operation"], "start");
}

TEST_F(AuditLogTest, a_full_disk_costs_lines_which_are_counted) {
  const auto log = open("/dev/full");
  log->add(record("stop"));
  log->add(record("stop"));
  EXPECT_EQ(log->lost(), 2U);
}

TEST_F(AuditLogTest, has_a_line_of_each_request_that_may_change_something) {
  const auto log = open(file());
  Result<StateStore> store = StateStore::open(file("state"));
  ASSERT_TRUE(store.ok()) << store.status().message();
  const nf::Registry registry;
  const RolesFile roles("");
  ChainSet chains(registry, *std::move(store), *log, nullptr, std::nullopt);
  std::array<int, 2> sockets{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
  std::size_t expected = 0;
  for (Route const& route : routes()) {
    std::string path(route.path);
    if (route.has_name()) {
      path.replace(path.find("NAME"), 4, "none");
    }
    answer_control({chains, *log, roles, "1"},
                   {std::string(route.method), path, R"({"file": "/none.yaml"})", sockets[0], {}});
    expected += route.method == "GET" ? 0 : 1;
    ASSERT_EQ(lines(file()).size(), expected) << route.method << route.path;
    if (route.method != "GET") {
      const Json line = lines(file()).back();
      EXPECT_EQ(line["operation"], route.operation);
      EXPECT_EQ(line["pid"], ::getpid());
      EXPECT_EQ(line["role"], "root");
      EXPECT_EQ(line["chain"], route.has_name() ? Json("none") : Json()) << route.path;
    }
  }
  answer_control({chains, *log, roles, "1"},
                 {"POST", "/v1/chains", R"({"file": "/none.yaml", "dry_run": true})", sockets[0], {}});
  EXPECT_EQ(lines(file()).size(), expected);
  ::close(sockets[0]);
  ::close(sockets[1]);
}

}  // namespace
}  // namespace catena::service
