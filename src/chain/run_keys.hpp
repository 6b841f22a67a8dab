// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/keys.hpp"
#include "chain/run_config.hpp"

#include <span>

namespace catena::chain {

/// The rows of `spec` for a RunConfig.
std::span<const Key> run_keys();

}  // namespace catena::chain
