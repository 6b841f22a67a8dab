// SPDX-License-Identifier: Apache-2.0
#include "service/apply_record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace catena::service {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

ApplyRecord full() {
  ApplyRecord applied{"a..json", "red", 17, "/etc/a \"b\".yaml", {}, {1000, 100, {4, 27}}, true};
  applied.options.rx = "pcap:/in.pcap";
  applied.options.record = "/out/record";
  applied.options.methods = "strided,gather";
  applied.options.workers = 3;
  return applied;
}

TEST(ApplyRecord, comes_back_from_the_state_as_it_was) {
  const Result<ApplyRecord> again = from_state(to_state(full()));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, full());
}

TEST(ApplyRecord, new_keys_are_new_once) {
  ApplyRecord applied = full();
  applied.options.new_keys = true;
  const Result<ApplyRecord> again = from_state(to_state(applied));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->options.new_keys);
}

TEST(ApplyRecord, no_part_of_the_state_may_miss_or_be_of_another_type) {
  const Json good = Json::parse(to_state(full()));
  for (auto const& [key, value] : good.items()) {
    Json bad = good;
    bad.erase(key);
    EXPECT_FALSE(from_state(bad.dump()).ok()) << "without " << key;
    bad[key] = value.is_array() ? Json("x") : Json::array({Json::array()});
    EXPECT_FALSE(from_state(bad.dump()).ok()) << bad.dump();
  }
  const std::string text = to_state(full());
  for (std::size_t bytes = 0; bytes + 2 < text.size(); ++bytes) {
    EXPECT_FALSE(from_state(text.substr(0, bytes)).ok()) << bytes;
  }
}

TEST(Options, are_read_by_their_names) {
  const Result<chain::OptionTexts> options = options_from(Json{{"device", "cuda:1"},
                                                               {"workers", 256},
                                                               {"compute_units", 32},
                                                               {"share", "fair"},
                                                               {"new_keys", true},
                                                               {"tx", "null"},
                                                               {"pushdown", "off"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->device, "cuda:1");
  EXPECT_EQ(options->workers, 256U);
  EXPECT_EQ(options->compute_units, 32U);
  EXPECT_EQ(to_json(*options)["compute_units"], 32U) << "what was applied is remembered";
  EXPECT_TRUE(options->new_keys);
  EXPECT_EQ(options->tx, "null");
  EXPECT_EQ(options->pushdown, "off");
}

struct BadOption {
  const char* json;
  const char* says;
};

TEST(Options, that_are_wrong_are_refused_with_what_is_allowed) {
  for (BadOption const& bad : {
           BadOption{"3", "must be an object"},
           {R"({"devise": "none"})", "unknown 'devise'; allowed: rx, tx, device"},
           {R"({"workers": 0})", "a whole number from 1 to 256"},
           {R"({"compute_units": 0})", "a whole number from 1 to 65536"},
           {R"({"workers": 257})", "a whole number from 1 to 256"},
           {R"({"workers": -1})", "a whole number from 1 to 256"},
           {R"({"workers": 1.5})", "a whole number from 1 to 256"},
           {R"({"new_keys": "yes"})", "true, false"},
           {R"({"device": ["cuda"]})", "a string"},
           {R"({"record": "x"})", "whole path"},
           {R"({"trace": "-"})", "whole path"},
           {R"({"rx": "pcap:x.pcap"})", "whole path"},
           {R"({"rx": "pcap:-"})", "whole path"},
           {R"({"pushdown": "of"})", "on, off"},
       }) {
    const Status status = options_from(Json::parse(bad.json)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad.json;
    EXPECT_THAT(std::string(status.message()), HasSubstr(bad.says)) << bad.json;
  }
}

}  // namespace
}  // namespace catena::service
