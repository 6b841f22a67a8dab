// SPDX-License-Identifier: Apache-2.0
#include "plan/candidates.hpp"

#include <array>

namespace catena::plan {
namespace {

using packet::FieldSet;

// Tables I and II; the cheaper rows first, so that the search soon has a cost to compare with.
constexpr std::array<Candidate, 7> kBufferOff{{{H2dRow::kWhole, D2hRow::kNeeded, true},
                                               {H2dRow::kWhole, D2hRow::kDirty, false},
                                               {H2dRow::kWhole, D2hRow::kWhole, true},
                                               {H2dRow::kDirect, D2hRow::kDirect, false},
                                               // not in the tables
                                               {H2dRow::kNeeded, D2hRow::kNeeded, true},
                                               {H2dRow::kNeeded, D2hRow::kDirty, false},
                                               {H2dRow::kNeeded, D2hRow::kWhole, true}}};
constexpr std::size_t kTableBufferOff = 4;
constexpr std::array<Candidate, 7> kBufferOn{{{H2dRow::kNeeded, D2hRow::kNeeded, true},
                                              {H2dRow::kNeeded, D2hRow::kDirty, false},
                                              {H2dRow::kNeeded, D2hRow::kWhole, true},
                                              {H2dRow::kWhole, D2hRow::kNeeded, true},
                                              {H2dRow::kWhole, D2hRow::kDirty, false},
                                              {H2dRow::kWhole, D2hRow::kWhole, true},
                                              // not in the tables
                                              {H2dRow::kDirect, D2hRow::kDirect, true}}};
constexpr std::size_t kTableBufferOn = 6;

bool apply_direct(NfNeeds const& nf, Views& views, Movement& movement) {
  movement = {.shared = false, .to_device = nf.direct_in, .to_host = nf.direct_out};
  if (((movement.to_device | nf.writes) & ~views.cpu) != 0) {
    return false;
  }
  views.cpu |= nf.writes;
  views.gpu &= ~nf.writes;
  return true;
}

}  // namespace

std::span<const Candidate> table_candidates(bool gsb_before) {
  return gsb_before ? std::span(kBufferOn).first(kTableBufferOn) : std::span(kBufferOff).first(kTableBufferOff);
}

std::span<const Candidate> all_candidates(bool gsb_before) { return gsb_before ? kBufferOn : kBufferOff; }

Views both(Views const& a, Views const& b) { return {a.cpu & b.cpu, a.gpu & b.gpu, a.gsb && b.gsb}; }

bool run(HostStep const& step, Views& views) {
  if ((step.needs & ~views.cpu) != 0) {
    return false;
  }
  views.cpu |= step.writes;
  views.gpu &= ~step.outdates;
  return true;
}

bool apply(Candidate const& candidate, NfNeeds const& nf, Views& views, Movement& movement) {
  if (candidate.h2d == H2dRow::kDirect) {
    const bool possible = apply_direct(nf, views, movement);
    views.gsb = candidate.gsb_after;
    return possible;
  }
  const FieldSet stale = nf.on_device & ~views.gpu;
  movement = {.shared = true,
              .to_device = candidate.h2d == H2dRow::kWhole ? packet::kFrameFields | stale : movable(stale),
              .to_host = packet::kNoFields};
  if ((movement.to_device & ~views.cpu) != 0) {
    return false;
  }
  views.gpu |= movement.to_device | nf.writes;
  views.cpu &= ~nf.writes;

  const FieldSet dirty = views.gpu & ~views.cpu;
  switch (candidate.d2h) {
    case D2hRow::kNeeded:
      movement.to_host = movable_back(dirty & nf.host_needs_after, nf);
      break;
    case D2hRow::kDirty:
      movement.to_host = movable_back(dirty, nf);
      break;
    case D2hRow::kWhole:
      movement.to_host = packet::kFrameFields | (dirty & packet::kMetaFields);
      break;
    case D2hRow::kDirect:
      return false;
  }
  if ((movement.to_host & packet::kFrameFields) != 0) {
    // the host must know where the bytes go, even if complete() overwrites that unread
    movement.to_host |= dirty & (packet::has_frame(movement.to_host) ? kFrameBounds : kPlaces);
  }
  if ((movement.to_host & ~views.gpu) != 0) {
    return false;
  }
  views.cpu |= movement.to_host;
  views.gsb = candidate.gsb_after;
  if (!views.gsb) {
    views.gpu = packet::kNoFields;
  }
  return true;
}

}  // namespace catena::plan
