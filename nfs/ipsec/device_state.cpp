// SPDX-License-Identifier: Apache-2.0
#include "device_state.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

extern const catena::kernel::SourceFile catena_kernel_ipsec[];
extern const unsigned catena_kernel_ipsec_count;

namespace catena::ipsec {
namespace {

/// Room for the headers and the trailer that encryption adds, in multiples of 16.
constexpr std::uint32_t kHeadroom = 48;
constexpr std::uint32_t kTailroom = 32;
static_assert(kMaxFrontBytes <= kHeadroom && kMaxBackBytes <= kTailroom);

/// Work-items per packet: enough to hide AES behind the HMAC, which one work-item a packet computes. Those of a group
/// are as many as a GPU runs in step.
constexpr std::uint32_t kLanes = 8;
constexpr std::uint32_t kGroupSize = 256;

/// Multiplication by x in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1.
constexpr std::uint8_t times_two(std::uint8_t value) {
  return static_cast<std::uint8_t>((value << 1) ^ ((value & 0x80U) != 0 ? 0x1BU : 0U));
}

constexpr std::array<std::uint8_t, 256> make_s_box() {
  // 3 generates the multiplicative group: with powers[k] = 3^k the inverse of 3^k is 3^(255 - k)
  std::array<std::uint8_t, 256> powers{};
  powers[0] = 1;
  for (std::size_t k = 1; k < 256; ++k) {
    powers[k] = static_cast<std::uint8_t>(times_two(powers[k - 1]) ^ powers[k - 1]);
  }
  std::array<std::uint8_t, 256> s_box{};
  const auto affine = [](std::uint8_t x) {
    return static_cast<std::uint8_t>(x ^ std::rotl(x, 1) ^ std::rotl(x, 2) ^ std::rotl(x, 3) ^ std::rotl(x, 4) ^ 0x63);
  };
  s_box[0] = affine(0);
  for (std::size_t k = 0; k < 255; ++k) {
    s_box[powers[k]] = affine(powers[255 - k]);
  }
  return s_box;
}

constexpr std::array<std::uint32_t, kTableWords> make_t_table() {
  constexpr std::array<std::uint8_t, 256> kSBox = make_s_box();
  std::array<std::uint32_t, kTableWords> table{};
  for (std::size_t i = 0; i < table.size(); ++i) {
    const std::uint32_t s = kSBox[i];
    const std::uint32_t twice = times_two(kSBox[i]);
    table[i] = twice << 24 | s << 16 | s << 8 | (twice ^ s);
  }
  return table;
}

constexpr std::array<std::uint32_t, kTableWords> kTable = make_t_table();

}  // namespace

std::array<std::uint32_t, kTableWords> const& aes_t_table() { return kTable; }

std::array<std::uint32_t, kAssociationWords> device_association(Session const& session) {
  Association const& association = session.association;
  std::array<std::uint32_t, kAssociationWords> words{};
  for (std::uint32_t i = 0; i < 44; ++i) {
    words[kRoundKeys + i] = packet::load_be32(session.keys.round_keys.data() + 4 * i);
  }
  words[kSalt] = packet::load_be32(association.salt.data());
  std::copy(session.keys.inner_state.begin(), session.keys.inner_state.end(), words.begin() + kInnerState);
  std::copy(session.keys.outer_state.begin(), session.keys.outer_state.end(), words.begin() + kOuterState);
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

nf::KernelSide make_kernel_side(Direction direction, nf::Hints const& hints, std::span<const Session> sessions) {
  std::vector<std::uint32_t> words;
  words.reserve(sessions.size() * kAssociationWords);
  for (Session const& session : sessions) {
    const auto association = device_association(session);
    words.insert(words.end(), association.begin(), association.end());
  }
  nf::StateBuilder state(sizeof(DeviceState));
  DeviceState header{};
  header.t_table = state.add(std::span<const std::uint32_t>(kTable));
  header.associations = state.add(std::span(words));
  kernel::ProgramSpec spec;
  spec.source = {catena_kernel_ipsec, catena_kernel_ipsec_count};
  spec.kernel = direction == Direction::kEncrypt ? "ipsec_encrypt" : "ipsec_decrypt";
  spec.reads = hints.gr;
  spec.writes = hints.gw;
  spec.aux_bytes = sizeof(Aux);
  spec.result_bytes = sizeof(PacketResult);
  spec.headroom = kHeadroom;
  spec.tailroom = kTailroom;
  spec.policy = {
      .lanes = kLanes, .group_size = kGroupSize, .local_bytes = local_words(kGroupSize, kLanes) * 4, .spill_factor = 0};
  return {std::move(spec), state.finish(header)};
}

}  // namespace catena::ipsec
