// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/copy/read_back.hpp"
#include "gpu/launch/launch.hpp"
#include "packet/memory/packet_pool.hpp"
#include "pipeline/device_use.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace catena::runtime {

/// Brings data held only by the device to the host, for units that continue without it, one unit at a time. Belongs to
/// one thread at a time.
class HostRecovery {
 public:
  enum class Outcome : std::uint8_t { kSaved, kLost, kWaiting };
  /// `stage`: its name, for messages. `only_on_device`: fields whose newest values only the device has; 0: every unit
  /// is saved as it is. `limit`: a device that takes longer counts as not answering. All else outlives this.
  HostRecovery(std::string stage, kernel::DeviceNf& device_nf, memory::PacketPool& pool, DeviceUse& use,
               packet::FieldSet only_on_device, std::chrono::nanoseconds limit)
      : stage_(std::move(stage)),
        device_nf_(&device_nf),
        pool_(&pool),
        use_(&use),
        only_on_device_(only_on_device),
        limit_(limit) {}

  /// Call for the same unit until it is not kWaiting. kLost: the device does not return the bytes; the first time, the
  /// log has the reason. Never waits.
  Outcome poll(memory::Unit const& unit);
  /// Whether the device did not answer, and `use` was given up.
  bool gave_up() const { return gave_up_; }
  /// The device took longer than `limit`.
  Status too_late() const;

 private:
  Outcome lost(Status const& why);
  Status start(memory::Unit const& unit);

  std::string stage_;
  kernel::DeviceNf* device_nf_;
  memory::PacketPool* pool_;
  DeviceUse* use_;
  packet::FieldSet only_on_device_;
  std::chrono::nanoseconds limit_;
  std::unique_ptr<copy::ReadBack> read_back_;  ///< made on demand
  bool is_reading_ = false;
  std::chrono::steady_clock::time_point since_;
  bool warned_ = false;
  bool gave_up_ = false;
};

}  // namespace catena::runtime
