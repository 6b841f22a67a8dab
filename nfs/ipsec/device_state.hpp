// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ipsec.hpp"

#include <array>
#include <span>

namespace catena::ipsec {

/// Table of aes128.kernel.hpp, computed from the definition of the S-box (FIPS 197 section 5.1.1).
std::array<std::uint32_t, kTableWords> const& aes_t_table();

/// The association as the kernels read it (AssociationWord).
std::array<std::uint32_t, kAssociationWords> device_association(Session const& session);

/// What a device needs to run this NF in one direction.
nf::KernelSide make_kernel_side(Direction direction, nf::Hints const& hints, std::span<const Session> sessions);

}  // namespace catena::ipsec
