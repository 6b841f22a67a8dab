// SPDX-License-Identifier: Apache-2.0
#include "copy/ways.hpp"

#include <algorithm>
#include <cstring>

namespace catena::copy {
namespace {

class Staged final : public BodyCopy {
 public:
  explicit Staged(Way way) : way_(way) {}

  Route route() const override { return Route::kStaged; }
  bool suits(Bodies const& /*bodies*/) const override { return true; }
  std::uint64_t bytes() const override { return 0; }
  std::span<const Room> rooms() const override { return rooms_; }

  std::size_t prepare(Bodies const& bodies) override {
    bodies_ = &bodies;
    rooms_.clear();
    std::size_t bytes = 0;
    const bool grows = way_ == Way::kToHost;
    for (const std::uint32_t slot : bodies.slots) {
      const Place place = place_of(bodies, slot);
      const std::uint32_t begin = grows ? place.begin - std::min(place.begin, bodies.headroom) : place.begin;
      const std::uint32_t end = grows ? std::min(place.end + bodies.tailroom, packet::kSlotBytes) : place.end;
      const std::size_t at = bytes + begin % kRoomAlign;
      rooms_.push_back({static_cast<u32>(at), static_cast<u16>(begin), static_cast<u16>(end - begin)});
      bytes = (at + end - begin + kRoomAlign - 1) / kRoomAlign * kRoomAlign;
    }
    return bytes;
  }

  void write_staging(std::span<std::byte> staging) override {
    for (std::size_t row = 0; row < rooms_.size(); ++row) {
      Room const& room = rooms_[row];
      std::memcpy(staging.data() + room.begin, slot(row) + room.slot_begin, room.bytes);
    }
  }

  void read_staging(std::uint32_t row, std::span<const std::byte> staging) override {
    Room const& room = rooms_[row];
    const Place place = place_of(*bodies_, bodies_->slots[row]);
    // the device cannot make a place that lies elsewhere: where the frame is has been held to its room before
    if (place.begin >= room.slot_begin && place.end <= std::uint32_t{room.slot_begin} + room.bytes) {
      std::memcpy(slot(row) + place.begin, staging.data() + room.begin + (place.begin - room.slot_begin),
                  place.end - place.begin);
    }
  }

 private:
  std::byte* slot(std::size_t row) const {
    return bodies_->pool.data() + std::size_t{bodies_->slots[row]} * packet::kSlotBytes;
  }

  Way way_;
  Bodies const* bodies_ = nullptr;
  std::vector<Room> rooms_;
};

}  // namespace

std::unique_ptr<BodyCopy> make_staged(Way way) { return std::make_unique<Staged>(way); }

}  // namespace catena::copy
