// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/port_switch.hpp"
#include "io/shared_port.hpp"
#include "packet/memory/packet_pool.hpp"

#include <catena/core/status.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace catena::io {

/// The shared ports of a process. The first chain opens a shared port, with packet memory of its own, and the last one
/// closes it. A thread finds the chain of each arriving frame (see TrafficTable) and copies the frame to a slot of this
/// chain's pool; it also sends the chains' frames. So no chain can access the memory of another, and a slow chain loses
/// only its own frames (`missed`: too many are waiting; `no_slot`: no free slot).
///
/// Thread rule: any thread. The returned ports keep it alive.
class SharedPortRegistry : public std::enable_shared_from_this<SharedPortRegistry> {
 public:
  using Open = PortSwitch::Open;
  explicit SharedPortRegistry(Open open) : open_(std::move(open)) {}
  SharedPortRegistry(SharedPortRegistry const&) = delete;
  SharedPortRegistry& operator=(SharedPortRegistry const&) = delete;

  /// The chain's side of the shared port, with slots of `pool`, which must outlive it. No frame arrives there before
  /// start_receiving() or after stop_receiving(). list() has the counters for the whole port. Errors:
  ///   AlreadyExists       another chain, not stopped, has a match equal to or crossing one of these
  ///   InvalidArgument     the port is open with other parameters
  ///   ResourceExhausted   no thread, no descriptor, no packet memory
  ///   else                as the port's
  Result<std::shared_ptr<Port>> attach(std::string const& device, PortMember member, memory::PacketPool& pool);
  /// The open ports, by name, with the chains that receive from them or only send.
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
