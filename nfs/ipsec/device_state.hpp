// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "functions/cipher/aes_table.hpp"
#include "ipsec.hpp"

#include <array>
#include <span>

namespace catena::ipsec {

/// The association as the kernels read it (AssociationWord).
std::array<std::uint32_t, kAssociationWords> device_association(Session const& session);

/// What a device needs to run this NF in one direction.
nf::KernelSide make_kernel_side(Direction direction, std::span<const Session> sessions);

}  // namespace catena::ipsec
