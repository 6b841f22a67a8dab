// SPDX-License-Identifier: Apache-2.0
#include "chain/machine_check.hpp"

#include "io/interface.hpp"

#include <catena/core/status.hpp>
#include <catena/core/text.hpp>

namespace catena::chain {

std::vector<std::string> missing_devices(ChainConfig const& config) {
  std::vector<std::string> missing;
  for (PortConfig const* port : {&config.rx, &config.tx}) {
    for (std::string const& device : port->devices) {
      if (const Status found = io::find_device(device); !found.ok()) {
        missing.push_back(concat(port->position, ": ", std::string(found.message())));
      }
    }
  }
  return missing;
}

}  // namespace catena::chain
