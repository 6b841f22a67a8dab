// SPDX-License-Identifier: Apache-2.0
#include "io/dpdk/ethdev_port.hpp"

#include "eal/eal.hpp"
#include "io/interface.hpp"
#include "io/vlan.hpp"

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_pci.h>
#include <spdlog/spdlog.h>
#include <catena/core/text.hpp>
#include <catena/packet/headers.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

namespace catena::io {
namespace {

constexpr std::uint16_t kDescriptors = 1024;
/// Ethernet header with two VLAN tags.
constexpr std::uint32_t kMaxL2Bytes = 14 + 2 * 4;
constexpr std::chrono::milliseconds kLinkWait{1000};
constexpr std::chrono::milliseconds kLinkPoll{10};

/// A socket of the kernel. Three things differ from other drivers: its buffers do not fit a slot unless asked to, the
/// kernel takes the outer VLAN tag out of received frames, and it discards frames above the interface's MTU without
/// counting them.
constexpr std::string_view kAfPacket = "net_af_packet";
/// Frames of the socket's ring whose room, less what the kernel needs, is just what a slot holds after its headroom;
/// 128 of them fill 61 pages without a gap.
constexpr std::uint32_t kAfPacketFrameBytes = 1952;
constexpr std::uint32_t kAfPacketBlockBytes = 61 * 4096;
constexpr std::uint32_t kAfPacketFrames = 4096;
constexpr std::uint32_t kAfPacketOverhead = 32;
constexpr std::uint32_t kAfPacketDriverBlockBytes = 4096;  // a page, where the device string names none
static_assert(kAfPacketFrameBytes - kAfPacketOverhead == packet::kSlotBytes - packet::kSlotHeadroom);
static_assert(kAfPacketBlockBytes % kAfPacketFrameBytes == 0);

/// Frames handed to or taken from a driver at once.
constexpr std::size_t kBurst = 256;

/// Puts a VLAN tag back that the driver took out of the frame. (rte_vlan_insert refuses mbufs with external buffers.)
void restore_vlan_tag(rte_mbuf& mbuf) {
  if ((mbuf.ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) == 0 || mbuf.data_off < kVlanBytes || mbuf.data_len < kMacBytes) {
    return;
  }
  mbuf.data_off = static_cast<std::uint16_t>(mbuf.data_off - kVlanBytes);
  mbuf.data_len = static_cast<std::uint16_t>(mbuf.data_len + kVlanBytes);
  mbuf.pkt_len += kVlanBytes;
  auto* frame = rte_pktmbuf_mtod(&mbuf, std::uint8_t*);
  std::memmove(frame, frame + kVlanBytes, kMacBytes);
  packet::store_be16(frame + kMacBytes, kVlanType);
  packet::store_be16(frame + kMacBytes + 2, mbuf.vlan_tci);
}

struct Found {
  std::uint16_t id;
  rte_device* device;
  bool owned;
};

/// The first port of the device of that name.
std::optional<Found> find_port(std::string const& name) {
  for (std::uint16_t id = rte_eth_find_next(0); id < RTE_MAX_ETHPORTS;
       id = rte_eth_find_next(static_cast<std::uint16_t>(id + 1))) {
    rte_eth_dev_info info{};
    if (rte_eth_dev_info_get(id, &info) == 0 && info.device != nullptr && name == rte_dev_name(info.device)) {
      rte_eth_dev_owner owner{};
      const bool owned = rte_eth_dev_owner_get(id, &owner) == 0 && owner.id != RTE_ETH_DEV_NO_OWNER;
      return Found{id, info.device, owned};
    }
  }
  return std::nullopt;
}

/// What is between a PCI device and this process, seen from how DPDK was started.
Status check_pci(std::string const& name) {
  if (rte_eal_has_pci() == 0) {
    return absl::FailedPreconditionError(
        concat("dpdk ", name, ": DPDK was started with --no-pci: start it with -a ", name));
  }
  if (rte_eal_iova_mode() != RTE_IOVA_VA) {
    return absl::FailedPreconditionError(
        concat("dpdk ", name, ": the packet pool needs I/O addresses that are virtual: turn the IOMMU on, bind the ",
               "device to vfio-pci and start DPDK with --iova-mode=va"));
  }
  return absl::OkStatus();
}

/// The value of a number among the arguments of a device string.
std::optional<std::uint32_t> argument(std::string_view device, std::string_view name) {
  const std::string key = concat(",", name, "=");
  const std::size_t at = device.find(key);
  std::uint32_t value = 0;
  if (at == std::string_view::npos ||
      std::from_chars(device.data() + at + key.size(), device.data() + device.size(), value).ec != std::errc()) {
    return std::nullopt;
  }
  return value;
}

/// `device` with what its driver needs to work with the pool's slots. InvalidArgument if it asks for what cannot work.
Result<std::string> with_defaults(std::string const& device) {
  if (!device.starts_with(kAfPacket)) {
    return device;
  }
  const std::optional<std::uint32_t> frame_bytes = argument(device, "framesz");
  const std::optional<std::uint32_t> block_bytes = argument(device, "blocksz");
  if (!frame_bytes.has_value() && !block_bytes.has_value()) {
    const std::string frames = argument(device, "framecnt").has_value() ? "" : concat(",framecnt=", kAfPacketFrames);
    return concat(device, ",framesz=", kAfPacketFrameBytes, ",blocksz=", kAfPacketBlockBytes, frames);
  }
  // the driver takes frame i to be at i * framesz, which is so only where blocks have no gap at their end
  if (frame_bytes.value_or(0) <= kAfPacketOverhead || *frame_bytes > kAfPacketFrameBytes ||
      block_bytes.value_or(kAfPacketDriverBlockBytes) % *frame_bytes != 0) {
    return absl::InvalidArgumentError(concat("dpdk ", device, ": framesz has to be at most ", kAfPacketFrameBytes,
                                             ", to fit a slot, and to divide ", "blocksz (", kAfPacketDriverBlockBytes,
                                             " if not given): leave both out, or write framesz=1024"));
  }
  return device;
}

/// What an operator can put right before DPDK says no in its own words, and what would go wrong later.
Status check_interface_of(std::string const& device, std::string const& interface) {
  if (interface.empty()) {
    return absl::OkStatus();
  }
  if (const Status status = prepare_interface(interface); !status.ok()) {
    return Status(status.code(), concat("dpdk ", device, ": ", std::string(status.message())));
  }
  return absl::OkStatus();
}

}  // namespace

Result<std::shared_ptr<EthdevPort>> EthdevPort::open(std::string const& device, memory::PacketPool& pool) {
  CATENA_RETURN_IF_ERROR(eal::start());
  std::string name = device.substr(0, device.find(','));
  rte_pci_addr address{};
  const bool pci = rte_pci_addr_parse(name.c_str(), &address) == 0;
  if (pci) {
    char full[PCI_PRI_STR_SIZE] = "";
    rte_pci_device_name(&address, full, sizeof full);
    name = full;
    CATENA_RETURN_IF_ERROR(check_pci(name));
  }
  CATENA_ASSIGN_OR_RETURN(const std::string arguments, with_defaults(device));
  const std::string interface = interface_of(device);
  CATENA_RETURN_IF_ERROR(check_interface_of(device, interface));
  std::optional<Found> found = find_port(name);
  if (!found.has_value()) {
    if (const int rc = rte_dev_probe(arguments.c_str()); rc != 0 && rc != -EEXIST) {
      const std::string_view help =
          pci ? ": is it there, and bound to vfio-pci (dpdk-devbind.py --bind=vfio-pci)?" : ": DPDK's log says more";
      return absl::NotFoundError(concat("dpdk ", device, ": no driver takes it: ", rte_strerror(std::abs(rc)), help));
    }
    found = find_port(name);
  }
  if (!found.has_value()) {
    return absl::NotFoundError(concat("dpdk ", device, ": the device has no Ethernet port"));
  }
  if (found->owned) {
    return absl::AlreadyExistsError(concat("dpdk ", name, ": is open already"));
  }
  std::shared_ptr<EthdevPort> port(new EthdevPort(arguments, std::move(name), found->id, found->device, pool));
  port->interface_ = interface;
  CATENA_RETURN_IF_ERROR(port->set_up());
  return port;
}

Status EthdevPort::check(int rc, std::string_view what) const {
  if (rc == 0) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(concat("dpdk ", name_, ": ", what, ": ", rte_strerror(std::abs(rc))));
}

Status EthdevPort::set_up() {
  rte_eth_dev_owner owner{};
  CATENA_RETURN_IF_ERROR(check(rte_eth_dev_owner_new(&owner.id), "no owner number"));
  const std::size_t length = std::string_view("catena").copy(owner.name, sizeof owner.name - 1);
  owner.name[length] = '\0';
  CATENA_RETURN_IF_ERROR(check(rte_eth_dev_owner_set(id_, &owner), "cannot be owned"));
  owned_ = true;
  CATENA_ASSIGN_OR_RETURN(mbufs_, MbufPool::of(*pool_));
  CATENA_RETURN_IF_ERROR(map_pool());
  CATENA_RETURN_IF_ERROR(set_up_queues());
  CATENA_RETURN_IF_ERROR(check(rte_eth_dev_start(id_), "does not start"));
  started_ = true;
  if (const int rc = rte_eth_promiscuous_enable(id_); rc != 0 && rc != -ENOTSUP) {
    return check(rc, "cannot be made promiscuous");
  }
  rte_eth_stats_reset(id_);
  if (!wait_for_link()) {
    spdlog::warn("dpdk {}: the link is down; frames sent to it are dropped until it is up", name_);
  }
  return absl::OkStatus();
}

Status EthdevPort::map_pool() {
  std::uint8_t* pool_memory = pool_->slot(0);
  const std::size_t bytes = std::size_t{pool_->slots()} * packet::kSlotBytes;
  const int rc = rte_dev_dma_map(device_, pool_memory, reinterpret_cast<std::uint64_t>(pool_memory), bytes);
  mapped_ = rc == 0;
  // software devices need no mapping, and their bus says so
  return rc == 0 || rte_errno == ENOTSUP ? absl::OkStatus()
                                         : check(rte_errno, "the packet pool cannot be mapped for DMA");
}

Status EthdevPort::set_up_queues() {
  rte_eth_dev_info info{};
  CATENA_RETURN_IF_ERROR(check(rte_eth_dev_info_get(id_, &info), "no device info"));
  driver_ = info.driver_name != nullptr ? info.driver_name : "?";
  rte_eth_conf config{};
  if (driver_ == kAfPacket) {
    // else the driver tries to put tags back itself, which it cannot in external buffers; restore_vlan_tag() does
    config.rxmode.offloads = info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_STRIP;
    const std::uint32_t room = argument(arguments_, "framesz").value_or(kAfPacketFrameBytes) - kAfPacketOverhead;
    if_index_ = info.if_index;
    max_tx_bytes_ = std::min(interface_mtu(interface_) + RTE_ETHER_HDR_LEN, room - RTE_VLAN_HLEN);
  }
  // a NIC of our own may carry every frame that a slot can hold; an interface of the kernel keeps its MTU
  constexpr std::uint32_t kMtu = packet::kMaxFrameBytes - kMaxL2Bytes;
  if (info.if_index == 0 && info.max_mtu >= kMtu && info.max_mtu != UINT16_MAX) {
    config.rxmode.mtu = kMtu;
  }
  CATENA_RETURN_IF_ERROR(check(rte_eth_dev_configure(id_, 1, 1, &config), "cannot be configured"));

  // slots that wait in the driver are missing in the chain: at most half of a small pool
  auto rx_descriptors = static_cast<std::uint16_t>(std::min<std::uint32_t>(kDescriptors, pool_->slots() / 4));
  std::uint16_t tx_descriptors = rx_descriptors;
  CATENA_RETURN_IF_ERROR(check(rte_eth_dev_adjust_nb_rx_tx_desc(id_, &rx_descriptors, &tx_descriptors),
                               "the number of descriptors cannot be adjusted"));
  const std::uint32_t needed = std::uint32_t{rx_descriptors} + tx_descriptors + pool_->unit_packets();
  if (needed > pool_->slots()) {
    return absl::InvalidArgumentError(
        concat("dpdk ", name_, ": the driver keeps up to ", needed - pool_->unit_packets(),
               " packets: use a packet pool of more than ", needed, " slots, not ", pool_->slots()));
  }
  const auto socket = static_cast<unsigned int>(rte_eth_dev_socket_id(id_));
  CATENA_RETURN_IF_ERROR(
      check(rte_eth_rx_queue_setup(id_, 0, rx_descriptors, socket, nullptr, mbufs_->mempool()), "no receive queue"));
  return check(rte_eth_tx_queue_setup(id_, 0, tx_descriptors, socket, nullptr), "no transmit queue");
}

bool EthdevPort::wait_for_link() const {
  for (auto waited = std::chrono::milliseconds{0}; waited < kLinkWait; waited += kLinkPoll) {
    rte_eth_link link{};
    if (rte_eth_link_get_nowait(id_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP) {
      return true;
    }
    std::this_thread::sleep_for(kLinkPoll);
  }
  return false;
}

Status EthdevPort::check_interface() {
  return if_index_ == 0 || is_present(if_index_) ? absl::OkStatus() : gone(concat("dpdk ", name_), interface_);
}

std::size_t EthdevPort::receive(std::span<SlotFrame> frames) {
  std::array<rte_mbuf*, kBurst> mbufs;
  const std::size_t received =
      rte_eth_rx_burst(id_, 0, mbufs.data(), static_cast<std::uint16_t>(std::min(frames.size(), mbufs.size())));
  for (std::size_t i = 0; i < received; ++i) {
    frames[i] = take(*mbufs[i]);
  }
  return received;
}

SlotFrame EthdevPort::take(rte_mbuf& mbuf) const {
  restore_vlan_tag(mbuf);
  if (mbuf.nb_segs != 1 || mbuf.data_len > packet::kMaxFrameBytes) {
    rte_pktmbuf_free(&mbuf);
    return {kTooLong, 0, 0};
  }
  return {mbufs_->slot_of(mbuf), mbuf.data_off, mbuf.data_len};
}

std::size_t EthdevPort::send(std::span<const SlotFrame> frames) {
  std::array<rte_mbuf*, kBurst> mbufs;
  const std::size_t offered = std::min(frames.size(), mbufs.size());
  for (std::size_t i = 0; i < offered; ++i) {
    rte_mbuf& mbuf = *mbufs_->mbuf(frames[i].slot);
    mbuf.data_off = frames[i].offset;
    mbuf.data_len = frames[i].length;
    mbuf.pkt_len = frames[i].length;
    mbuf.ol_flags = RTE_MBUF_F_EXTERNAL;  // nothing of what a receiving driver noted
    mbufs[i] = &mbuf;
  }
  const std::size_t taken = rte_eth_tx_burst(id_, 0, mbufs.data(), static_cast<std::uint16_t>(offered));
  refused_ += offered - taken;
  return taken;
}

PortCounters EthdevPort::counters() const {
  rte_eth_stats stats{};
  rte_eth_stats_get(id_, &stats);
  // some drivers count as an error what they did not take, too
  return {.missed = stats.imissed,
          .no_slot = stats.rx_nombuf,
          .rx_errors = stats.ierrors,
          .sent = stats.opackets,
          .tx_errors = stats.oerrors - std::min<std::uint64_t>(stats.oerrors, refused_)};
}

std::string EthdevPort::describe() const {
  rte_eth_link link{};
  const bool up = rte_eth_link_get_nowait(id_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
  return concat("dpdk ", name_, " (", driver_, ", link ", up ? "up)" : "down)");
}

EthdevPort::~EthdevPort() {
  if (!owned_) {
    return;
  }
  if (started_) {
    rte_eth_dev_stop(id_);
  }
  rte_eth_dev_close(id_);
  if (mapped_) {
    std::uint8_t* pool_memory = pool_->slot(0);
    rte_dev_dma_unmap(device_, pool_memory, reinterpret_cast<std::uint64_t>(pool_memory),
                      std::size_t{pool_->slots()} * packet::kSlotBytes);
  }
  rte_dev_remove(device_);  // so that the device can be opened again
}

}  // namespace catena::io
