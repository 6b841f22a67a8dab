// SPDX-License-Identifier: Apache-2.0
#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/testing/conformance.hpp>
#include <catena/nf/testing/packet_store.hpp>
#include <catena/packet/headers.hpp>
#include <catena/packet/testing/traffic.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <optional>

#include "gpu/check/static_check.hpp"
#include "gpu/launch/adapt.hpp"
#include "nf/instance.hpp"
#include "nf/testing/hint_check.hpp"
#include "nf/testing/unknown_key.hpp"

namespace catena::nf::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::vector<std::uint32_t> kBatchSizes{0, 1, 31, 32, 33, 255, 256, 257};

/// A test of the suite: its name, and on which processor it runs ("cpu" or a backend).
using Processor = std::string;

class ConformanceTest : public ::testing::Test {
 public:
  using Body = void (ConformanceTest::*)();
  ConformanceTest(Descriptor const& descriptor, std::function<Subject()> make, Processor processor, Body body)
      : descriptor_(descriptor), make_(std::move(make)), processor_(std::move(processor)), body_(body) {}

  void output_does_not_depend_on_batch_sizes();
  void packets_dropped_before_are_left_alone();
  void hostile_frames_are_survived();
  void counters_add_up_and_records_stand_in_order();
  void hints_name_what_is_read_and_written();
  void an_unknown_key_is_refused_with_its_position();
  void a_replacement_divides_packets_among_shards_as_before();
  void the_kernel_compiles_for_cuda();
  void the_kernel_passes_the_static_check();

 protected:
  void SetUp() override {
    subject_.emplace(make_());
    write_files(folder_.path());
    if (processor_ != "cpu" && device() == nullptr) {
      GTEST_SKIP() << "there is no " << processor_ << " device here";
    }
  }
  void TestBody() override { (this->*body_)(); }

 private:
  /// Null on the CPU.
  device::Device* device() const {
    for (device::Device* device : devices()) {
      if (device->info().backend == processor_) {
        return device;
      }
    }
    return nullptr;
  }
  void write_files(std::string const& folder) const {
    for (auto const& [name, text] : subject_->files) {
      std::ofstream(folder + "/" + name, std::ios::binary) << text;
    }
  }
  Result<std::unique_ptr<Nf>> make_nf() const { return testing::make_nf(descriptor_, subject_->yaml, folder_.path()); }
  RunResult run(std::vector<Frame> const& frames, device::Device* device, RunOptions const& options) const {
    Result<std::unique_ptr<Nf>> nf = make_nf();
    EXPECT_TRUE(nf.ok()) << nf.status();
    if (!nf.ok()) {
      return {};
    }
    Result<RunResult> result = testing::run(descriptor_, std::move(*nf), frames, device, options);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *std::move(result) : RunResult{};
  }
  RunResult run_here(std::vector<Frame> const& frames, RunOptions const& options) const {
    return run(frames, device(), options);
  }
  RunResult run_on_cpu(std::vector<Frame> const& frames, RunOptions const& options) const {
    return run(frames, nullptr, options);
  }
  /// The subject's frames, over and over, enough to fill every batch size, with frames of every kind in between.
  std::vector<Frame> frames() const {
    const std::size_t wanted = 2 * std::accumulate(kBatchSizes.begin(), kBatchSizes.end(), std::size_t{0});
    const std::vector<Frame> kinds = packet::testing::frames_of_every_kind();
    std::vector<Frame> frames = subject_->frames;
    for (std::size_t i = 0; frames.size() < wanted; ++i) {
      frames.push_back(i % 7 == 3 ? kinds[i / 7 % kinds.size()] : subject_->frames[i % subject_->frames.size()]);
    }
    return frames;
  }
  static void expect_same(RunResult const& actual, RunResult const& expected) {
    ASSERT_EQ(actual.packets.size(), expected.packets.size());
    for (std::size_t i = 0; i < expected.packets.size(); ++i) {
      ASSERT_EQ(actual.packets[i].verdict, expected.packets[i].verdict) << "packet " << i;
      ASSERT_EQ(actual.packets[i].port, expected.packets[i].port) << "packet " << i;
      ASSERT_EQ(actual.packets[i].frame, expected.packets[i].frame) << "packet " << i;
    }
    EXPECT_EQ(actual.records, expected.records);
    EXPECT_EQ(actual.drops, expected.drops);
    EXPECT_EQ(actual.alerts, expected.alerts);
    EXPECT_EQ(actual.counters.in, expected.counters.in);
    EXPECT_EQ(actual.counters.unsupported, expected.counters.unsupported);
    EXPECT_EQ(actual.counters.link_local, expected.counters.link_local);
    EXPECT_EQ(actual.counters.kernel_faults, 0U);
  }

