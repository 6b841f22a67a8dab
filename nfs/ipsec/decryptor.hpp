// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inbound_index.hpp"
#include "ipsec.hpp"
#include "replay_window.hpp"

namespace catena::ipsec {

/// ESP to plain packets. What is not ESP for us goes on unchanged and unrecorded.
class Decryptor final : public IpsecNf {
 public:
  Decryptor(std::vector<Session> sessions, std::unique_ptr<CryptoBurst> crypto);

  void prepare(packet::Batch const& batch, std::span<std::byte> aux, nf::Outcome& outcome) override;
  void compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) override;
  void complete(packet::Batch const& batch, std::span<const std::byte> aux, std::span<const std::byte> results,
                nf::SpillView const* spill, std::uint32_t first_row, nf::Outcome& outcome) override;

 private:
  /// As InboundIndex::find(); remembers the last answer, because packets of one tunnel come one after the other.
  std::optional<std::uint32_t> find(std::uint32_t spi, std::uint32_t destination);
  void finish(packet::Packet const& packet, Aux const& aux, std::uint32_t status, nf::Outcome& outcome);

  InboundIndex index_;
  std::uint32_t last_found_ = 0;
  std::vector<ReplayWindow> windows_;  // by association
};

}  // namespace catena::ipsec
