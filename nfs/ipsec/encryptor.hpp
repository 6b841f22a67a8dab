// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ipsec.hpp"
#include "outbound_index.hpp"

#include <catena/packet/icmp.hpp>

namespace catena::ipsec {

/// Plain packets to ESP. The first association in file order with a matching selector carries the packet.
class Encryptor final : public IpsecNf {
 public:
  /// `mtu`: longest outer datagram, bytes. `owners`: of the replicated NF.
  Encryptor(std::shared_ptr<const Tunnels> tunnels, std::shared_ptr<StateCounts> states,
            std::shared_ptr<const OutboundIndex> index, std::unique_ptr<cipher::CryptoBurst> crypto, nf::Shard shard,
            std::uint32_t mtu, std::shared_ptr<packet::ErrorBudget> errors = make_budget(),
            std::shared_ptr<Owners> owners = nullptr);

  Result<std::unique_ptr<nf::Nf>> replicate(std::uint32_t shard) const override;
  /// Divides by the association that prepare() will find.
  std::unique_ptr<nf::Sharder> sharder() const override;
  void prepare(packet::Batch const& batch, std::span<std::byte> aux, nf::Outcome& outcome) override;
  void compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) override;
  void complete(nf::Completion const& completion) override;
  nf::Hints hints() const override;
  std::vector<nf::Statistic> statistics() const override;

 private:
  static std::shared_ptr<packet::ErrorBudget> make_budget();
  /// Handles a packet whose outer datagram exceeds the MTU. True if it passes and tx writes fragments. Else the packet
  /// is dropped, or turned into the ICMP error for its sender (RFC 1191, RFC 4301 section 8.2.1).
  bool may_be_cut(packet::Packet const& packet, std::uint32_t number, nf::Outcome& outcome);
  /// True if the association, which has reached its limit, may use its next number. Raises the limit if so.
  bool may_continue(std::uint32_t number);
  void resume(std::uint32_t number, SavedState const& state) override;
  SavedState state_of(std::uint32_t number) const override;

  /// Sequence numbers of an association. The limit is 0 for another shard's association: no number may be used twice.
  struct Numbers {
    std::uint64_t next;   ///< to be assigned
    std::uint64_t limit;  ///< first number that requires may_continue()
    bool extended;
    bool soft_limit_passed = false;
  };
  Numbers first_numbers(std::uint32_t number) const;
  void begin(std::uint32_t number) override { numbers_[number] = first_numbers(number); }

  std::shared_ptr<const OutboundIndex> index_;
  std::vector<std::uint32_t> fronts_;  // by association: bytes prepended to the inner datagram
  std::vector<Numbers> numbers_;       // by association
  std::uint64_t soft_limits_passed_ = 0;
  std::shared_ptr<packet::ErrorBudget> errors_;  // of all shards
  std::uint32_t mtu_;
};

}  // namespace catena::ipsec
