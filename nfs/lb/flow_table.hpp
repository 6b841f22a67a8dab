// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/counter.hpp>
#include <catena/nf/portable.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

/// Flow table of a load balancer. Each flow can be found in both directions.
///
/// A flow has a record of 32 bytes and two entries in a hash table, one for the packets of each direction. The table
/// has buckets of eight entries in one cache line. An entry may be in one of two buckets and goes into the emptier one
/// (Azar, Broder, Karlin, Upfal: "Balanced Allocations", STOC 1994). Entries never move, so a record knows its entries'
/// positions. The table is at most half full. If keys are nevertheless made to collide, insert() fails, and no
/// operation takes longer.
///
/// Flows expire after a time without packets, counted in whole seconds from the first packet: they are removed after
/// more than the time-out has passed, and at most a second later. Each kind of flow has a time-out and a list in the
/// order of the last packet, so expiring flows are at the list heads.
///
/// If the table is full, a new flow evicts the flow longest without a packet: a TCP flow with an incomplete handshake
/// if one exists, else a closing one, else a UDP flow, else an established one. Any sender can create flows of the
/// first kind at line rate, so they have a separate limit besides the limit of all flows.
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
  std::uint32_t older_ = 0;  // list neighbours
  std::uint32_t newer_ = 0;
  std::uint32_t to_backend_entry_ = 0;  // positions of its entries in the table
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
  std::uint32_t half_open;  ///< of these, TCP flows with an incomplete handshake; at least 1
  bool operator==(FlowLimits const&) const = default;
};

class FlowTable {
 public:
  using Id = std::uint32_t;
  static constexpr Id kNone = std::numeric_limits<Id>::max();

  /// `backends`: exclusive upper bound of backend numbers.
  FlowTable(FlowLimits limits, std::uint32_t backends, Timeouts const& timeouts);

  /// Maximum number of flows removed per packet. It exceeds the number of new flows per packet, so expired flows are
  /// removed before new ones need their space. It is small enough that no packet waits for many removals after a gap.
  static constexpr std::uint32_t kExpirePerCall = 4;

  /// Sets the time, which must not decrease, and removes up to `limit` expired flows. Call it for every packet.
  void advance(std::uint64_t now_ns, std::uint32_t limit = kExpirePerCall);

  /// Prefetch the memory read by a find() of `hash`: first the buckets, and after their arrival the record.
  void prefetch_buckets(std::uint64_t hash) const;
  void prefetch_flow(std::uint64_t hash) const;

  /// The flow with an entry for `hash` and true `matches(Flow const&)`, or kNone. An expired flow is removed and not
  /// found.
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

  /// Makes space for a new flow of this kind; may evict others. Invalidates earlier results of find().
  void make_room(bool is_udp);
  /// Adds a flow that received a packet now; only the public members of `flow` are used. `to_client_twin`: the result
  /// of find() for `to_client_hash`, or kNone. The new flow replaces the twin in that direction: a client that reuses a
  /// port has finished the old flow. Returns kNone if the table or both buckets of a key are full.
  Id insert(Flow const& flow, std::uint64_t to_backend_hash, std::uint64_t to_client_hash, Id to_client_twin);
  /// Records a packet of the flow now, and its new state.
  void touch(Id id, std::uint8_t tcp_state);
  /// Sets the flow's state. Its time-out keeps running unless the flow's kind changes.
  void note(Id id, std::uint8_t tcp_state);
  /// Removes the flow; not counted as expired.
  void erase(Id id);

  /// Saves the flows for another table.
  void save(nf::StateWriter& state) const;
  /// Place in this table of a flow from another table.
  struct FlowSlot {
    std::uint64_t to_backend_hash;
    std::uint64_t to_client_hash;
    Id known;           ///< result of find() for to_backend_hash
    Id to_client_twin;  ///< as for insert()
  };
  /// Loads into a table never used before. `place` changes the service and backend numbers of a flow to the ones of
  /// this table and returns its place; nullopt if service or backend do not exist here, and the flow is discarded.
  /// Returns false if the data is not from a table with these limits and time-outs; this table must then not be used.
  bool load(nf::StateReader& state, std::function<std::optional<FlowSlot>(Flow&)> const& place);

  /// Takes over the flows with true `is_mine(flow, number of the table)` from other tables with the same time-outs,
  /// which are not used any more, by `place(flow, number of the table)` as for load(). Of too many, the ones longest
  /// without a packet are evicted. For a table never used before.
  void take_over(std::span<FlowTable const* const> before, std::function<bool(Flow const&, std::size_t)> const& is_mine,
                 std::function<std::optional<FlowSlot>(Flow&, std::size_t)> const& place);
  /// Adds the counts of a table whose flows others take over.
  void add_counts(FlowTable const& before);

  Flow const& operator[](Id id) const { return flows_[id]; }
  std::uint32_t size() const { return size_; }
  /// Any thread.
  std::uint64_t flows_of(std::uint16_t backend) const { return flows_of_[backend]; }
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

  /// The flows of one time-out, sorted by last packet, oldest first.
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
  enum Kind : std::uint8_t { kHalfOpen, kClosing, kUdp, kEstablished, kKinds };  // in eviction order
  static Kind kind_of(bool is_udp, std::uint8_t tcp_state);
  static Kind kind_of(Flow const& flow) { return kind_of(flow.is_udp, flow.tcp_state); }
  bool has_expired(Flow const& flow) const { return now_tick_ - flow.last_tick_ > lists_[kind_of(flow)].timeout; }

  /// Assigns a free entry for `hash` to `id` and returns it; kNone if both buckets are full.
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
  Id restore(Flow const& flow, FlowSlot const& at, std::uint32_t tick, bool owns_to_client_entry);
  bool has_record() const { return first_free_ != kNone || never_used_ < flows_.size(); }

  std::vector<Bucket> buckets_;
  std::vector<Flow> flows_;
  std::vector<Counter> flows_of_;  // by backend
  std::array<List, kKinds> lists_;
  std::uint32_t max_half_open_;
  std::uint32_t half_open_ = 0;
  Id first_free_ = kNone;         // formerly used records, linked by newer_
  std::uint32_t never_used_ = 0;  // start of the unused records
  std::uint32_t size_ = 0;
  std::uint64_t created_ = 0;
  std::uint64_t expired_ = 0;
  std::uint64_t evicted_ = 0;

  bool started_ = false;
  std::uint64_t first_ns_ = 0;  // time of the first packet
  std::uint32_t now_tick_ = 0;  // whole seconds since then
};

}  // namespace catena::lb
