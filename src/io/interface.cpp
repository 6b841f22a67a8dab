// SPDX-License-Identifier: Apache-2.0
#include "io/interface.hpp"

#include "io/dpdk/ethdev_port.hpp"

#include <arpa/inet.h>
#include <linux/capability.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <catena/core/decimal.hpp>
#include <catena/core/text.hpp>
#include <catena/packet/headers.hpp>
#include <catena/packet/slot.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>
#include <utility>

namespace catena::io {
namespace {

constexpr std::string_view kDriver = "net_af_packet";
constexpr std::string_view kXdpDriver = "net_af_xdp";
constexpr std::string_view kInterfaceKey = ",iface=";
/// Rings of a socket that are locked in memory; below this limit that takes cap_ipc_lock.
constexpr rlim_t kLockedBytes = rlim_t{64} << 20;
/// Frames that are inspected for checksums that a sender left to a NIC.
constexpr std::uint32_t kWatchedFrames = 64;
constexpr std::uint32_t kUsualMtu = 1500;

/// A socket for requests about interfaces; closed with it.
class RequestSocket {
 public:
  RequestSocket() : socket_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}
  ~RequestSocket() {
    if (socket_ >= 0) {
      close(socket_);
    }
  }
  RequestSocket(RequestSocket const&) = delete;
  RequestSocket& operator=(RequestSocket const&) = delete;
  bool ask(unsigned long request, ifreq& about) const { return socket_ >= 0 && ioctl(socket_, request, &about) == 0; }

 private:
  int socket_;
};

ifreq request_for(std::string const& interface) {
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  return request;
}

std::uint32_t ask_ethtool(RequestSocket const& kernel, std::string const& interface, std::uint32_t command) {
  ifreq request = request_for(interface);
  struct ethtool_value value {
    command, 0
  };
  request.ifr_data = reinterpret_cast<char*>(&value);
  return kernel.ask(SIOCETHTOOL, request) ? value.data : 0;
}

bool has_flag(std::string const& interface, int flag) {
  ifreq request = request_for(interface);
  return RequestSocket().ask(SIOCGIFFLAGS, request) && (request.ifr_flags & flag) != 0;
}

std::uint64_t effective_capabilities() {
  std::ifstream status("/proc/thread-self/status");
  for (std::string word; status >> word;) {
    if (word == "CapEff:") {
      std::uint64_t bits = 0;
      status >> std::hex >> bits;
      return bits;
    }
  }
  return 0;
}

std::string own_program() {
  std::array<char, 4096> path{};
  const ssize_t bytes = readlink("/proc/self/exe", path.data(), path.size() - 1);
  return bytes > 0 ? std::string(path.data(), static_cast<std::size_t>(bytes)) : "$(command -v catena)";
}

/// The checksum of a TCP or UDP header as Linux leaves it to a NIC: the folded sum of the pseudo header alone.
bool is_only_begun(const std::uint8_t* frame, std::uint32_t length, packet::Layers const& layers) {
  const std::uint8_t* ip = frame + layers.l3;
  const std::uint32_t bytes = packet::l3_length(frame, length, layers) - (layers.l4 - layers.l3);
  const bool tcp = (layers.flags & packet::kTcp) != 0;
  std::uint64_t sum = packet::checksum_add(ip + 12, 8);
  sum += (tcp ? packet::kProtocolTcp : packet::kProtocolUdp) + bytes;
  const std::uint16_t begun = static_cast<std::uint16_t>(~packet::checksum_finish(sum));
  if (packet::load_be16(frame + layers.l4 + (tcp ? 16 : 6)) != begun) {
    return false;
  }
  return packet::checksum_finish(packet::checksum_add(frame + layers.l4, bytes, sum)) != 0;
}

/// The value of a key of an EAL device string, `key` with the comma before it; empty without it.
std::string value_of(std::string_view device, std::string_view key) {
  const std::size_t at = device.find(key);
  if (at == std::string_view::npos) {
    return {};
  }
  const std::string_view value = device.substr(at + key.size());
  return std::string(value.substr(0, value.find(',')));
}

/// AF_XDP sockets are of one receive queue each.
Status find_queues(std::string const& interface, std::string_view device) {
  const auto number = [device](std::string_view key, std::uint64_t otherwise) {
    return parse_decimal(value_of(device, key), std::numeric_limits<std::uint32_t>::max()).value_or(otherwise);
  };
  const std::uint64_t needed = number(",start_queue=", 0) + number(",queue_count=", 1);
  std::error_code error;
  std::uint64_t queues = 0;
  for (auto const& queue :
       std::filesystem::directory_iterator(concat("/sys/class/net/", interface, "/queues"), error)) {
    queues += queue.path().filename().string().starts_with("rx-") ? 1 : 0;
  }
  if (error || queues >= needed) {
    return absl::OkStatus();
  }
  return absl::NotFoundError(concat("interface ", interface, " has ", queues, " receive queues, and '", device,
                                    "' names ", needed, "; `ethtool -l ", interface, "` shows how many it may have"));
}

}  // namespace

