// SPDX-License-Identifier: Apache-2.0
#include "plan/chain_needs.hpp"

namespace catena::plan {
namespace {

using packet::FieldSet;

/// Between the headers and after the datagram: they have no place of their own in a launch.
constexpr FieldSet kVariableHeaderFields = packet::fields(
    packet::kEthType, packet::kIpv4Options, packet::kIpv6Extensions, packet::kTcpOptions, packet::kTrailer);

/// `few`: of the writes, those that few packets get, which are marked for the next shared step.
HostStep host_step(FieldSet reads, FieldSet writes, FieldSet few = packet::kNoFields) {
  // a write leaves packets that the NF does not decide their old value, which must therefore be the newest
  return {.needs = reads | writes, .writes = writes, .outdates = writes & ~few};
}

void add_kernel(NfNeeds& needs, PlacedNf const& nf) {
  const Hints& hints = nf.hints;
  const FieldSet touched = hints.gr | hints.gw;
  needs.needs_whole = (touched & (kVariableHeaderFields | packet::fields(packet::kPayload))) != 0;
  needs.moves_frame_bounds = (hints.gw & kFrameBounds) != 0;
  needs.writes = hints.gw;
  // moves back to the host find their bytes on the device too
  needs.on_device = hints.gr | hints.gw | kPlaces;

  needs.direct_in = movable(hints.gr);
  needs.direct_out = movable_back(hints.gw, needs);
  if (packet::has_frame(needs.direct_in | needs.direct_out)) {
    needs.direct_in |= packet::kFrameFields | kPlaces;
    if (packet::contains(hints.gw, packet::kPayload)) {
      needs.direct_out |= packet::kFrameFields;
    }
  } else if (needs.needs_whole) {
    needs.direct_in |= packet::fields(packet::kPayload);
  }
  if (packet::has_frame(needs.direct_out)) {
    needs.direct_out |= kFrameBounds;
  }
}

NfNeeds needs_of(PlacedNf const& nf) {
  const Hints& hints = nf.hints;
  NfNeeds needs;
  needs.on_gpu = nf.on == Processor::kGpu;
  needs.host[0] = host_step(hints.prepare_reads | kReadByAll, hints.prepare_writes, hints.prepare_writes_few);
  needs.host[2] = host_step(hints.complete_reads, hints.complete_writes);
  if (needs.on_gpu) {
    add_kernel(needs, nf);
  } else {
    needs.host[1] = host_step(hints.cr, hints.cw);
  }
  return needs;
}

/// What the CPU reads before the next GPU NF of a packet that comes to each NF: `ahead` has those behind `nf`.
FieldSet needs_ahead(std::size_t nf, std::span<const NfNeeds> chain, FieldSet behind) {
  if (chain[nf].on_gpu) {
    return chain[nf].prepare().needs;
  }
  for (HostStep const& step : chain[nf].host) {
    behind |= step.needs;
  }
  return behind;
}

}  // namespace

std::vector<PlanEdge> edges_of(PlanInput const& input) {
  if (!input.edges.empty()) {
    return input.edges;
  }
  std::vector<PlanEdge> edges;
  for (std::size_t nf = 0; nf <= input.nfs.size(); ++nf) {
    edges.push_back({nf == 0 ? kRx : nf - 1, nf == input.nfs.size() ? kTx : nf});
  }
  return edges;
}

std::vector<NfNeeds> needs_of(std::span<const PlacedNf> nfs, std::span<const PlanEdge> edges) {
  std::vector<NfNeeds> chain;
  chain.reserve(nfs.size());
  for (PlacedNf const& nf : nfs) {
    chain.push_back(needs_of(nf));
  }
  for (std::size_t nf = 0; nf < chain.size(); ++nf) {
    chain[nf].whole_by_now |= chain[nf].on_gpu && chain[nf].needs_whole;
    for (PlanEdge const& edge : edges) {
      if (edge.from == nf && edge.to != kTx) {
        chain[edge.to].whole_by_now |= chain[nf].whole_by_now;
      }
    }
  }
  std::vector<FieldSet> ahead(chain.size());
  for (std::size_t nf = chain.size(); nf-- > 0;) {
    FieldSet behind = packet::kNoFields;
    for (PlanEdge const& edge : edges) {
      if (edge.from == nf) {
        behind |= edge.to == kTx || edge.is_copy ? kAllFields : ahead[edge.to];
      }
    }
    ahead[nf] = needs_ahead(nf, chain, behind);
    chain[nf].host_needs_after = chain[nf].complete().needs | behind;
  }
  return chain;
}

FieldSet movable(FieldSet set) { return (set & kVariableHeaderFields) != 0 ? set | packet::kFrameFields : set; }

FieldSet movable_back(FieldSet set, NfNeeds const& nf) {
  return nf.moves_frame_bounds && (set & packet::kFrameFields) != 0 ? set | packet::kFrameFields : movable(set);
}

}  // namespace catena::plan