  Descriptor const& descriptor_;
  std::function<Subject()> make_;
  Processor processor_;
  Body body_;
  const ScratchFolder folder_;
  std::optional<Subject> subject_;
};

void ConformanceTest::output_does_not_depend_on_batch_sizes() {
  const std::vector<Frame> input = frames();
  const RunResult expected = run_on_cpu(input, {.unit_size = 64});
  for (const std::uint32_t units_per_launch : {1U, 3U}) {
    RunOptions options;
    options.unit_sizes = kBatchSizes;
    options.units_per_launch = units_per_launch;
    const RunResult actual = run_here(input, options);
    expect_same(actual, expected);
    if (processor_ != "cpu") {
      EXPECT_GT(actual.counters.device_packets, 0U) << "the kernel did the work";
    }
  }
}

void ConformanceTest::packets_dropped_before_are_left_alone() {
  const std::vector<Frame> input = frames();
  const auto all = [](std::size_t) { return true; };
  const auto whole_batches = [](std::size_t i) { return i / 64 % 2 == 0; };
  const auto some = [](std::size_t i) { return i % 3 == 1 || i % 5 == 2; };
  for (std::function<bool(std::size_t)> const& dropped :
       {std::function<bool(std::size_t)>(all), {whole_batches}, {some}}) {
    RunOptions options;
    options.dropped_before = dropped;
    const RunResult result = run_here(input, options);
    expect_same(result, run_on_cpu(input, options));
    std::uint64_t alive = 0;
    for (std::size_t i = 0; i < input.size(); ++i) {
      alive += dropped(i) ? 0 : 1;
      if (dropped(i)) {
        ASSERT_EQ(result.packets[i], (PacketResult{input[i], packet::Verdict::kDrop, 0})) << "packet " << i;
      }
    }
    EXPECT_EQ(result.counters.in, alive);
  }
}

void ConformanceTest::hostile_frames_are_survived() {
  for (const bool drop : {false, true}) {
    RunOptions options;
    options.unit_size = 256;
    options.on_unsupported = drop ? OnUnsupported::kDrop : OnUnsupported::kPass;
    options.link_local = drop ? LinkLocal::kDrop : LinkLocal::kPass;
    expect_same(run_here(packet::testing::hostile_frames(), options),
                run_on_cpu(packet::testing::hostile_frames(), options));
  }
}

void ConformanceTest::counters_add_up_and_records_stand_in_order() {
  const RunResult result = run_here(frames(), {});
  std::uint64_t drops = 0;
  for (auto const& [reason, count] : result.drops) {
    drops += count;
  }
  const auto with_verdict = [&result](packet::Verdict verdict) {
    return static_cast<std::uint64_t>(
        std::count_if(result.packets.begin(), result.packets.end(),
                      [&](PacketResult const& packet) { return packet.verdict == verdict; }));
  };
  EXPECT_EQ(drops, with_verdict(packet::Verdict::kDrop));
  EXPECT_EQ(result.alerts, with_verdict(packet::Verdict::kAlert));
  EXPECT_EQ(result.counters.in, result.packets.size());
  EXPECT_EQ(result.counters.in, result.counters.processed + result.counters.unsupported + result.counters.link_local);
  for (auto const& [reason, count] : subject_->reached) {
    EXPECT_GE(result.dropped(reason), count) << reason;
  }
  std::uint64_t next = 0;
  for (std::string const& record : result.records) {
    constexpr std::string_view kStart = R"({"packet":)";
    ASSERT_EQ(record.compare(0, kStart.size(), kStart), 0) << record;
    const std::uint64_t packet = std::strtoull(record.c_str() + kStart.size(), nullptr, 10);
    ASSERT_GE(packet, next) << record;
    next = packet;
  }
}

