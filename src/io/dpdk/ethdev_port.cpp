// SPDX-License-Identifier: Apache-2.0
#include "io/dpdk/ethdev_port.hpp"

#include "io/eal/eal.hpp"
#include "io/interface.hpp"

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_pci.h>
#include <spdlog/spdlog.h>
#include <catena/core/text.hpp>
#include <catena/packet/ether_type.hpp>
#include <catena/packet/headers.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <numeric>
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
constexpr std::string_view kAfXdp = "net_af_xdp";
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

/// Of a driver that does not say.
constexpr std::size_t kUsualKeyBytes = 40;
/// What is hashed with its ports, and the rest of IP with its addresses.
constexpr std::uint64_t kLeastHashed = RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_NONFRAG_IPV4_UDP;
constexpr std::uint64_t kHashed = RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP;
static_assert((kHashed & kLeastHashed) == kLeastHashed);

/// Puts a VLAN tag back that the driver took out of the frame. (rte_vlan_insert refuses mbufs with external buffers.)
void restore_vlan_tag(rte_mbuf& mbuf) {
  if ((mbuf.ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) == 0 || mbuf.data_off < packet::kTagBytes ||
      mbuf.data_len < packet::kEtherTypeAt) {
    return;
  }
  mbuf.data_off = static_cast<std::uint16_t>(mbuf.data_off - packet::kTagBytes);
  mbuf.data_len = static_cast<std::uint16_t>(mbuf.data_len + packet::kTagBytes);
  mbuf.pkt_len += packet::kTagBytes;
  auto* frame = rte_pktmbuf_mtod(&mbuf, std::uint8_t*);
  std::memmove(frame, frame + packet::kTagBytes, packet::kEtherTypeAt);
  packet::store_be16(frame + packet::kEtherTypeAt, packet::kVlanTag);
  packet::store_be16(frame + packet::kEtherTypeAt + 2, mbuf.vlan_tci);
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
        concat("dpdk ", name, ": the packet pool needs virtual I/O addresses: turn the IOMMU on, bind the ",
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

std::vector<std::uint8_t> symmetric_key(std::size_t bytes) {
  std::vector<std::uint8_t> key;
  for (std::size_t i = 0; i < bytes; ++i) {
    key.push_back(i % 2 == 0 ? 0x6d : 0x5a);
  }
  return key;
}

/// One queue each way of a port.
class EthdevPort::Queue final : public Port {
 public:
  Queue(std::shared_ptr<EthdevPort> port, std::uint16_t number)
      : port_(std::move(port)),
        id_(port_->probed_.id),
        number_(number),
        mbufs_(port_->mbufs_[number].get()),
        refused_(&port_->refused_[number]),
        taken_(&port_->taken_[number]) {}

  std::size_t receive(std::span<SlotFrame> frames) override;
  std::size_t send(std::span<const SlotFrame> frames) override;
  PortCounters counters() const override { return port_->counters_of(number_); }
  std::uint32_t max_tx_bytes() const override { return port_->max_tx_bytes_; }
  std::string const& interface() const override { return port_->probed_.interface; }
  Status check_interface() override {
    return port_->if_index_ == 0 || is_present(port_->if_index_)
               ? absl::OkStatus()
               : gone(concat("dpdk ", port_->probed_.name), interface());
  }
  std::string describe() const override { return port_->describe(); }

 private:
  SlotFrame take(rte_mbuf& mbuf) const;

  std::shared_ptr<EthdevPort> port_;
  std::uint16_t id_;
  std::uint16_t number_;
  MbufPool* mbufs_;
  Counter* refused_;
  Counter* taken_;
};

std::string pci_address_of(std::string_view device) {
  const std::string name(device.substr(0, device.find(',')));
  rte_pci_addr address{};
  if (rte_pci_addr_parse(name.c_str(), &address) != 0) {
    return {};
  }
  char full[PCI_PRI_STR_SIZE] = "";
  rte_pci_device_name(&address, full, sizeof full);
  return full;
}

Result<EthdevPort::Probed> EthdevPort::probe(std::string const& device) {
  CATENA_RETURN_IF_ERROR(eal::start());
  std::string name = pci_address_of(device);
  const bool pci = !name.empty();
  if (pci) {
    CATENA_RETURN_IF_ERROR(check_pci(name));
  } else {
    name = device.substr(0, device.find(','));
  }
  CATENA_ASSIGN_OR_RETURN(std::string arguments, with_defaults(device));
  std::string interface = interface_of(device);
  CATENA_RETURN_IF_ERROR(check_interface_of(device, interface));
  std::optional<Found> found = find_port(name);
  if (!found.has_value()) {
    if (const int rc = rte_dev_probe(arguments.c_str()); rc != 0 && rc != -EEXIST) {
      const std::string_view help =
          pci ? ": is it present, and bound to vfio-pci (dpdk-devbind.py --bind=vfio-pci)?" : ": DPDK's log says more";
      return absl::NotFoundError(concat("dpdk ", device, ": no driver takes it: ", rte_strerror(std::abs(rc)), help));
    }
    found = find_port(name);
  }
  if (!found.has_value()) {
    return absl::NotFoundError(concat("dpdk ", device, ": the device has no Ethernet port"));
  }
  return Probed{std::move(arguments), std::move(name), std::move(interface), found->id, found->device, found->owned};
}

Result<std::vector<std::shared_ptr<Port>>> EthdevPort::open(std::string const& device,
                                                            std::span<memory::PacketPool* const> pools) {
  CATENA_ASSIGN_OR_RETURN(Probed probed, probe(device));
  if (probed.is_open) {
    return absl::AlreadyExistsError(concat("dpdk ", probed.name, ": is open already"));
  }
  const std::shared_ptr<EthdevPort> port(new EthdevPort(std::move(probed), pools));
  CATENA_RETURN_IF_ERROR(port->set_up());
  std::vector<std::shared_ptr<Port>> queues;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    queues.push_back(std::make_shared<Queue>(port, static_cast<std::uint16_t>(i)));
  }
  return queues;
}

Result<bool> EthdevPort::can_divide(std::string const& device, std::uint32_t queues) {
  if (!interface_of(device).empty()) {
    return false;  // drivers over the kernel's interfaces spread packets by its hash, which knows directions
  }
  CATENA_ASSIGN_OR_RETURN(const Probed probed, probe(device));
  rte_eth_dev_info info{};
  CATENA_RETURN_IF_ERROR(rte_eth_dev_info_get(probed.id, &info) == 0
                             ? absl::OkStatus()
                             : absl::UnavailableError(concat("dpdk ", probed.name, ": no device info")));
  return info.max_rx_queues >= queues && info.max_tx_queues >= queues &&
         (info.flow_type_rss_offloads & kLeastHashed) == kLeastHashed;
}

Status EthdevPort::check(int rc, std::string_view what) const {
  if (rc == 0) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(concat("dpdk ", probed_.name, ": ", what, ": ", rte_strerror(std::abs(rc))));
}

Status EthdevPort::set_up() {
  rte_eth_dev_owner owner{};
  CATENA_RETURN_IF_ERROR(check(rte_eth_dev_owner_new(&owner.id), "no owner number"));
  const std::size_t length = std::string_view("catena").copy(owner.name, sizeof owner.name - 1);
  owner.name[length] = '\0';
  CATENA_RETURN_IF_ERROR(check(rte_eth_dev_owner_set(probed_.id, &owner), "cannot be owned"));
  owned_ = true;
  for (memory::PacketPool* pool : pools_) {
    CATENA_ASSIGN_OR_RETURN(mbufs_.emplace_back(), MbufPool::of(*pool));
    refused_.emplace_back();
    taken_.emplace_back();
  }
  CATENA_RETURN_IF_ERROR(map_pools());
  CATENA_RETURN_IF_ERROR(configure());
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    CATENA_RETURN_IF_ERROR(set_up_queue(static_cast<std::uint16_t>(i)));
  }
  CATENA_RETURN_IF_ERROR(check(rte_eth_dev_start(probed_.id), "does not start"));
  started_ = true;
  if (const int rc = rte_eth_promiscuous_enable(probed_.id); rc != 0 && rc != -ENOTSUP) {
    return check(rc, "cannot be made promiscuous");
  }
  rte_eth_stats_reset(probed_.id);
  if (!wait_for_link()) {
    spdlog::warn("dpdk {}: the link is down; frames sent to it are dropped until it is up", probed_.name);
  }
  return absl::OkStatus();
}

