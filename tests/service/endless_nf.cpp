// SPDX-License-Identifier: Apache-2.0
// A hostile tenant's NF with a valid kernel that never ends.
#include <catena/nf/nf.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "catena_kernel_endless.hpp"
#include "endless.layout.hpp"

namespace catena::endless {
namespace {

constexpr std::uint64_t kRounds = std::uint64_t{1} << 62U;

class Endless final : public nf::Nf {
 public:
  static Result<std::unique_ptr<nf::Nf>> create(nf::Config& config) {
    CATENA_RETURN_IF_ERROR(config.finish());
    return std::make_unique<Endless>();
  }

  nf::Hints hints() const override {
    constexpr packet::FieldSet kUsed = packet::fields(packet::kIpv4Ttl);
    return {.cr = kUsed, .gr = kUsed};
  }
  void compute(packet::Batch const& /*batch*/, std::span<const std::byte> /*aux*/,
               std::span<std::byte> /*results*/) override {}
  void complete(nf::Completion const& /*completion*/) override {}
  Result<nf::KernelSide> kernel_side() const override {
    nf::KernelSide side;
    side.spec.source = catena_kernel_endless();
    side.spec.name = "endless";
    side.state = nf::StateBuilder(sizeof(State)).finish(State{kRounds});
    return side;
  }
};

}  // namespace
}  // namespace catena::endless

catena::nf::Descriptor const& catena_nf_endless() {
  static constexpr catena::nf::Descriptor kDescriptor{
      .type = "endless",
      .help = "Never ends",
      .needs = catena::packet::kIpv4,
      .drop_reasons = {},
      .config = {},
      .aux_bytes = 0,
      .result_bytes = sizeof(catena::endless::EndlessResult),
      .has_kernel = true,
      .sharding = catena::nf::Sharding::kPacket,
      .create = &catena::endless::Endless::create,
  };
  return kDescriptor;
}
