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
using testing::Not;

ApplyRecord full() {
  ApplyRecord applied{"a..json", "red", 17, "/etc/a \"b\".yaml", {}, {1000, 100, {4, 27}}, true};
  applied.options = {
      {"rx", "pcap:/in.pcap"}, {"record", "/out/record"}, {"methods", "strided,gather"}, {"workers", "3"}};
  return applied;
}

TEST(ApplyRecord, comes_back_from_the_state_as_it_was) {
  const Result<ApplyRecord> again = from_state(to_state(full()));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, full());
}

TEST(ApplyRecord, has_no_consent_to_new_keys_though_its_file_says_so) {
  Json state = Json::parse(to_state(full()));
  state["options"]["new_keys"] = true;
  const Result<ApplyRecord> again = from_state(state.dump());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, full());
  EXPECT_THAT(to_state(*again), Not(HasSubstr("new_keys")));
}

TEST(ApplyRecord, a_number_stays_a_number) { EXPECT_EQ(Json::parse(to_state(full()))["options"]["workers"], 3); }

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
  const Json request{{"device", "cuda:1"}, {"workers", 256},   {"compute_units", "all"}, {"share", "fair"},
                     {"new_keys", true},   {"tx", "null"},     {"pushdown", "off"},      {"methods", "staged,gather"},
                     {"eve", "/eve.json"}, {"profile", "/a/p"}};
  const Result<RequestOptions> options = options_from(request);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->new_keys);
  Json remembered = request;
  remembered.erase("new_keys");
  EXPECT_TRUE(Json::diff(to_json(options->over_file), remembered).empty()) << to_json(options->over_file);
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
           {R"({"pushdown": "of"})", "--pushdown: 'pushdown' is 'of'; allowed: on, off"},
           {R"({"workers": "all"})", "a whole number from 1 to 256, or auto"},
           {R"({"workers": 18446744073709551615})", "a whole number from 1 to 256"},
           {R"({"sync": "always"})", "--sync: 'mode' is 'always'; allowed: adaptive, shared, copy"},
           {R"({"methods": "gather,dma"})", "--methods: 'methods' has 'dma'; allowed: staged"},
           {R"({"device": "gpu"})", "--device: 'device' is 'gpu'; allowed: auto"},
           {R"({"tx": "file:/a"})", "--tx 'file:/a'; allowed: pcap:FILE"},
       }) {
    const Status status = options_from(Json::parse(bad.json)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad.json;
    EXPECT_THAT(std::string(status.message()), HasSubstr(bad.says)) << bad.json;
  }
}

}  // namespace
}  // namespace catena::service