Status EthdevPort::map_pools() {
  for (memory::PacketPool* pool : pools_) {
    const std::span<std::byte> memory = pool->arena().slot_bytes();
    const int rc =
        rte_dev_dma_map(probed_.device, memory.data(), reinterpret_cast<std::uint64_t>(memory.data()), memory.size());
    if (rc != 0) {
      // software devices need no mapping, and their bus says so
      return rte_errno == ENOTSUP ? absl::OkStatus() : check(rte_errno, "the packet pool cannot be mapped for DMA");
    }
    ++mapped_;
  }
  return absl::OkStatus();
}

Status EthdevPort::configure() {
  rte_eth_dev_info info{};
  CATENA_RETURN_IF_ERROR(check(rte_eth_dev_info_get(probed_.id, &info), "no device info"));
  driver_ = info.driver_name != nullptr ? info.driver_name : "?";
  rte_eth_conf config{};
  if (driver_ == kAfPacket) {
    // else the driver tries to put tags back itself, which it cannot in external buffers; restore_vlan_tag() does
    config.rxmode.offloads = info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_STRIP;
    const std::uint32_t room = argument(probed_.arguments, "framesz").value_or(kAfPacketFrameBytes) - kAfPacketOverhead;
    if_index_ = info.if_index;
    max_tx_bytes_ = std::min(interface_mtu(probed_.interface) + RTE_ETHER_HDR_LEN, room - RTE_VLAN_HLEN);
  }
  // a NIC of our own may carry every frame that a slot can hold; an interface of the kernel keeps its MTU
  constexpr std::uint32_t kMtu = packet::kMaxFrameBytes - kMaxL2Bytes;
  if (info.if_index == 0 && info.max_mtu >= kMtu && info.max_mtu != UINT16_MAX) {
    config.rxmode.mtu = kMtu;
  }
  std::vector<std::uint8_t> key = symmetric_key(info.hash_key_size != 0 ? info.hash_key_size : kUsualKeyBytes);
  if (pools_.size() > 1 && info.flow_type_rss_offloads != 0) {
    config.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    config.rx_adv_conf.rss_conf = {key.data(), static_cast<std::uint8_t>(key.size()),
                                   kHashed & info.flow_type_rss_offloads};
  }
  const auto queues = static_cast<std::uint16_t>(pools_.size());
  return check(rte_eth_dev_configure(probed_.id, queues, queues, &config), "cannot be configured");
}

