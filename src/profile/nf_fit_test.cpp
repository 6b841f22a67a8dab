// SPDX-License-Identifier: Apache-2.0
#include "profile/nf_fit.hpp"

#include <gtest/gtest.h>

namespace catena::profile {
namespace {
}  // namespace
}  // namespace catena::profile
