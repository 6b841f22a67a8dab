// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/launch.hpp"

#include "kernel/columns.hpp"

namespace catena::kernel {

/// Direct use: the launch carries what the kernel reads and brings back what it wrote; nothing stays on the device.
class DirectLaunch final : public Launch {
 public:
  DirectLaunch(DeviceNf& nf, std::uint32_t max_packets);

  Status submit() override;
  Status enqueue_kernel() override;
  void apply() override;

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
  Status allocate() override;
  Extent spill_extent(std::uint32_t row) const override;
  Layout layout_for(std::uint32_t count, std::size_t frame_bytes) const;
  /// Where each frame will be, and with that the layout.
  void place_frames();
  void fill_staging();
  void scatter_bytes(packet::Batch const& batch, std::uint32_t first_row);
  std::byte* out(std::size_t buffer_offset) const;

  Frames frames_;
  packet::FieldSet in_;
  packet::FieldSet out_;
  bool frames_written_;
  Columns columns_in_;
  Columns columns_out_;          ///< without what scatter_bytes() sets
  std::vector<Extent> extents_;  ///< of each row, in the frames
  Layout layout_;
};

}  // namespace catena::kernel
