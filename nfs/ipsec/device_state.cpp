// SPDX-License-Identifier: Apache-2.0
#include "device_state.hpp"

#include <algorithm>
#include <cstring>

#include "catena_kernel_ipsec.hpp"

namespace catena::ipsec {
namespace {

/// Room for the headers and the trailer that encryption adds, in multiples of 16.
constexpr std::uint32_t kHeadroom = 48;
constexpr std::uint32_t kTailroom = 32;
static_assert(kMaxFrontBytes <= kHeadroom && kMaxBackBytes <= kTailroom);

/// Work-items per packet: enough to hide AES after the HMAC, which one work-item a packet computes. Those of a group
/// are as many as a GPU runs in step.
constexpr std::uint32_t kLanes = 8;
constexpr std::uint32_t kGroupSize = 256;

}  // namespace

std::array<std::uint32_t, kAssociationWords> device_association(Session const& session) {
  Association const& association = session.association;
  std::array<std::uint32_t, kAssociationWords> words{};
  for (std::uint32_t i = 0; i < 44; ++i) {
    words[cipher::kRoundKeys + i] = packet::load_be32(session.keys.round_keys.data() + 4 * i);
  }
  words[cipher::kSalt] = packet::load_be32(association.salt.data());
  std::copy(session.keys.inner_state.begin(), session.keys.inner_state.end(), words.begin() + cipher::kInnerState);
  std::copy(session.keys.outer_state.begin(), session.keys.outer_state.end(), words.begin() + cipher::kOuterState);
  words[kSpi] = association.spi;
  words[kSource] = association.source;
  words[kDestination] = association.destination;
  words[kPorts] =
      association.udp ? std::uint32_t{association.udp->source} << 16 | association.udp->destination : std::uint32_t{0};
  words[kTosKeep] = association.policy.tos_keep;
  words[kTosSet] = association.policy.tos_set;
  words[kDfKeep] = association.policy.df_keep;
  words[kDfSet] = association.policy.df_set;
  words[kTtl] = association.policy.ttl;
  return words;
}

nf::KernelSide make_kernel_side(Direction direction, std::span<const Session> sessions) {
  std::vector<std::uint32_t> words;
  words.reserve(sessions.size() * kAssociationWords);
  for (Session const& session : sessions) {
    const auto association = device_association(session);
    words.insert(words.end(), association.begin(), association.end());
  }
  nf::StateBuilder state(sizeof(DeviceState));
  DeviceState header{};
  header.t_table = state.add(std::span<const std::uint32_t>(cipher::aes_t_table()));
  header.associations = state.add(std::span(words));
  kernel::KernelSpec spec;
  spec.source = catena_kernel_ipsec();
  spec.name = direction == Direction::kEncrypt ? "ipsec_encrypt" : "ipsec_decrypt";
  spec.headroom = kHeadroom;
  spec.tailroom = kTailroom;
  spec.lanes = kLanes;
  spec.group_size = kGroupSize;
  spec.local_bytes = local_words(kGroupSize, kLanes) * 4;
  return {std::move(spec), state.finish(header)};
}

}  // namespace catena::ipsec
