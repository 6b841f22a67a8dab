// SPDX-License-Identifier: Apache-2.0
#include "stack/port/device_port.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/slot.hpp>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <utility>
#include <vector>

#include "io/dpdk/ethdev_port.hpp"
#include "stack/port/segmenter.hpp"
#include "stack/tcp/frame.hpp"

namespace catena::stack {

Result<std::unique_ptr<DevicePort>> DevicePort::open(std::string const& device) {
  constexpr std::uint32_t kSlots = 16384;  // for the rings of the device, and frames of a window of each of many peers
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<memory::PacketPool> pool, memory::PacketPool::create(kSlots));
  const std::array<memory::PacketPool*, 1> pools = {pool.get()};
  CATENA_ASSIGN_OR_RETURN(std::vector<std::shared_ptr<io::Port>> queues, io::EthdevPort::open(device, pools));
  queues.front()->start_receiving();
  return std::unique_ptr<DevicePort>(new DevicePort(std::move(pool), std::move(queues.front())));
}

Result<std::unique_ptr<DevicePort>> DevicePort::open_memif(std::string const& path) {
  static std::atomic<unsigned> opened = 0;  // each device of a process has a number
  const bool has_role = path.find(",role=") != std::string::npos;
  // the driver takes no relative path
  return open(concat("net_memif", opened++, ",socket-abstract=no,", has_role ? "" : "role=server,",
                     "socket=", std::filesystem::absolute(path).string()));
}

DevicePort::~DevicePort() {
  device_->stop_receiving();
  device_->stop_sending();
  release_received();
}

bool DevicePort::send(OutgoingFrame const& frame) {
  Segmenter segmenter(frame);
  if (segmenter.max_bytes() > packet::kMaxFrameBytes) {
    ++counters_.no_room;
    return false;
  }
  bool is_sent = true;
  while (is_sent && segmenter.left() > 0) {
    std::array<std::uint32_t, kBurst> slots{};
    std::array<io::SlotFrame, kBurst> frames{};
    const std::size_t count = std::min(kBurst, segmenter.left());
    const std::span<std::uint32_t> used = std::span(slots).first(count);
    if (!pool_->acquire_slots(used)) {
      is_sent = false;
      break;
    }
    for (std::size_t i = 0; i < count; ++i) {
      auto* const to = reinterpret_cast<std::byte*>(pool_->slot(slots[i])) + packet::kSlotHeadroom;
      const std::size_t bytes = segmenter.write_next({to, packet::kMaxFrameBytes});
      frames[i] = {slots[i], static_cast<std::uint16_t>(packet::kSlotHeadroom), static_cast<std::uint16_t>(bytes)};
    }
    const std::size_t taken = device_->send(std::span(frames).first(count));
    pool_->release_slots(used.subspan(taken));
    is_sent = taken == count;
  }
  // the segments of a part that has left come again, and do no harm
  ++(is_sent ? counters_.sent : counters_.no_room);
  return is_sent;
}

void DevicePort::release_received() {
  for (std::size_t i = next_ > 0 ? next_ - 1 : 0; i < count_; ++i) {
    if (arrived_[i].slot != io::kTooLong) {
      pool_->release_slots(std::span(&arrived_[i].slot, 1));
    }
  }
  next_ = count_ = 0;
}

std::optional<std::span<const std::byte>> DevicePort::receive() {
  for (;;) {
    if (next_ > 0 && arrived_[next_ - 1].slot != io::kTooLong) {
      pool_->release_slots(std::span(&arrived_[next_ - 1].slot, 1));
      arrived_[next_ - 1].slot = io::kTooLong;
    }
    if (next_ == count_) {
      next_ = 0;
      count_ = device_->receive(arrived_);
      if (count_ == 0) {
        return std::nullopt;
      }
    }
    io::SlotFrame const& arrived = arrived_[next_++];
    if (arrived.slot == io::kTooLong) {
      continue;
    }
    ++counters_.received;
    const std::span<const std::byte> frame(
        reinterpret_cast<const std::byte*>(pool_->slot(arrived.slot)) + arrived.offset, arrived.length);
    if (has_right_checksum(frame)) {
      return frame;
    }
    ++counters_.bad_checksum;
  }
}

}  // namespace catena::stack
