// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/flow.hpp"
#include "chain/keys.hpp"

#include <cstdint>
#include <vector>

namespace catena::chain {

/// `flow:` of `spec`; the defaults of FlowConfig without it. InvalidArgument at file:line:column.
Result<FlowConfig> read_flow(FileSection& spec);

/// The key in the first word of `config.key_file`. InvalidArgument at file:line:column, with the expected contents; the
/// system's error if the file cannot be read.
Result<std::vector<std::uint8_t>> read_signal_key(FlowSignalsConfig const& config);

}  // namespace catena::chain
