// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/copy/shared_buffer.hpp"
#include "gpu/device/device.hpp"
#include "plan/cost_model.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace catena::profile {

/// The data of a timed transfer.
enum class TransferContent : std::uint8_t {
  kFrames,  ///< between slots and their twins; staged: between pinned staging and a buffer of the device
  kField,   ///< one aligned header field of 4 bytes; methods that need a mapped pool only
  kWithin,  ///< frames from a buffer of the device into twins: the device's part of the staged method
};

struct Transfer {
  TransferMethod method = TransferMethod::kStaged;
  Direction direction = Direction::kToDevice;
  TransferContent content = TransferContent::kFrames;
  std::uint32_t packets = 0;  ///< at most TransferMeter::kMaxPackets
  std::uint32_t bytes = 0;    ///< per packet; at most kMaxBytes
};

/// Times the transfers of a device: the same copies and kernels as in launches, one after another.
/// One thread.
class TransferMeter {
 public:
  static constexpr std::uint32_t kMaxPackets = 8192;
  static constexpr std::uint32_t kMaxBytes = 1514;

  /// Takes about 32 MiB of host memory, as much pinned memory and twice as much of the device, and compiles the
  /// transfer kernels. `device` must outlive this. Errors: as kernel::build() and Device; ResourceExhausted without
  /// host memory; DeadlineExceeded if the first launch hangs.
  static Result<std::unique_ptr<TransferMeter>> create(device::Device& device);

  /// Whether the device supports `method`, which may be timed then.
  bool can_time(TransferMethod method) const { return !needs_mapped_pool(method) || shared_->mapped() != nullptr; }
  /// Pinned memory for kMaxPackets frames; unused between calls of time().
  std::span<std::byte> staging() { return staging_[0]->bytes(); }

  /// Median time of one transfer in ns, for each of the one or two `transfers`; two run at the same time, in opposite
  /// directions, for equally long, and have the same bytes. Errors: as Stream; DeadlineExceeded if the device hangs.
  Result<std::vector<double>> time(std::span<const Transfer> transfers);

  /// Sends frames to the device and back by each available method. Internal: they return changed.
  Status check_bytes();

 private:
  struct PoolDeleter {
    device::Device* device;
    void operator()(std::byte* memory) const;
  };
  struct Programs {
    std::unique_ptr<device::Program> program;
    device::Kernel* kernel = nullptr;
  };
  explicit TransferMeter(device::Device& device) : device_(&device), pool_(nullptr, PoolDeleter{&device}) {}
  Status allocate();
  Status build_programs();
  Status warm_up();
  Status upload(device::Buffer& target, std::size_t at, std::span<const std::byte> bytes);
  Status set_frame_bytes(std::uint32_t bytes);
  Status enqueue(Transfer const& transfer, std::uint32_t first_slot, device::Stream& stream);
  Status enqueue_kernel(Transfer const& transfer, std::uint32_t first_slot, std::uint32_t work_items,
                        device::Stream& stream);
  Result<std::vector<double>> run(std::span<const Transfer> transfers, std::span<const std::uint32_t> launches);
  Status drain(device::Stream& stream);

  device::Device* device_;
  std::unique_ptr<std::byte, PoolDeleter> pool_;
  std::unique_ptr<copy::SharedBuffer> shared_;
  std::unique_ptr<device::Buffer> batch_;                         ///< rows, flags, extents and frames of a launch
  std::array<std::unique_ptr<device::Buffer>, 2> staged_;         ///< [direction]
  std::array<std::unique_ptr<device::PinnedBuffer>, 2> staging_;  ///< [direction]
  std::array<Programs, 2> frames_;                                ///< [direction]
  std::array<Programs, 2> field_;                                 ///< [direction]
  std::array<std::unique_ptr<device::Stream>, 2> streams_;        ///< [direction]
  std::array<std::uint32_t, 2> next_slot_{};                      ///< [direction]
  std::uint32_t frame_bytes_ = 0;
};

}  // namespace catena::profile
