// SPDX-License-Identifier: Apache-2.0
#include "pipeline/device_manager.hpp"

#include "gpu/device/testing/faulty_device.hpp"
#include "pipeline/pause.hpp"
#include "pipeline/test_support.hpp"

#include <catena/core/text.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace catena::runtime {
namespace {

using device::DevicePreference;
using device::testing::Call;
using device::testing::FaultyDevice;

/// Opens faulty devices over a real one, and has a chain without NFs on them.
class DeviceManagerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<device::Device>> opened = device::open(DevicePreference::of("opencl"));
    ASSERT_TRUE(opened.ok()) << opened.status();
    real_ = *std::move(opened);
  }
  /// Device "cuda:1" is missing.
  Result<std::unique_ptr<device::Device>> open(DevicePreference const& choice, std::string* why) {
    asked_.push_back(to_string(choice));
    if (choice == DevicePreference::of("cuda", 1) || choice == DevicePreference::none()) {
      *why = "unplugged";
      return nullptr;
    }
    auto device = std::make_unique<FaultyDevice>(*real_);
    last_ = device.get();
    return device;
  }
  DeviceManager::MakeSide make() {
    return [this](std::shared_ptr<device::Device> device, std::size_t side) {
      made_.push_back(side);
      return DeviceSide::create(std::move(device), config_, {}, {}, pool_);
    };
  }

  std::unique_ptr<device::Device> real_;
  FaultyDevice* last_ = nullptr;
  std::vector<std::string> asked_;
  std::vector<std::size_t> made_;  ///< sides
  chain::ChainConfig config_ = testing::config_of("{generator: {}}", "null");
  std::shared_ptr<memory::PacketPool> pool_ = memory::PacketPool::create(1024, 64, 1).value();
  DeviceManager devices_{[this](DevicePreference const& choice, std::string* why) { return open(choice, why); }};
};

TEST_F(DeviceManagerTest, one_missing_device_is_missed_by_the_whole_chain) {
  ASSERT_TRUE(devices_.open({DevicePreference::of("cuda"), DevicePreference::of("cuda", 1)}).ok());
  EXPECT_TRUE(devices_.opened().empty());
  EXPECT_EQ(devices_.why_not(), "unplugged");
  ASSERT_TRUE(devices_.make_sides(1, make()).ok());
  EXPECT_EQ(devices_.side_of(0), nullptr);
  devices_.return_lost();
  EXPECT_EQ(devices_.recovery(), nullptr);
}

TEST_F(DeviceManagerTest, none_is_a_reason_of_its_own) {
  ASSERT_TRUE(devices_.open({DevicePreference::none()}).ok());
  EXPECT_TRUE(devices_.opened().empty());
  EXPECT_EQ(devices_.why_not(), "the device is 'none'");
}

TEST_F(DeviceManagerTest, a_device_that_no_nf_uses_is_closed) {
  ASSERT_TRUE(devices_.open({DevicePreference::of("cuda")}).ok());
  ASSERT_EQ(devices_.opened().size(), 1U);
  devices_.close("nothing to do");
  EXPECT_TRUE(devices_.opened().empty());
  EXPECT_EQ(devices_.why_not(), "nothing to do");
}

TEST_F(DeviceManagerTest, an_error_of_the_device_is_one_of_the_chain) {
  DeviceManager devices([](DevicePreference const&, std::string*) { return absl::InternalError("on fire"); });
  EXPECT_EQ(devices.open({DevicePreference()}), absl::InternalError("on fire"));
}

TEST_F(DeviceManagerTest, shards_have_sides_on_the_devices_in_turn) {
  ASSERT_TRUE(devices_.open({DevicePreference::of("cuda"), DevicePreference::of("opencl")}).ok());
  ASSERT_TRUE(devices_.make_sides(4, make()).ok());
  EXPECT_EQ(made_, (std::vector<std::size_t>{0, 1, 2, 3}));
  for (std::size_t shard = 0; shard < 4; ++shard) {
    EXPECT_EQ(&devices_.side_of(shard)->device(), devices_.opened()[shard % 2].get()) << shard;
    EXPECT_EQ(devices_.side_of(shard), devices_.side_of(shard + 4)) << shard;
  }
  EXPECT_NE(devices_.side_of(0), devices_.side_of(2)) << "each has a pool of its own";
}

