// SPDX-License-Identifier: Apache-2.0
#include "gpu/copy/methods.hpp"

#include <algorithm>

namespace catena::copy {
namespace {

// a 2-D copy costs as much to start as a kernel: more of them than this, and the slots are too scattered
constexpr std::size_t kRunsAlways = 4;
constexpr std::size_t kRowsPerRun = 64;

Status enqueue_rectangle(device::Stream& stream, Direction direction, std::span<std::byte> pool, device::Buffer& twins,
                         Rectangle const& rectangle) {
  const std::size_t at = std::size_t{rectangle.run.first} * packet::kSlotBytes + rectangle.begin;
  const std::size_t width = rectangle.end - rectangle.begin;
  const std::span<std::byte> host = pool.subspan(at, std::size_t{rectangle.run.slots - 1} * packet::kSlotBytes + width);
  const device::RowShape shape{width, packet::kSlotBytes, rectangle.run.slots};
  return direction == Direction::kToDevice ? stream.copy_rows_to_device(twins, at, host, shape)
                                           : stream.copy_rows_to_host(host, twins, at, shape);
}

/// 2-D copies over equally spaced slots: whole frames only. Copies whole runs of slots, each row as long as the
/// longest: what is between the packets of a launch is the launch's own and matters to nobody (packets that were
/// dropped). To the host by whole lines.
class Strided final : public BodyCopy {
 public:
  explicit Strided(Direction direction) : direction_(direction) {}

  TransferMethod method() const override { return TransferMethod::kStrided; }
  std::uint64_t bytes() const override { return bytes_; }

  bool supports(Bodies const& bodies) const override {
    std::size_t covered = 0;
    for (SlotRun const& run : bodies.own) {
      covered += run.slots;
    }
    const bool mostly_rows = covered <= 2 * bodies.slots.size();
    return !bodies.payloads && mostly_rows && bodies.own.size() <= kRunsAlways + bodies.slots.size() / kRowsPerRun;
  }

  std::size_t prepare(Bodies const& bodies) override {
    bodies_ = &bodies;
    bytes_ = 0;
    rectangles_.clear();
    std::uint32_t headroom = 0;
    std::uint32_t tailroom = 0;
    if (direction_ == Direction::kToHost) {
      headroom = bodies.headroom;
      tailroom = bodies.tailroom;
    }
    for (SlotRun const& run : bodies.own) {
      std::uint32_t begin = packet::kSlotBytes;
      std::uint32_t end = 0;
      const std::uint16_t* offset = bodies.meta->offset + run.first;
      const std::uint16_t* length = bodies.meta->length + run.first;
      for (std::uint32_t i = 0; i < run.slots; ++i) {
        begin = std::min<std::uint32_t>(begin, offset[i]);
        end = std::max<std::uint32_t>(end, std::uint32_t{offset[i]} + length[i]);
      }
      begin -= std::min(begin, headroom);
      end = std::min(end + tailroom, packet::kSlotBytes);
      if (direction_ == Direction::kToHost) {
        begin = packet::cache_line_begin(begin);
        end = packet::cache_line_end(end);
      }
      if (begin < end) {
        rectangles_.push_back({run, begin, end});
        bytes_ += std::uint64_t{run.slots} * (end - begin);
      }
    }
    return 0;
  }

  Status enqueue(device::Stream& stream) override {
    for (Rectangle const& rectangle : rectangles_) {
      CATENA_RETURN_IF_ERROR(enqueue_rectangle(stream, direction_, bodies_->pool, *bodies_->twins, rectangle));
    }
    return absl::OkStatus();
  }

 private:
  Direction direction_;
  Bodies const* bodies_ = nullptr;
  std::vector<Rectangle> rectangles_;
  std::uint64_t bytes_ = 0;
};

std::unique_ptr<BodyCopy> make_strided(Direction direction) { return std::make_unique<Strided>(direction); }

}  // namespace

constinit const MethodMover methods::kStrided{
    .carries_payloads = false, .make = make_strided, .enqueue = enqueue_rectangle};

}  // namespace catena::copy
