// SPDX-License-Identifier: Apache-2.0
#include "pipeline/losses.hpp"

#include <catena/core/text.hpp>

namespace catena::runtime {

std::vector<std::string> describe(Losses const& losses) {
  std::vector<std::string> texts;
  if (!losses.packets.empty()) {
    texts.push_back(concat("packets that arrive during the replacement (", losses.packets, ")"));
  }
  for (std::string const& nf : losses.nf_states) {
    texts.push_back(concat("the state of NF '", nf, "'"));
  }
  return texts;
}

}  // namespace catena::runtime
