// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ipsec.hpp"
#include "outbound_index.hpp"

#include <catena/packet/icmp.hpp>

namespace catena::ipsec {

/// Plain packets to ESP. The first association in file order whose selector matches carries the packet.
class Encryptor final : public IpsecNf {
 public:
  /// `mtu`: longest outer datagram, bytes.
  Encryptor(std::shared_ptr<const Tunnels> tunnels, std::shared_ptr<StateCounts> states,
            std::shared_ptr<const OutboundIndex> index, std::unique_ptr<cipher::CryptoBurst> crypto, nf::Shard shard,
            std::uint32_t mtu, std::shared_ptr<packet::ErrorBudget> errors = make_budget());

  Result<std::unique_ptr<nf::Nf>> replicate(std::uint32_t shard) const override;
  /// By the association that prepare() is going to find.
  std::unique_ptr<nf::Divider> divider() const override;
  void prepare(packet::Batch const& batch, std::span<std::byte> aux, nf::Outcome& outcome) override;
  void compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) override;
  void complete(nf::Completion const& completion) override;
  nf::Hints hints() const override;
  std::vector<nf::Statistic> statistics() const override;

 private:
  static std::shared_ptr<packet::ErrorBudget> make_budget();
  /// What becomes of a packet whose outer datagram exceeds the MTU. True: it goes on, and tx writes fragments. Else it
  /// is dropped, or turned into the ICMP error that tells its sender (RFC 1191, RFC 4301 section 8.2.1).
  bool may_be_cut(packet::Packet const& packet, std::uint32_t number, nf::Outcome& outcome);
  /// Whether the association may use its next number, which has come to its limit. Moves the limit on if so.
  bool may_go_on(std::uint32_t number);
  void resume(std::uint32_t number, SavedState const& state) override;
  SavedState state_of(std::uint32_t number) const override;

  std::shared_ptr<const OutboundIndex> index_;
  std::vector<std::uint32_t> fronts_;  // by association: bytes that it puts in front
  /// What an association has of sequence numbers. One of another shard has a limit of 0: no number may be used twice.
  struct Numbers {
    std::uint64_t next;   ///< to be assigned
    std::uint64_t limit;  ///< the first number that may_go_on() must be asked for
    bool extended;
    bool soft_limit_passed = false;
  };
  std::vector<Numbers> numbers_;  // by association
  std::uint64_t soft_limits_passed_ = 0;
  std::shared_ptr<packet::ErrorBudget> errors_;  // of all shards
  std::uint32_t mtu_;
};

}  // namespace catena::ipsec
