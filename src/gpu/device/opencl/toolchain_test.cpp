// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/opencl/toolchain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>

namespace catena::device::opencl {
namespace {

using ::testing::HasSubstr;

constexpr int kNewest = 15;

const ProgramSource kSource = {{{"main.cpp",
                                 "#include <folder/header.hpp>\n"
                                 "__kernel void store(__global unsigned* at) { *at = identity(VALUE); }\n"},
                                {"folder/header.hpp", "template <typename T> T identity(T x) { return x; }\n"}},
                               {"VALUE=5U"}};

std::vector<unsigned> first_bytes(std::vector<std::byte> const& file) {
  std::vector<unsigned> bytes;
  for (const std::byte byte : std::span(file).first(4)) {
    bytes.push_back(std::to_integer<unsigned>(byte));
  }
  return bytes;
}

TEST(Toolchain, bitcode_is_bitcode) {
  const Result<Toolchain> toolchain = find_toolchain(kNewest);
  if (!toolchain.ok()) {
    GTEST_SKIP() << toolchain.status().message();
  }
  // LLVM: 'BC' 0xC0DE
  EXPECT_THAT(first_bytes(compile_bitcode(*toolchain, kSource).value()), ::testing::ElementsAre('B', 'C', 0xC0, 0xDE));
}

TEST(Toolchain, spirv_is_spirv) {
  const Result<Toolchain> toolchain = find_toolchain(kNewest);
  if (!toolchain.ok()) {
    GTEST_SKIP() << toolchain.status().message();
  }
  const Result<std::vector<std::byte>> binary = compile_spirv(*toolchain, kSource);
  if (toolchain->llvm_spirv.empty()) {
    EXPECT_TRUE(absl::IsUnavailable(binary.status()));
    EXPECT_THAT(std::string(binary.status().message()), HasSubstr("apt-get install llvm-spirv-"));
    GTEST_SKIP() << binary.status().message();
  }
  // SPIR-V specification, 2.3: magic number 0x07230203
  EXPECT_THAT(first_bytes(binary.value()), ::testing::ElementsAre(0x03, 0x02, 0x23, 0x07));
}

TEST(Toolchain, a_driver_that_is_too_old_is_told_so) {
  const Status status = find_toolchain(kOldestClang - 1).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("LLVM 13"));
}

TEST(Toolchain, messages_name_the_authors_files_only) {
  const Result<Toolchain> toolchain = find_toolchain(kNewest);
  if (!toolchain.ok()) {
    GTEST_SKIP() << toolchain.status().message();
  }
  ProgramSource wrong = kSource;
  wrong.files[1].text = "\nwrong\n";
  const Status status = compile_bitcode(*toolchain, wrong).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("folder/header.hpp:2:1: error"));
  EXPECT_THAT(std::string(status.message()), ::testing::Not(HasSubstr("catena-")));
}

}  // namespace
}  // namespace catena::device::opencl
