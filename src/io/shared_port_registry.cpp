// SPDX-License-Identifier: Apache-2.0
#include "io/shared_port_registry.hpp"

#include <catena/core/text.hpp>

namespace catena::io {

Result<std::shared_ptr<Port>> SharedPortRegistry::attach(std::string const& device, PortMember member,
                                                         memory::PacketPool& pool) {
  const std::string name = shared_name(device);
  auto port = std::make_shared<PortSwitch::Member>(
      std::move(member), pool,
      [self = shared_from_this(), name](PortSwitch::Member& leaving) { self->detach(name, leaving); });
  if (port->readable_when_received() < 0) {
    return absl::ResourceExhaustedError("no descriptor for a shared port");
  }
  const std::lock_guard lock(mutex_);
  Opened& opened = opened_[name];
  if (opened.port == nullptr) {
    opened.device = device;
    Result<std::unique_ptr<PortSwitch>> made = PortSwitch::open(name, device, open_);
    if (!made.ok()) {
      opened_.erase(name);
      return made.status();
    }
    opened.port = *std::move(made);
  } else if (opened.device != device) {
    return absl::InvalidArgumentError(
        concat("dpdk ", device, ": another chain has the port as '", opened.device, "'; write the same"));
  }
  // of an interface that was removed, and perhaps made anew: its chains let go of it in a moment
  Status joined = opened.port->port().check_interface();
  if (joined.ok()) {
    joined = opened.port->add(*port);
  }
  if (joined.ok()) {
    ++opened.members;
    return port;
  }
  if (opened.members == 0) {
    opened_.erase(name);
  }
  return joined;
}

void SharedPortRegistry::detach(std::string const& name, PortSwitch::Member& member) {
  const std::lock_guard lock(mutex_);
  const auto found = opened_.find(name);
  found->second.port->remove(member);
  if (--found->second.members == 0) {
    opened_.erase(found);
  }
}

std::vector<SharedPort> SharedPortRegistry::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<SharedPort> all;
  for (auto const& [name, opened] : opened_) {
    all.push_back(opened.port->view());
  }
  return all;
}

}  // namespace catena::io
