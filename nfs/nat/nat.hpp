// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>
#include <catena/nf/portable.hpp>
#include <catena/packet/icmp.hpp>
#include <catena/packet/icmp_error.hpp>
#include <catena/packet/packet_clock.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "arrival.hpp"
#include "fragment_table.hpp"
#include "mapping_table.hpp"
#include "nat.layout.hpp"
#include "nat_config.hpp"
#include "shards.hpp"

/// Network address and port translation for TCP, UDP and ICMP (RFC 3022; behaviour by RFC 4787, 5382 and 5508).
///
///   outbound   the source is inside: its endpoint gets a mapping, the packet the mapping's external endpoint
///   inbound    the destination is an external address: the packet goes to the internal endpoint of its mapping
///   hairpin    both: both endpoints are translated, so the receiver sees the sender's external endpoint
///
/// Echo requests to an external address have no mapping; the NAT itself answers them.
///
/// One packet: 10.0.0.5:1234 sends to 198.51.100.7:53. The NAT maps 10.0.0.5:1234 to 203.0.113.1:1234, if that is free,
/// for all destinations, and any host may reply to it (endpoint-independent mapping and filtering).
///
/// prepare() owns all state: it finds or creates the mapping and writes the new header values into Aux. compute(), on
/// the CPU or as a kernel, writes them to the packet and corrects the checksums. ICMP errors contain a second header
/// without fields; they are rare, and prepare() rewrites them itself.
///
/// With several shards, NatSharder assigns packets so that each NAT finds all state in its own table, except for the
/// receiver of a hairpinned packet. In the receiver's table it finds and updates the same state as for an inbound
/// packet: it creates and removes no mapping there, and uses the owner's time.
namespace catena::nat {

class Nat final : public nf::Nf, public nf::Portable {
 public:
  /// Errors: as read_nat_config().
  static Result<std::unique_ptr<nf::Nf>> create(nf::Config& config);

  /// Number `shard` of the NATs that share `shards`.
  Nat(std::shared_ptr<Shards> shards, std::uint32_t shard)
      : shards_(std::move(shards)),
        shard_(shard),
        realms_(shards_->config().realms),
        drops_to_inside_(shards_->config().drops_to_inside),
        own_(shards_->table(shard)),
        mappings_(own_.mappings),
        echo_budget_(shards_->echo_rate(shard), shards_->echo_rate(shard)) {}

  nf::Hints hints() const override;
  Result<std::unique_ptr<nf::Nf>> replicate(std::uint32_t shard) const override;
  std::unique_ptr<nf::Sharder> sharder() const override;
  void prepare(packet::Batch const& batch, std::span<std::byte> aux, nf::Outcome& outcome) override;
  void compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) override;
  Result<nf::KernelSide> kernel_side() const override;
  /// FailedPrecondition if addresses, ports, limits or time-outs of mappings differ: the mappings then have no place.
  Status prepare_migration(std::span<nf::Nf const* const> before) override;
  /// All mappings, including those of hosts no longer inside, end with their time-outs. They keep their external ports
  /// in any number of shards.
  void migrate_state(std::span<nf::Nf* const> before, nf::FlowFilter const& is_mine) override;
  void save(nf::StateWriter& state) const override;
  /// FailedPrecondition: as prepare_migration(), or with several shards.
  Status load(nf::StateReader& state) override;
  void tick(std::uint64_t now_ns) override;
  std::vector<std::string> start_report() const override;
  std::vector<nf::Statistic> statistics() const override;

 private:
  /// Positions in the descriptor's drop reasons; kNotDropped comes after them.
  enum Drop : std::uint32_t {
    kPoolExhausted,
    kNoMapping,
    kFragment,
    kMalformed,
    kUnsupportedProtocol,
    kInboundToInside,
    kSpoofedSource,
    kNotDropped
  };

  /// Packets with mappings prefetched together.
  static constexpr std::uint32_t kChunk = 32;

  void take_tables(std::span<nf::Nf* const> before);
  void bring_near(std::span<Arrival> arrivals) const;
  void decide(packet::Packet const& packet, Arrival const& arrival, Aux& aux, nf::Outcome& outcome);
  bool answer_echo(packet::Packet const& packet, Arrival const& arrival, nf::Outcome& outcome);
  Drop translate(packet::Packet const& packet, Arrival const& arrival, Aux& aux, std::string& record);
  Drop translate_hairpin(packet::Packet const& packet, Arrival const& arrival, Aux& aux);
  Drop translate_outbound(packet::Packet const& packet, Arrival const& arrival, Aux& aux);
  Drop translate_inbound(packet::Packet const& packet, Arrival const& arrival, Aux& aux);
  Drop translate_echo(Arrival const& arrival, Aux& aux);
  Drop translate_error(packet::Packet const& packet, Arrival const& arrival, std::string& record);
  static Drop drop_for(packet::QuoteProblem problem);
  Drop follow_first_fragment(packet::Packet const& packet, Aux& aux) const;
  Mapping const* mapping_of_sender(Arrival const& arrival);
  std::optional<Endpoint> internal_of(Endpoint const& external);
  std::unique_lock<std::mutex> hold_mappings() const;
  template <typename Work>
  auto with_table_of(Endpoint const& external, Work work);
  std::uint64_t now_s() const;
  std::size_t memory_bytes() const;

  std::shared_ptr<Shards> shards_;
  std::uint32_t shard_;
  Realms const& realms_;  // this and the next three members refer to shards_
  bool drops_to_inside_;
  Shards::Table& own_;
  MappingTable& mappings_;
  FragmentTable fragments_;
  packet::PacketClock clock_;
  bool is_recording_ = false;        // of the current batch
  packet::ErrorBudget echo_budget_;  // by the time of clock_
  std::uint64_t echo_replies_ = 0;
  std::uint64_t echo_replies_over_rate_ = 0;
};

}  // namespace catena::nat

/// The NF's descriptor, type `nat`.
catena::nf::Descriptor const& catena_nf_nat();
