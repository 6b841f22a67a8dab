// SPDX-License-Identifier: Apache-2.0
#include "gpu/launch/adapt.hpp"

#include <catena/core/text.hpp>

#include "catena_kernel_dialect_test.hpp"
#include "catena_kernel_sdk.hpp"
#include "gpu/device/testing/faulty_device.hpp"
#include "gpu/program/testing/environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

// Written by catena_embed().
namespace catena::kernel {
namespace {

using packet::fields;
using packet::FieldSet;
using program::testing::Environment;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr FieldSet kFrameMeta = fields(packet::kMetaLayers, packet::kMetaOffset, packet::kMetaLength);
constexpr FieldSet kExtentMeta = fields(packet::kMetaOffset, packet::kMetaLength);

copy::LaunchPlan plan_of(FieldSet reads, FieldSet writes) {
  copy::LaunchPlan plan;
  plan.reads = reads;
  plan.writes = writes;
  return plan;
}

/// Both halves of what is compiled.
struct Planned {
  KernelSpec kernel = {};
  copy::LaunchPlan plan = {};
};
device::ProgramSource adapt(Planned const& planned) { return kernel::adapt(planned.kernel, planned.plan); }
Result<std::unique_ptr<device::Program>> build(device::Device& device, Planned const& planned) {
  return kernel::build(device, planned.kernel, planned.plan);
}

TEST(Columns, every_frame_field_is_the_frame_and_one_less_is_not) {
  EXPECT_EQ(copy::frames_of(packet::kNoFields), copy::Frames::kNone);
  EXPECT_EQ(copy::frames_of(fields(packet::kIpv4Dst, packet::kMetaPort)), copy::Frames::kNone);
  EXPECT_EQ(copy::frames_of(fields(packet::kPayload)), copy::Frames::kPayload);
  EXPECT_EQ(copy::frames_of(packet::kFrameFields), copy::Frames::kFrame);
  EXPECT_EQ(copy::frames_of(packet::kAllFields), copy::Frames::kFrame);
  EXPECT_EQ(copy::frames_of(packet::kFrameFields & ~fields(packet::kEthDst)), copy::Frames::kPayload);
  EXPECT_EQ(copy::frames_of(packet::kFrameFields & ~fields(packet::kPayload)), copy::Frames::kNone);
}

TEST(Columns, fixed_size_fields_travel_as_columns_and_variable_ones_do_not) {
  const FieldSet reads = fields(packet::kIpv4Src, packet::kL4Dport, packet::kMetaLayers, packet::kPayload);
  const FieldSet writes = fields(packet::kIpv4Ttl, packet::kMetaPort, packet::kPayload, packet::kIpv4Options);
  EXPECT_EQ(copy::in_columns(plan_of(reads, writes)), reads & ~fields(packet::kPayload));
  EXPECT_EQ(copy::out_columns(plan_of(reads, writes)), fields(packet::kIpv4Ttl, packet::kMetaPort));
}

TEST(Columns, fields_of_a_frame_travel_inside_it) {
  const copy::LaunchPlan both = plan_of(packet::kFrameFields | fields(packet::kMetaPort), packet::kFrameFields);
  EXPECT_EQ(copy::in_columns(both), kFrameMeta | fields(packet::kMetaPort));
  EXPECT_EQ(copy::out_columns(both), kExtentMeta);
  const copy::LaunchPlan verdict = plan_of(packet::kFrameFields, packet::kFrameFields | fields(packet::kMetaVerdict));
  EXPECT_EQ(copy::out_columns(verdict), kExtentMeta | fields(packet::kMetaVerdict));
}

TEST(Columns, a_frame_that_is_only_read_brings_single_fields_back) {
  const copy::LaunchPlan plan = plan_of(packet::kFrameFields, fields(packet::kIpv4Ttl, packet::kMetaPort));
  EXPECT_EQ(copy::in_columns(plan), kFrameMeta);
  EXPECT_EQ(copy::out_columns(plan), fields(packet::kIpv4Ttl, packet::kMetaPort));
}

TEST(Columns, a_frame_that_is_written_travels_in_too) {
  const copy::LaunchPlan plan = plan_of(fields(packet::kIpv4Dst), packet::kFrameFields);
  EXPECT_EQ(copy::in_columns(plan), fields(packet::kIpv4Dst) | kFrameMeta);
  EXPECT_EQ(copy::out_columns(plan), kExtentMeta);
  const copy::LaunchPlan part = plan_of(packet::kFrameFields, fields(packet::kPayload, packet::kIpv4Dst));
  EXPECT_EQ(copy::out_columns(part), fields(packet::kIpv4Dst) | kExtentMeta);
}

constexpr EmbeddedFile kStore[] = {{"store.kernel.cpp",
                                    "#include <catena/kernel/context.hpp>\n"
                                    "#include \"store.layout.hpp\"\n"
                                    "CATENA_KERNEL(store) {\n"
                                    "  const auto packet = ctx.packet();\n"
                                    "  if (packet.valid()) {\n"
                                    "    packet.set<catena::packet::kMetaPort>(kPort);\n"
                                    "  }\n"
                                    "}\n"},
                                   {"store.layout.hpp", "#pragma once\nconstexpr catena::u16 kPort = 7;\n"}};

Planned store() {
  Planned store{.plan = plan_of(packet::kNoFields, fields(packet::kMetaPort))};
  store.kernel.source = kStore;
  store.kernel.name = "store";
  return store;
}

/// What a compiler says where store() has to do without its hints.
constexpr const char* kNotNamed = "the NF's hints do not name meta.port as written on the GPU (GW)";

/// What a kernel must not do, and a part of what each compiler says to it.
struct Refused {
  const char* statement;
  const char* opencl;
  const char* cuda;
};
constexpr Refused kRefused[] = {
    {"IsoPtr<catena::u32> all(nullptr, 1, kAddressState, FaultSink{});", "private constructor", "is inaccessible"},
    {"Context other(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, LaunchParams{}, 0);", "private constructor",
     "is inaccessible"},
    {"Context other = ctx;", "deleted", "deleted"},
    {"ctx.for_group_packet(0).packet();", "deleted", "deleted"},
    {"PacketView other(ctx, 7);", "private constructor", "is inaccessible"},
    {"ctx.array(StateArray<catena::u8*>{0, 1});", "does not reach pointers", "does not reach pointers"},
    {"ctx.local<catena::u32>(0, 4).be32(0);", "words are fetched from bytes", "words are fetched from bytes"},
    {"ctx.local<catena::u32>(0, 4).set_be32(0, 1);", "words are put into bytes", "words are put into bytes"},
};
std::string kernel_that_does(const char* statement) {
  return concat("#include <catena/kernel/context.hpp>\nusing namespace catena::kernel;\nCATENA_KERNEL(store) {\n  ",
                statement, "\n}\n");
}

TEST(Adapt, macros_carry_the_plan) {
  Planned planned{.plan = plan_of(fields(packet::kIpv4Src, packet::kMetaLayers), fields(packet::kPayload))};
  planned.kernel.source = kStore;
  planned.plan.aux_bytes = 8;
  planned.plan.result_bytes = 12;
  planned.kernel.headroom = 50;
  planned.kernel.tailroom = 20;
  planned.kernel.lanes = 16;
  planned.kernel.group_size = 64;
  planned.kernel.local_bytes = 1024;
  planned.kernel.spill_factor = 3;
  EXPECT_THAT(
      adapt(planned).defines,
      ::testing::UnorderedElementsAre(
          "CATENA_SHARED=0U", concat("CATENA_READS=", fields(packet::kIpv4Src, packet::kMetaLayers), "UL"),
          concat("CATENA_WRITES=", fields(packet::kPayload), "UL"),
          concat("CATENA_IN_COLUMNS=", fields(packet::kIpv4Src, packet::kMetaLayers), "UL"), "CATENA_OUT_COLUMNS=0UL",
          "CATENA_FRAMES=1U", "CATENA_HEADROOM=50U", "CATENA_TAILROOM=20U", "CATENA_LANES=16U", "CATENA_AUX_BYTES=8U",
          "CATENA_RESULT_BYTES=12U", "CATENA_SPILL_FACTOR=3U", "CATENA_ANY_GROUPS=0U"));
  EXPECT_THAT(kernel::adapt(planned.kernel, planned.plan, Groups::kAny).defines, Contains("CATENA_ANY_GROUPS=1U"));
  planned.plan.reads = packet::kFrameFields;
  EXPECT_THAT(adapt(planned).defines, Contains("CATENA_FRAMES=2U"));
  EXPECT_THAT(adapt(store()).defines, Contains("CATENA_FRAMES=0U"));
}

TEST(Adapt, a_shared_step_has_columns_for_what_is_staged_and_for_metadata_that_the_kernel_writes) {
  Planned planned{.plan =
                      plan_of(fields(packet::kIpv4Src, packet::kIpv4Ttl), fields(packet::kIpv4Ttl, packet::kMetaPort))};
  planned.kernel.source = kStore;
  planned.plan.shared = copy::SharedStep{.to_device = fields(packet::kIpv4Src, packet::kPayload, packet::kMetaLayers),
                                         .to_host = fields(packet::kIpv4Ttl)};
  EXPECT_EQ(copy::in_columns(planned.plan), fields(packet::kIpv4Src, packet::kMetaLayers));
  EXPECT_EQ(copy::out_columns(planned.plan), fields(packet::kIpv4Ttl, packet::kMetaPort));
  EXPECT_THAT(adapt(planned).defines, Contains("CATENA_SHARED=1U"));
  EXPECT_THAT(copy::transfer_source(planned.plan, true).defines, Contains("CATENA_BODY=1U"));
  EXPECT_THAT(copy::transfer_source(planned.plan, false).defines, Contains("CATENA_BODY=0U"));
  EXPECT_THAT(copy::transfer_source(planned.plan, false).defines,
              Contains(concat("CATENA_WRITTEN=", copy::out_columns(planned.plan), "UL")));

  planned.plan.shared->columns_in = TransferMethod::kGather;
  EXPECT_EQ(copy::in_columns(planned.plan), fields(packet::kMetaLayers))
      << "the transfer kernel takes the address from the pool";
  EXPECT_THAT(copy::transfer_source(planned.plan, true).defines,
              Contains(concat("CATENA_MAPPED_COLUMNS=", fields(packet::kIpv4Src), "UL")));
}

TEST(Adapt, kernel_file_comes_first_and_the_sdk_is_there) {
  const device::ProgramSource source = adapt(store());
  ASSERT_GE(source.files.size(), 3U);
  EXPECT_EQ(source.files[0].name, "store.kernel.cpp");
  EXPECT_EQ(source.files[0].text, kStore[0].text);
  std::vector<std::string> names;
  for (device::SourceFile const& file : source.files) {
    names.push_back(file.name);
  }
  EXPECT_THAT(names, AllOf(Contains("store.layout.hpp"), Contains("catena/kernel/context.hpp"),
                           Contains("catena/packet/fields.hpp")));
}

/// The SDK's files with one that includes `header` alone, in a plan that has everything.
device::ProgramSource source_of_header(const char* header) {
  static std::string text;
  text = concat("#include <", header, ">\n");
  const EmbeddedFile main_file[] = {{"main.kernel.cpp", text.c_str()}};
  Planned planned{.plan = plan_of(~packet::kNoFields & ~fields(packet::kEthType), ~packet::kNoFields)};
  planned.kernel.source = main_file;
  planned.plan.aux_bytes = 64;
  planned.plan.result_bytes = 256;
  planned.kernel.spill_factor = 1;
  return adapt(planned);
}

Planned dialect_test() {
  Planned planned{.plan = plan_of(packet::kAllFields & ~fields(packet::kEthType),
                                  packet::kMetaFields | fields(packet::kEthSrc, packet::kIpv4Ttl, packet::kIpv4Id,
                                                               packet::kIpv4Dst, packet::kIpv6Src, packet::kL4Dport))};
  planned.kernel.source = catena_kernel_dialect_test();
  planned.plan.aux_bytes = 8;
  planned.plan.result_bytes = 32;
  planned.kernel.headroom = 16;
  planned.kernel.tailroom = 12;
  planned.kernel.lanes = 4;
  planned.kernel.group_size = 64;
  planned.kernel.local_bytes = 0;
  planned.kernel.spill_factor = 4;
  return planned;
}

/// Without a GPU; needs NVRTC.
class CudaCompileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Status status = device::compile_cuda(adapt(store()), "sm_90").status();
    if (absl::IsUnavailable(status)) {
      GTEST_SKIP() << status.message();
    }
    ASSERT_EQ(status, absl::OkStatus());
  }
};