std::string interface_device(std::string_view interface) {
  return concat(kDriver, "_", interface, kInterfaceKey, interface);
}

std::string interface_of(std::string_view device) {
  return device.starts_with(kDriver) ? value_of(device, kInterfaceKey) : std::string();
}

Status may_open_interfaces() {
  const std::uint64_t held = effective_capabilities();
  const auto has = [held](unsigned capability) { return (held >> capability & 1U) != 0; };
  std::string missing;
  const auto need = [&missing](std::string_view name) { missing += concat(missing.empty() ? "" : ", ", name); };
  if (!has(CAP_NET_RAW)) {
    need("cap_net_raw");
  }
  if (!has(CAP_NET_ADMIN)) {
    need("cap_net_admin");
  }
  rlimit locked{};
  if (!has(CAP_IPC_LOCK) && getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur < kLockedBytes) {
    need("cap_ipc_lock");
  }
  if (missing.empty()) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(concat("this process lacks ", missing,
                                            ", which packet sockets need: run it as root, or once: sudo setcap ",
                                            "cap_net_raw,cap_net_admin,cap_ipc_lock+ep ", own_program()));
}

std::vector<std::string> interfaces() {
  std::vector<std::string> names;
  struct if_nameindex* list = if_nameindex();
  for (struct if_nameindex* entry = list; entry != nullptr && entry->if_name != nullptr; ++entry) {
    if (std::string_view(entry->if_name) != "lo") {
      names.emplace_back(entry->if_name);
    }
  }
  if_freenameindex(list);
  return names;
}

Status find_interface(std::string const& interface) {
  if (if_nametoindex(interface.c_str()) != 0) {
    return absl::OkStatus();
  }
  std::string known;
  for (std::string const& name : interfaces()) {
    known += concat(known.empty() ? "" : ", ", name);
  }
  return absl::NotFoundError(concat("no interface is named '", interface, "' here; ",
                                    known.empty() ? "only lo exists" : "available: ", known));
}

Status find_device(std::string const& device) {
  const bool is_xdp = device.starts_with(kXdpDriver);
  if (const std::string interface = is_xdp ? value_of(device, kInterfaceKey) : interface_of(device);
      !interface.empty()) {
    CATENA_RETURN_IF_ERROR(find_interface(interface));
    return is_xdp ? find_queues(interface, device) : absl::OkStatus();
  }
  const std::string address = pci_address_of(device);
  if (address.empty()) {
    return absl::OkStatus();
  }
  std::error_code error;
  if (!std::filesystem::exists(std::filesystem::path("/sys/bus/pci/devices") / address, error)) {
    return absl::NotFoundError(concat("no PCI device is named '", address, "' here; `lspci -D` lists them"));
  }
  return absl::OkStatus();
}

std::vector<InterfaceHint> check_interface(std::string const& interface) {
  const RequestSocket kernel;
  std::vector<InterfaceHint> hint;
  ifreq flags = request_for(interface);
  if (kernel.ask(SIOCGIFFLAGS, flags) && (flags.ifr_flags & IFF_UP) == 0) {
    hint.push_back({concat(interface, " is down"), concat("sudo ip link set ", interface, " up")});
  }
  const bool gro = ask_ethtool(kernel, interface, ETHTOOL_GGRO) != 0;
  const bool lro = (ask_ethtool(kernel, interface, ETHTOOL_GFLAGS) & ETH_FLAG_LRO) != 0;
  if (gro || lro) {
    hint.push_back({concat(interface, " merges received packets into packets too long to forward (", gro ? "GRO" : "",
                           gro && lro ? ", " : "", lro ? "LRO" : "", " is on)"),
                    concat("sudo ethtool -K ", interface, gro ? " gro off" : "", lro ? " lro off" : "")});
  }
  return hint;
}

