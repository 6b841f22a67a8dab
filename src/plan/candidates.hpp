// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "plan/chain_needs.hpp"

/// The candidates for the plan of a GPU NF: AdaptChain's Tables I and II, and their effects on the two views.
namespace catena::plan {

enum class H2dRow : std::uint8_t { kNeeded = 1, kWhole = 2, kDirect = 3 };
enum class D2hRow : std::uint8_t { kNeeded = 1, kDirty = 2, kWhole = 3, kDirect = 4 };

/// A row of each table.
struct Candidate {
  H2dRow h2d;
  D2hRow d2h;
  bool gsb_after;  ///< Out GSB
};
/// The plans of a GPU NF in the tables: 4 with the shared buffer off before it, 6 with it on.
std::span<const Candidate> table_candidates(bool gsb_before);
/// The tables' plans first, then the plans outside the tables that Catena supports: a shared buffer that is off may
/// begin with needed fields alone, and an NF may have a direct step while the buffer serves others.
std::span<const Candidate> all_candidates(bool gsb_before);

/// The moves of one GPU NF by a candidate.
struct Movement {
  bool shared = false;             ///< as in GpuStep
  packet::FieldSet to_device = 0;  ///< P_H2D
  packet::FieldSet to_host = 0;    ///< P_D2H
};

/// The places of the newest value of each field: the packet pool for fields in `cpu`, the shared buffer for fields in
/// `gpu`.
struct Views {
  packet::FieldSet cpu = kAllFields;
  packet::FieldSet gpu = packet::kNoFields;
  bool gsb = false;  ///< the shared buffer is on

  friend bool operator==(Views const&, Views const&) = default;
};

/// The views common to the packets of both paths.
Views both(Views const& a, Views const& b);
/// The views of packets received by rx, or copied by the host.
inline constexpr Views kOnHost = {kAllFields, packet::kNoFields, false};

/// Applies a host step to the views. False if it would read an outdated field (Algorithm 1, line 6).
bool run(HostStep const& step, Views& views);

/// Applies a candidate to the views. False if the kernel would read, or a move would carry, an outdated field
/// (Algorithm 1, line 15). `movement` gets the moves.
bool apply(Candidate const& candidate, NfNeeds const& nf, Views& views, Movement& movement);

}  // namespace catena::plan
