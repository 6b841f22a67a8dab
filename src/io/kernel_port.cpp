// SPDX-License-Identifier: Apache-2.0
#include "io/kernel_port.hpp"

#include "io/interface.hpp"

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <catena/core/text.hpp>
#include <catena/packet/ether_type.hpp>
#include <catena/packet/headers.hpp>
#include <catena/packet/slot.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace catena::io {
namespace {

/// Room for the kernel's header and the longest frame that a slot takes; 128 of them fill 61 pages without a gap.
constexpr std::uint32_t kFrameBytes = 1952;
constexpr std::uint32_t kBlockBytes = 61 * 4096;
constexpr std::uint32_t kFrames = 4096;
constexpr std::size_t kRingBytes = std::size_t{kFrames} * kFrameBytes;
static_assert(kRingBytes % kBlockBytes == 0 && kBlockBytes % kFrameBytes == 0);
/// What the kernel writes before a frame in the ring, at most.
constexpr std::uint32_t kBeforeFrame = 80;
static_assert(kFrameBytes - kBeforeFrame > packet::kMaxFrameBytes + packet::kTagBytes,
              "longer frames are seen as such");
static_assert(kFrameBytes - kBeforeFrame + packet::kTagBytes <= packet::kSlotBytes - packet::kSlotHeadroom);

}  // namespace

Result<std::shared_ptr<Port>> KernelPort::open(std::string const& device, memory::PacketPool& pool) {
  std::string interface = interface_of(device);
  std::string name = concat("dpdk ", device.substr(0, device.find(',')));
  const auto named = [&](Status const& status) {
    return Status(status.code(), concat("dpdk ", device, ": ", std::string(status.message())));
  };
  if (const Status status = prepare_interface(interface); !status.ok()) {
    return named(status);
  }
  std::shared_ptr<KernelPort> port(new KernelPort(std::move(name), std::move(interface), pool));
  if (const Status status = port->set_up(); !status.ok()) {
    return named(status);
  }
  return port;
}

Status KernelPort::set_up() {
  index_ = if_nametoindex(interface_.c_str());
  is_up_ = is_up(interface_);  // prepare_interface() said if not
  ask_mtu();
  // protocol 0: nothing arrives before the ring is there
  socket_ = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (socket_ < 0) {
    return absl::ErrnoToStatus(errno, "no packet socket");
  }
  const int version = TPACKET_V2;
  const int on = 1;
  const tpacket_req ring{kBlockBytes, static_cast<unsigned int>(kRingBytes / kBlockBytes), kFrameBytes, kFrames};
  if (setsockopt(socket_, SOL_PACKET, PACKET_VERSION, &version, sizeof version) != 0 ||
      setsockopt(socket_, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) != 0 ||
      setsockopt(socket_, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring) != 0) {
    return absl::ErrnoToStatus(errno, "no ring for received frames");
  }
  void* mapped = mmap(nullptr, kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED, socket_, 0);
  if (mapped == MAP_FAILED) {
    return absl::ErrnoToStatus(errno, "the ring for received frames cannot be mapped");
  }
  ring_ = static_cast<std::uint8_t*>(mapped);
  CATENA_ASSIGN_OR_RETURN(sender_, KernelSender::open(index_, cuts_segments(interface_)));
  return receive_all_frames(socket_, index_);
}

/// Copies a frame from the ring into a slot.
SlotFrame KernelPort::take(tpacket2_hdr const& arrived, std::uint32_t slot) const {
  const auto* frame = reinterpret_cast<const std::uint8_t*>(&arrived) + arrived.tp_mac;
  std::uint8_t* to = pool_->slot(slot) + packet::kSlotHeadroom;
  std::uint32_t bytes = arrived.tp_snaplen;
  if ((arrived.tp_status & TP_STATUS_VLAN_VALID) != 0 && bytes >= packet::kEtherTypeAt) {
    // the kernel takes the outer tag out of the frame
    const bool has_type = (arrived.tp_status & TP_STATUS_VLAN_TPID_VALID) != 0;
    std::memcpy(to, frame, packet::kEtherTypeAt);
    packet::store_be16(to + packet::kEtherTypeAt, has_type ? arrived.tp_vlan_tpid : packet::kVlanTag);
    packet::store_be16(to + packet::kEtherTypeAt + 2, arrived.tp_vlan_tci);
    std::memcpy(to + packet::kEtherTypeAt + packet::kTagBytes, frame + packet::kEtherTypeAt,
                bytes - packet::kEtherTypeAt);
    bytes += packet::kTagBytes;
  } else {
    std::memcpy(to, frame, bytes);
  }
  return {bytes > packet::kMaxFrameBytes ? kTooLong : slot, packet::kSlotHeadroom, static_cast<std::uint16_t>(bytes)};
}