TEST_F(CudaCompileTest, every_header_of_the_sdk_stands_alone) {
  for (EmbeddedFile const& header : catena_kernel_sdk()) {
    EXPECT_EQ(device::compile_cuda(source_of_header(header.name), "sm_90").status(), absl::OkStatus()) << header.name;
  }
}

TEST_F(CudaCompileTest, kernels_compile_for_turing_hopper_and_blackwell) {
  for (const char* architecture : {"sm_75", "sm_90", "sm_120"}) {
    const Result<device::Binary> binary = device::compile_cuda(adapt(dialect_test()), architecture);
    EXPECT_EQ(binary.status(), absl::OkStatus()) << architecture;
  }
}

TEST_F(CudaCompileTest, an_architecture_that_is_unknown_is_answered_with_the_known_ones) {
  for (const char* wrong : {"", "sm_", "sm_1", "sm_90x", "compute_90", "gfx90a"}) {
    const Status status = device::compile_cuda(adapt(store()), wrong).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(concat("'", wrong, "'")), HasSubstr("sm_90")));
  }
}

TEST_F(CudaCompileTest, a_kernel_that_makes_what_the_framework_makes_is_refused) {
  for (Refused const& refused : kRefused) {
    const std::string text = kernel_that_does(refused.statement);
    const EmbeddedFile wrong[] = {{"wrong.kernel.cpp", text.c_str()}};
    Planned planned = store();
    planned.kernel.source = wrong;
    const Status status = device::compile_cuda(adapt(planned), "sm_90").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << refused.statement << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(refused.cuda)) << refused.statement;
  }
}