TEST_F(DeviceManagerTest, one_pool_has_a_side_on_each_device) {
  ASSERT_TRUE(devices_.open({DevicePreference::of("cuda"), DevicePreference::of("opencl")}).ok());
  ASSERT_TRUE(devices_.make_sides(1, make()).ok());
  EXPECT_EQ(made_, (std::vector<std::size_t>{0, 1}));
}

TEST_F(DeviceManagerTest, sharing_takes_one_device_and_its_parts) {
  chain::SharingOptions options;
  const DevicePreference one = DevicePreference::of("cuda");
  EXPECT_EQ(*devices_.device_to_share(one, false, options), nullptr) << "no NF uses it";
  EXPECT_EQ(options.parts, std::nullopt);
  EXPECT_TRUE(asked_.empty());
  EXPECT_NE(*devices_.device_to_share(one, true, options), nullptr) << "NFs in processes use it";
  EXPECT_EQ(asked_, std::vector<std::string>{"cuda"});
  EXPECT_NE(options.parts, std::nullopt);

  ASSERT_TRUE(devices_.open({one}).ok());
  last_->fail(Call::kDivide, 1, absl::UnimplementedError("in one piece"));
  options.parts.reset();
  EXPECT_EQ(*devices_.device_to_share(one, false, options), devices_.opened().front());
  EXPECT_EQ(options.parts, share::Parts::kBlocks);
  last_->fail(Call::kDivide, 1, absl::InternalError("on fire"));
  EXPECT_TRUE(devices_.device_to_share(one, false, options).ok()) << "the caller has said which parts";
  options.parts.reset();
  EXPECT_EQ(devices_.device_to_share(one, false, options).status(), absl::InternalError("on fire"));
}

TEST_F(DeviceManagerTest, nfs_that_share_are_known_by_their_positions) {
  ASSERT_TRUE(devices_.open({DevicePreference::of("cuda")}).ok());
  EXPECT_EQ(devices_.sharing(), nullptr);
  std::vector<GpuSharing::Nf> nfs(2);
  nfs[0].name = "b";
  nfs[1].name = "d";
  nfs[0].least_packets = nfs[0].max_packets = 100;
  nfs[1].least_packets = nfs[1].max_packets = 200;
  for (GpuSharing::Nf& nf : nfs) {
    nf.cost = [](std::uint32_t) { return share::NfCost{.kernel = {1000, 10}, .transfer = {1000, 1}}; };
  }
  ASSERT_EQ(devices_.share(*devices_.opened().front(), {share::Mode::kUncoordinated, share::Parts::kBlocks}, {}, {1, 3},
                           std::move(nfs), 300),
            absl::OkStatus());
  ASSERT_NE(devices_.sharing(), nullptr);
  EXPECT_EQ(devices_.shared_by()[1], 3U);
  EXPECT_EQ(devices_.bounds_of(1).max_packets, 100U);
  EXPECT_EQ(devices_.bounds_of(3).max_packets, 200U);
}

TEST_F(DeviceManagerTest, a_lost_device_is_opened_again) {
  ASSERT_TRUE(devices_.open({DevicePreference::of("cuda"), DevicePreference::of("opencl")}).ok());
  ASSERT_TRUE(devices_.make_sides(1, make()).ok());
  devices_.return_lost();
  ASSERT_NE(devices_.recovery(), nullptr);
  Pause pause;
  devices_.recovery()->look(pause);
  EXPECT_EQ(asked_.size(), 2U) << "it is there";
  static_cast<void>(devices_.side_of(1)->use().stop(absl::UnavailableError("lost")));
  devices_.recovery()->look(pause);
  EXPECT_EQ(asked_, (std::vector<std::string>{"cuda", "opencl", "opencl"}));
  EXPECT_EQ(made_, (std::vector<std::size_t>{0, 1, 1}));
  EXPECT_EQ(devices_.recovery()->losses(), 1U);
  EXPECT_EQ(devices_.recovery()->returns(), 1U);
}

}  // namespace
}  // namespace catena::runtime
