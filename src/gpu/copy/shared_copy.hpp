// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/copy/body_copy.hpp"
#include "gpu/copy/columns.hpp"
#include "gpu/copy/launch_copy.hpp"

#include <optional>
#include <vector>

namespace catena::copy {

/// A step on the shared buffer: moves outdated fields there, runs the kernel in place, and brings back the fields
/// needed by the host.
class SharedCopy final : public LaunchCopy {
 public:
  SharedCopy(CopyRequest const& request, std::uint32_t max_packets);

  Rows::Needs needs() const override;
  Status allocate(device::Stream& stream) override;
  Status warm_up_in(device::Stream& stream) override;
  Status warm_up_out(device::Stream& stream) override;
  Status prepare(Rows const& rows, std::span<const std::span<const std::byte>> aux,
                 std::vector<hostcopy::Move>& moves) override;
  Status enqueue_in(device::Stream& stream) override;
  Status launch_in(device::CommandRecorder& target, std::uint32_t max_rows) override;
  KernelArguments kernel_arguments() const override;
  Status launch_out(device::CommandRecorder& target, std::uint32_t max_rows) override;
  Status enqueue_out(device::Stream& stream) override;
  void apply(std::vector<hostcopy::Move>& moves) override;
  std::optional<BodyPaths> repeatable() const override;
  void assume_default(std::uint32_t rows) override;
  kernel::Extent spill_extent(std::uint32_t row) const override;
  std::size_t spill_bytes() const override {
    return std::size_t{max_packets()} * packet::kSlotBytes * request_.spec->spill_factor;
  }

 private:
  /// One direction of the step.
  struct Side {
    packet::FieldSet moved = 0;
    packet::FieldSet columns = 0;  ///< of the launch buffer
    Frames body = Frames::kNone;
    bool has_kernel = false;         ///< whether a transfer kernel has work, regardless of the body
    std::optional<BodyMover> mover;  ///< if bodies move
    // of the batch in flight
    Bodies bodies;
    BodyCopy* body_copy = nullptr;
    KernelPath path = KernelPath::kNone;
    std::size_t frames_bytes = 0;
  };
  /// Byte positions of one batch in the launch buffer; host staging has the same shape.
  struct Layout {
    std::uint32_t padded = 0;
    std::size_t columns = 0;  ///< after the LaunchHeader
    std::size_t aux = 0;
    std::size_t slots = 0;
    std::size_t extents_in = 0;
    std::size_t extents_out = 0;
    std::size_t frames_in = 0;
    std::size_t out = 0;  ///< fault report and flags; start of the returned part
    std::size_t out_columns = 0;
    std::size_t results = 0;
    std::size_t frames_out = 0;
    std::size_t end = 0;
  };

  Side make_side(bool in) const;
  Layout layout_for(std::uint32_t rows, std::size_t frames_in, std::size_t frames_out) const;
  void choose_method(Side& side);
  void write_head();
  void fill_staging(std::span<const std::span<const std::byte>> aux, std::vector<hostcopy::Move>& moves);
  device::Buffer* window(device::PinnedBuffer& staging) const {
    return request_.shared->kernels_reach_host() ? staging.window() : nullptr;
  }
  std::size_t bytes_in() const { return writes_to_host() ? layout_.out : layout_.out_columns; }
  /// Whether kernels read the launch buffer in host memory. A launch buffer with bodies is brought by a bulk copy.
  /// Without bodies it is small, and a copy of its own would wait in the copy engine for megabytes of packets.
  bool reads_host_memory() const { return window(*staging_) != nullptr && in_.frames_bytes == 0; }
  static std::uint32_t lane_bits(Side const& side, std::uint32_t max_rows);
  /// For a launch buffer of `rows` rows with this batch's methods.
  std::uint32_t max_upload_blocks(std::uint32_t rows) const;
  bool fused_upload(std::uint32_t max_rows) const;
  bool needs_kernel(Side const& side) const;
  Status launch_transfer(device::CommandRecorder& target, Side const& side, std::uint32_t max_rows, bool fused_upload);
  Status launch_upload(device::CommandRecorder& target, std::uint32_t max_rows);
  /// Whether the kernels of this batch write their output other than bodies directly to host memory. Such output is
  /// small. If bodies return through staging, kernels write into the launch buffer instead, and one copy moves it.
  bool writes_to_host() const { return window(*staging_out_) != nullptr && out_.frames_bytes == 0; }
  device::Buffer& out_buffer() const { return writes_to_host() ? *staging_out_->window() : *batch_; }
  std::size_t offset_in_out_buffer(std::size_t buffer_offset) const {
    return writes_to_host() ? buffer_offset - layout_.out : buffer_offset;
  }
  void count_transfers(std::size_t staged_in, std::size_t staged_out);
  void check_frame_bounds(packet::Batch const& batch, std::uint32_t first_row);
  void apply_rows(packet::Batch const& batch, std::uint32_t first_row, std::vector<hostcopy::Move>& moves);
  std::byte* out(std::size_t buffer_offset) const {
    return staging_out_->bytes().data() + (buffer_offset - layout_.out);
  }
  const std::byte* out_column(std::uint32_t field) const;

  Side in_;
  Side out_;
  Columns columns_in_;
  Columns columns_out_;  ///< the fields needed by the host
  Layout layout_;
  bool is_warming_up_ = false;
};

}  // namespace catena::copy
