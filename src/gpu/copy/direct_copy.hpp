// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/copy/columns.hpp"
#include "gpu/copy/launch_copy.hpp"

namespace catena::copy {

/// A direct step: the launch carries the kernel's read fields and brings back its written fields. No packet data stays
/// on the device.
class DirectCopy final : public LaunchCopy {
 public:
  DirectCopy(CopyRequest const& request, std::uint32_t max_packets);

  Status allocate(device::Stream& stream) override;
  Status prepare(Rows const& rows, std::span<const std::span<const std::byte>> aux,
                 std::vector<hostcopy::Move>& moves) override;
  Status enqueue_in(device::Stream& stream) override;
  KernelArguments kernel_arguments() const override;
  Status enqueue_out(device::Stream& stream) override;
  void apply(std::vector<hostcopy::Move>& moves) override;
  kernel::Extent spill_extent(std::uint32_t row) const override;
  std::size_t spill_bytes() const override { return max_frame_bytes() * request_.spec->spill_factor; }

 private:
  /// Byte positions of one batch in the launch buffer; host staging has the same shape.
  struct Layout {
    std::uint32_t padded = 0;
    std::size_t aux = 0;
    std::size_t extents = 0;
    std::size_t frames = 0;
    std::size_t out = 0;
    std::size_t out_columns = 0;
    std::size_t results = 0;
    std::size_t end = 0;
  };
  Layout layout_for(std::uint32_t count, std::size_t frame_bytes) const;
  std::size_t max_frame_bytes() const;
  /// Computes the place of each frame, then the layout.
  void place_frames();
  void fill_staging(std::span<const std::span<const std::byte>> aux, std::vector<hostcopy::Move>& moves);
  void scatter_bytes(packet::Batch const& batch, std::uint32_t first_row, std::vector<hostcopy::Move>& moves);
  std::size_t back_from() const { return frames_written_ ? layout_.frames : layout_.out; }
  std::byte* out(std::size_t buffer_offset) const {
    return staging_out_->bytes().data() + (buffer_offset - back_from());
  }

  Frames frames_;
  packet::FieldSet in_;
  packet::FieldSet out_;
  bool frames_written_;
  Columns columns_in_;
  Columns columns_out_;                  ///< without the fields set by scatter_bytes()
  std::vector<kernel::Extent> extents_;  ///< place of each row in the frames
  Layout layout_;
};

}  // namespace catena::copy
