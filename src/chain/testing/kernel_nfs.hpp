// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nf/registry.hpp"

#include <catena/core/status.hpp>
#include <catena/nf/nf.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

/// NFs for tests of the decision between CPU and GPU. They are never run.
namespace catena::chain::testing {

/// Reads whole packets, on the CPU and in a kernel.
class KernelNf : public nf::Nf {
 public:
  nf::Hints hints() const override { return {.cr = packet::kAllFields, .gr = packet::kAllFields}; }
  void compute(packet::Batch const& /*batch*/, std::span<const std::byte> /*aux*/,
               std::span<std::byte> /*results*/) override {}
  Result<nf::KernelSide> kernel_side() const override {
    nf::KernelSide side;
    side.spec.name = "able";
    return side;
  }
};

/// Has a kernel, but not for its configuration.
class UnableNf final : public KernelNf {
 public:
  Result<nf::KernelSide> kernel_side() const override { return absl::UnimplementedError("too many rules"); }
};

template <typename Made>
constexpr nf::Descriptor descriptor_of(std::string_view type, bool has_kernel) {
  return {.type = type,
          .help = "for tests",
          .drop_reasons = {},
          .config = {},
          .has_kernel = has_kernel,
          .create = [](nf::Config& /*config*/) -> Result<std::unique_ptr<nf::Nf>> { return std::make_unique<Made>(); }};
}

inline constexpr nf::Descriptor kAble = descriptor_of<KernelNf>("able", true);
inline constexpr nf::Descriptor kCpuOnly = descriptor_of<KernelNf>("cpuonly", false);
inline constexpr nf::Descriptor kUnable = descriptor_of<UnableNf>("unable", true);

/// Types `able`, with a kernel; `cpuonly`, without; and `unable`, without one for any configuration.
inline nf::Registry const& kernel_nfs() {
  static const nf::Registry kAll = [] {
    nf::Registry all;
    EXPECT_TRUE(all.add(kAble).ok() && all.add(kCpuOnly).ok() && all.add(kUnable).ok());
    return all;
  }();
  return kAll;
}

}  // namespace catena::chain::testing