TEST_F(CudaCompileTest, a_field_that_the_hints_do_not_name_is_refused_with_the_reason) {
  Planned planned = store();
  planned.plan.writes = fields(packet::kMetaVerdict);
  const Status status = device::compile_cuda(adapt(planned), "sm_90").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(kNotNamed), HasSubstr("store.kernel.cpp")));
}

class BuildTest : public ::testing::Test {
 protected:
  void SetUp() override {
    static Result<std::unique_ptr<device::Device>> opencl = device::open(device::DevicePreference::of("opencl"));
    if (!opencl.ok()) {
      GTEST_SKIP() << opencl.status().message();
    }
    std::string pattern = (std::filesystem::path(::testing::TempDir()) / "catena-cache-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    environment_.emplace("CATENA_CACHE_DIR", folder_.c_str());
    device_.emplace(**opencl);
  }
  void TearDown() override {
    if (!folder_.empty()) {
      std::filesystem::remove_all(folder_);
    }
  }

  device::testing::FaultyDevice& device() { return *device_; }
  std::filesystem::path const& folder() const { return folder_; }
  /// Builds, and tells how often the compiler ran for it.
  std::uint64_t compiles_of(Planned const& planned) {
    const std::uint64_t before = device().calls(device::testing::Call::kCompile);
    const Result<std::unique_ptr<device::Program>> program = build(device(), planned);
    EXPECT_EQ(program.status(), absl::OkStatus());
    EXPECT_TRUE(program.ok() && (*program)->kernel(planned.kernel.name).ok());
    return device().calls(device::testing::Call::kCompile) - before;
  }
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> found;
    for (auto const& entry : std::filesystem::directory_iterator(folder_)) {
      found.push_back(entry.path());
    }
    return found;
  }

