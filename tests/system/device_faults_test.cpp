// SPDX-License-Identifier: Apache-2.0
// What a chain promises when its device fails (docs/failures.md): faults of every kind, at each NF of chains of two and
// three, with every transfer method, in pools that wrap many times over. Each frame is compared with what the CPU makes
// of it. Here every kind meets every method and every place once, in one chain or another; `make soak` meets all of
// them in all chains, and more.
#include "chain/ports/generator.hpp"
#include "gpu/device/backend.hpp"
#include "system/fault_chains.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <future>
#include <map>
#include <set>
#include <string_view>

namespace catena::testing {
namespace {

using device::testing::Call;
using device::testing::FaultyDevice;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr std::size_t kFrames = 4000;

std::vector<packet::testing::Frame> const& frames() {
  static const std::vector<packet::testing::Frame> kMade = unique_frames(kFrames, 1);
  return kMade;
}

FaultResult const& cpu_result(FaultChain const& chain) {
  static std::map<std::string, FaultResult> results;
  const auto found = results.find(chain.name);
  if (found != results.end()) {
    return found->second;
  }
  const FaultRun run = fault_run(chain, FieldMask::kDirect, 0, {});
  return results[chain.name] = run_on_cpu(run, frames()).value();
}

FaultChain const& chain_named(std::string_view name) {
  for (FaultChain const& chain : fault_chains()) {
    if (name == chain.name) {
      return chain;
    }
  }
  return fault_chains().front();
}

FaultResult expect_kept(FaultChain const& chain, FaultRun const& run) {
  FaultResult result = run_with_fault(run, frames()).value();
  EXPECT_EQ(broken_promise(run, result, cpu_result(chain), kFrames), "") << to_string(run);
  return result;
}

TEST(DeviceFaults, the_chains_are_what_the_cpu_runs_where_nothing_fails) {
  for (FaultChain const& chain : fault_chains()) {
    EXPECT_EQ(cpu_result(chain).status, absl::OkStatus());
    EXPECT_GT(cpu_result(chain).sent.size(), kFrames / 2);
    for (const FieldMask field_mask : kFieldMasks) {
      const FaultResult result = expect_kept(chain, fault_run(chain, field_mask, 0, {}));
      EXPECT_EQ(result.sent.size(), cpu_result(chain).sent.size());
      EXPECT_FALSE(result.has_failed);
    }
  }
}

TEST(DeviceFaults, plans_leave_bytes_on_the_device_between_nfs) {
  // else nothing here would be lost with a device
  for (const char* name : {"mix_scan", "mix_mix", "mix_mix_mix"}) {
    const FaultResult result = expect_kept(chain_named(name), fault_run(chain_named(name), FieldMask::kGather, 0, {}));
    ASSERT_TRUE(result.plan.has_value());
    EXPECT_FALSE(packet::contains(result.plan->nfs[0].step->to_host, packet::kPayload)) << name;
  }
}

/// The NFs on the gpu of one chain or another, by turns: all of them for `CATENA_DEVICE_FAULTS=full` in the
/// environment.
struct Place {
  FaultChain const* chain;
  std::size_t failing;
};
std::vector<Place> places(std::size_t turn) {
  static const std::vector<Place> kAll = [] {
    std::vector<Place> all;
    for (FaultChain const& chain : fault_chains()) {
      for (std::size_t failing = 0; failing < static_cast<std::size_t>(std::popcount(chain.gpu_mask)); ++failing) {
        all.push_back({&chain, failing});
      }
    }
    return all;
  }();
  const char* wanted = std::getenv("CATENA_DEVICE_FAULTS");
  return wanted != nullptr && std::string_view(wanted) == "full" ? kAll : std::vector{kAll[turn % kAll.size()]};
}

class Grid : public ::testing::TestWithParam<FieldMask> {};

TEST_P(Grid, every_fault) {
  std::set<std::string> came_about;
  // each crossing begins elsewhere, so that a fault meets other places there
  std::size_t turn = 4 * static_cast<std::size_t>(GetParam());
  for (Fault const& fault : faults()) {
    for (Place const& place : places(turn)) {
      // the NF that asks is the first scan that comes to a launch
      const bool is_scan = fault.kind == Fault::Kind::kBadSpill;
      FaultChain const& chain = is_scan ? chain_named(turn % 2 == 0 ? "mix_scan" : "scan_mix_scan") : *place.chain;
      FaultRun run = fault_run(chain, GetParam(), is_scan ? 0 : place.failing, fault);
      run.workers = 1 + static_cast<std::uint32_t>(turn % 2);
      if (expect_kept(chain, run).has_failed) {
        came_about.insert(to_string(fault));
      }
    }
    ++turn;
  }
  for (const char* expected : {"ready fails at call 1", "record fails at call 1", "lost at call 2 of ready", "hangs",
                               "bad spill requests 1", "bad spill requests 2", "bad spill requests 3"}) {
    EXPECT_THAT(came_about, Contains(expected));
  }
}

std::string name_of_field_mask(::testing::TestParamInfo<FieldMask> const& grid) { return to_string(grid.param); }
INSTANTIATE_TEST_SUITE_P(FieldMasks, Grid, ::testing::ValuesIn(kFieldMasks), name_of_field_mask);

TEST(DeviceFaults, an_nf_that_asks_for_nonsense_once_costs_no_packet) {
  for (const char* name : {"mix_scan", "scan_mix_scan", "encrypt_scan_router"}) {
    FaultChain const& chain = chain_named(name);
    for (const FieldMask field_mask : kFieldMasks) {
      const FaultResult result =
          expect_kept(chain, fault_run(chain, field_mask, 0, {Fault::Kind::kBadSpill, Call::kReady, 1}));
      EXPECT_TRUE(result.has_failed);
      EXPECT_EQ(result.sent.size(), cpu_result(chain).sent.size());
    }
  }
}

TEST(DeviceFaults, all_nfs_of_a_chain_leave_the_device_together_and_say_why) {
  FaultChain const& chain = chain_named("mix_mix_mix");
  for (std::size_t failing = 0; failing < 3; ++failing) {
    const FaultResult result =
        expect_kept(chain, fault_run(chain, FieldMask::kGather, failing, {Fault::Kind::kOnce, Call::kReady, 1}));
    for (runtime::NfReport const& nf : result.report.nfs) {
      EXPECT_EQ(nf.placement, "gpu -> cpu") << nf.name;
      EXPECT_THAT(nf.device.error, HasSubstr("NF " + chain.nfs[failing].name + ": a call failed"));
    }
  }
}

TEST(DeviceFaults, an_nf_that_was_done_when_the_device_failed_is_shown_to_have_left_it) {
  FaultChain const& chain = chain_named("mix_mix");
  FaultRun run = fault_run(chain, FieldMask::kStaged, 1, {Fault::Kind::kOnce, Call::kReady, 1});
  run.armed_after = 0;
  const FaultResult result = run_with_fault(run, unique_frames(run.unit_packets, 1)).value();  // one unit, one launch
  ASSERT_TRUE(result.has_failed);
  for (runtime::NfReport const& nf : result.report.nfs) {
    EXPECT_EQ(nf.placement, "gpu -> cpu") << nf.name;
  }
}

TEST(DeviceFaults, packets_that_only_a_sound_device_has_are_brought_back) {
  // the second mix has not begun: the copies to the device are what fails
  FaultChain const& chain = chain_named("mix_mix");
  for (const FieldMask field_mask : {FieldMask::kStaged, FieldMask::kStrided, FieldMask::kGather}) {
    for (const Call call : {Call::kCreateCommandBuffer, Call::kCopyToDevice, Call::kCopyRowsToDevice}) {
      const FaultResult result = expect_kept(chain, fault_run(chain, field_mask, 1, {Fault::Kind::kOnce, call, 1}));
      EXPECT_EQ(result.device_failed(), 0U);
    }
  }
}

TEST(DeviceFaults, a_pool_that_a_hanging_device_keeps_ends_the_run_with_a_message) {
  FaultChain const& chain = chain_named("mix_mix");
  FaultRun run = fault_run(chain, FieldMask::kGather, 1, {Fault::Kind::kHangs});
  run.unit_packets = 256;  // two units, each in a launch
  const FaultResult result = expect_kept(chain, run);
  ASSERT_TRUE(absl::IsResourceExhausted(result.status)) << result.status;
  EXPECT_THAT(std::string(result.status.message()), HasSubstr("of the 512 slots of the packet pool"));
  EXPECT_THAT(std::string(result.status.message()), HasSubstr("tuning.pool_slots"));
  EXPECT_LT(result.report.rx.received, kFrames);
}

/// The server that has the device is killed three times while packets run.
class DeviceServerDeaths : public ::testing::TestWithParam<std::size_t> {};

TEST_P(DeviceServerDeaths, cost_at_most_what_the_device_alone_had_and_nfs_return_to_it) {
  FaultChain const& chain = fault_chains()[GetParam()];
  const FieldMask field_mask = kFieldMasks[GetParam() % std::size(kFieldMasks)];
  FaultRun run = fault_run(chain, field_mask, 0, {Fault::Kind::kKilled, Call::kReady, 3});
  run.workers = 1 + static_cast<std::uint32_t>(GetParam() % 2);
  run.armed_after = 900;
  const FaultResult result = expect_kept(chain, run);
  EXPECT_EQ(result.status, absl::OkStatus());
  EXPECT_EQ(result.report.device.losses, 3U);
  EXPECT_EQ(result.report.device.returns, 3U);
  EXPECT_TRUE(result.has_worked_after_return);
  EXPECT_EQ(result.report.rx.slots_in_use, 0U) << "slots that nothing writes to any more are used again";
  for (runtime::NfReport const& nf : result.report.nfs) {
    EXPECT_NE(nf.placement, "gpu -> cpu") << nf.name;
  }
}

TEST(DeviceFaults, nfs_that_share_a_device_have_their_parts_of_it_again_when_it_is_back) {
  for (const char* name : {"mix_mix", "scan_mix_scan"}) {
    FaultChain const& chain = chain_named(name);
    FaultRun run = fault_run(chain, FieldMask::kGather, 0, {Fault::Kind::kKilled, Call::kReady, 3});
    run.armed_after = 900;
    run.sharing = {share::Mode::kFair, share::Parts::kBlocks, 0};
    const FaultResult result = expect_kept(chain, run);
    EXPECT_EQ(result.report.device.returns, 3U);
    EXPECT_TRUE(result.has_worked_after_return);
    EXPECT_EQ(result.max_launch_packets, run.unit_packets) << name << ": launches are as large as parts let them be";
    ASSERT_EQ(result.report.sharing.parts.size(), chain.nfs.size()) << name;
    for (runtime::PartReport const& part : result.report.sharing.parts) {
      EXPECT_TRUE(part.is_taken) << part.text;
      EXPECT_EQ(part.launch_packets, run.unit_packets) << part.text;
    }
    EXPECT_EQ(result.report.sharing.mode, "fair, by the number of work-groups");
  }
}

TEST(DeviceFaults, a_chain_whose_kernel_never_ends_is_kept_from_the_device_and_served_by_the_cpu) {
  const FaultChain chain{"endless", {{"one", "mix", "salt: 3"}, {"two", "mix", "salt: 255"}}, 0b11};
  for (const FieldMask field_mask : {FieldMask::kStaged, FieldMask::kGather}) {
    // the same kernels where they end, so that the driver has them when a watchdog looks
    FaultChain sound = chain;
    sound.nfs[1].config = "salt: 4";
    ASSERT_EQ(run_with_fault(fault_run(sound, field_mask, 0, {}), frames()).value().status, absl::OkStatus());
    const FaultRun run = fault_run(chain, field_mask, 1, {Fault::Kind::kEndless});
    const FaultResult result = expect_kept(chain, run);
    EXPECT_EQ(result.status, absl::OkStatus());
    EXPECT_EQ(result.report.device.losses, 1U);
    EXPECT_EQ(result.report.device.returns, 0U);
    EXPECT_THAT(result.quarantine, HasSubstr("mix"));
    EXPECT_EQ(result.report.rx.slots_in_use, 0U);
    for (runtime::NfReport const& nf : result.report.nfs) {
      EXPECT_EQ(nf.placement, "gpu -> cpu") << nf.name;
    }
  }
}

TEST(DeviceFaults, nfs_that_are_kept_from_the_device_have_no_part_of_it) {
  const FaultChain chain{"endless", {{"one", "mix", "salt: 3"}, {"two", "mix", "salt: 255"}}, 0b11};
  FaultRun run = fault_run(chain, FieldMask::kGather, 1, {Fault::Kind::kEndless});
  run.sharing = {share::Mode::kFair, share::Parts::kBlocks, 0};
  const auto taken = [](FaultResult const& result) {
    return std::ranges::count_if(result.report.sharing.parts, &runtime::PartReport::is_taken);
  };
  FaultRun sound = run;
  sound.nfs[1].config = "salt: 4";
  sound.fault = {};
  EXPECT_EQ(taken(run_with_fault(sound, frames()).value()), 2);
  const FaultResult result = expect_kept(chain, run);
  EXPECT_EQ(result.report.device.losses, 1U);
  EXPECT_EQ(result.report.sharing.parts.size(), 2U);
  EXPECT_EQ(taken(result), 0);
}

/// Devices that a chain has opened, and how many of them it still has.
class OpenedDevices {
 public:
  /// The next one; it is `opened()` from now on.
  std::unique_ptr<device::Device> open() {
    auto device = std::make_unique<Counted>(*this);
    last_ = &device->faulty;
    return device;
  }
  FaultyDevice& last() { return *last_; }
  int opened() const { return opened_; }
  int kept() const { return kept_; }

