// SPDX-License-Identifier: Apache-2.0
// For tests: the cryptography of ipsec.kernel.cpp alone, on published vectors. A frame is a plaintext block or a
// message; the result is what it becomes. One work-item a packet.
#include <catena/kernel/context.hpp>

#include "functions/cipher/aes128.kernel.hpp"
#include "functions/cipher/hmac_sha1.kernel.hpp"
#include "ipsec.layout.hpp"

namespace catena::ipsec {

struct VectorAux {
  u32 association;
};

inline kernel::IsoPtr<u32> vector_keys(kernel::Context const& ctx, VectorAux aux) {
  return ctx.array(ctx.state<DeviceState>().associations)
      .sub(static_cast<u64>(aux.association) * kAssociationWords, kAssociationWords);
}

}  // namespace catena::ipsec

CATENA_KERNEL(aes128_block) {
  using namespace catena;
  using namespace catena::ipsec;
  const auto packet = ctx.packet();
  if (!packet.valid()) {
    return;
  }
  const auto frame = packet.frame();
  const auto table = ctx.array(ctx.state<DeviceState>().t_table);
  const cipher::Block in{{frame.be32(0), frame.be32(4), frame.be32(8), frame.be32(12)}};
  const cipher::Block out = cipher::aes128_encrypt(
      table, cipher::load_round_keys(vector_keys(ctx, packet.aux<VectorAux>()), cipher::kRoundKeys), in);
  packet.set_result(cipher::Sha1State{{out.words[0], out.words[1], out.words[2], out.words[3], 0}});
}

CATENA_KERNEL(hmac_sha1_message) {
  using namespace catena;
  using namespace catena::ipsec;
  const auto packet = ctx.packet();
  if (!packet.valid()) {
    return;
  }
  const auto keys = vector_keys(ctx, packet.aux<VectorAux>());
  const auto frame = packet.frame();
  packet.set_result(cipher::hmac_sha1(frame, frame.length(), cipher::load_sha1_state(keys, cipher::kInnerState),
                                      cipher::load_sha1_state(keys, cipher::kOuterState)));
}
