// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/portable.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

/// The flows that a load balancer remembers, each found in both directions.
///
/// A flow has a record of 32 bytes and two entries in a hash table, one for the packets of each direction. The table
/// has buckets of eight entries in one cache line; an entry may be in one of two buckets and goes into the emptier one
/// (Azar, Broder, Karlin, Upfal: "Balanced Allocations", STOC 1994). Nothing ever moves, so a record knows where its
/// entries are. The table is at most half full; where keys are made to collide all the same, insert() fails, and no
/// operation takes longer.
///
/// Flows expire after a time without packets, counted in whole seconds from the first packet: they are gone when more
/// than the time-out has passed, and at most a second later. There is a time-out for each kind of flow, with a list
/// each in the order of the last packet, so that the flows to expire are at the fronts.
///
/// Where there is no room for a flow another one goes before its time, the one longest without a packet: of the TCP
/// flows whose handshake is not complete if there are any, else of those that are closing, else of UDP's, else of the
/// established. The first kind anybody can make at the rate of the link, so there is a limit for it beside that of all.
///
/// All memory is allocated at construction. Thread rule: one thread at a time.
namespace catena::lb {

struct Flow {
  std::uint32_t client_address = 0;
  std::uint16_t client_port = 0;
  std::uint16_t service = 0;
  std::uint16_t backend = 0;
  bool is_udp = false;
  std::uint8_t tcp_state = 0;  ///< nf::TcpState bits; the initiator is the client

 private:
  friend class FlowTable;
  std::uint32_t last_tick_ = 0;
  std::uint32_t older_ = 0;  // neighbours in the list
  std::uint32_t newer_ = 0;
  std::uint32_t to_backend_entry_ = 0;  // where its entries are in the table
  std::uint32_t to_client_entry_ = 0;
};
static_assert(sizeof(Flow) == 32);

/// Seconds.
struct Timeouts {
  std::uint32_t tcp_opening = 30;
  std::uint32_t tcp_established = 2 * 3600 + 4 * 60;  // RFC 5382 REQ-5
  std::uint32_t tcp_closing = 60;
  std::uint32_t udp = 300;  // RFC 4787 REQ-5
  bool operator==(Timeouts const&) const = default;
};

struct FlowLimits {
  std::uint32_t flows;      ///< 1 to 2^24
  std::uint32_t half_open;  ///< of these, TCP flows whose handshake is not complete; at least 1
  bool operator==(FlowLimits const&) const = default;
};

class FlowTable {
 public:
  using Id = std::uint32_t;
  static constexpr Id kNone = std::numeric_limits<Id>::max();

  /// `backends`: their numbers are below it.
  FlowTable(FlowLimits limits, std::uint32_t backends, Timeouts const& timeouts);

  /// Flows that one packet removes at most: more than it makes, so that expired ones are gone before new ones need
  /// their room; few enough that no packet waits for the others after a gap.
  static constexpr std::uint32_t kExpirePerCall = 4;

  /// Sets the time, which must not go back, and removes up to `limit` expired flows. Call it for every packet.
  void advance(std::uint64_t now_ns, std::uint32_t limit = kExpirePerCall);

  /// Asks the caches for what a find() of `hash` will read: first the buckets, and when they are there, the record.
  void prefetch_buckets(std::uint64_t hash) const;
  void prefetch_flow(std::uint64_t hash) const;

  /// The flow with an entry for `hash` for which `matches(Flow const&)` is true, or kNone. One that has expired is
  /// removed and not found.
  template <typename Matches>
  Id find(std::uint64_t hash, Matches matches) {
    for (const std::uint32_t bucket : {first_bucket(hash), second_bucket(hash)}) {
      for (std::uint32_t i = 0; i < kBucketEntries; ++i) {
        Bucket const& entries = buckets_[bucket];
        if (entries.tag[i] != tag_of(hash) || entries.reference[i] == 0) {
          continue;
        }
        const Id id = entries.reference[i] - 1;
        if (!matches(flows_[id])) {
          continue;
        }
        if (!has_expired(flows_[id])) {
          return id;
        }
        expire(id);
      }
    }
    return kNone;
  }