void ConformanceTest::hints_name_what_is_read_and_written() {
  const auto make = [this](std::string const& folder) {
    write_files(folder);
    return testing::make_nf(descriptor_, subject_->yaml, folder);
  };
  const auto expect_none_in = [&](std::vector<Frame> const& input) {
    const Result<std::vector<std::string>> lies = find_lies({descriptor_, make, input}, device());
    ASSERT_TRUE(lies.ok()) << lies.status();
    for (std::string const& lie : *lies) {
      ADD_FAILURE() << lie;
    }
  };
  expect_none_in(frames());
  if (device() == nullptr) {  // a kernel sees them in other tests; complete() is the same
    expect_none_in(packet::testing::hostile_frames());
  }
}

void ConformanceTest::an_unknown_key_is_refused_with_its_position() {
  const WithUnknownKey with = with_unknown_key(subject_->yaml);
  const Status status = testing::make_nf(descriptor_, with.yaml, folder_.path()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(concat("test.yaml:", with.line, ":")), HasSubstr(std::string(kUnknownKey))));
}

void ConformanceTest::a_replacement_divides_packets_among_shards_as_before() {
  constexpr std::uint8_t kVariants = 64;
  constexpr std::uint32_t kShards = 8;
  const auto make_first = [this] {
    Result<Config> config = Config::parse(subject_->yaml, folder_.path("test.yaml"));
    EXPECT_TRUE(config.ok()) << config.status();
    config->set_shard({0, kShards});
    Result<std::unique_ptr<Nf>> nf = descriptor_.create(*config);
    EXPECT_TRUE(nf.ok()) << nf.status();
    return *std::move(nf);
  };
  const std::unique_ptr<Nf> before = make_first();
  const std::unique_ptr<Nf> after = make_first();
  const std::vector<Nf const*> all(kShards, before.get());  // constant data of all shards is the same
  ASSERT_EQ(after->prepare_migration(all), absl::OkStatus());
  std::vector<Frame> frames;
  for (Frame const& frame : subject_->frames) {
    const packet::Layers layers = packet::parse(frame.data(), static_cast<std::uint32_t>(frame.size()));
    for (std::uint8_t i = 0; i < kVariants && (layers.flags & packet::kIpv4) != 0; ++i) {
      Frame& variant = frames.emplace_back(frame);
      variant[layers.l3 + 15U] ^= i;  // the last byte of the source
      if (packet::has_whole_ports(layers.flags)) {
        variant[layers.l4] ^= i;
      }
    }
  }
  PacketStore store(frames);
  const std::unique_ptr<Sharder> sharder_before = before->sharder();
  const std::unique_ptr<Sharder> sharder_after = after->sharder();
  for (std::uint32_t i = 0; i < store.size(); ++i) {
    const packet::Packet packet = store.all()[i];
    if ((packet.layers().flags & (descriptor_.needs | descriptor_.refuses)) == descriptor_.needs) {
      ASSERT_EQ(sharder_after->shard_of(packet), sharder_before->shard_of(packet)) << "packet " << i;
    }
  }
}

