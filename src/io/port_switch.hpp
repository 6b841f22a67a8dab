// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/port.hpp"
#include "io/traffic_match.hpp"
#include "memory/packet_pool.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

/// Ports that several chains have at a time.
namespace catena::io {

/// A chain at a shared port.
struct PortMember {
  std::string chain;
  std::vector<TrafficMatch> matches;  ///< of what arrives, those are the chain's that meet one; none: it only sends
};

/// What a shared port did since it was opened.
struct SharedPort {
  std::string name;      ///< as shared_name()
  std::string describe;  ///< as Port::describe()
  std::vector<PortMember> members;
  std::uint64_t received = 0;   ///< frames that came from the port, `unmatched` and `too_long` included
  std::uint64_t unmatched = 0;  ///< frames that no chain wants, and which were dropped
  std::uint64_t too_long = 0;   ///< longer than packet::kMaxFrameBytes, and dropped
  PortCounters port;            ///< of the port itself; what is missed there is nobody's and everybody's
  std::uint64_t busy_ns = 0;    ///< what its thread worked, looking for frames in vain left out
};

/// "interface eth0" or "device net_ring0": what no two may open at a time.
std::string shared_name(std::string const& device);

/// The first pair of matches of two chains that are the same or cross, so that it would not be clear whose a frame is,
/// in words; empty: there is none.
std::string conflict(PortMember const& a, PortMember const& b);

/// The shared ports of a process. A shared port is opened by the first chain that wants it, with packet memory of its
/// own, and closed when the last one has let go of it. A thread looks whose each frame is that arrives (see
/// TrafficTable) and copies it into a slot of that chain's pool, and sends what chains give: so no chain has the
/// memory of another, and one that is slow loses its own frames alone (`missed`: it has too many waiting; `no_slot`:
/// it has no slot).
///
/// Thread rule: any thread. The ports that it gives keep it alive.
class PortSwitches : public std::enable_shared_from_this<PortSwitches> {
 public:
  /// Opens the port of a device with a queue for that pool, which outlives it.
  using Open = std::function<Result<std::shared_ptr<Port>>(std::string const& device, memory::PacketPool& pool)>;
  explicit PortSwitches(Open open);
  ~PortSwitches();
  PortSwitches(PortSwitches const&) = delete;
  PortSwitches& operator=(PortSwitches const&) = delete;

  /// The chain's own side of the shared port, whose slots are those of `pool`, which must outlive it. What the port
  /// has counted for all is in list(). Errors:
  ///   AlreadyExists       a chain that is there has a match which is the same or crosses one of these
  ///   InvalidArgument     the port is open with other parameters
  ///   ResourceExhausted   no thread, no descriptor, no packet memory
  ///   else                as the port's
  Result<std::shared_ptr<Port>> attach(std::string const& device, PortMember member, memory::PacketPool& pool);
  /// Those that are open, by name.
  std::vector<SharedPort> list() const;

  /// Frames for a chain, and of a chain, that may wait; fewer where its pool is small.
  static constexpr std::uint32_t kMaxWaiting = 4096;
  /// Packet memory of a shared port.
  static constexpr std::uint32_t kSlots = 4096;

 private:
  class Switch;
  class MemberPort;
  struct Opened {
    std::string device;
    std::unique_ptr<Switch> port;
    std::size_t members = 0;
  };
  void detach(std::string const& name, MemberPort& member);

  Open open_;
  mutable std::mutex mutex_;
  std::map<std::string, Opened> opened_;
};

}  // namespace catena::io
