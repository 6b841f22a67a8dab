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
  Decryptor(std::vector<Session> sessions, std::unique_ptr<cipher::CryptoBurst> crypto, std::string state_folder,
            Cleartext cleartext);

  void prepare(packet::Batch const& batch, std::span<std::byte> aux, nf::Outcome& outcome) override;
  void compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) override;
  void complete(nf::Completion const& completion) override;

 private:
  /// As InboundIndex::find(); remembers the last answer, because packets of one tunnel come one after the other.
  std::optional<std::uint32_t> find(std::uint32_t spi, std::uint32_t destination);
  /// Whether some association protects such packets (RFC 4301 section 5.2, step 4).
  bool is_protected(FlowKey const& flow) const;
  void resume(std::uint32_t number, SavedState const& state) override;
  SavedState state_of(std::uint32_t number) const override;
  void finish(packet::Packet const& packet, Aux const& aux, std::uint32_t status, nf::Outcome& outcome);

  InboundIndex index_;
  Cleartext cleartext_;
  std::uint32_t last_found_ = 0;
  std::vector<ReplayWindow> windows_;  // by association
  std::vector<std::uint64_t> limits_;  // by association: the first number that take() must be asked for
};

}  // namespace catena::ipsec
