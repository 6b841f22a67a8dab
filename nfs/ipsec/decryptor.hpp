// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inbound_index.hpp"
#include "ipsec.hpp"
#include "replay_window.hpp"

namespace catena::ipsec {

/// Action for a cleartext packet that matches an association's selector.
enum class Cleartext { kPass, kDrop };

/// ESP to plain packets. Packets that are not ESP for a local tunnel pass unchanged and unrecorded, unless an
/// association should have protected them.
class Decryptor final : public IpsecNf {
 public:
  Decryptor(std::shared_ptr<const Tunnels> tunnels, std::shared_ptr<StateCounts> states,
            std::shared_ptr<const InboundIndex> index, std::unique_ptr<cipher::CryptoBurst> crypto, nf::Shard shard,
            Cleartext cleartext, std::shared_ptr<Owners> owners = nullptr);

  Result<std::unique_ptr<nf::Nf>> replicate(std::uint32_t shard) const override;
  /// Divides by the association that prepare() will find.
  std::unique_ptr<nf::Sharder> sharder() const override;
  void prepare(packet::Batch const& batch, std::span<std::byte> aux, nf::Outcome& outcome) override;
  void compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) override;
  void complete(nf::Completion const& completion) override;

 private:
  /// True if any association protects such packets (RFC 4301 section 5.2, step 4).
  bool is_protected(packet::PacketFlow const& flow) const;
  /// True if association `number`, which has reached its limit, may accept an authentic packet with this number. Raises
  /// the limit if so.
  bool may_continue(std::uint32_t number, std::uint64_t sequence);
  ReplayWindow first_window(std::uint32_t number) const;
  std::uint64_t first_limit(std::uint32_t number) const { return owns(number) ? UINT64_MAX : 0; }
  void begin(std::uint32_t number) override;
  void resume(std::uint32_t number, SavedState const& state) override;
  SavedState state_of(std::uint32_t number) const override;
  void finish(packet::Packet const& packet, Aux const& aux, std::uint32_t status, nf::Outcome& outcome);

  std::shared_ptr<const InboundIndex> index_;
  RecentInbound recent_;
  Cleartext cleartext_;
  std::vector<ReplayWindow> windows_;  // by association
  // by association: first number that requires may_continue(); 0 for another shard's association
  std::vector<std::uint64_t> limits_;
};

}  // namespace catena::ipsec
