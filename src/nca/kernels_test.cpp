// SPDX-License-Identifier: Apache-2.0
// The library's own kernels, of which those of NFs with the same functions have other main files.
#include "catena_kernel_nca_cipher.hpp"
#include "catena_kernel_nca_route.hpp"

#include <gtest/gtest.h>

#include "gpu/check/static_check.hpp"
#include "gpu/launch/adapt.hpp"
#include "nca/cipher.layout.hpp"
#include "nca/route.layout.hpp"

namespace catena::nca {
namespace {

void expect_passes(kernel::KernelSpec const& spec, copy::LaunchPlan const& plan) {
  const Result<static_check::Report> report = static_check::check_kernel(kernel::adapt(spec, plan));
  ASSERT_TRUE(report.ok()) << report.status();
  for (static_check::Finding const& finding : report->refused) {
    ADD_FAILURE() << finding.text();
  }
}

TEST(NcaKernels, they_reach_memory_through_iso_ptr_alone) {
  const kernel::KernelSpec cipher{
      .source = catena_kernel_nca_cipher(), .name = "nca_cipher", .lanes = 8, .spill_factor = 1};
  expect_passes(cipher,
                {.reads = packet::fields(packet::kPayload), .result_bytes = sizeof(CipherResult), .shared = {}});
  const kernel::KernelSpec route{.source = catena_kernel_nca_route(), .name = "nca_route"};
  expect_passes(route, {.reads = packet::fields(packet::kIpv4Dst), .result_bytes = sizeof(RouteResult), .shared = {}});
}

}  // namespace
}  // namespace catena::nca
