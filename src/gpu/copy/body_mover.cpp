// SPDX-License-Identifier: Apache-2.0
#include "gpu/copy/body_copy.hpp"

#include "gpu/copy/methods.hpp"

#include <algorithm>
#include <array>

namespace catena::copy {
namespace {

constexpr std::array<MethodMover const*, kTransferMethods.size()> kMovers{
#define CATENA_METHOD(method, name, path) &methods::method,
    CATENA_TRANSFER_METHODS(CATENA_METHOD)
#undef CATENA_METHOD
};

}  // namespace

MethodMover const& mover_of(TransferMethod method) { return *kMovers[static_cast<std::size_t>(method)]; }

MemoryPlace place_of(Bodies const& bodies, std::uint32_t slot) {
  const std::uint32_t offset = bodies.meta->offset[slot];
  if (!bodies.payloads) {
    return {offset, offset + bodies.meta->length[slot]};
  }
  packet::Layers const& layers = bodies.meta->layers[slot];
  const std::uint32_t begin = offset + layers.payload;
  return {begin, begin + layers.payload_length};
}

BodyMover::BodyMover(TransferMethod planned, Direction direction, bool payloads, bool pool_is_mapped) {
  const bool may_gather = pool_is_mapped && planned != TransferMethod::kStaged;
  const TransferMethod next_best = may_gather ? TransferMethod::kGather : TransferMethod::kStaged;
  const bool is_available =
      (!payloads || mover_of(planned).carries_payloads) && (pool_is_mapped || !needs_mapped_pool(planned));
  if (planned != next_best && is_available) {
    methods_.push_back(mover_of(planned).make(direction));
  }
  methods_.push_back(mover_of(next_best).make(direction));
}

bool BodyMover::is_for_kernel(std::size_t packets) const {
  return packets <= kFewPackets && methods_.back()->method() == TransferMethod::kGather;
}

TransferMethod BodyMover::default_method(std::uint32_t packets) const {
  return (is_for_kernel(packets) ? methods_.back() : methods_.front())->method();
}

BodyCopy& BodyMover::choose(Bodies const& bodies, std::size_t& staging_bytes) {
  // the last one supports everything
  const bool planned = !is_for_kernel(bodies.slots.size()) && methods_.front()->supports(bodies);
  BodyCopy& copy = planned ? *methods_.front() : *methods_.back();
  staging_bytes = copy.prepare(bodies);
  return copy;
}

std::size_t BodyMover::max_staging_bytes(std::uint32_t packets) const {
  const bool may_stage =
      std::ranges::any_of(methods_, [](std::unique_ptr<BodyCopy> const& copy) { return uses_staging(copy->method()); });
  return may_stage ? packets * kMaxStagedBytes : 0;
}

}  // namespace catena::copy
