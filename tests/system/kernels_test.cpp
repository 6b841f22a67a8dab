// SPDX-License-Identifier: Apache-2.0
// Every kernel compiles for every backend, GPU or not: what only OpenCL accepts fails here.
#include "system/chain_runner.hpp"

#include "dataplane/eal/eal.hpp"

#include <catena/kernel/program.hpp>
#include <catena/nf/registry.hpp>

#include <gtest/gtest.h>

#include <set>

namespace catena::testing {
namespace {

/// A configuration of every NF that has a kernel; several where the kernel differs.
const std::vector<NfText> kConfigured{
    {"fw", "firewall", "{rules: fw.rules, default: allow}"}, {"ids", "nids", "{rules: ids.rules}"},
    {"strings", "nids", "{strings: strings.txt}"},           {"enc", "ipsec", "{direction: encrypt, sa: sa.yaml}"},
    {"dec", "ipsec", "{direction: decrypt, sa: sa.yaml}"},   {"rt", "router", "{routes: routes.txt}"}};

kernel::ProgramSpec spec_of(NfText const& text) {
  EXPECT_TRUE(dataplane::ensure_eal().ok());
  const Result<nf::Descriptor const*> descriptor = nf::builtin_nfs().find(text.type);
  EXPECT_TRUE(descriptor.ok()) << descriptor.status();
  const Result<std::unique_ptr<nf::Nf>> nf = nf::testing::make_nf(**descriptor, text.config, data_file("chain"));
  EXPECT_TRUE(nf.ok()) << nf.status();
  const Result<nf::KernelSide> side = (*nf)->kernel_side();
  EXPECT_TRUE(side.ok()) << side.status();
  return side->spec;
}

class Kernels : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Kernels, compile_for_cuda) {
  const Result<device::Binary> binary = device::compile_cuda(kernel::adapt(spec_of(kConfigured[GetParam()])), "sm_90");
  if (absl::IsUnavailable(binary.status())) {
    GTEST_SKIP() << "NVRTC is not here: " << binary.status();
  }
  ASSERT_TRUE(binary.ok()) << binary.status();
  EXPECT_GT(binary->size(), 1000U);
}

TEST_P(Kernels, compile_and_load_on_every_device_here) {
  ASSERT_FALSE(nf::testing::devices().empty());
  const kernel::ProgramSpec spec = spec_of(kConfigured[GetParam()]);
  for (device::Device* device : nf::testing::devices()) {
    const auto program = kernel::build(*device, spec);
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_TRUE((*program)->kernel(spec.kernel).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(All, Kernels, ::testing::Range<std::size_t>(0, kConfigured.size()),
                         [](auto const& test) { return kConfigured[test.param].name; });

TEST(Kernels, every_nf_with_a_kernel_is_in_the_list) {
  std::set<std::string_view> listed;
  for (NfText const& text : kConfigured) {
    listed.insert(text.type);
  }
  for (nf::Descriptor const* descriptor : nf::builtin_nfs().all()) {
    EXPECT_TRUE(!descriptor->has_kernel || listed.contains(descriptor->type)) << descriptor->type;
  }
}

}  // namespace
}  // namespace catena::testing