 private:
  class Counted final : public device::Device {
   public:
    explicit Counted(OpenedDevices& all) : faulty(*nf::testing::devices().front()), all_(&all) {
      ++all_->opened_;
      ++all_->kept_;
    }
    ~Counted() override { --all_->kept_; }
    device::DeviceInfo const& info() const override { return faulty.info(); }
    Result<std::unique_ptr<device::Buffer>> allocate(std::size_t bytes) override { return faulty.allocate(bytes); }
    Result<std::unique_ptr<device::PinnedBuffer>> allocate_pinned(std::size_t bytes) override {
      return faulty.allocate_pinned(bytes);
    }
    Result<std::unique_ptr<device::Buffer>> map_host(device::HostMemory const& memory) override {
      return faulty.map_host(memory);
    }
    Result<std::unique_ptr<device::Stream>> create_stream(device::StreamOptions const& options) override {
      return faulty.create_stream(options);
    }
    Result<std::unique_ptr<device::CommandBuffer>> create_command_buffer(device::Partition* partition) override {
      return faulty.create_command_buffer(partition);
    }
    Result<std::vector<std::unique_ptr<device::Partition>>> divide(std::span<const std::uint32_t> units) override {
      return faulty.divide(units);
    }
    Result<device::Binary> compile(device::ProgramSource const& source) override { return faulty.compile(source); }
    Result<std::unique_ptr<device::Program>> load(std::span<const std::byte> binary) override {
      return faulty.load(binary);
    }
    Status failed() const override { return faulty.failed(); }
    void abandon(Status const& reason) override { faulty.abandon(reason); }

