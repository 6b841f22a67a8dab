// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/port_switch.hpp"
#include "io/shared_port.hpp"
#include "memory/packet_pool.hpp"

#include <catena/core/status.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace catena::io {

/// The shared ports of a process. A shared port is opened by the first chain that wants it, with packet memory of its
/// own, and closed when the last one has let go of it. A thread looks whose each frame is that arrives (see
/// TrafficTable) and copies it into a slot of that chain's pool, and sends what chains give: so no chain has the
/// memory of another, and one that is slow loses its own frames alone (`missed`: it has too many waiting; `no_slot`:
/// it has no slot).
///
/// Thread rule: any thread. The ports that it gives keep it alive.
class PortSwitches : public std::enable_shared_from_this<PortSwitches> {
 public:
  using Open = PortSwitch::Open;
  explicit PortSwitches(Open open) : open_(std::move(open)) {}
  PortSwitches(PortSwitches const&) = delete;
  PortSwitches& operator=(PortSwitches const&) = delete;

  /// The chain's own side of the shared port, whose slots are those of `pool`, which must outlive it. Nothing arrives
  /// there before its start_receiving(), or after its stop_receiving(). What the port has counted for all is in list().
  /// Errors:
  ///   AlreadyExists       a chain that is there, and has not stopped, has a match which is the same or crosses one of
  ///                       these
  ///   InvalidArgument     the port is open with other parameters
  ///   ResourceExhausted   no thread, no descriptor, no packet memory
  ///   else                as the port's
  Result<std::shared_ptr<Port>> attach(std::string const& device, PortMember member, memory::PacketPool& pool);
  /// Those that are open, by name, with the chains that receive there, or only send.
  std::vector<SharedPort> list() const;

 private:
  struct Opened {
    std::string device;
    std::unique_ptr<PortSwitch> port;
    std::size_t members = 0;
  };
  void detach(std::string const& name, PortSwitch::Member& member);

  Open open_;
  mutable std::mutex mutex_;
  std::map<std::string, Opened> opened_;
};

}  // namespace catena::io
