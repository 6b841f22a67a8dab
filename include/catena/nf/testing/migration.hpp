// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>

#include <span>
#include <vector>

/// For tests of NFs that replace others: `before` are the NFs of all shards of the running chain, as is `after` of the
/// next one. Which flows Catena sends to a shard is not tested here: all of them are of each shard.
namespace catena::nf::testing {

inline Status prepare_migration(std::span<Nf* const> before, std::span<Nf* const> after) {
  const std::vector<Nf const*> old(before.begin(), before.end());
  for (Nf* const each : after) {
    CATENA_RETURN_IF_ERROR(each->prepare_migration(old));
  }
  return absl::OkStatus();
}
inline void migrate_state(std::span<Nf* const> before, std::span<Nf* const> after) {
  for (Nf* const each : after) {
    each->migrate_state(before, [](packet::FlowKey const&) { return true; });
  }
}

/// Of one shard.
inline Status prepare_migration(Nf& before, Nf& after) {
  Nf* const old = &before;
  Nf* const next = &after;
  return prepare_migration(std::span(&old, 1), std::span(&next, 1));
}
inline void migrate_state(Nf& before, Nf& after) {
  Nf* const old = &before;
  Nf* const next = &after;
  migrate_state(std::span(&old, 1), std::span(&next, 1));
}

}  // namespace catena::nf::testing
