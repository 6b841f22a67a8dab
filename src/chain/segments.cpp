// SPDX-License-Identifier: Apache-2.0
#include "chain/segments.hpp"

#include <algorithm>

namespace catena::chain {
namespace {

using nf::Sharding;

packet::FieldSet written_by(nf::Hints const& hints) {
  return hints.cw | hints.gw | hints.prepare_writes | hints.complete_writes;
}

/// A segment as it grows.
class Growing {
 public:
  Growing(std::size_t first, nf::Instance& nf, std::uint32_t shards)
      : segment_{first, first + 1, nf.descriptor().sharding == Sharding::kNone ? 1 : shards, std::nullopt},
        sharding_(nf.descriptor().sharding),
        written_(written_by(nf.nf().hints())) {
    if (sharding_ == Sharding::kOwn) {
      segment_.divided_by = first;
    }
  }

  /// Whether the NF behind it may be a part of it.
  bool takes(nf::Instance& nf) const {
    switch (nf.descriptor().sharding) {
      case Sharding::kNone:
        return sharding_ == Sharding::kNone;
      case Sharding::kPacket:
        return sharding_ != Sharding::kNone;
      case Sharding::kFlow:
        return sharding_ == Sharding::kPacket || sharding_ == Sharding::kFlow;
      case Sharding::kOwn:
        // asked about packets at the begin of the segment: at that of the chain, all of them is on the host
        return segment_.first == 0 && sharding_ == Sharding::kPacket && (written_ & nf.nf().hints().prepare_reads) == 0;
    }
    return false;
  }

  void add(nf::Instance& nf) {
    if (nf.descriptor().sharding == Sharding::kOwn) {
      segment_.divided_by = segment_.end;
    }
    if (nf.descriptor().sharding != Sharding::kPacket) {
      sharding_ = nf.descriptor().sharding;
    }
    written_ |= written_by(nf.nf().hints());
    ++segment_.end;
  }

  Segment const& segment() const { return segment_; }

 private:
  Segment segment_;
  Sharding sharding_;  ///< the strictest of its NFs'
  packet::FieldSet written_;
};

std::vector<Segment> segments_of_row(std::span<nf::Instance* const> nfs, std::uint32_t shards) {
  if (shards <= 1 || nfs.empty()) {
    return {{0, nfs.size(), 1, std::nullopt}};
  }
  std::vector<Segment> segments;
  Growing growing(0, *nfs[0], shards);
  for (std::size_t i = 1; i < nfs.size(); ++i) {
    if (growing.takes(*nfs[i])) {
      growing.add(*nfs[i]);
    } else {
      segments.push_back(growing.segment());
      growing = Growing(i, *nfs[i], shards);
    }
  }
  segments.push_back(growing.segment());
  return segments;
}

Segment segment_of_graph(std::span<nf::Instance* const> nfs, std::uint32_t shards) {
  const bool is_divided = std::ranges::all_of(nfs, [](nf::Instance const* nf) {
    const Sharding sharding = nf->descriptor().sharding;
    return sharding == Sharding::kPacket || sharding == Sharding::kFlow;
  });
  return {0, nfs.size(), is_divided && !nfs.empty() ? std::max(1U, shards) : 1, std::nullopt};
}

}  // namespace

std::vector<Segment> segments_of(ChainConfig const& chain, std::span<nf::Instance* const> nfs) {
  return chain.graph ? std::vector{segment_of_graph(nfs, chain.shards)} : segments_of_row(nfs, chain.shards);
}

}  // namespace catena::chain
