// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace catena::runtime {

/// The known losses of the replacement of a running chain.
struct Losses {
  std::string packets = {};  ///< why packets arriving during the replacement are lost; empty: no such reason
  std::vector<std::string> nf_states = {};  ///< names of the NFs restarting without their state

  bool empty() const { return packets.empty() && nf_states.empty(); }
};

/// One text per loss, for messages.
std::vector<std::string> describe(Losses const& losses);

}  // namespace catena::runtime
