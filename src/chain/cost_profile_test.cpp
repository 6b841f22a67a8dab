// SPDX-License-Identifier: Apache-2.0
#include "chain/cost_profile.hpp"

#include "gpu/program/testing/environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <iterator>
#include <sstream>

#include <sys/stat.h>
#include <unistd.h>

namespace catena::chain {
namespace {

namespace fs = std::filesystem;
using program::testing::Environment;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Json = nlohmann::ordered_json;

device::DeviceInfo device_named(std::string name, std::string driver = "driver 1") {
  device::DeviceInfo info;
  info.backend = "opencl";
  info.name = std::move(name);
  info.driver = std::move(driver);
  return info;
}

/// Costs in which every coefficient is another number.
plan::CostModel numbered_costs() {
  plan::CostModel costs;
  double number = 0.125;
  for (auto& method : costs.methods) {
    for (plan::MethodCost& cost : method) {
      for (double* value :
           {&cost.per_transfer_ns, &cost.per_packet_ns, &cost.per_packet_fields_ns, &cost.per_byte_ns}) {
        *value = number++;
      }
    }
  }
  for (double* value :
       {&costs.host_copy_ns_per_byte, &costs.host_touch_ns, &costs.host_column_ns, &costs.device_copy_ns_per_byte}) {
    *value = number++;
  }
  return costs;
}

void expect_same_costs(plan::CostModel const& actual, plan::CostModel const& expected) {
  for (std::size_t method = 0; method < plan::kMethodCount; ++method) {
    for (std::size_t direction = 0; direction < 2; ++direction) {
      plan::MethodCost const& got = actual.methods[method][direction];
      plan::MethodCost const& wanted = expected.methods[method][direction];
      EXPECT_EQ(got.per_transfer_ns, wanted.per_transfer_ns) << method << ' ' << direction;
      EXPECT_EQ(got.per_packet_ns, wanted.per_packet_ns) << method << ' ' << direction;
      EXPECT_EQ(got.per_packet_fields_ns, wanted.per_packet_fields_ns) << method << ' ' << direction;
      EXPECT_EQ(got.per_byte_ns, wanted.per_byte_ns) << method << ' ' << direction;
    }
  }
  EXPECT_EQ(actual.available, expected.available);
  EXPECT_EQ(actual.host_copy_ns_per_byte, expected.host_copy_ns_per_byte);
  EXPECT_EQ(actual.host_touch_ns, expected.host_touch_ns);
  EXPECT_EQ(actual.host_column_ns, expected.host_column_ns);
  EXPECT_EQ(actual.device_copy_ns_per_byte, expected.device_copy_ns_per_byte);
}

class ProfileFiles : public ::testing::Test {
 protected:
  ProfileFiles() {
    std::string name = (fs::temp_directory_path() / "catena-profile-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~ProfileFiles() override { fs::remove_all(folder_); }

  fs::path write(std::string const& text, std::string const& name = "profile.json") const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  Json good() const { return Json::parse(to_json(CostProfile::of(device_, numbered_costs()))); }
  static std::string read(fs::path const& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }

  fs::path folder_;
  device::DeviceInfo device_ = device_named("a device");
};

TEST_F(ProfileFiles, what_is_saved_is_loaded) {
  const CostProfile saved = CostProfile::of(device_, numbered_costs());
  const fs::path file = folder_ / "new" / "folders" / "p.json";
  ASSERT_TRUE(save_profile(saved, file).ok());
  const Result<CostProfile> loaded = load_profile(file);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  expect_same_costs(loaded->costs, saved.costs);
  EXPECT_EQ(loaded->measured, saved.measured);
  EXPECT_TRUE(loaded->is_of(device_));
  EXPECT_FALSE(loaded->is_of(device_named("another device")));
  EXPECT_FALSE(loaded->is_of(device_named("a device", "driver 2")));
  device::DeviceInfo other_backend = device_;
  other_backend.backend = "cuda";
  EXPECT_FALSE(loaded->is_of(other_backend));
  EXPECT_THAT(describe(*loaded), AllOf(HasSubstr("measured "), HasSubstr(saved.measured.substr(0, 10))));
  EXPECT_THAT(std::vector<fs::path>(fs::directory_iterator(file.parent_path()), {}), SizeIs(1)) << "nothing temporary";
}

TEST_F(ProfileFiles, a_method_that_is_not_available_stays_so) {
  plan::CostModel costs = numbered_costs();
  costs.available = plan::method_bit(TransferMethod::kStaged) | plan::method_bit(TransferMethod::kStrided);
  costs.methods[static_cast<std::size_t>(TransferMethod::kGather)] = {};
  const std::string text = to_json(CostProfile::of(device_, costs));
  EXPECT_TRUE(Json::parse(text)["methods"]["gather"].is_null());
  const Result<CostProfile> loaded = parse_profile(text, "text");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  expect_same_costs(loaded->costs, costs);
}

TEST_F(ProfileFiles, the_time_is_the_clocks) {
  const std::string measured = CostProfile::of(device_, {}).measured;
  std::tm time{};
  ASSERT_NE(::strptime(measured.c_str(), "%Y-%m-%dT%H:%M:%SZ", &time), nullptr) << measured;
  EXPECT_NEAR(static_cast<double>(::timegm(&time)), static_cast<double>(::time(nullptr)), 60);
}

TEST_F(ProfileFiles, the_built_in_profile_says_how_to_get_a_better_one) {
  EXPECT_THAT(describe(CostProfile::built_in()), AllOf(HasSubstr("built-in"), HasSubstr("`catena profile`")));
  // `auto` takes no CPU's OpenCL
  EXPECT_THAT(describe(CostProfile::built_in(), "opencl"), HasSubstr("run `catena profile --device opencl` to"));
}

struct BadText {
  const char* name;
  void (*spoil)(Json& json);
  const char* says;
};
class BadProfile : public ProfileFiles, public ::testing::WithParamInterface<BadText> {};

TEST_P(BadProfile, is_refused_with_file_key_and_what_to_do) {
  Json json = good();
  GetParam().spoil(json);
  const fs::path file = write(json.dump());
  const Status status = load_profile(file).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(file.string()), HasSubstr(GetParam().says), HasSubstr("`catena profile`")));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadProfile,
    ::testing::Values(
        BadText{"negative", [](Json& json) { json["methods"]["staged"]["h2d"]["per_byte_ns"] = -1; },
                "methods.staged.h2d.per_byte_ns"},
        BadText{"null_number", [](Json& json) { json["methods"]["strided"]["d2h"]["per_packet_ns"] = nullptr; },
                "methods.strided.d2h.per_packet_ns"},
        BadText{"not_a_number", [](Json& json) { json["host"]["touch_ns"] = "NaN"; }, "host.touch_ns"},
        BadText{"too_large", [](Json& json) { json["device_copy_ns_per_byte"] = 1e300; }, "device_copy_ns_per_byte"},
        BadText{"missing_coefficient",
                [](Json& json) { json["methods"]["gather"]["h2d"].erase("per_packet_fields_ns"); },
                "methods.gather.h2d.per_packet_fields_ns"},
        BadText{"missing_direction", [](Json& json) { json["methods"]["gather"].erase("d2h"); }, "methods.gather.d2h"},
        BadText{"missing_method", [](Json& json) { json["methods"].erase("gather"); }, "methods.gather"},
        BadText{"no_staged", [](Json& json) { json["methods"]["staged"] = nullptr; }, "methods.staged"},
        BadText{"method_is_a_list", [](Json& json) { json["methods"]["gather"] = Json::array(); }, "methods.gather"},
        BadText{"missing_methods", [](Json& json) { json.erase("methods"); }, "methods"},
        BadText{"missing_host", [](Json& json) { json.erase("host"); }, "host"},
        BadText{"missing_device", [](Json& json) { json.erase("device"); }, "device"},
        BadText{"name_is_a_number", [](Json& json) { json["device"]["name"] = 7; }, "device.name"},
        BadText{"name_drives_the_terminal", [](Json& json) { json["device"]["name"] = "a\x1b[2J"; }, "device.name"},
        BadText{"other_version", [](Json& json) { json["version"] = 2; }, "version"},
        BadText{"no_version", [](Json& json) { json.erase("version"); }, "version"},
        BadText{"other_format", [](Json& json) { json["format"] = "something"; }, "format"},
        BadText{"no_time", [](Json& json) { json["measured"] = "yesterday"; }, "measured"},
        BadText{"time_is_empty", [](Json& json) { json["measured"] = ""; }, "measured"}),
    [](::testing::TestParamInfo<BadText> const& test) { return test.param.name; });

TEST_F(ProfileFiles, text_that_is_no_json_is_refused) {
  const std::string whole = good().dump();
  for (std::string const& text :
       {std::string(), std::string("[]"), std::string("7"), std::string("null"), whole.substr(0, whole.size() / 2),
        std::string(60'000, '['), std::string("{\"methods\": NaN}"), std::string(100, '\0'), whole + whole}) {
    const Status status = load_profile(write(text)).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status << ": " << text.substr(0, 50);
  }
  // a number that no double holds
  std::string huge = whole;
  const std::string key = "\"touch_ns\":";
  huge.insert(huge.find(key) + key.size(), "1e999,\"x\":");
  EXPECT_TRUE(absl::IsInvalidArgument(load_profile(write(huge)).status()));
}

TEST_F(ProfileFiles, every_prefix_of_a_profile_is_refused) {
  const std::string whole = good().dump();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(parse_profile(whole.substr(0, length), "text").ok()) << length;
  }
}

TEST_F(ProfileFiles, what_is_no_regular_file_or_too_long_is_refused) {
  EXPECT_TRUE(absl::IsNotFound(load_profile(folder_ / "none.json").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(load_profile(folder_).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(load_profile("/dev/zero").status()));
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(load_profile(pipe).status())) << "and does not wait for a writer";
  EXPECT_TRUE(absl::IsInvalidArgument(load_profile(write(good().dump() + std::string(300'000, ' '))).status()));
}

TEST_F(ProfileFiles, saving_replaces_files_only) {
  const CostProfile profile = CostProfile::of(device_, numbered_costs());
  EXPECT_TRUE(absl::IsInvalidArgument(save_profile(profile, folder_)));
  EXPECT_TRUE(absl::IsInvalidArgument(save_profile(profile, "/dev/null")));
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(save_profile(profile, pipe)));
  EXPECT_TRUE(fs::is_fifo(pipe));
  const fs::path file = write("old");
  ASSERT_TRUE(save_profile(profile, file).ok());
  EXPECT_TRUE(load_profile(file).ok());
  const Status status = save_profile(profile, file / "below" / "a-file.json");
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("a-file.json"));
  EXPECT_TRUE(load_profile(file).ok()) << "what was there is still there";
}

TEST_F(ProfileFiles, the_store_finds_what_was_saved_for_the_device) {
  const ProfileStore store(folder_ / "store");
  EXPECT_TRUE(store.empty());
  EXPECT_THAT(store.find(device_).measured, IsEmpty());
  const CostProfile profile = CostProfile::of(device_, numbered_costs());
  ASSERT_TRUE(save_profile(profile, store.file_of(device_)).ok());
  EXPECT_FALSE(store.empty());
  EXPECT_EQ(store.find(device_).measured, profile.measured);
  expect_same_costs(store.find(device_).costs, profile.costs);
  EXPECT_THAT(store.find(device_named("a device", "driver 2")).measured, IsEmpty()) << "a new driver may be faster";
  EXPECT_THAT(store.find(device_named("a-device")).measured, IsEmpty());
  EXPECT_THAT(store.find(device::DevicePreference::none()).measured, IsEmpty());
}

TEST_F(ProfileFiles, the_store_refuses_the_profile_of_another_device_and_damaged_ones) {
  const ProfileStore store(folder_);
  const CostProfile other = CostProfile::of(device_named("another device"), numbered_costs());
  ASSERT_TRUE(save_profile(other, store.file_of(device_)).ok());
  ::testing::internal::CaptureStdout();
  const CostProfile instead = store.find(device_);
  const std::string log = ::testing::internal::GetCapturedStdout();
  EXPECT_THAT(instead.measured, IsEmpty());
  expect_same_costs(instead.costs, plan::CostModel::h200());
  EXPECT_THAT(log, AllOf(HasSubstr(store.file_of(device_).string()), HasSubstr("another device"),
                         HasSubstr("`catena profile`")));

  std::ofstream(store.file_of(device_)) << "{}";
  ::testing::internal::CaptureStdout();
  EXPECT_THAT(store.find(device_).measured, IsEmpty());
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), HasSubstr("'format' is missing"));
}

TEST_F(ProfileFiles, hostile_device_names_stay_in_the_folder_and_in_the_text) {
  const ProfileStore store(folder_ / "store");
  std::vector<fs::path> seen;
  for (std::string const& name :
       {std::string("../../etc/passwd"), std::string("/"), std::string("."), std::string(), std::string("a\0b", 3),
        std::string("\xff\xfe\x80"), std::string("\xff\xfe\x81"), std::string(5000, 'x'), std::string(5001, 'x'),
        std::string("na\nme\x1b[2J"), std::string("\"},{")}) {
    const device::DeviceInfo info = device_named(name, name);
    const fs::path file = store.file_of(info);
    EXPECT_EQ(file.parent_path(), folder_ / "store");
    EXPECT_LT(file.filename().string().size(), 100U);
    EXPECT_EQ(std::ranges::count(seen, file), 0);
    seen.push_back(file);
    ASSERT_TRUE(save_profile(CostProfile::of(info, numbered_costs()), file).ok());
    EXPECT_FALSE(store.find(info).measured.empty()) << file;
  }
}

TEST_F(ProfileFiles, the_folder_follows_the_environment) {
  const std::string own = folder_ / "own";
  const std::string data = folder_ / "data";
  const std::string home = folder_ / "home";
  const Environment home_set("HOME", home.c_str());
  const Environment no_data("XDG_DATA_HOME", nullptr);
  const Environment no_own("CATENA_DATA_DIR", nullptr);
  const auto folder = [this] { return ProfileStore::from_environment().file_of(device_).parent_path(); };
  EXPECT_EQ(folder(), fs::path(home) / ".local" / "share" / "catena" / "profiles");
  const Environment data_set("XDG_DATA_HOME", data.c_str());
  EXPECT_EQ(folder(), fs::path(data) / "catena" / "profiles");
  const Environment own_set("CATENA_DATA_DIR", own.c_str());
  EXPECT_EQ(folder(), fs::path(own) / "profiles");
}

TEST_F(ProfileFiles, without_a_folder_there_are_no_profiles) {
  const Environment no_home("HOME", nullptr);
  const Environment no_data("XDG_DATA_HOME", nullptr);
  const Environment no_own("CATENA_DATA_DIR", nullptr);
  const ProfileStore store = ProfileStore::from_environment();
  EXPECT_TRUE(store.empty());
  EXPECT_TRUE(store.file_of(device_).empty());
  EXPECT_THAT(store.find(device_).measured, IsEmpty());
}

}  // namespace
}  // namespace catena::chain
