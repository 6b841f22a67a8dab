// SPDX-License-Identifier: Apache-2.0
#include "alert.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace catena::nids {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kClasses =
    "# NAME,DESCRIPTION,PRIORITY\n\nconfig classification: trojan-activity, A Network Trojan, was detected , 1\r\n"
    "config classification:misc-activity,Misc activity,3\nconfig classification: misc-activity,again,2";

match::Rule rule_of(std::string classtype, std::optional<std::uint32_t> priority = {}) {
  match::Rule rule;
  rule.sid = 7;
  rule.labels = {"message", std::move(classtype), priority, 1, 4};
  return rule;
}
nlohmann::json alert(match::Rule const& rule, Classification const& classes) {
  return nlohmann::json::parse(alert_of_rule(rule, classes));
}

TEST(Alert, a_class_gives_category_and_severity) {
  const auto classes = Classification::parse(kClasses, "x.config");
  ASSERT_TRUE(classes.ok()) << classes.status();
  const auto trojan = alert(rule_of("trojan-activity"), *classes);
  EXPECT_EQ(trojan["category"], "A Network Trojan, was detected");
  EXPECT_EQ(trojan["severity"], 1);
  EXPECT_EQ(alert(rule_of("trojan-activity", 9), *classes)["severity"], 9);
  EXPECT_EQ(alert(rule_of("misc-activity"), *classes)["category"], "Misc activity");
  EXPECT_EQ(alert(rule_of("Trojan-Activity"), *classes)["severity"], 1) << "as in Suricata 7.0.10";
  EXPECT_EQ(alert(rule_of("unheard-of"), *classes)["category"], "");
  EXPECT_EQ(alert(rule_of("unheard-of"), *classes)["severity"], 3);
}

TEST(Alert, without_classes_the_name_of_the_class_is_the_category) {
  EXPECT_EQ(alert(rule_of("trojan-activity"), {})["category"], "trojan-activity");
  EXPECT_EQ(alert(rule_of("trojan-activity"), {})["severity"], 3);
}

TEST(Alert, has_the_members_of_suricata_in_their_order) {
  EXPECT_EQ(
      alert_of_rule(rule_of(""), {}),
      R"({"action":"allowed","gid":1,"signature_id":7,"rev":4,"signature":"message","category":"","severity":3})");
  EXPECT_EQ(nlohmann::json::parse(alert_of_string(5, "a\"b\xFF", true))["signature"], "a\"b\xEF\xBF\xBD");
  EXPECT_EQ(nlohmann::json::parse(alert_of_string(5, "x", true))["action"], "blocked");
}

TEST(Classification, each_wrong_line_is_an_error_with_its_position) {
  for (std::string_view line :
       {"config classification: a,b", "config classification: a,b,0", "config classification: ,b,1",
        "config classification: a,b,256", "config classification a,b,1", "config reference: a b", "a,b,1", "config"}) {
    const auto classes = Classification::parse("# one\n  " + std::string(line), "x.config");
    EXPECT_EQ(classes.status().code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_THAT(std::string(classes.status().message()), HasSubstr("x.config:2:3: expected config")) << line;
  }
}

}  // namespace
}  // namespace catena::nids
