// SPDX-License-Identifier: Apache-2.0
#include "nf/testing/unknown_key.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

namespace catena::nf::testing {
namespace {

/// The keys of the only document of `yaml`, and where each is, from 1.
std::vector<std::pair<std::string, std::size_t>> keys_of(std::string const& yaml) {
  const std::vector<YAML::Node> documents = YAML::LoadAll(yaml);
  std::vector<std::pair<std::string, std::size_t>> keys;
  for (YAML::Node const& document : documents) {
    for (auto const& entry : document) {
      keys.emplace_back(entry.first.as<std::string>(), static_cast<std::size_t>(entry.first.Mark().line) + 1);
    }
  }
  EXPECT_EQ(documents.size(), 1U) << yaml;
  return keys;
}

TEST(UnknownKey, is_in_the_mapping_whatever_its_style) {
  for (const char* yaml : {"", "minimum: 1", "minimum: 1\n", "rules: |\n  allow {}\n", "# {\nminimum: 1\n", "{}",
                           "{}\n", "{ }\n", "{minimum: 1}", "{minimum: {of: 1}}\n", "{minimum: 1,}\n",
                           "\n# }\n{\n  minimum: 1\n}\n", "{minimum: 1, # one\n}"}) {
    const WithUnknownKey with = with_unknown_key(yaml);
    EXPECT_THAT(keys_of(with.yaml), ::testing::Contains(std::pair(std::string(kUnknownKey), with.line))) << with.yaml;
  }
}

TEST(UnknownKey, leaves_the_other_keys) {
  for (const char* yaml : {"minimum: 1\n", "{minimum: 1}\n", "{\n  minimum: 1\n}"}) {
    EXPECT_EQ(keys_of(with_unknown_key(yaml).yaml).size(), 2U) << yaml;
  }
}

}  // namespace
}  // namespace catena::nf::testing
