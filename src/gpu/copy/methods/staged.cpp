// SPDX-License-Identifier: Apache-2.0
#include "gpu/copy/methods.hpp"

#include <algorithm>

namespace catena::copy {
namespace {

/// The CPU copies to or from a pinned staging buffer, which one bulk copy moves; a kernel copies on the device.
class Staged final : public BodyCopy {
 public:
  explicit Staged(Direction direction) : direction_(direction) {}

  TransferMethod method() const override { return TransferMethod::kStaged; }
  bool supports(Bodies const& /*bodies*/) const override { return true; }
  std::uint64_t bytes() const override { return 0; }
  std::span<const StagingExtent> staging_extents() const override { return extents_; }

  std::size_t prepare(Bodies const& bodies) override {
    bodies_ = &bodies;
    extents_.clear();
    std::size_t bytes = 0;
    const bool grows = direction_ == Direction::kToHost;
    for (const std::uint32_t slot : bodies.slots) {
      const MemoryPlace place = place_of(bodies, slot);
      const std::uint32_t begin = grows ? place.begin - std::min(place.begin, bodies.headroom) : place.begin;
      const std::uint32_t end = grows ? std::min(place.end + bodies.tailroom, packet::kSlotBytes) : place.end;
      const std::size_t at = bytes + begin % kStagingAlign;
      extents_.push_back({static_cast<u32>(at), static_cast<u16>(begin), static_cast<u16>(end - begin)});
      bytes = (at + end - begin + kStagingAlign - 1) / kStagingAlign * kStagingAlign;
    }
    return bytes;
  }

  void moves_in(std::span<std::byte> staging, std::vector<hostcopy::Move>& moves) override {
    for (std::size_t row = 0; row < extents_.size(); ++row) {
      StagingExtent const& extent = extents_[row];
      moves.push_back({slot(row) + extent.slot_begin, staging.data() + extent.begin, extent.bytes});
    }
  }

  void moves_out(std::uint32_t row, std::span<const std::byte> staging, std::vector<hostcopy::Move>& moves) override {
    StagingExtent const& extent = extents_[row];
    const MemoryPlace place = place_of(*bodies_, bodies_->slots[row]);
    // the device cannot make a place that lies elsewhere: where the frame is has been held to its extent before
    if (place.begin >= extent.slot_begin && place.end <= std::uint32_t{extent.slot_begin} + extent.bytes) {
      moves.push_back({staging.data() + extent.begin + (place.begin - extent.slot_begin), slot(row) + place.begin,
                       place.end - place.begin});
    }
  }

 private:
  std::byte* slot(std::size_t row) const {
    return bodies_->pool.data() + std::size_t{bodies_->slots[row]} * packet::kSlotBytes;
  }

  Direction direction_;
  Bodies const* bodies_ = nullptr;
  std::vector<StagingExtent> extents_;
};

std::unique_ptr<BodyCopy> make_staged(Direction direction) { return std::make_unique<Staged>(direction); }

}  // namespace

constinit const MethodMover methods::kStaged{.carries_payloads = true, .make = make_staged, .enqueue = nullptr};

}  // namespace catena::copy
