// SPDX-License-Identifier: Apache-2.0
#include "service/apply_record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace catena::service {
namespace {

using Json = nlohmann::ordered_json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

ApplyRecord full() {
  ApplyRecord applied{"a..json", "red", 17, "/etc/a \"b\".yaml", {}, {1000, 100, {4, 27}}, true};
  applied.options = {
      {"rx", "pcap:/in.pcap"}, {"record", "/out/record"}, {"methods", "strided,gather"}, {"workers", "3"}};
  applied.revision = "0123456789ab";
  applied.unconfirmed = "ba9876543210";
  return applied;
}

TEST(ApplyRecord, comes_back_from_the_state_as_it_was) {
  const Result<ApplyRecord> again = from_state(to_state(full()));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, full());
}

TEST(ApplyRecord, has_no_consent_though_its_file_says_so) {
  Json state = Json::parse(to_state(full()));
  state["options"]["new_keys"] = {4096};
  state["options"]["accept_loss"] = true;
  const Result<ApplyRecord> again = from_state(state.dump());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, full());
  EXPECT_THAT(to_state(*again), AllOf(Not(HasSubstr("new_keys")), Not(HasSubstr("accept_loss"))));
}

TEST(ApplyRecord, a_number_stays_a_number) { EXPECT_EQ(Json::parse(to_state(full()))["options"]["workers"], 3); }

TEST(ApplyRecord, no_part_of_the_state_may_miss_or_be_of_another_type) {
  const Json good = Json::parse(to_state(full()));
  for (auto const& [key, value] : good.items()) {
    Json bad = good;
    bad.erase(key);
    const bool may_miss = key == "revision" || key == "unconfirmed";
    EXPECT_EQ(from_state(bad.dump()).ok(), may_miss) << "without " << key;
    bad[key] = value.is_array() ? Json("x") : Json::array({Json::array()});
    EXPECT_FALSE(from_state(bad.dump()).ok()) << bad.dump();
  }
  const std::string text = to_state(full());
  for (std::size_t bytes = 0; bytes + 2 < text.size(); ++bytes) {
    EXPECT_FALSE(from_state(text.substr(0, bytes)).ok()) << bytes;
  }
}

TEST(Options, are_read_by_their_names) {
  const Json request{{"device", "cuda:1"},
                     {"workers", 256},
                     {"compute_units", "all"},
                     {"share", "fair"},
                     {"new_keys", Json::array({4097U, 4096U})},
                     {"tx", "null"},
                     {"pushdown", "off"},
                     {"methods", "staged,gather"},
                     {"eve", "/eve.json"},
                     {"profile", "/a/p"},
                     {"accept_loss", true}};
  const Result<RequestOptions> options = options_from(request);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->new_keys, (std::set<std::uint32_t>{4096, 4097}));
  EXPECT_TRUE(options->accepts_loss);
  EXPECT_FALSE(options_from(Json::object())->accepts_loss);
  Json remembered = request;
  remembered.erase("new_keys");
  remembered.erase("accept_loss");
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
           {R"({"new_keys": true})", "'new_keys': allowed: a list of SPIs, as [4096, 4097]"},
           {R"({"new_keys": ["4096"]})", "a list of SPIs"},
           {R"({"new_keys": [-1]})", "a list of SPIs"},
           {R"({"new_keys": [4294967296]})", "a list of SPIs"},
           {R"({"new_keys": [[4096]]})", "a list of SPIs"},
           {R"({"accept_loss": 1})", "'accept_loss': allowed: true, false"},
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
