// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nf/testing/marker.hpp"
#include "packet/memory/packet_pool.hpp"
#include "packet/memory/unit_queue.hpp"
#include "pipeline/device_launch.hpp"
#include "pipeline/device_stage_options.hpp"

#include <catena/nf/testing/harness.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace catena::runtime::testing {

/// The NF of nf/testing/marker.hpp with its kernel on a device, for tests of the parts of a DeviceStage. One thread.
class MarkerBench {
 public:
  static constexpr std::uint32_t kUnitPackets = 64;
  /// `device` outlives this.
  explicit MarkerBench(device::Device& device = *nf::testing::devices().front()) {
    const nf::KernelSide side = instance_.nf().kernel_side().value();
    device_nf_ = kernel::DeviceNf::create(device, side.spec, instance_.launch_plan(), side.state, nullptr).value();
  }

  nf::Instance& instance() { return instance_; }
  memory::PacketPool& pool() { return *pool_; }
  memory::UnitQueue& queue() { return queue_; }
  kernel::DeviceNf& device_nf() { return *device_nf_; }
  /// Of a stage with two launches, of two units each.
  DeviceStageOptions options(DeviceUse& use) const {
    DeviceStageOptions options;
    options.units_per_launch = 2;
    options.in_flight = 2;
    options.use = &use;
    return options;
  }
  /// A launch for `packets` packets, owned by this.
  DeviceLaunch& launch(std::uint32_t packets = 2 * kUnitPackets, std::uint32_t group_packets = 2 * kUnitPackets) {
    const kernel::LaunchBounds bounds{.max_packets = packets};
    launches_.emplace_back(nf::DeviceBatch::create(instance_, *device_nf_, bounds, mover_).value(), *pool_,
                           group_packets, static_cast<std::uint32_t>(launches_.size()));
    return launches_.back();
  }
  /// A unit of the next frames.
  memory::Unit& unit_of(std::uint32_t packets = kUnitPackets) {
    static const std::vector<nf::testing::Frame> kFrames = nf::testing::marker_frames(1000);
    memory::Unit& unit = *pool_->acquire_unit();
    static_cast<void>(pool_->acquire_slots(unit, packets));
    unit.count = packets;
    for (const std::uint32_t slot : unit.used_slots()) {
      nf::testing::Frame const& frame = kFrames[index_ % kFrames.size()];
      std::copy(frame.begin(), frame.end(), pool_->slot(slot) + packet::kSlotHeadroom);
      pool_->set_arrived(slot, static_cast<std::uint32_t>(frame.size()), index_++, 0);
    }
    return unit;
  }
  /// The live packets and replies of `units`.
  std::vector<nf::testing::Frame> frames_of(std::vector<memory::Unit*> const& units) const {
    std::vector<nf::testing::Frame> frames;
    for (memory::Unit const* const unit : units) {
      const packet::Batch batch = pool_->batch(*unit);
      for (std::uint32_t i = 0; i < batch.size(); ++i) {
        if (batch[i].verdict() != packet::Verdict::kDrop) {
          frames.emplace_back(batch[i].frame(), batch[i].frame() + batch[i].length());
        }
      }
    }
    return frames;
  }
  /// The same of the first units after the CPU implementation; `sizes`: their packets.
  static std::vector<nf::testing::Frame> frames_on_cpu(std::vector<std::uint32_t> const& sizes) {
    MarkerBench bench;
    std::vector<memory::Unit*> units;
    for (const std::uint32_t packets : sizes) {
      units.push_back(&bench.unit_of(packets));
      bench.instance_.process(bench.pool_->batch(*units.back()));
    }
    return bench.frames_of(units);
  }
  /// Polls until `is_done()`; false after 20 s.
  template <typename IsDone>
  static bool wait_for(IsDone is_done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!is_done()) {
      if (std::chrono::steady_clock::now() > end) {
        return false;
      }
    }
    return true;
  }

 private:
  nf::Descriptor descriptor_ = nf::testing::marker_descriptor();
  nf::Instance instance_{"mark", descriptor_, nf::testing::make_marker(), nf::OnUnsupported::kPass, false};
  std::unique_ptr<memory::PacketPool> pool_ = memory::PacketPool::create(2048, kUnitPackets).value();
  memory::UnitQueue queue_{pool_->arena(), 0};
  std::unique_ptr<kernel::DeviceNf> device_nf_;
  std::uint64_t index_ = 0;
  std::deque<DeviceLaunch> launches_;
  hostcopy::HostMover mover_;
};

}  // namespace catena::runtime::testing