Status EthdevPort::set_up_queue(std::uint16_t number) {
  memory::PacketPool const& pool = *pools_[number];
  // slots that wait in the driver are missing in the chain: at most half of a small pool
  auto rx_descriptors = static_cast<std::uint16_t>(std::min<std::uint32_t>(kDescriptors, pool.slots() / 4));
  std::uint16_t tx_descriptors = rx_descriptors;
  CATENA_RETURN_IF_ERROR(check(rte_eth_dev_adjust_nb_rx_tx_desc(probed_.id, &rx_descriptors, &tx_descriptors),
                               "the number of descriptors cannot be adjusted"));
  const std::uint32_t needed = std::uint32_t{rx_descriptors} + tx_descriptors + pool.unit_packets();
  if (needed > pool.slots()) {
    return absl::InvalidArgumentError(concat("dpdk ", probed_.name, ": the driver keeps up to ",
                                             needed - pool.unit_packets(), " packets: use a packet pool of more than ",
                                             needed, " slots, not ", pool.slots()));
  }
  const auto socket = static_cast<unsigned int>(rte_eth_dev_socket_id(probed_.id));
  CATENA_RETURN_IF_ERROR(check(
      rte_eth_rx_queue_setup(probed_.id, number, rx_descriptors, socket, nullptr, mbufs_[number]->mempool()),
      driver_ == kAfXdp ? "AF_XDP gives no receive queue over the packet pool: write `dev: INTERFACE` in place of "
                          "this device"
                        : "no receive queue"));
  return check(rte_eth_tx_queue_setup(probed_.id, number, tx_descriptors, socket, nullptr), "no transmit queue");
}