 private:
  std::filesystem::path folder_;
  std::optional<Environment> environment_;
  std::optional<device::testing::FaultyDevice> device_;
};

TEST_F(BuildTest, the_second_build_takes_the_program_from_disk) {
  EXPECT_EQ(compiles_of(store()), 1U);
  EXPECT_EQ(files().size(), 1U);
  EXPECT_EQ(compiles_of(store()), 0U);
  EXPECT_EQ(files().size(), 1U);
}

TEST_F(BuildTest, everything_that_is_compiled_counts) {
  EXPECT_EQ(compiles_of(store()), 1U);
  Planned grown = store();
  grown.kernel.headroom = 16;
  EXPECT_EQ(compiles_of(grown), 1U);
  const std::array<EmbeddedFile, 2> changed = {
      kStore[0], {"store.layout.hpp", "#pragma once\nconstexpr catena::u16 kPort = 8;\n"}};
  Planned header = store();
  header.kernel.source = changed;
  EXPECT_EQ(compiles_of(header), 1U);
  EXPECT_EQ(files().size(), 3U);
}

TEST_F(BuildTest, a_cached_program_that_does_not_load_is_compiled_anew) {
  EXPECT_EQ(compiles_of(store()), 1U);
  device().fail(device::testing::Call::kLoad, 1, absl::InternalError("planned"));
  EXPECT_EQ(compiles_of(store()), 1U);
  EXPECT_EQ(compiles_of(store()), 0U);
}

