// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Kernel interfaces as ports (AF_PACKET): their requirements, and checks of them. Thread rule: any thread.
namespace catena::io {

/// The EAL device string of the interface, which chain files and options call `dev:NAME`.
std::string interface_device(std::string_view interface);
/// The interface of this or any other net_af_packet device string; empty for other devices.
std::string interface_of(std::string_view device);

/// Whether packet sockets may be used. PermissionDenied names the missing capabilities and how to grant them.
Status may_open_interfaces();

/// Whether the interface exists. NotFound lists the existing ones.
Status find_interface(std::string const& interface);

/// Whether the device of this EAL device string is on this machine: the interface of net_af_packet and net_af_xdp (with
/// the receive queues of the latter), a PCI device. OK for all other devices: DPDK makes them. Errors: NotFound.
Status find_device(std::string const& device);

/// A recommended change for the operator, and the command for it.
struct InterfaceHint {
  std::string text;
  std::string fix;
};
/// Problems of the interface: it is down, or merges received packets (GRO, LRO). Empty without problems, or if the
/// kernel does not report them.
std::vector<InterfaceHint> check_interface(std::string const& interface);

/// Names of the interfaces of this machine, except the loopback.
std::vector<std::string> interfaces();

/// Detects frames with work left to a NIC by their sender although their path has no NIC (virtual links), and logs each
/// kind once. One thread at a time.
class OffloadWatch {
 public:
  /// `interface`: empty if the port has no interface, which disables the watch.
  explicit OffloadWatch(std::string interface);
  bool is_watching() const { return frames_left_ > 0; }
  /// Checks a complete frame as received: whether its TCP or UDP checksum is only begun (the sum of the pseudo header,
  /// as Linux leaves it to a NIC). Only the first frames are inspected.
  void saw(const std::uint8_t* frame, std::uint32_t bytes);
  /// A frame was longer than a slot: a segment that a NIC should have cut.
  void saw_too_long();

 private:
  std::string interface_;
  std::uint32_t frames_left_ = 0;
  bool told_too_long_ = false;
};

/// Whether this process may use the interface and the interface exists. Logs the results of check_interface().
/// PermissionDenied, NotFound.
Status prepare_interface(std::string const& interface);
/// 1500 if the kernel does not report it.
std::uint32_t interface_mtu(std::string const& interface);
bool is_up(std::string const& interface);
bool is_running(std::string const& interface);
/// Whether segments passed to the kernel as one frame are cut, with correct checksums, by the kernel or a NIC, before
/// any receiver sees them. A virtual interface that claims either (tso, tx) forwards them uncut; so may a bridge,
/// regardless of its claims.
bool cuts_segments(std::string const& interface);
bool is_present(unsigned int index);
/// Binds a packet socket to the interface `index`. `protocol`: an EtherType or ETH_P_ALL of the frames to receive; 0:
/// it only sends. The system's error.
Status bind_packet_socket(int socket, unsigned int index, int protocol);
/// Likewise, for all frames of the interface and any MAC. The system's error, with the failed step.
Status receive_all_frames(int socket, unsigned int index);
/// Unavailable: the named port's interface was removed.
Status gone(std::string_view who, std::string_view interface);

}  // namespace catena::io
