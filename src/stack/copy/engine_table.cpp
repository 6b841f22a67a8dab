// SPDX-License-Identifier: Apache-2.0
#include "stack/copy/engine_table.hpp"

#include <span>

#include "gpu/copy/kernel_engine.hpp"
#include "io/eal/dmadev_engine.hpp"

namespace catena::stack {

std::vector<hostcopy::EngineKind> engine_table() {
  std::vector<hostcopy::EngineKind> table;
  for (const std::span<const hostcopy::EngineKind> kinds :
       {hostcopy::engine_kinds(), eal::dmadev_engine_kinds(), copy::kernel_engine_kinds()}) {
    table.insert(table.end(), kinds.begin(), kinds.end());
  }
  return table;
}

}  // namespace catena::stack
