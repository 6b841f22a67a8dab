// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inbound_index.hpp"
#include "ipsec.hpp"
#include "replay_window.hpp"

namespace catena::ipsec {

/// What becomes of a packet in the clear that the selector of an association matches.
enum class Cleartext { kPass, kDrop };

/// ESP to plain packets. What is not ESP for us goes on unchanged and unrecorded, unless an association should have
/// protected it.
class Decryptor final : public IpsecNf {
 public:
  Decryptor(std::shared_ptr<const Tunnels> tunnels, std::shared_ptr<StateCounts> states,
            std::shared_ptr<const InboundIndex> index, std::unique_ptr<cipher::CryptoBurst> crypto, nf::Shard shard,
            Cleartext cleartext);

  Result<std::unique_ptr<nf::Nf>> replicate(std::uint32_t shard) const override;
  /// By the association that prepare() is going to find.
  std::unique_ptr<nf::Divider> divider() const override;
  void prepare(packet::Batch const& batch, std::span<std::byte> aux, nf::Outcome& outcome) override;
  void compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) override;
  void complete(nf::Completion const& completion) override;

 private:
  /// Whether some association protects such packets (RFC 4301 section 5.2, step 4).
  bool is_protected(FlowKey const& flow) const;
  /// Whether an authentic packet of the association with this number, which has come to its limit, may be accepted.
  /// Moves the limit on if so.
  bool may_go_on(std::uint32_t number, std::uint64_t sequence);
  void resume(std::uint32_t number, SavedState const& state) override;
  SavedState state_of(std::uint32_t number) const override;
  void finish(packet::Packet const& packet, Aux const& aux, std::uint32_t status, nf::Outcome& outcome);

  std::shared_ptr<const InboundIndex> index_;
  RecentInbound recent_;
  Cleartext cleartext_;
  std::vector<ReplayWindow> windows_;  // by association
  // by association: the first number that may_go_on() must be asked for; 0 for one of another shard
  std::vector<std::uint64_t> limits_;
};

}  // namespace catena::ipsec
