// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/source.hpp"

#include <cstdint>
#include <memory>

/// Sources of full units: every launch of one unit then has the same number of packets, regardless of the chain's
/// speed. Both wrap a source without a rate.
namespace catena::bench {

/// Delivers a unit only while no packet is in the chain. Every stage then works alone, and other stages do not affect
/// its time per unit.
std::unique_ptr<io::Source> make_one_at_a_time(std::unique_ptr<io::Source> source);
/// Delivers a unit whenever a unit's packets are due. Precondition: packets_per_s > 0.
std::unique_ptr<io::Source> make_whole_units(std::unique_ptr<io::Source> source, std::uint64_t packets_per_s);

}  // namespace catena::bench