  /// Makes room for a new flow of this kind: others may go. What find() gave before is invalid then.
  void make_room(bool is_udp);
  /// Remembers a flow that had a packet now; of `flow` the public members count. `to_client_twin`: the flow that
  /// find() gives for `to_client_hash`, or kNone. The new flow takes its place in that direction, because a client that
  /// uses a port again has done with the old flow. kNone if there is no room, or the keys' buckets are full.
  Id insert(Flow const& flow, std::uint64_t to_backend_hash, std::uint64_t to_client_hash, Id to_client_twin);
  /// The flow had a packet now, and has this state after it.
  void touch(Id id, std::uint8_t tcp_state);
  /// The flow has this state now, but its time-out goes on, unless it becomes another one.
  void note(Id id, std::uint8_t tcp_state);
  /// Forgets the flow; not counted as expired.
  void erase(Id id);

  /// For a table elsewhere.
  void save(nf::StateWriter& state) const;
  /// Where a flow of another table belongs in this one.
  struct Place {
    std::uint64_t to_backend_hash;
    std::uint64_t to_client_hash;
    Id known;           ///< as find() gives it for to_backend_hash
    Id to_client_twin;  ///< as insert() wants it
  };
  /// Into a table that was never used. `place` gives a flow the numbers that its service and its backend have here, and
  /// says where it belongs; none: they are not here, and nor is the flow then. False: no table with these limits and
  /// time-outs wrote this, and this one is not to be used.
  bool load(nf::StateReader& state, std::function<std::optional<Place>(Flow&)> const& place);

  Flow const& operator[](Id id) const { return flows_[id]; }
  std::uint32_t size() const { return size_; }
  std::uint32_t flows_of(std::uint16_t backend) const { return flows_of_[backend]; }
  std::uint64_t created() const { return created_; }
  std::uint64_t expired() const { return expired_; }
  std::uint64_t evicted() const { return evicted_; }
  std::uint32_t half_open() const { return half_open_; }
  std::uint64_t bytes() const;

 private:
  static constexpr std::uint32_t kBucketEntries = 8;
  struct alignas(64) Bucket {
    std::uint32_t tag[kBucketEntries];
    std::uint32_t reference[kBucketEntries];  // 1 + the flow's id; 0: free
  };
  static_assert(sizeof(Bucket) == 64);

  /// The flows of one time-out, the one longest without a packet first.
  struct List {
    std::uint32_t timeout;
    Id oldest = kNone;
    Id newest = kNone;
  };

  static std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash ^ hash >> 32); }
  std::uint32_t first_bucket(std::uint64_t hash) const {
    return static_cast<std::uint32_t>((hash >> 32) * buckets_.size() >> 32);
  }
  std::uint32_t second_bucket(std::uint64_t hash) const {
    return static_cast<std::uint32_t>((hash & 0xFFFFFFFFU) * buckets_.size() >> 32);
  }
  enum Kind : std::uint8_t { kHalfOpen, kClosing, kUdp, kEstablished, kKinds };  // in the order in which they go
  static Kind kind_of(bool is_udp, std::uint8_t tcp_state);
  static Kind kind_of(Flow const& flow) { return kind_of(flow.is_udp, flow.tcp_state); }
  bool has_expired(Flow const& flow) const { return now_tick_ - flow.last_tick_ > lists_[kind_of(flow)].timeout; }

  /// A free entry for `hash`, now taken by `id`; kNone if both buckets are full.
  std::uint32_t add_entry(std::uint64_t hash, Id id);
  void remove_entry(std::uint32_t entry, Id id);
  bool owns_to_client_entry(Id id) const {
    const std::uint32_t entry = flows_[id].to_client_entry_;
    return buckets_[entry / kBucketEntries].reference[entry % kBucketEntries] == id + 1;
  }
  void append(Id id);
  void unlink(Id id);
  void expire(Id id);
  void evict(Id id);
  bool has_record() const { return first_free_ != kNone || never_used_ < flows_.size(); }

  std::vector<Bucket> buckets_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> flows_of_;  // by backend
  std::array<List, kKinds> lists_;
  std::uint32_t max_half_open_;
  std::uint32_t half_open_ = 0;
  Id first_free_ = kNone;         // records that were used before, linked by newer_
  std::uint32_t never_used_ = 0;  // records from here on were not
  std::uint32_t size_ = 0;
  std::uint64_t created_ = 0;
  std::uint64_t expired_ = 0;
  std::uint64_t evicted_ = 0;

  bool started_ = false;
  std::uint64_t first_ns_ = 0;  // the first time
  std::uint32_t now_tick_ = 0;  // whole seconds since then
};

}  // namespace catena::lb