Status prepare_interface(std::string const& interface) {
  CATENA_RETURN_IF_ERROR(may_open_interfaces());
  CATENA_RETURN_IF_ERROR(find_interface(interface));
  for (InterfaceHint const& hint : check_interface(interface)) {
    spdlog::warn("{}: {}", hint.text, hint.fix);
  }
  return absl::OkStatus();
}

std::uint32_t interface_mtu(std::string const& interface) {
  ifreq request = request_for(interface);
  return RequestSocket().ask(SIOCGIFMTU, request) ? static_cast<std::uint32_t>(request.ifr_mtu) : kUsualMtu;
}

bool is_up(std::string const& interface) { return has_flag(interface, IFF_UP); }

bool is_running(std::string const& interface) { return has_flag(interface, IFF_RUNNING); }

bool cuts_segments(std::string const& interface) {
  const RequestSocket kernel;
  ifreq request = request_for(interface);
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  request.ifr_data = reinterpret_cast<char*>(&info);
  const bool is_known = kernel.ask(SIOCETHTOOL, request);
  const std::string_view driver(info.driver, strnlen(info.driver, sizeof info.driver));
  if (is_known && driver == "bridge") {
    return false;  // its ports have offloads of their own, which change without it
  }
  if (ask_ethtool(kernel, interface, ETHTOOL_GTSO) == 0 && ask_ethtool(kernel, interface, ETHTOOL_GTXCSUM) == 0) {
    return true;
  }
  // of the bus, virtual interfaces say "tun", "N/A" and the like. Those below are PCI devices, and their hosts cut late
  const std::string bus(info.bus_info, strnlen(info.bus_info, sizeof info.bus_info));
  std::error_code error;
  return is_known && driver != "virtio_net" && driver != "vmxnet3" && !bus.empty() &&
         std::filesystem::exists(std::filesystem::path("/sys/bus/pci/devices") / bus, error);
}

bool is_present(unsigned int index) {
  std::array<char, IF_NAMESIZE> name{};
  return if_indextoname(index, name.data()) != nullptr;
}

Status bind_packet_socket(int socket, unsigned int index, int protocol) {
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(static_cast<std::uint16_t>(protocol));
  address.sll_ifindex = static_cast<int>(index);
  return bind(socket, reinterpret_cast<sockaddr const*>(&address), sizeof address) == 0
             ? absl::OkStatus()
             : absl::ErrnoToStatus(errno, "the packet socket cannot be bound");
}

Status receive_all_frames(int socket, unsigned int index) {
  CATENA_RETURN_IF_ERROR(bind_packet_socket(socket, index, ETH_P_ALL));
  packet_mreq promiscuous{};
  promiscuous.mr_ifindex = static_cast<int>(index);
  promiscuous.mr_type = PACKET_MR_PROMISC;
  return setsockopt(socket, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous) == 0
             ? absl::OkStatus()
             : absl::ErrnoToStatus(errno, "cannot be made promiscuous");
}

Status gone(std::string_view who, std::string_view interface) {
  return absl::UnavailableError(
      concat(who, ": interface ", interface, " is gone: it was removed, or moved to another namespace"));
}

OffloadWatch::OffloadWatch(std::string interface)
    : interface_(std::move(interface)), frames_left_(interface_.empty() ? 0 : kWatchedFrames) {}

void OffloadWatch::saw(const std::uint8_t* frame, std::uint32_t bytes) {
  const packet::Layers layers = packet::parse(frame, bytes);
  if (frames_left_ == 0 || (layers.flags & packet::kPorts) == 0 || (layers.flags & packet::kFragment) != 0) {
    return;
  }
  --frames_left_;
  if (is_only_begun(frame, bytes, layers)) {
    frames_left_ = 0;
    spdlog::warn(
        "{}: TCP or UDP packets arrive whose checksum was left to a NIC; receivers will drop them. Where they are sent "
        "from (for a veth: its other end): ethtool -K INTERFACE tx off",
        interface_);
  }
}

void OffloadWatch::saw_too_long() {
  if (!interface_.empty() && !std::exchange(told_too_long_, true)) {
    spdlog::warn(
        "{}: frames longer than {} bytes arrive and are dropped (too_long): unsegmented (left to a NIC) or "
        "merged packets. Here: ethtool -K {} gro off lro off. Where they are sent from (for a veth: its other end): "
        "ethtool -K "
        "INTERFACE tso off gso off",
        interface_, packet::kMaxFrameBytes, interface_);
  }
}

}  // namespace catena::io
