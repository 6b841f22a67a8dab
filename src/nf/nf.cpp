// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/nf.hpp>

namespace catena::nf {

Result<std::unique_ptr<Nf>> Nf::replicate(std::uint32_t /*shard*/) const { return nullptr; }

Status Nf::prepare_migration(std::span<Nf const* const> /*before*/) {
  return absl::FailedPreconditionError("it keeps state between packets, and cannot take over existing state");
}

void Nf::prepare(packet::Batch const& /*batch*/, std::span<std::byte> /*aux*/, Outcome& /*outcome*/) {}

void Nf::complete(Completion const& /*completion*/) {}
Result<KernelSide> Nf::kernel_side() const { return absl::UnimplementedError("this NF has no kernel"); }

void Nf::spill_requests(std::span<const std::byte> /*results*/, std::vector<SpillRequest>& /*requests*/) const {}

}  // namespace catena::nf
