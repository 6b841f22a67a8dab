// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/batch.hpp>
#include <catena/packet/headers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace catena::nf::testing {

/// Slots and metadata of packets in plain memory, in the layout of the packet pool: frame i is in slot i. For tests and
/// benchmarks with batches but without a data path. Frames arrive at `arrivals_ns`, else 1 us apart. Precondition: no
/// frame is longer than packet::kMaxFrameBytes.
class PacketStore {
 public:
  explicit PacketStore(std::span<const std::vector<std::uint8_t>> frames,
                       std::span<const std::uint64_t> arrivals_ns = {})
      : bytes_(frames.size() * packet::kSlotBytes),
        offset_(frames.size(), packet::kSlotHeadroom),
        length_(frames.size()),
        layers_(frames.size()),
        verdict_(frames.size()),
        port_(frames.size()),
        index_(frames.size()),
        arrival_ns_(frames.size()),
        rewritten_(frames.size()),
        ingress_(frames.size()),
        mtu_(frames.size()),
        output_(frames.size()),
        slots_(frames.size()) {
    std::iota(index_.begin(), index_.end(), std::uint64_t{0});
    std::iota(slots_.begin(), slots_.end(), 0U);
    for (std::size_t i = 0; i < frames.size(); ++i) {
      std::uint8_t* frame = bytes_.data() + i * packet::kSlotBytes + packet::kSlotHeadroom;
      std::copy(frames[i].begin(), frames[i].end(), frame);
      length_[i] = static_cast<std::uint16_t>(frames[i].size());
      layers_[i] = packet::parse(frame, length_[i]);
      arrival_ns_[i] = i < arrivals_ns.size() ? arrivals_ns[i] : i * kNsBetweenFrames;
    }
    meta_ = {offset_.data(),     length_.data(),    layers_.data(),  verdict_.data(), port_.data(),  index_.data(),
             arrival_ns_.data(), rewritten_.data(), ingress_.data(), mtu_.data(),     output_.data()};
  }
  PacketStore(PacketStore const&) = delete;
  PacketStore& operator=(PacketStore const&) = delete;

  std::size_t size() const { return slots_.size(); }
  /// Packets [first, first + count); valid as long as the store.
  packet::Batch batch(std::size_t first, std::size_t count) {
    return {bytes_.data(), meta_, std::span(slots_).subspan(first, count)};
  }
  packet::Batch all() { return batch(0, size()); }

 private:
  static constexpr std::uint64_t kNsBetweenFrames = 1000;

  std::vector<std::uint8_t> bytes_;
  std::vector<std::uint16_t> offset_;
  std::vector<std::uint16_t> length_;
  std::vector<packet::Layers> layers_;
  std::vector<std::uint8_t> verdict_;
  std::vector<std::uint16_t> port_;
  std::vector<std::uint64_t> index_;
  std::vector<std::uint64_t> arrival_ns_;
  std::vector<std::uint8_t> rewritten_;
  std::vector<std::uint16_t> ingress_;
  std::vector<std::uint16_t> mtu_;
  std::vector<std::uint16_t> output_;
  std::vector<std::uint32_t> slots_;
  packet::MetaColumns meta_{};
};

}  // namespace catena::nf::testing