std::size_t KernelPort::receive(std::span<SlotFrame> frames) {
  std::size_t ready = 0;
  while (ready < frames.size() &&
         (status_of(next_frame_ + ready).load(std::memory_order_acquire) & TP_STATUS_USER) != 0) {
    ++ready;
  }
  // what finds no slot waits in the ring
  ready = std::min<std::size_t>(ready, pool_->free_slots());
  slots_.resize(ready);
  if (ready == 0 || !pool_->acquire_slots(slots_)) {
    return 0;
  }
  for (std::size_t i = 0; i < ready; ++i) {
    frames[i] = take(frame(next_frame_), slots_[i]);
    if (frames[i].slot == kTooLong) {
      pool_->release_slots(std::span(slots_).subspan(i, 1));
    }
    status_of(next_frame_).store(TP_STATUS_KERNEL, std::memory_order_release);
    next_frame_ = (next_frame_ + 1) % kFrames;
  }
  return ready;
}

tpacket2_hdr& KernelPort::frame(std::size_t number) const {
  return *reinterpret_cast<tpacket2_hdr*>(ring_ + number % kFrames * kFrameBytes);
}

std::atomic_ref<std::uint32_t> KernelPort::status_of(std::size_t number) const {
  return std::atomic_ref<std::uint32_t>(frame(number).tp_status);
}

std::size_t KernelPort::send(std::span<const SlotFrame> frames) {
  const KernelSender::Sent sent = sender_->send(pool_->slot(0), frames);
  // the kernel has copied them
  sent_slots_.clear();
  for (SlotFrame const& frame : frames.first(sent.taken)) {
    sent_slots_.push_back(frame.slot);
  }
  pool_->release_slots(sent_slots_);
  sent_.fetch_add(sent.taken - sent.failed, std::memory_order_relaxed);
  failed_.fetch_add(sent.failed, std::memory_order_relaxed);
  if (sent.error != 0) {
    note_refusal(sent.error);
  }
  return sent.taken;
}

/// Says so in the log where the interface went down or came up.
void KernelPort::note_state(bool is_up) {
  if (is_up_.exchange(is_up) == is_up) {
    return;
  }
  if (is_up) {
    spdlog::warn("{} is up again", interface_);
  } else {
    spdlog::warn("{}: the kernel refuses frames: Network is down, and nothing arrives: sudo ip link set {} up",
                 interface_, interface_);
  }
}

/// Says why the kernel refuses frames, once for each reason: they may alternate at the rate of packets.
void KernelPort::note_refusal(int error) {
  if (error == ENETDOWN) {
    note_state(false);
  } else if (error != ENXIO && error != ENODEV &&  // it is gone: check_interface() says so
             std::find(refusals_.begin(), refusals_.end(), error) == refusals_.end()) {
    refusals_.push_back(error);
    spdlog::warn("{}: the kernel refuses frames: {}", interface_, std::generic_category().message(error));
  }
}

PortCounters KernelPort::counters() const {
  tpacket_stats stats{};
  socklen_t bytes = sizeof stats;
  if (getsockopt(socket_, SOL_PACKET, PACKET_STATISTICS, &stats, &bytes) == 0) {
    missed_.fetch_add(stats.tp_drops, std::memory_order_relaxed);
  }
  return {.missed = missed_.load(std::memory_order_relaxed),
          .sent = sent_.load(std::memory_order_relaxed),
          .tx_errors = failed_.load(std::memory_order_relaxed)};
}

void KernelPort::ask_mtu() {
  max_tx_bytes_ = std::min<std::uint32_t>(interface_mtu(interface_) + ETH_HLEN, packet::kMaxFrameBytes);
}

Status KernelPort::check_interface() {
  if (!is_present(index_)) {
    return gone(name_, interface_);
  }
  ask_mtu();
  sender_->join_segments(cuts_segments(interface_));
  note_state(is_up(interface_));
  return absl::OkStatus();
}

std::string KernelPort::describe() const {
  return concat(name_, " (packet socket, link ", is_running(interface_) ? "up)" : "down)");
}

KernelPort::~KernelPort() {
  if (ring_ != nullptr) {
    munmap(ring_, kRingBytes);
  }
  if (socket_ >= 0) {
    close(socket_);
  }
}

}  // namespace catena::io
