// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "copy/body_copy.hpp"
#include "kernel/launch.hpp"

#include "kernel/columns.hpp"

#include <optional>
#include <vector>

namespace catena::kernel {

/// A step on the shared buffer: moves what is outdated there, lets the kernel work in place, and brings back what the
/// host needs. Rows of processed packets come first, those of passed-through ones after them.
class SharedLaunch final : public Launch {
 public:
  SharedLaunch(DeviceNf& nf, std::uint32_t max_packets);

  void begin() override;
  void add_unit(packet::Batch const& unit) override;
  void add_passthrough(packet::Batch const& batch) override;
  Status submit() override;
  Status enqueue_kernel() override;
  void apply() override;

 private:
  /// One direction of the step.
  struct Side {
    packet::FieldSet moved = 0;
    packet::FieldSet columns = 0;  ///< of the launch buffer
    Frames body = Frames::kNone;
    bool has_kernel = false;               ///< whether there is anything for a transfer kernel, wherever the body goes
    std::optional<copy::BodyMover> mover;  ///< where there is a body
    // of the batch in flight
    copy::Bodies bodies;
    copy::BodyCopy* body_copy = nullptr;
    TransferMethod method = TransferMethod::kStrided;
    std::size_t frames_bytes = 0;
  };
  /// What decides which kernels a batch needs, and with which arguments, except for what the LaunchHeader says.
  struct KernelsKey {
    std::uint32_t max_rows = 0;
    TransferMethod body_in = TransferMethod::kStrided;
    TransferMethod body_out = TransferMethod::kStrided;
    bool is_traced = false;
    bool operator==(KernelsKey const&) const = default;
  };
  struct Kernels {
    KernelsKey key;
    device::CommandBuffer* commands = nullptr;
    device::Event* moved_in = nullptr;  ///< timestamps, where it is traced
    device::Event* computed = nullptr;
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
    std::size_t out = 0;  ///< fault report and flags; from here on it goes back
    std::size_t out_columns = 0;
    std::size_t results = 0;
    std::size_t frames_out = 0;
    std::size_t end = 0;
  };

  Status allocate() override;
  Status enqueue_warm_up() override;
  Status record_commands() override;
  Extent spill_extent(std::uint32_t row) const override;
  Layout layout_for(std::uint32_t rows, std::size_t frames_in, std::size_t frames_out) const;
  void collect_rows();
  void find_own_slots();
  void choose_method(Side& side);
  void write_head();
  void fill_staging();
  std::size_t bytes_in() const { return writes_to_host() ? layout_.out : layout_.out_columns; }
  /// Whether kernels read the launch buffer in the host's memory. With bodies in it a bulk copy brings it; without them
  /// it is small, and a copy of its own would wait in the copy engine behind megabytes of packets.
  bool reads_host_memory() const { return staging_->window() != nullptr && in_.frames_bytes == 0; }
  static std::uint32_t lane_bits(Side const& side, std::uint32_t max_rows);
  /// Of a launch buffer with `rows` rows and this batch's methods.
  std::uint32_t max_upload_blocks(std::uint32_t rows) const;
  bool fused_upload(std::uint32_t max_rows) const;
  bool needs_kernel(Side const& side) const;
  /// Whether the kernels' arguments are those of other batches too, except for what the LaunchHeader says.
  bool can_repeat() const;
  /// The kernels of all batches of at most `max_rows` rows whose bodies take the sides' methods. Good until the next
  /// call.
  Result<Kernels const*> kernels_for(std::uint32_t max_rows);
  // Each is for at most `max_rows` rows: how many there are, the LaunchHeader says.
  Status launch_in(device::CommandRecorder& target, std::uint32_t max_rows);
  Status launch_nf(device::CommandRecorder& target, std::uint32_t max_rows);
  Status launch_out(device::CommandRecorder& target, std::uint32_t max_rows);
  Status launch_transfer(device::CommandRecorder& target, Side const& side, std::uint32_t max_rows, bool fused_upload);
  Status launch_upload(device::CommandRecorder& target, std::uint32_t max_rows);
  /// Where the kernels of this batch write what goes back beside the bodies. What few bytes there are, they write into
  /// the host's memory themselves; where bodies go back through staging, into the launch buffer, which one copy moves.
  bool writes_to_host() const { return staging_out_->window() != nullptr && out_.frames_bytes == 0; }
  device::Buffer& out_buffer() const { return writes_to_host() ? *staging_out_->window() : *batch_; }
  std::size_t offset_in_out_buffer(std::size_t buffer_offset) const {
    return writes_to_host() ? buffer_offset - layout_.out : buffer_offset;
  }
  void count_transfers(std::size_t staged_in, std::size_t staged_out);
  void check_frame_bounds(packet::Batch const& batch, std::uint32_t first_row);
  void apply_rows(packet::Batch const& batch, std::uint32_t first_row);
  std::byte* out(std::size_t buffer_offset) const {
    return staging_out_->bytes().data() + (buffer_offset - layout_.out);
  }
  const std::byte* out_column(std::uint32_t field) const;
  std::uint32_t rows_in_all() const { return static_cast<std::uint32_t>(slots_.size()); }

  Side in_;
  Side out_;
  Columns columns_in_;
  Columns columns_out_;  ///< those that the host wants
  std::vector<Staged> passthrough_;
  std::uint32_t passthrough_count_ = 0;
  std::vector<packet::Batch> units_;
  std::vector<std::uint32_t> slots_;  ///< of each row
  std::vector<copy::SlotRun> own_;
  Layout layout_;
  std::vector<Kernels> kernels_;
};

}  // namespace catena::kernel
