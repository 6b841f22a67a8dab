// SPDX-License-Identifier: Apache-2.0
#include <catena/copy/body_copy.hpp>

#include "copy/ways.hpp"

namespace catena::copy {

Place place_of(Bodies const& bodies, std::uint32_t slot) {
  const std::uint32_t offset = bodies.meta->offset[slot];
  if (!bodies.payloads) {
    return {offset, offset + bodies.meta->length[slot]};
  }
  packet::Layers const& layers = bodies.meta->layers[slot];
  const std::uint32_t begin = offset + layers.payload;
  return {begin, begin + layers.payload_length};
}

BodyMover::BodyMover(Route planned, Way way, bool payloads, bool pool_is_mapped) {
  if (planned == Route::kStrided && !payloads) {
    ways_.push_back(make_strided(way));
  }
  const bool may_be_mapped = pool_is_mapped && planned != Route::kStaged;
  ways_.push_back(may_be_mapped ? make_mapped(way) : make_staged(way));
}

bool BodyMover::is_for_kernel(std::size_t packets) const {
  return packets <= kFewPackets && ways_.back()->route() == Route::kMapped;
}

Route BodyMover::usual(std::uint32_t packets) const {
  return (is_for_kernel(packets) ? ways_.back() : ways_.front())->route();
}

BodyCopy& BodyMover::choose(Bodies const& bodies, std::size_t& staging_bytes) {
  // the last one suits everything
  const bool planned = !is_for_kernel(bodies.slots.size()) && ways_.front()->suits(bodies);
  BodyCopy& way = planned ? *ways_.front() : *ways_.back();
  staging_bytes = way.prepare(bodies);
  return way;
}

std::size_t BodyMover::most_staging_bytes(std::uint32_t packets) const {
  return ways_.back()->route() == Route::kStaged ? packets * kMostRoom : 0;
}

}  // namespace catena::copy