TEST_F(BuildTest, a_lost_device_is_not_asked_to_compile) {
  EXPECT_EQ(compiles_of(store()), 1U);
  device().lose(device::testing::Call::kLoad, 1, absl::UnavailableError("planned loss"));
  EXPECT_EQ(build(device(), store()).status(), absl::UnavailableError("planned loss"));
  EXPECT_EQ(device().calls(device::testing::Call::kCompile), 1U);
}

TEST_F(BuildTest, a_cache_that_cannot_be_written_is_no_error) {
  const std::filesystem::path file = folder() / "file";
  std::ofstream(file) << "x";
  for (const std::filesystem::path& impossible : {file, file / "below", std::filesystem::path("/proc/no/such")}) {
    const Environment environment("CATENA_CACHE_DIR", impossible.c_str());
    EXPECT_EQ(compiles_of(store()), 1U) << impossible;
  }
}

TEST_F(BuildTest, source_errors_come_through_and_are_not_cached) {
  const EmbeddedFile wrong[] = {{"wrong.kernel.cpp", "#include <catena/kernel/context.hpp>\nnonsense\n"}};
  Planned planned = store();
  planned.kernel.source = wrong;
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Status status = build(device(), planned).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("wrong.kernel.cpp:2"));
  }
  EXPECT_TRUE(files().empty());
}

TEST_F(BuildTest, a_field_that_the_hints_do_not_name_is_refused_with_the_reason) {
  Planned planned = store();
  planned.plan.writes = fields(packet::kMetaVerdict);
  const Status status = build(device(), planned).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(kNotNamed));
}

TEST_F(BuildTest, a_kernel_that_makes_what_the_framework_makes_is_refused) {
  for (Refused const& refused : kRefused) {
    const std::string text = kernel_that_does(refused.statement);
    const EmbeddedFile wrong[] = {{"wrong.kernel.cpp", text.c_str()}};
    Planned planned = store();
    planned.kernel.source = wrong;
    const Status status = build(device(), planned).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << refused.statement << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(refused.opencl)) << refused.statement;
  }
}

TEST_F(BuildTest, every_header_of_the_sdk_stands_alone) {
  for (EmbeddedFile const& header : catena_kernel_sdk()) {
    EXPECT_EQ(device().compile(source_of_header(header.name)).status(), absl::OkStatus()) << header.name;
  }
}

TEST_F(BuildTest, specs_that_break_a_rule_are_refused_with_the_value) {
  const auto refused = [this](auto change, const char* text) {
    Planned planned = store();
    change(planned);
    const Status status = build(device(), planned).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  };
  refused([](Planned& planned) { planned.kernel.source = {}; }, "no source files");
  refused([](Planned& planned) { planned.plan.aux_bytes = 6; }, "aux_bytes is 6");
  refused([](Planned& planned) { planned.plan.aux_bytes = 68; }, "aux_bytes is 68");
  refused([](Planned& planned) { planned.plan.result_bytes = 3; }, "result_bytes is 3");
  refused([](Planned& planned) { planned.plan.result_bytes = 260; }, "result_bytes is 260");
  refused([](Planned& planned) { planned.kernel.headroom = 40; }, "headroom is 40");
  refused([](Planned& planned) { planned.kernel.headroom = 4096; }, "headroom is 4096");
  refused([](Planned& planned) { planned.kernel.tailroom = 2049; }, "tailroom is 2049");
  refused([](Planned& planned) { planned.kernel.lanes = 0; }, "lanes 0");
  refused([](Planned& planned) { planned.kernel.lanes = 48; }, "lanes 48");
  refused([](Planned& planned) { planned.kernel.group_size = 0; }, "group_size 0");
}

}  // namespace
}  // namespace catena::kernel
