// SPDX-License-Identifier: Apache-2.0
#include "pipeline/unit_classifier.hpp"

namespace catena::runtime {
namespace {

/// Fields read by the table may have left the caches while an NF worked on later packets.
constexpr std::uint32_t kRowsAhead = 8;

}  // namespace

std::optional<std::size_t> UnitClassifier::decide(packet::Batch const& packets) {
  branches_.resize(packets.size());
  mirrors_.assign(packets.size(), 0);
  bool has_copies = false;
  bool is_one_branch = true;
  for (std::uint32_t i = 0; i < packets.size(); ++i) {
    if (i + kRowsAhead < packets.size()) {
      __builtin_prefetch(packets[i + kRowsAhead].l3());
    }
    const packet::Packet packet = packets[i];
    std::size_t branch = ended_;
    if (packet::ended(static_cast<std::uint8_t>(packet.verdict())) == 0) {
      const chain::NextNodeTable::Decision decision = table_->decide(packet);
      mirrors_[i] = decision.mirrors;
      has_copies = has_copies || decision.mirrors != 0;
      branch = decision.to;
      if (branch < sent_.size()) {
        ++sent_[branch];
      }
    }
    // a packet's copies are made before it ends: its verdict is set where the unit is divided
    branches_[i] = static_cast<std::uint8_t>(branch);
    is_one_branch = is_one_branch && branch == branches_[0];
  }
  const bool is_whole = is_one_branch && !has_copies && drops_of(branches_[0]) == nullptr;
  return is_whole ? std::optional<std::size_t>(branches_[0]) : std::nullopt;
}

}  // namespace catena::runtime
