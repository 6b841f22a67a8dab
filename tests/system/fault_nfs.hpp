// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nf/registry.hpp"

/// NFs for chains whose device fails: small, without state, and such that a packet which went through one of them
/// twice, not at all, or with old bytes does not look as it should.
namespace catena::testing {

/// What "scan" asks its spill area for.
enum class SpillRequests { kNone, kRowThatIsNot, kTooManyBytes, kOutOfOrder };
/// From now on the next launch of a "scan" that has packets asks for this, once. Any thread.
void set_spill_requests(SpillRequests requests);
/// Whether a launch has asked since.
bool spill_was_requested();

/// The built-in types, and:
///   mix   `salt: N`: TTL, payload and output port become other ones, by a map that depends on N and that no order of
///         two salts undoes; on a device salt 255 never ends
///   scan  sums the payload up: alerts about sums that 7 divides, and drops those that 13 divides ("thirteen"); writes
///         no field, and has a spill area
nf::Registry const& nfs_for_faults();

}  // namespace catena::testing
