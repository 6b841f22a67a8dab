// SPDX-License-Identifier: Apache-2.0
#include "chain/copy_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

#include <unistd.h>

namespace catena::chain {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Json = nlohmann::ordered_json;

const CopyEngine kCpu{"cpu", {}};
const CopyEngine kDmadev{"dmadev", {}};
const CopyEngine kCuda{"cuda", "NVIDIA H200 (driver 1)"};

std::vector<CopyPoint> points(std::vector<double> const& cpu_ns) {
  std::vector<CopyPoint> all;
  std::uint32_t bytes = 1024;
  for (const double ns : cpu_ns) {
    all.push_back({bytes, ns, 8.0 * bytes / ns});
    bytes *= 4;
  }
  return all;
}

MeasuredCopies copies(CopyEngine engine, std::vector<double> const& cpu_ns) {
  return {std::move(engine), "2026-11-29T03:04:05Z", points(cpu_ns)};
}

class CopyProfiles : public ::testing::Test {
 protected:
  CopyProfiles() {
    std::string name = (fs::temp_directory_path() / "catena-copies-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~CopyProfiles() override { fs::remove_all(folder_); }

  static CopyProfile measured() {
    CopyProfile profile = CopyProfile::of_this_machine();
    profile.engines = {copies(kCpu, {100, 400, 2000}), copies(kDmadev, {600, 300, 500}),
                       copies(kCuda, {900, 900, 3000})};
    return profile;
  }
  fs::path file() const { return store().file_of_copies(CopyProfile::of_this_machine().processor); }
  ProfileStore store() const { return ProfileStore(folder_); }
  void write(std::string const& text) const { std::ofstream(file()) << text; }
  /// What is chosen for an engine, and the log.
  CopyThreshold choose(CopyEngine const& engine, std::string* log = nullptr) const {
    ::testing::internal::CaptureStdout();
    CopyThreshold threshold = choose_threshold(store(), engine, kCpu);
    const std::string said = ::testing::internal::GetCapturedStdout();
    if (log != nullptr) {
      *log = said;
    } else {
      EXPECT_EQ(said, "");
    }
    return threshold;
  }

 private:
  fs::path folder_;
};

TEST(LeastPayingBytes, is_the_size_from_which_on_the_engine_is_cheaper_at_all_sizes) {
  EXPECT_EQ(least_paying_bytes(points({600, 300, 500}), points({100, 400, 2000})), 4096U);
  EXPECT_EQ(least_paying_bytes(points({50, 300, 500}), points({100, 400, 2000})), 1024U);
  EXPECT_EQ(least_paying_bytes(points({50, 700, 900}), points({100, 400, 2000})), 16384U);
  EXPECT_EQ(least_paying_bytes(points({50, 300, 2000}), points({100, 400, 2000})), std::nullopt) << "not cheaper";
  EXPECT_EQ(least_paying_bytes(points({50, 300, 500}), points({100, 400})), 1024U) << "of sizes that both have";
  EXPECT_EQ(least_paying_bytes(points({50}), {}), std::nullopt);
  EXPECT_EQ(least_paying_bytes({}, points({50})), std::nullopt);
}

TEST_F(CopyProfiles, what_is_saved_is_loaded) {
  ASSERT_EQ(save_copy_profile(measured(), file()), absl::OkStatus());
  const Result<CopyProfile> loaded = load_copy_profile(file());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(to_json(*loaded), to_json(measured()));
  ASSERT_THAT(loaded->engines, SizeIs(3));
  EXPECT_THAT(loaded->find(kCuda)->points, ElementsAre(Field(&CopyPoint::cpu_ns, 900), Field(&CopyPoint::bytes, 4096),
                                                       Field(&CopyPoint::bytes, 16384)));
  EXPECT_EQ(loaded->find({"cuda", "NVIDIA H200 (driver 2)"}), nullptr) << "a new driver may be faster";
}

TEST_F(CopyProfiles, an_engine_has_one_entry_the_newest) {
  CopyProfile profile = measured();
  keep(profile, copies(kDmadev, {1}));
  ASSERT_THAT(profile.engines, SizeIs(3));
  EXPECT_THAT(profile.engines.back().points, SizeIs(1));
  for (int i = 0; i < 100; ++i) {
    keep(profile, copies({"gpu", std::to_string(i)}, {1}));
  }
  EXPECT_THAT(profile.engines, SizeIs(kMaxMeasuredEngines));
  EXPECT_EQ(profile.engines.back().engine.device, "99");
  EXPECT_TRUE(parse_copy_profile(to_json(profile), "text").ok());
}

struct BadCopies {
  const char* name;
  void (*spoil)(Json& json);
  const char* says;
};
class BadCopyProfile : public CopyProfiles, public ::testing::WithParamInterface<BadCopies> {};

TEST_P(BadCopyProfile, is_refused_with_file_key_and_what_to_do_and_the_default_is_used) {
  Json json = Json::parse(to_json(measured()));
  GetParam().spoil(json);
  write(json.dump());
  const Status status = load_copy_profile(file()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  const auto says_all = AllOf(HasSubstr(file().string()), HasSubstr(GetParam().says),
                              HasSubstr("`catena profile --copies` measures again"));
  EXPECT_THAT(std::string(status.message()), says_all);
  std::string log;
  EXPECT_EQ(choose(kDmadev, &log).bytes, CopyThreshold::kDefault);
  EXPECT_THAT(log, says_all);
}

INSTANTIATE_TEST_SUITE_P(
    All, BadCopyProfile,
    ::testing::Values(
        BadCopies{"other_version", [](Json& json) { json["version"] = 2; }, "version"},
        BadCopies{"of_a_device", [](Json& json) { json["format"] = "catena cost profile"; }, "format"},
        BadCopies{"no_processor", [](Json& json) { json.erase("processor"); }, "processor"},
        BadCopies{"processor_drives_the_terminal", [](Json& json) { json["processor"] = "a\x1b[2J"; }, "processor"},
        BadCopies{"no_engines", [](Json& json) { json.erase("engines"); }, "engines"},
        BadCopies{"engines_are_an_object", [](Json& json) { json["engines"] = Json::object(); }, "engines"},
        BadCopies{"many_engines", [](Json& json) { json["engines"] = std::vector<Json>(65, json["engines"][0]); },
                  "64"},
        BadCopies{"engine_is_a_text", [](Json& json) { json["engines"][1] = "cpu"; }, "engines[1]"},
        BadCopies{"engine_twice", [](Json& json) { json["engines"][1] = json["engines"][0]; }, "two entries"},
        BadCopies{"name_is_a_number", [](Json& json) { json["engines"][1]["name"] = 7; }, "engines[1].name"},
        BadCopies{"no_device", [](Json& json) { json["engines"][1].erase("device"); }, "engines[1].device"},
        BadCopies{"no_time", [](Json& json) { json["engines"][2]["measured"] = "today"; }, "engines[2].measured"},
        BadCopies{"no_sizes", [](Json& json) { json["engines"][0].erase("sizes"); }, "engines[0].sizes"},
        BadCopies{"size_is_a_number", [](Json& json) { json["engines"][0]["sizes"][0] = 5; }, "engines[0].sizes[0]"},
        BadCopies{"size_of_nothing", [](Json& json) { json["engines"][0]["sizes"][0]["bytes"] = 0; }, "sizes[0].bytes"},
        BadCopies{"sizes_descend", [](Json& json) { json["engines"][0]["sizes"][2]["bytes"] = 2000; }, "do not ascend"},
        BadCopies{"size_twice", [](Json& json) { json["engines"][0]["sizes"][1]["bytes"] = 1024; }, "do not ascend"},
        BadCopies{"negative", [](Json& json) { json["engines"][0]["sizes"][1]["cpu_ns"] = -1; }, "sizes[1].cpu_ns"},
        BadCopies{"too_large", [](Json& json) { json["engines"][0]["sizes"][1]["gbps"] = 1e300; }, "sizes[1].gbps"}),
    [](::testing::TestParamInfo<BadCopies> const& test) { return test.param.name; });

TEST_F(CopyProfiles, every_prefix_is_refused) {
  const std::string whole = Json::parse(to_json(measured())).dump();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(parse_copy_profile(whole.substr(0, length), "text").ok()) << length;
  }
}

TEST_F(CopyProfiles, what_is_no_regular_file_or_too_long_is_refused) {
  EXPECT_TRUE(absl::IsNotFound(load_copy_profile(file()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(load_copy_profile("/dev/zero").status()));
  write(to_json(measured()) + std::string(300'000, ' '));
  EXPECT_TRUE(absl::IsInvalidArgument(load_copy_profile(file()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(load_profile(file()).status()));
}

TEST_F(CopyProfiles, the_threshold_is_the_profiles_where_it_has_the_engine_of_this_machine) {
  EXPECT_THAT(choose(kDmadev).why, HasSubstr("`catena profile --copies --engine dmadev`"));
  EXPECT_EQ(choose(kDmadev).bytes, CopyThreshold::kDefault) << "no profile";
  ASSERT_EQ(save_copy_profile(measured(), file()), absl::OkStatus());
  EXPECT_EQ(choose(kDmadev).bytes, 4096U);
  EXPECT_EQ(choose(kDmadev).why, "by the profile measured 2026-11-29");
  EXPECT_EQ(choose(kCuda).bytes, CopyThreshold::kNever);
  EXPECT_EQ(choose(kCuda).why, "by the profile measured 2026-11-29");
  for (CopyEngine const& other : {CopyEngine{"cuda", "NVIDIA H200 (driver 2)"}, CopyEngine{"opencl", {}}}) {
    EXPECT_EQ(choose(other).bytes, CopyThreshold::kDefault);
    EXPECT_THAT(choose(other).why, HasSubstr("the default"));
  }
  CopyProfile without_cpu = measured();
  without_cpu.engines.erase(without_cpu.engines.begin());
  ASSERT_EQ(save_copy_profile(without_cpu, file()), absl::OkStatus());
  EXPECT_EQ(choose(kDmadev).bytes, CopyThreshold::kDefault) << "nothing to compare with";
}

TEST_F(CopyProfiles, the_profile_of_another_machine_is_named_and_not_used) {
  CopyProfile other = measured();
  other.processor = "Another Processor";
  ASSERT_EQ(save_copy_profile(other, file()), absl::OkStatus());
  std::string log;
  EXPECT_EQ(choose(kDmadev, &log).bytes, CopyThreshold::kDefault);
  EXPECT_THAT(log, AllOf(HasSubstr(file().string()), HasSubstr("Another Processor")));
}

TEST_F(CopyProfiles, without_a_folder_there_is_no_profile) {
  EXPECT_TRUE(ProfileStore(fs::path()).file_of_copies("a processor").empty());
  EXPECT_EQ(choose_threshold(ProfileStore(fs::path()), kDmadev, kCpu).bytes, CopyThreshold::kDefault);
}

TEST_F(CopyProfiles, an_engine_of_a_backend_has_its_device) {
  EXPECT_THAT(CopyEngine::of("cpu-stream").device, IsEmpty());
  if (CopyEngine::of("opencl").device.empty()) {
    GTEST_SKIP() << "no OpenCL device here";
  }
  EXPECT_THAT(CopyEngine::of("opencl").device, HasSubstr("driver"));
}

}  // namespace
}  // namespace catena::chain
