// SPDX-License-Identifier: Apache-2.0
#include "service/control.hpp"
#include "service/route.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <catena/core/testing/test_data.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/testing/harness.hpp>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>

namespace catena::service {
namespace {

using ::testing::HasSubstr;

std::string page(std::string const& name) {
  std::ifstream file(source_path(name));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Routes, each_is_once_in_the_table_and_has_a_handler_and_an_error_for_other_users) {
  std::set<std::pair<std::string_view, std::string_view>> rows;
  for (Route const& route : routes()) {
    EXPECT_TRUE(rows.emplace(route.method, route.path).second) << route.method << route.path;
    EXPECT_NE(route.handler, nullptr) << route.path;
    EXPECT_EQ(route.least == Role::kRoot, !route.refusal.empty()) << route.path;
    EXPECT_TRUE(route.least != Role::kOperator || route.has_name()) << route.path;
  }
}

TEST(Routes, each_that_changes_something_is_audited) {
  for (Route const& route : routes()) {
    EXPECT_EQ(route.method == "GET", route.operation.empty()) << route.method << route.path;
  }
}

TEST(Routes, a_reader_changes_nothing) {
  for (Route const& route : routes()) {
    EXPECT_TRUE(route.operation.empty() || !may_use(Role::kReader, route.least, true)) << route.method << route.path;
  }
}

TEST(Routes, each_role_is_in_the_reference_with_its_rights) {
  const std::string service = page("docs/service.md");
  const auto word = [](bool may) { return may ? "yes" : "no"; };
  for (RoleInfo const& info : kRoles) {
    EXPECT_THAT(service, HasSubstr(concat("| `", info.name, "` | ", word(info.changes_own), " | ",
                                          word(info.sees_others), " | ", word(info.operates_others), " | ")));
  }
}

TEST(Routes, each_is_in_the_reference_with_its_command) {
  const std::string service = page("docs/service.md");
  for (Route const& route : routes()) {
    EXPECT_THAT(service, HasSubstr(concat("| `", route.method, " ", route.path, "` | ", info_of(route.least).name,
                                          " | ", route.help, " |\n")));
    if (!route.command.word.empty()) {
      EXPECT_THAT(service, HasSubstr(concat("catena ", route.command.is_of_nf ? "nf " : "", route.command.word)));
    }
  }
}

TEST(Routes, a_command_is_explained_once_and_has_one_row_for_each_use_of_its_name) {
  std::map<std::pair<bool, std::string_view>, std::set<bool>> uses;
  std::map<std::pair<bool, std::string_view>, int> helps;
  for (Route const& route : routes()) {
    if (!route.command.word.empty()) {
      const std::pair command{route.command.is_of_nf, route.command.word};
      EXPECT_TRUE(uses[command].insert(route.has_name()).second) << route.path;
      helps[command] += route.command.help.empty() ? 0 : 1;
    }
  }
  for (auto const& [command, count] : helps) {
    EXPECT_EQ(count, 1) << command.second;
  }
}

}  // namespace
}  // namespace catena::service
