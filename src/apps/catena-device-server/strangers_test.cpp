// SPDX-License-Identifier: Apache-2.0
#include "apps/catena-device-server/strangers.hpp"

#include <catena/kernel/launch_params.hpp>

#include "gpu/check/kernel_testing.hpp"
#include "gpu/copy/launch_plan.hpp"
#include "gpu/device/testing/remote_device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace catena::device_server {
namespace {

using device::remote::Trust;
using static_check::testing::kernel_with;
using static_check::testing::Pieces;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::string_view kReachesOut = "u32* const everywhere = nullptr;";

device::ProgramSource kernel_of(Pieces const& pieces) {
  const std::string text = kernel_with(pieces);
  device::ProgramSource source =
      program::with_sdk(std::array<kernel::EmbeddedFile, 1>{{{"base.kernel.cpp", text.c_str()}}});
  source.defines = static_check::testing::defines();
  return source;
}

copy::LaunchPlan a_shared_plan() {
  copy::LaunchPlan plan;
  plan.shared.emplace();
  plan.shared->to_device = packet::fields(packet::kIpv4Src);
  plan.shared->to_host = packet::fields(packet::kIpv4Dst);
  return plan;
}

TEST(Strangers, kernels_that_reach_memory_through_IsoPtr_alone_pass) {
  const Result<device::LaunchForm> form = judge(kernel_of({}));
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_EQ(form->buffers, 5U);
  EXPECT_EQ(form->struct_bytes, sizeof(kernel::LaunchParams));
}

TEST(Strangers, others_are_refused_with_their_place) {
  const Status refused = judge(kernel_of({.body = kReachesOut})).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), AllOf(HasSubstr("base.kernel.cpp:"), HasSubstr("[pointer]")));
}

TEST(Strangers, headers_of_the_framework_are_its_own) {
  device::ProgramSource forged = kernel_of({});
  ASSERT_EQ(forged.files.back().name.rfind("catena/", 0), 0U) << forged.files.back().name;
  forged.files.back().text += "\n";
  EXPECT_TRUE(absl::IsPermissionDenied(judge(forged).status())) << judge(forged).status();
  device::ProgramSource none = kernel_of({});
  none.files.resize(1);
  EXPECT_TRUE(absl::IsPermissionDenied(judge(none).status())) << judge(none).status();
}

TEST(Strangers, kernels_that_move_packets_are_the_frameworks_and_nobody_elses) {
  const copy::LaunchPlan plan = a_shared_plan();
  for (device::ProgramSource const& own :
       {copy::transfer_source(plan, true), copy::transfer_source(plan, false), copy::upload_source()}) {
    EXPECT_EQ(judge(own).status(), absl::OkStatus());
    device::ProgramSource changed = own;
    changed.files.front().text += "\n";
    EXPECT_FALSE(judge(changed).ok()) << "they have pointers";
    for (const char* define : {"CATENA_KERNEL=1", "CATENA_BODY=x", "CATENA_BODY=", "CATENA_BODY", "u32=u64"}) {
      device::ProgramSource bent = own;
      bent.defines.emplace_back(define);
      EXPECT_FALSE(copy::form_of_own(bent)) << define;
    }
  }
}

class StrangersOfAServer : public ::testing::Test {
 protected:
  void SetUp() override {
    supervisor_ = device::remote::Supervisor::start(device::testing::server_options()).value();
    if (const auto device = client(Trust::kOwn); !device.ok()) {
      GTEST_SKIP() << device.status().message();
    }
  }
  Result<std::unique_ptr<device::Device>> client(Trust trust) {
    CATENA_ASSIGN_OR_RETURN(FileDescriptor socket, supervisor_->connect({"client"}, trust));
    return device::remote::connect(std::move(socket));
  }

 private:
  std::unique_ptr<device::remote::Supervisor> supervisor_;
};

TEST_F(StrangersOfAServer, have_what_it_judged_compiled_and_load_nothing_else) {
  const auto stranger = client(Trust::kStranger).value();
  const auto own = client(Trust::kOwn).value();
  const Result<device::Binary> lawful = stranger->compile(kernel_of({}));
  ASSERT_TRUE(lawful.ok()) << lawful.status();
  EXPECT_TRUE(stranger->load(*lawful).ok());
  EXPECT_THAT(stranger->compile(kernel_of({.body = kReachesOut})).status().ToString(), HasSubstr("[pointer]"));
  // what runs for others is no way round
  const Result<device::Binary> of_others = own->compile(kernel_of({.body = "table.set(1, 2U);"}));
  ASSERT_TRUE(of_others.ok()) << of_others.status();
  EXPECT_TRUE(own->load(*of_others).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(stranger->load(*of_others).status()));
  device::Binary changed = *lawful;
  changed.back() ^= std::byte{1};
  EXPECT_TRUE(absl::IsPermissionDenied(stranger->load(changed).status()));
  // and what one stranger had compiled is another's once he shows its source
  const auto another = client(Trust::kStranger).value();
  EXPECT_TRUE(absl::IsPermissionDenied(another->load(*lawful).status()));
  const Result<device::Binary> again = another->compile(kernel_of({}));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(another->load(*again).ok());
}

/// What is told by value stands where the kernel takes a pointer from, otherwise.
TEST_F(StrangersOfAServer, launch_kernels_in_the_form_that_these_have_and_in_no_other) {
  using device::KernelArgument;
  for (const Trust trust : {Trust::kOwn, Trust::kStranger}) {
    const auto device = client(trust).value();
    const auto program = device->load(device->compile(kernel_of({})).value()).value();
    device::Kernel& kernel = *program->kernel("base").value();
    const auto stream = device->create_stream().value();
    const auto memory = device->allocate(4096).value();
    const kernel::LaunchParams params{};
    const auto by_value = std::as_bytes(std::span(&params, 1));
    const std::vector<KernelArgument> right{memory.get(), memory.get(), memory.get(),         memory.get(),
                                            memory.get(), by_value,     device::BufferSizes{}};
    EXPECT_EQ(stream->launch(kernel, {1, 64, 256}, right), absl::OkStatus());
    EXPECT_EQ(stream->record().value()->wait(std::chrono::seconds(60), "launch"), absl::OkStatus());
    if (trust == Trust::kOwn) {
      continue;
    }
    const kernel::LaunchSizes sizes{1U << 30U, 1U << 30U, 1U << 30U, 1U << 30U, 1U << 30U, 256};
    const std::uint64_t pointer = 0xDEAD0000;
    std::vector<std::vector<KernelArgument>> wrong(4, right);
    wrong[0][1] = std::as_bytes(std::span(&pointer, 1));
    wrong[1].back() = std::as_bytes(std::span(&sizes, 1));
    wrong[2][5] = by_value.first(8);
    wrong[3].erase(wrong[3].begin());
    for (std::size_t i = 0; i < wrong.size(); ++i) {
      const auto next = device->create_stream().value();
      const Status launched = next->launch(kernel, {1, 64, 256}, wrong[i]);
      EXPECT_THAT(launched.ToString(), HasSubstr("its kernel takes 5 buffers")) << i;
      const auto commands = device->create_command_buffer().value();
      EXPECT_THAT(commands->launch(kernel, {1, 64, 256}, wrong[i]).ToString(), HasSubstr("its kernel takes 5 buffers"))
          << i;
    }
  }
}

}  // namespace
}  // namespace catena::device_server
