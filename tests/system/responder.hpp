// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>

#include "nf/registry.hpp"

/// An NF that answers, for the system tests: every packet whose IPv4 identification is a multiple of `every` becomes an
/// ICMP error (packet/icmp.hpp), in prepare() or in complete() (`at`). The work flips the payload's first byte, on the
/// CPU and in a kernel, so that the newest bytes are often on the device.
namespace catena::testing {

/// The built-in NFs and "responder".
nf::Registry const& registry_with_responder();

}  // namespace catena::testing
