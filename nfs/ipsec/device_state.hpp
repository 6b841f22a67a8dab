// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "functions/cipher/aes_table.hpp"
#include "ipsec.hpp"

#include <array>
#include <span>

namespace catena::ipsec {

/// The association in the kernels' format (AssociationWord).
std::array<std::uint32_t, kAssociationWords> device_association(Session const& session);

/// Device side of this NF for one direction.
nf::KernelSide make_kernel_side(Direction direction, std::span<const Session> sessions);

}  // namespace catena::ipsec
