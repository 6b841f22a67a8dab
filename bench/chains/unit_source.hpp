// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/source.hpp"

#include <cstdint>
#include <memory>

/// Sources that bring full units, so that every launch of one unit has as many packets, whatever the chain does. Both
/// take them of a source without a rate.
namespace catena::bench {

/// A unit only while no packet is in the chain: then every stage works alone, and what it takes for a unit is not what
/// others make it take.
std::unique_ptr<io::Source> make_one_at_a_time(std::unique_ptr<io::Source> source);
/// A unit whenever so many packets are due. Precondition: packets_per_s > 0.
std::unique_ptr<io::Source> make_whole_units(std::unique_ptr<io::Source> source, std::uint64_t packets_per_s);

}  // namespace catena::bench