void ConformanceTest::the_kernel_compiles_for_cuda() {
  Result<std::unique_ptr<Nf>> nf = make_nf();
  ASSERT_TRUE(nf.ok()) << nf.status();
  Instance instance("nf", descriptor_, *std::move(nf), OnUnsupported::kPass, false);
  const Result<KernelSide> side = instance.nf().kernel_side();
  ASSERT_TRUE(side.ok()) << side.status();
  const Result<device::Binary> binary =
      device::compile_cuda(kernel::adapt(side->spec, instance.launch_plan()), "sm_90");
  if (absl::IsUnavailable(binary.status())) {
    GTEST_SKIP() << "NVRTC is not here: " << binary.status();
  }
  EXPECT_TRUE(binary.ok()) << binary.status();
}

void ConformanceTest::the_kernel_passes_the_static_check() {
  Result<std::unique_ptr<Nf>> nf = make_nf();
  ASSERT_TRUE(nf.ok()) << nf.status();
  Instance instance("nf", descriptor_, *std::move(nf), OnUnsupported::kPass, false);
  const Result<KernelSide> side = instance.nf().kernel_side();
  ASSERT_TRUE(side.ok()) << side.status();
  const Hints hints = instance.nf().hints();
  const copy::SharedStep in_place{};
  const copy::SharedStep in_columns{.to_device = hints.gr, .to_host = hints.gw};
  for (const auto& shared : {std::optional<copy::SharedStep>(), std::optional(in_place), std::optional(in_columns)}) {
    const Result<static_check::Report> report =
        static_check::check_kernel(kernel::adapt(side->spec, instance.launch_plan(shared)));
    if (absl::IsUnavailable(report.status())) {
      GTEST_SKIP() << report.status();
    }
    ASSERT_TRUE(report.ok()) << report.status();
    for (static_check::Finding const& finding : report->refused) {
      ADD_FAILURE() << finding.text();
    }
  }
}

}  // namespace

bool register_conformance(std::string const& name, Descriptor const& descriptor, std::function<Subject()> const& make) {
  const std::string suite = name + "_conformance";
  const auto add = [&](std::string const& test, Processor const& processor, ConformanceTest::Body body) {
    ::testing::RegisterTest(suite.c_str(), test.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [&descriptor, make, processor, body]() -> ConformanceTest* {
                              return new ConformanceTest(descriptor, make, processor, body);
                            });
  };
  std::vector<Processor> processors{"cpu"};
  if (descriptor.has_kernel) {
    const std::vector<std::string_view> backends = device::backend_names();
    processors.insert(processors.end(), backends.begin(), backends.end());
    add("the_kernel_compiles_for_cuda", "cpu", &ConformanceTest::the_kernel_compiles_for_cuda);
    add("the_kernel_passes_the_static_check", "cpu", &ConformanceTest::the_kernel_passes_the_static_check);
  }
  for (Processor const& processor : processors) {
    add("output_does_not_depend_on_batch_sizes_on_" + processor, processor,
        &ConformanceTest::output_does_not_depend_on_batch_sizes);
    add("packets_dropped_before_are_left_alone_on_" + processor, processor,
        &ConformanceTest::packets_dropped_before_are_left_alone);
    add("hostile_frames_are_survived_on_" + processor, processor, &ConformanceTest::hostile_frames_are_survived);
    add("counters_add_up_and_records_stand_in_order_on_" + processor, processor,
        &ConformanceTest::counters_add_up_and_records_stand_in_order);
    add("hints_name_what_is_read_and_written_on_" + processor, processor,
        &ConformanceTest::hints_name_what_is_read_and_written);
  }
  add("an_unknown_key_is_refused_with_its_position", "cpu",
      &ConformanceTest::an_unknown_key_is_refused_with_its_position);
  if (descriptor.sharding == Sharding::kOwn) {
    add("a_replacement_divides_packets_among_shards_as_before", "cpu",
        &ConformanceTest::a_replacement_divides_packets_among_shards_as_before);
  }
  return true;
}

}  // namespace catena::nf::testing