    FaultyDevice faulty;

   private:
    OpenedDevices* all_;
  };

  FaultyDevice* last_ = nullptr;
  std::atomic<int> opened_{0};
  std::atomic<int> kept_{0};
};

TEST(DeviceFaults, a_device_that_goes_again_before_all_nfs_have_it_is_not_kept) {
  FaultChain const& fault_chain = chain_named("mix_mix_mix");
  ChainRun run;
  run.nfs = fault_chain.nfs;
  run.gpu_mask = fault_chain.gpu_mask;
  run.capture = data_file("../../examples/branch-office.pcap");
  run.device = "opencl";
  auto config = chain::parse_chain(chain_text(run, "unused"), data_file("chain/test.yaml"));
  ASSERT_TRUE(config.ok()) << config.status();
  config->rx = chain::generated({.packets_per_s = 20'000});
  config->tx = {};
  OpenedDevices devices;
  std::uint64_t streams = 0;
  runtime::RunOptions options;
  options.device_returns = true;
  options.open_device = [&](device::DevicePreference const&, std::string*) -> Result<std::unique_ptr<device::Device>> {
    auto device = devices.open();
    if (streams != 0) {
      // the first NF's last one: it is the last to have the device
      devices.last().fail(Call::kCreateStream, streams, absl::ResourceExhaustedError("no memory on the device"));
    }
    return device;
  };
  auto session = runtime::Session::create(*std::move(config), options, nfs_for_faults());
  ASSERT_TRUE(session.ok()) << session.status();
  streams = devices.last().streams();
  devices.last().lose(Call::kReady, 2, absl::UnavailableError("the device fell off the bus"));
  auto run_status = std::async(std::launch::async, [&session] { return (*session)->run(); });
  constexpr int kTries = 8;
  int max_kept = 0;
  device::wait_until(
      [&] {
        max_kept = std::max(max_kept, devices.kept());
        return devices.opened() > kTries;
      },
      std::chrono::minutes(1));
  (*session)->stop();
  EXPECT_EQ(run_status.get(), absl::OkStatus());
  EXPECT_GT(devices.opened(), kTries);
  EXPECT_LE(max_kept, 4) << "the first, what the first NF and the others have, and the one at hand";
  EXPECT_EQ((*session)->report().device.returns, 0U);
}

INSTANTIATE_TEST_SUITE_P(Chains, DeviceServerDeaths, ::testing::Range(std::size_t{0}, fault_chains().size()));

TEST(DeviceFaults, a_device_without_memory_at_the_start_is_an_error) {
  FaultChain const& chain = chain_named("mix_scan");
  for (const Call call : {Call::kAllocate, Call::kAllocatePinned, Call::kCreateStream, Call::kFill}) {
    runtime::RunOptions options;
    options.open_device = [call](device::DevicePreference const&,
                                 std::string*) -> Result<std::unique_ptr<device::Device>> {
      auto device = std::make_unique<device::testing::FaultyDevice>(*nf::testing::devices().front());
      device->fail(call, 2, absl::ResourceExhaustedError("no memory on the device"));
      return device;
    };
    ChainRun run;
    run.nfs = chain.nfs;
    run.gpu_mask = chain.gpu_mask;
    run.capture = data_file("../../examples/branch-office.pcap");
    run.device = "opencl";
    auto config = chain::parse_chain(chain_text(run, (scratch_folder() / "out.pcap").string()), data_file("x.yaml"));
    ASSERT_TRUE(config.ok()) << config.status();
    const auto created = runtime::Session::create(*std::move(config), options, nfs_for_faults());
    EXPECT_THAT(created.status().ToString(), HasSubstr("no memory on the device")) << static_cast<int>(call);
  }
}

}  // namespace
}  // namespace catena::testing
