// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/nf_costs.hpp"
#include "chain/profile_reader.hpp"

namespace catena::chain {

/// The section `nfs` of a profile, a list.
Json nfs_to_json(std::span<const MeasuredNf> all);
/// The inverse. Reports errors to `reader`: not a list, or too long; a member missing or out of its range; an NF listed
/// twice with one packet size.
std::vector<MeasuredNf> nfs_from_json(Json const& json, ProfileReader& reader);

/// The same for the section `nfs_on_cpu`.
Json nfs_on_cpu_to_json(std::span<const MeasuredOnCpu> all);
std::vector<MeasuredOnCpu> nfs_on_cpu_from_json(Json const& json, ProfileReader& reader);

/// The same for the section `ends`.
Json ends_to_json(std::span<const MeasuredEnds> all);
std::vector<MeasuredEnds> ends_from_json(Json const& json, ProfileReader& reader);

}  // namespace catena::chain
