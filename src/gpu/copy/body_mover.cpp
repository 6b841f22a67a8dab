// SPDX-License-Identifier: Apache-2.0
#include "gpu/copy/body_copy.hpp"

#include "gpu/copy/methods.hpp"

namespace catena::copy {

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
  if (planned == TransferMethod::kStrided && !payloads) {
    methods_.push_back(make_strided(direction));
  }
  const bool may_gather = pool_is_mapped && planned != TransferMethod::kStaged;
  methods_.push_back(may_gather ? make_gather(direction) : make_staged(direction));
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
  return methods_.back()->method() == TransferMethod::kStaged ? packets * kMaxStagedBytes : 0;
}

}  // namespace catena::copy
