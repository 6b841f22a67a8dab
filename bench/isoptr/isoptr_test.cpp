// SPDX-License-Identifier: Apache-2.0
#include "bench/isoptr/isoptr.hpp"

#include "bench/chains/chains.hpp"
#include "bench/chains/measure.hpp"
#include "bench/common/data.hpp"
#include "bench/common/testing.hpp"
#include "bench/isoptr/checks_device.hpp"
#include "chain/planning.hpp"
#include "gpu/device/subprocess.hpp"
#include "gpu/device/testing/faulty_device.hpp"
#include "gpu/program/program.hpp"
#include "gpu/program/testing/environment.hpp"

#include <catena/core/testing/test_data.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/testing/harness.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>

namespace catena::bench {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kIsoPtr = "catena/kernel/iso_ptr.hpp";

/// The number that the kernel of PeekNf finds beyond its array.
constexpr std::uint32_t kBeyond = 42;
constexpr kernel::EmbeddedFile kPeek[] = {{"peek.kernel.cpp", R"(
#include <catena/kernel/context.hpp>
CATENA_KERNEL(peek) {
  const auto packet = ctx.packet();
  if (packet.valid()) {
    packet.set_result(ctx.array(catena::kernel::StateArray<catena::u32>{0, 1})[1]);
  }
}
)"}};

/// An NF whose state is two words, of which its kernel takes the first alone for its array, and reads the second. What
/// it reads becomes the packet's port.
class PeekNf final : public nf::Nf {
 public:
  nf::Hints hints() const override { return {.gr = packet::fields(packet::kIpv4Ttl)}; }
  void compute(packet::Batch const&, std::span<const std::byte>, std::span<std::byte>) override {}
  void complete(nf::Completion const& completion) override {
    for (std::uint32_t i = 0; i < completion.batch().size(); ++i) {
      completion.batch()[i].set_port(static_cast<std::uint16_t>(completion.results<std::uint32_t>()[i]));
    }
  }
  Result<nf::KernelSide> kernel_side() const override {
    nf::KernelSide side;
    side.spec.source = kPeek;
    side.spec.name = "peek";
    constexpr std::array<std::uint32_t, 2> kState{1, kBeyond};
    const auto bytes = std::as_bytes(std::span(kState));
    side.state.assign(bytes.begin(), bytes.end());
    return side;
  }
};

nf::Descriptor peek_descriptor() {
  nf::Descriptor descriptor;
  descriptor.type = "peek";
  descriptor.help = "for tests";
  descriptor.needs = packet::kIpv4;
  descriptor.result_bytes = 4;
  descriptor.has_kernel = true;
  return descriptor;
}

class ChecksDeviceTest : public ::testing::Test {
 protected:
  ChecksDeviceTest()
      : folder_(*device::TemporaryFolder::create()), cache_("CATENA_CACHE_DIR", folder_.path().c_str()) {}

  void SetUp() override {
    ASSERT_FALSE(nf::testing::devices().empty());
    real_.emplace(*nf::testing::devices().front());
  }
  nf::testing::RunResult peek(Checks checks) {
    ChecksDevice device(*real_, checks);
    const std::vector<packet::testing::Frame> frames(3, packet::testing::make_frame(17, 1, 2, 3, 4, "any"));
    auto result = nf::testing::run(peek_descriptor(), std::make_unique<PeekNf>(), frames, &device);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *std::move(result) : nf::testing::RunResult{};
  }
  std::uint64_t compiles() const { return real_->calls(device::testing::Call::kCompile); }

  device::TemporaryFolder folder_;
  program::testing::Environment cache_;
  std::optional<device::testing::FaultyDevice> real_;
};

TEST_F(ChecksDeviceTest, what_is_caught_with_checks_is_read_without_them) {
  const nf::testing::RunResult checked = peek(Checks::kOn);
  EXPECT_EQ(checked.counters.kernel_faults, 3U);
  EXPECT_EQ(checked.dropped("kernel_fault"), 3U);
  const nf::testing::RunResult unchecked = peek(Checks::kOff);
  EXPECT_EQ(unchecked.counters.kernel_faults, 0U);
  EXPECT_EQ(unchecked.dropped("kernel_fault"), 0U);
  ASSERT_EQ(unchecked.packets.size(), 3U);
  for (nf::testing::PacketResult const& packet : unchecked.packets) {
    EXPECT_EQ(packet.port, kBeyond);
  }
}

TEST_F(ChecksDeviceTest, the_cache_keeps_both_programs_apart) {
  peek(Checks::kOff);
  EXPECT_EQ(compiles(), 1U);
  EXPECT_EQ(peek(Checks::kOn).counters.kernel_faults, 3U) << "the unchecked program is in the cache";
  EXPECT_EQ(compiles(), 2U);
  EXPECT_EQ(peek(Checks::kOff).counters.kernel_faults, 0U);
  EXPECT_EQ(peek(Checks::kOn).counters.kernel_faults, 3U);
  EXPECT_EQ(compiles(), 2U) << "both were in the cache";
}

device::ProgramSource source_of_sdk() { return program::with_sdk(kPeek); }

TEST(WithoutChecks, changes_one_line_and_nothing_else) {
  const device::ProgramSource checked = source_of_sdk();
  const Result<device::ProgramSource> unchecked = without_checks(checked);
  ASSERT_TRUE(unchecked.ok()) << unchecked.status();
  EXPECT_EQ(unchecked->defines, checked.defines);
  ASSERT_EQ(unchecked->files.size(), checked.files.size());
  for (std::size_t i = 0; i < checked.files.size(); ++i) {
    EXPECT_EQ(unchecked->files[i].name, checked.files[i].name);
    std::string text = checked.files[i].text;
    if (checked.files[i].name == kIsoPtr) {
      constexpr std::string_view kOn = "bool kChecked = true;";
      ASSERT_NE(text.find(kOn), std::string::npos);
      text.replace(text.find(kOn), kOn.size(), "bool kChecked = false;");
    }
    EXPECT_EQ(unchecked->files[i].text, text) << checked.files[i].name;
  }
}

TEST(WithoutChecks, a_text_that_it_does_not_know_is_an_error) {
  for (const std::string_view text :
       {std::string_view("namespace catena {}\n"), std::string_view("inline constexpr bool kChecked = true;\n"
                                                                    "inline constexpr bool kChecked = true;\n")}) {
    device::ProgramSource source = source_of_sdk();
    for (device::SourceFile& file : source.files) {
      file.text = file.name == kIsoPtr ? std::string(text) : file.text;
    }
    EXPECT_TRUE(absl::IsInternal(without_checks(source).status()));
  }
  EXPECT_TRUE(absl::IsInternal(without_checks({{{"a.cpp", ""}}, {}}).status()));
}

/// The programs that a chain compiles, as `catena show program` prints them.
class ProgramsTest : public ::testing::Test {
 protected:
  ProgramsTest() : folder_(*device::TemporaryFolder::create()), data_(*find_data("", "chains", kPaperFiles)) {}

  std::vector<device::ProgramSource> programs_of(PaperChain const& chain, plan::Mode mode) const {
    ChainText text;
    text.device = "opencl";
    text.sa_file = *write_sa(data_, folder_.path(), 4096, 1);
    const auto config = chain::parse_chain(chain_text(chain, text), (data_ / "test.yaml").string());
    EXPECT_TRUE(config.ok()) << config.status();
    chain::SyncOptions options;
    options.mode = mode;
    std::vector<device::ProgramSource> sources;
    for (PaperNf const& nf : chain.nfs) {
      if (!nf.on_gpu) {
        continue;
      }
      auto programs = chain::adapted_programs(*config, options, nf::builtin_nfs(), nf.name);
      EXPECT_TRUE(programs.ok()) << programs.status();
      for (chain::AdaptedProgram& program : *programs) {
        sources.push_back(std::move(program.source));
      }
    }
    return sources;
  }

  device::TemporaryFolder folder_;
  std::filesystem::path data_;
};

TEST_F(ProgramsTest, every_program_of_a_chain_has_its_checks_and_nothing_that_could_turn_them_off) {
  std::ifstream in(source_path(concat("include/", kIsoPtr)));
  const std::string header{std::istreambuf_iterator<char>(in), {}};
  EXPECT_THAT(header, HasSubstr("inline constexpr bool kChecked = true;\n"));
  EXPECT_THAT(header, Not(HasSubstr("#if"))) << "nothing for the preprocessor to decide";
  std::vector<PaperChain> chains = kernel_chains();
  chains.insert(chains.end(), gnet_chains().begin(), gnet_chains().end());
  std::size_t seen = 0;
  for (PaperChain const& chain : chains) {
    for (const plan::Mode mode : {plan::Mode::kCopy, plan::Mode::kShared, plan::Mode::kAdaptive}) {
      for (device::ProgramSource const& source : programs_of(chain, mode)) {
        ++seen;
        EXPECT_THAT(source.defines, Each(Not(::testing::ContainsRegex("[Cc][Hh][Ee][Cc][Kk]")))) << chain.name;
        const auto copies = std::ranges::count_if(
            source.files, [&](device::SourceFile const& file) { return file.name == kIsoPtr && file.text == header; });
        EXPECT_EQ(copies, 1) << chain.name;
        for (device::SourceFile const& file : source.files) {
          EXPECT_EQ(file.text.find("kChecked =") != std::string::npos, file.name == kIsoPtr) << file.name;
        }
      }
    }
  }
  EXPECT_GE(seen, 3 * (kernel_chains().size() + 11)) << "each kernel, and those of eleven NFs in four chains";
}

TEST(KernelChains, are_all_network_functions_with_a_kernel) {
  std::set<std::string_view> with_kernel;
  for (nf::Descriptor const* descriptor : nf::builtin_nfs().all()) {
    if (descriptor->has_kernel) {
      with_kernel.insert(descriptor->type);
    }
  }
  std::set<std::string_view> measured;
  for (PaperChain const& chain : kernel_chains()) {
    EXPECT_EQ(chain.nfs.size(), 1U);
    measured.insert(chain.nfs.front().type);
  }
  EXPECT_EQ(measured, with_kernel);
}

// ---- options

class IsoPtrOptions : public testing::PartTest {};

TEST_F(IsoPtrOptions, that_are_wrong_are_answered_with_what_may_be_written) {
  const Part part = isoptr_part();
  EXPECT_THAT(refused(part, "groups", "all"), HasSubstr("allowed: kernels, chains"));
  EXPECT_THAT(refused(part, "chains", "S_e"), HasSubstr("remark, S_a, S_b, S_c, S_d"));
  EXPECT_THAT(refused(part, "sizes", "63"), HasSubstr("64 to 1518"));
  EXPECT_THAT(refused(part, "packets", "0"), HasSubstr("1 to 1048576"));
}

// ---- what was busy

TEST(Busy, moves_count_once_where_they_run_side_by_side_and_a_wait_for_packets_not_at_all) {
  trace::SpanLog ids;
  trace::SpanLog rx;
  ids.add({"fill", 0, 0, 64, 0, 1000});
  ids.add({"to device", 1, 0, 64, 0, 300});
  ids.add({"to host", 2, 1, 64, 200, 500});
  ids.add({"kernel", 1, 0, 64, 300, 400});
  ids.add({"submit", 0, 0, 64, 0, 50});
  rx.add({"work", 0, 0, 64, 100, 1000});
  const std::vector<runtime::StageTrace> stages{{"ids", &ids}, {"rx", &rx}};
  const std::vector<BusyShare> shares = busy_shares(stages);
  ASSERT_EQ(shares.size(), 4U);
  const std::vector<std::pair<std::string, double>> expected{
      {"moves", 0.5}, {"kernels", 0.1}, {"ids", 0.05}, {"rx", 0.9}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(shares[i].what, expected[i].first);
    EXPECT_NEAR(shares[i].share, expected[i].second, 1e-9) << shares[i].what;
  }
  EXPECT_EQ(busiest(shares)->what, "rx");
  EXPECT_TRUE(busy_shares({}).empty());
  EXPECT_EQ(busiest({}), nullptr);
}

}  // namespace
}  // namespace catena::bench
