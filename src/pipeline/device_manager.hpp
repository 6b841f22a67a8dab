// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/run_options.hpp"
#include "gpu/device/device.hpp"
#include "gpu/launch/launch.hpp"
#include "pipeline/device_recovery.hpp"
#include "pipeline/device_side.hpp"
#include "pipeline/device_stage.hpp"
#include "pipeline/gpu_sharing.hpp"
#include "pipeline/process_part.hpp"
#include "pipeline/run_options.hpp"

#include <catena/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace catena::runtime {

/// The devices of a chain, and what it keeps on them: sides with plan and kernels, the shares of NFs, and the return of
/// a lost device.
/// Call order: open() -> device_to_share() -> make_sides() -> share() -> add() for each stage -> return_lost(). By one
/// thread, unless stated otherwise. Must outlive the stages' last poll.
class DeviceManager {
 public:
  /// As RunOptions::open_device; null: device::open().
  using Open = decltype(RunOptions::open_device);
  /// Makes side number `side` on a device. Errors: as DeviceSide::create().
  using MakeSide =
      std::function<Result<std::unique_ptr<DeviceSide>>(std::shared_ptr<device::Device> device, std::size_t side)>;

  explicit DeviceManager(Open open) : open_(std::move(open)) {}
  DeviceManager(DeviceManager const&) = delete;
  DeviceManager& operator=(DeviceManager const&) = delete;

  /// Opens the device of each of `choices`. If one of them is missing, no device is open, and why_not() has the reason.
  /// Errors: as device::open().
  Status open(std::vector<device::DevicePreference> choices);
  /// No device is used, for this reason.
  void close(std::string why_not);
  std::span<const std::shared_ptr<device::Device>> opened() const { return opened_; }
  /// Why no device is used, or not the first choice of `auto`; empty without a reason.
  std::string const& why_not() const { return why_not_; }

  /// The device whose use is to be divided, the only one of the chain; null without one. `is_used_elsewhere`: NFs in
  /// processes open it themselves. Sets `options.parts` if they are open. Errors: as device::open() and
  /// Device::divide().
  Result<std::shared_ptr<device::Device>> device_to_share(device::DevicePreference const& choice,
                                                          bool is_used_elsewhere, chain::SharingOptions& options) const;
  /// Makes a side for each of `pools` packet pools, and at least one for each open device.
  /// `make` is called again for a returned device, by any thread. Errors: as `make`.
  Status make_sides(std::size_t pools, MakeSide make);
  /// Of a shard; null without a device.
  DeviceSide* side_of(std::size_t shard) const {
    return sides_.empty() ? nullptr : sides_[shard % sides_.size()].get();
  }
  /// Divides `device` among `nfs`, whose positions in the chain are `positions`, in ascending order. At least one.
  /// Errors: as GpuSharing::create().
  Status share(device::Device& device, chain::SharingOptions const& options, SharedPartitions const& partitions,
               std::vector<std::size_t> positions, std::vector<GpuSharing::Nf> nfs, std::uint32_t packet_bytes);
  /// Null: each NF has the whole device.
  GpuSharing* sharing() const { return sharing_.get(); }
  /// Positions of the NFs sharing the device.
  std::span<const std::size_t> shared_by() const { return shared_by_; }
  /// Bounds of the launches of the NF at `position`, which shares the device.
  kernel::LaunchBounds bounds_of(std::size_t position) const { return sharing_->bounds_of(number_of(position)); }

  /// A stage of a shard, made with the side of this shard. It outlives abandoned() and the run.
  void add(std::size_t shard, DeviceStage& stage);
  /// The part of the device for the NF at `position`, which is in a process. It outlives the run.
  void add(std::size_t position, ProcessPart& part);
  /// Has a lost device opened again, until it is back. Does nothing without a device, or without an `open` of the
  /// caller.
  void return_lost();
  /// Null: a lost device stays lost.
  DeviceRecovery* recovery() const { return recovery_.get(); }
  /// Whether a device has unfinished work: of a stage, or of `before` in note_abandoned(). After the run.
  bool abandoned() const;
  /// `before`: of the replaced chain. After its run.
  void note_abandoned(DeviceManager const& before) { abandoned_before_ = before.abandoned(); }

 private:
  Result<std::unique_ptr<device::Device>> open_one(device::DevicePreference const& choice, std::string& why) const;
  Result<std::unique_ptr<DeviceSide>> make_again(std::size_t side) const;
  Result<std::vector<kernel::LaunchBounds>> bounds_on(device::Device& device);
  std::size_t number_of(std::size_t position) const;

  Open open_;
  MakeSide make_side_;
  std::vector<device::DevicePreference> choices_;
  std::string why_not_;
  std::vector<std::shared_ptr<device::Device>> opened_;  ///< may be empty
  std::vector<std::unique_ptr<DeviceSide>> sides_;       ///< empty without a device
  std::unique_ptr<GpuSharing> sharing_;
  std::vector<std::size_t> shared_by_;                        ///< positions of the NFs of sharing_
  std::vector<std::pair<std::size_t, DeviceStage*>> stages_;  ///< with their shards
  std::unique_ptr<DeviceRecovery> recovery_;
  bool abandoned_before_ = false;
};

}  // namespace catena::runtime
