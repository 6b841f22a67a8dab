// SPDX-License-Identifier: Apache-2.0
#include "chain/nf_costs.hpp"

#include <gtest/gtest.h>

namespace catena::chain {
namespace {
}  // namespace
}  // namespace catena::chain
