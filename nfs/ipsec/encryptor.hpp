// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ipsec.hpp"

#include <catena/packet/icmp.hpp>

namespace catena::ipsec {

/// Plain packets to ESP. The first association in file order whose selector matches carries the packet.
class Encryptor final : public IpsecNf {
 public:
  /// `mtu`: longest outer datagram, bytes.
  Encryptor(std::vector<Session> sessions, std::unique_ptr<cipher::CryptoBurst> crypto, std::string state_folder,
            std::uint32_t mtu);

  void prepare(packet::Batch const& batch, std::span<std::byte> aux, nf::Outcome& outcome) override;
  void compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) override;
  void complete(nf::Completion const& completion) override;
  nf::Hints hints() const override;
  std::vector<nf::Statistic> statistics() const override;

 private:
  static constexpr std::uint32_t kErrorsPerSecond = 1000;
  static constexpr std::uint32_t kErrorBurst = 1000;
  /// Position of the first association whose selector matches; their number if none does.
  std::uint32_t find(FlowKey const& flow) const;
  /// Of a packet that no selector matches: whether one may match the datagram that it is a part of.
  bool may_belong_to_one(packet::Packet const& packet) const;
  /// What becomes of a packet whose outer datagram exceeds the MTU. True: it goes on, and tx writes fragments. Else it
  /// is dropped, or turned into the ICMP error that tells its sender (RFC 1191, RFC 4301 section 8.2.1).
  bool may_be_cut(packet::Packet const& packet, std::uint32_t number, nf::Outcome& outcome);
  /// Whether the association may use its next number, which has come to its limit. Moves the limit on if so.
  bool may_go_on(std::uint32_t number);
  void resume(std::uint32_t number, SavedState const& state) override;
  SavedState state_of(std::uint32_t number) const override;

  std::vector<Selector> selectors_;    // by association
  std::vector<std::uint32_t> fronts_;  // by association: bytes that it puts in front
  /// What an association has of sequence numbers.
  struct Numbers {
    std::uint64_t next;   ///< to be assigned
    std::uint64_t limit;  ///< the first number that may_go_on() must be asked for
    bool extended;
    bool soft_limit_passed = false;
  };
  std::vector<Numbers> numbers_;  // by association
  std::uint64_t soft_limits_passed_ = 0;
  packet::ErrorBudget errors_{kErrorsPerSecond, kErrorBurst};
  std::uint32_t mtu_;
};

}  // namespace catena::ipsec