bool EthdevPort::wait_for_link() const {
  for (auto waited = std::chrono::milliseconds{0}; waited < kLinkWait; waited += kLinkPoll) {
    rte_eth_link link{};
    if (rte_eth_link_get_nowait(probed_.id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP) {
      return true;
    }
    std::this_thread::sleep_for(kLinkPoll);
  }
  return false;
}

std::size_t EthdevPort::Queue::receive(std::span<SlotFrame> frames) {
  std::array<rte_mbuf*, kBurst> mbufs;
  const std::size_t received =
      rte_eth_rx_burst(id_, number_, mbufs.data(), static_cast<std::uint16_t>(std::min(frames.size(), mbufs.size())));
  for (std::size_t i = 0; i < received; ++i) {
    frames[i] = take(*mbufs[i]);
  }
  return received;
}

SlotFrame EthdevPort::Queue::take(rte_mbuf& mbuf) const {
  restore_vlan_tag(mbuf);
  if (mbuf.nb_segs != 1 || mbuf.data_len > packet::kMaxFrameBytes) {
    rte_pktmbuf_free(&mbuf);
    return {kTooLong, 0, 0};
  }
  return {mbufs_->slot_of(mbuf), mbuf.data_off, mbuf.data_len};
}

std::size_t EthdevPort::Queue::send(std::span<const SlotFrame> frames) {
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
  const std::size_t taken = rte_eth_tx_burst(id_, number_, mbufs.data(), static_cast<std::uint16_t>(offered));
  *refused_ += offered - taken;
  *taken_ += taken;
  return taken;
}

PortCounters EthdevPort::counters_of(std::size_t queue) const {
  rte_eth_stats stats{};
  rte_eth_stats_get(probed_.id, &stats);
  const std::uint64_t refused = std::accumulate(refused_.begin(), refused_.end(), std::uint64_t{0});
  const std::uint64_t taken = std::accumulate(taken_.begin(), taken_.end(), std::uint64_t{0});
  const auto before =
      std::accumulate(taken_.begin(), taken_.begin() + static_cast<std::ptrdiff_t>(queue), std::uint64_t{0});
  const std::uint64_t own = taken_[queue];
  // some drivers count as an error what they did not take, too. Whose the others were nobody says: the first queues'
  const std::uint64_t errors = stats.oerrors - std::min<std::uint64_t>(stats.oerrors, refused);
  const std::uint64_t own_errors = std::min(errors - std::min(errors, before), own);
  // of what the device has still to send, all may be this queue's
  const std::uint64_t waiting = taken - std::min<std::uint64_t>(taken, stats.opackets + errors);
  PortCounters counters;
  counters.tx_errors = own_errors;
  counters.sent = own - own_errors - std::min(own - own_errors, waiting);
  if (queue == 0) {
    counters.missed = stats.imissed;
    counters.no_slot = stats.rx_nombuf;
    counters.rx_errors = stats.ierrors;
  }
  return counters;
}

std::string EthdevPort::describe() const {
  rte_eth_link link{};
  const bool up = rte_eth_link_get_nowait(probed_.id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
  const std::string queues = pools_.size() > 1 ? concat(", ", pools_.size(), " queues") : "";
  return concat("dpdk ", probed_.name, " (", driver_, queues, ", link ", up ? "up)" : "down)");
}

EthdevPort::~EthdevPort() {
  if (!owned_) {
    return;
  }
  if (started_) {
    rte_eth_dev_stop(probed_.id);
  }
  rte_eth_dev_close(probed_.id);
  for (memory::PacketPool* pool : std::span(pools_).first(mapped_)) {
    const std::span<std::byte> memory = pool->arena().slot_bytes();
    rte_dev_dma_unmap(probed_.device, memory.data(), reinterpret_cast<std::uint64_t>(memory.data()), memory.size());
  }
  rte_dev_remove(probed_.device);  // so that the device can be opened again
}

}  // namespace catena::io
