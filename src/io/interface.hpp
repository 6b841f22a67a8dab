// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Interfaces of the kernel that packets come from and go to (AF_PACKET): what a user has to know before they work.
/// Thread rule: any thread.
namespace catena::io {

/// The EAL device string of the interface, for what chain files and options call `dev:NAME`.
std::string interface_device(std::string_view interface);
/// The interface of such a device string, or of another one of net_af_packet; empty for any other device.
std::string interface_of(std::string_view device);

/// Whether packet sockets may be used. PermissionDenied names the capabilities that are missing and how to give them.
Status may_open_interfaces();

/// Whether the interface is there. NotFound names those that are.
Status find_interface(std::string const& interface);

/// Something that an operator should change, and the command that does it.
struct Advice {
  std::string text;
  std::string fix;
};
/// What keeps the interface from working well: it is down, or merges received packets (GRO, LRO). Empty if nothing, and
/// where the kernel does not tell.
std::vector<Advice> check_interface(std::string const& interface);

/// Names of the interfaces here, the loopback left out.
std::vector<std::string> interfaces();

/// Looks for signs that a sender left work to a NIC that no NIC does on the way here (virtual links), and says so in
/// the log, once each. One thread at a time.
class OffloadWatch {
 public:
  /// `interface`: empty where the port is none; then nothing is watched.
  explicit OffloadWatch(std::string interface);
  bool is_watching() const { return frames_left_ > 0; }
  /// A frame as it came in, whole: whether its TCP or UDP checksum is only begun (the sum of the pseudo header, as
  /// Linux leaves it to a NIC). Only the first frames are inspected.
  void saw(const std::uint8_t* frame, std::uint32_t bytes);
  /// A frame was longer than a slot: a segment that a NIC was to cut.
  void saw_too_long();

 private:
  std::string interface_;
  std::uint32_t frames_left_ = 0;
  bool told_too_long_ = false;
};

/// Whether this process may use the interface and it is there; logs what check_interface() says. PermissionDenied,
/// NotFound.
Status prepare_interface(std::string const& interface);
/// 1500 where the kernel does not say.
std::uint32_t interface_mtu(std::string const& interface);
bool is_up(std::string const& interface);
bool is_running(std::string const& interface);
/// Whether segments that the kernel is given as one frame are cut, with right checksums, before anybody else sees them:
/// by the kernel, or by a NIC. A virtual interface that claims to do either (tso, tx) hands them on as they are; so may
/// a bridge whatever it claims.
bool cuts_segments(std::string const& interface);
bool is_present(unsigned int index);
/// Unavailable: `who`'s interface was removed.
Status gone(std::string_view who, std::string_view interface);

}  // namespace catena::io
