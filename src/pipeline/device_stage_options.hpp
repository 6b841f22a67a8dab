// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/trace.hpp"
#include "base/hostcopy/host_mover.hpp"
#include "gpu/launch/launch.hpp"
#include "io/live_clock.hpp"
#include "pipeline/device_use.hpp"
#include "pipeline/unit_records.hpp"

#include <catena/core/status.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace catena::runtime {

struct DeviceStageOptions {
  std::uint32_t units_per_launch = 8;  ///< at most; see bounds
  std::uint32_t in_flight = 3;
  /// A launch that takes longer counts as a lost device.
  std::chrono::nanoseconds limit = std::chrono::seconds(10);
  /// A launch that is not full waits at most this long for more packets, and not at all if the device is idle.
  std::chrono::nanoseconds max_batch_delay = std::chrono::microseconds(50);
  /// Fields whose newest values the plan leaves only in the shared buffer when a unit reaches this NF. Without the
  /// device the stage brings them back first. 0: units that wait for this NF can continue without the device.
  packet::FieldSet only_on_device = 0;
  /// Shared by the device stages of a chain; must outlive them. Null: the stage leaves the plan by itself.
  DeviceUse* use = nullptr;
  /// If set, receives the launches of this stage, as spans of these tracks; must outlive it. Failed launches are not in
  /// it.
  ///   0           on the host: fill (its first unit was taken .. it was full or due), submit (.. everything was
  ///               enqueued), deliver (it was found done .. its units were passed on)
  ///   1, 2, ..    on the device: to device, kernel, to host; concurrent launches are on separate tracks
  trace::SpanLog* trace = nullptr;
  /// The source's, for Nf::tick().
  std::optional<io::LiveClock> live_clock = {};
  /// For the NF's lines; null if the chain writes no lines.
  RecordLog* lines = nullptr;
  /// Initial bounds of launches on the device. max_packets is limited to one unit .. units_per_launch units; 0: the
  /// latter.
  kernel::LaunchBounds bounds = {};
  /// Opens the engine for copies between packets and staging.
  std::function<Result<std::unique_ptr<hostcopy::Engine>>()> open_engine = [] {
    return hostcopy::open_engine(hostcopy::kCpuEngine);
  };
};

}  // namespace catena::runtime
