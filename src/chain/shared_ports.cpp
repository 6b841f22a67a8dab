// SPDX-License-Identifier: Apache-2.0
#include "chain/shared_ports.hpp"

#include "chain/match_keys.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace catena::chain {

Status read_sharing(FileSection& section, PortConfig& port) {
  if (!section.has("shared")) {
    return absl::OkStatus();
  }
  if (port.devices.empty()) {
    return section.config().error("shared", "'shared' goes with `dev` and `dpdk` only");
  }
  CATENA_ASSIGN_OR_RETURN(port.is_shared, section.config().boolean_or("shared", false));
  return absl::OkStatus();
}

Status read_matches(FileSection& section, PortConfig& port) {
  if (!section.has("match")) {
    port.matches.resize(port.is_shared ? 1 : 0);  // all frames
    return absl::OkStatus();
  }
  if (!port.is_shared) {
    return section.config().error("match",
                                  "'match' is for ports (`dev`, `dpdk`) shared with other chains; add `shared: true`");
  }
  CATENA_ASSIGN_OR_RETURN(std::vector<FileSection> entries, section.sections("match"));
  if (entries.empty()) {
    return section.config().error("match",
                                  "'match' is empty; leave it out for all frames not matched by another chain");
  }
  for (FileSection& entry : entries) {
    CATENA_ASSIGN_OR_RETURN(const io::TrafficMatch match, read_match(entry));
    if (match == io::TrafficMatch()) {
      return entry.config().error(
          "vlan",
          "an entry of 'match' needs a condition; leave out `match` for all frames not matched by another chain");
    }
    port.matches.push_back(match);
  }
  return absl::OkStatus();
}

Status check_sharing(FileSection& spec, PortConfig const& rx, PortConfig const& tx) {
  for (std::string const& device : rx.devices) {
    if (rx.is_shared != tx.is_shared && std::find(tx.devices.begin(), tx.devices.end(), device) != tx.devices.end()) {
      return spec.config().error("tx",
                                 concat("'", device, "' is shared in ", rx.is_shared ? "rx" : "tx", " and not in ",
                                        rx.is_shared ? "tx" : "rx", "; write `shared: true` in both"));
    }
  }
  return absl::OkStatus();
}

}  // namespace catena::chain
