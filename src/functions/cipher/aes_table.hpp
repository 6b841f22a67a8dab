// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "functions/cipher/cipher.layout.hpp"

#include <array>
#include <cstdint>

namespace catena::cipher {

/// Table of aes128.kernel.hpp, computed from the definition of the S-box (FIPS 197 section 5.1.1).
std::array<std::uint32_t, kTableWords> const& aes_t_table();

}  // namespace catena::cipher
