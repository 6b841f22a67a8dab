// SPDX-License-Identifier: Apache-2.0
#include "functions/cipher/crypto.hpp"

#include <catena/core/text.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace catena::cipher {
namespace {

constexpr std::size_t kSha1BlockBytes = 64;
constexpr std::uint64_t kNonceAndIvBytes = 12;  // the library appends RFC 3686's block counter, which starts at 1

/// Without an early exit, which would tell how many bytes were right.
bool equal_icv(const std::uint8_t* a, const std::uint8_t* b) {
  static_assert(kIcvBytes == sizeof(std::uint64_t) + sizeof(std::uint32_t));
  std::uint64_t first[2];
  std::uint32_t last[2];
  std::memcpy(&first[0], a, sizeof first[0]);
  std::memcpy(&first[1], b, sizeof first[1]);
  std::memcpy(&last[0], a + sizeof first[0], sizeof last[0]);
  std::memcpy(&last[1], b + sizeof first[0], sizeof last[1]);
  return ((first[0] ^ first[1]) | (last[0] ^ last[1])) == 0;
}

}  // namespace

Result<Manager> make_manager() {
  Manager manager(alloc_mb_mgr(0));
  if (!manager) {
    return absl::ResourceExhaustedError("intel-ipsec-mb: no memory for its state");
  }
  init_mb_mgr_auto(manager.get(), nullptr);
  if (const int error = imb_get_errno(manager.get()); error != 0) {
    return absl::UnavailableError(concat("intel-ipsec-mb cannot run here: ", imb_get_strerror(error)));
  }
  return manager;
}

CryptoBurst::CryptoBurst(Manager manager) : manager_(std::move(manager)) {
  for (std::uint32_t i = 0; i < kPackets; ++i) {
    IMB_JOB& job = jobs_[i];
    job.key_len_in_bytes = IMB_KEY_128_BYTES;
    job.cipher_start_src_offset_in_bytes = kTextOffset;
    job.hash_start_src_offset_in_bytes = 0;
    job.iv = ivs_[i].data();
    job.iv_len_in_bytes = kNonceAndIvBytes;
    job.auth_tag_output_len_in_bytes = kIcvBytes;
    job.cipher_mode = IMB_CIPHER_CNTR;
    job.hash_alg = IMB_AUTH_HMAC_SHA_1;
  }
}

Result<std::unique_ptr<CryptoBurst>> CryptoBurst::create() {
  CATENA_ASSIGN_OR_RETURN(Manager manager, make_manager());
  return std::unique_ptr<CryptoBurst>(new CryptoBurst(std::move(manager)));
}

SessionKeys CryptoBurst::expand(Keys const& secret) {
  SessionKeys keys;
  alignas(16) std::array<std::uint8_t, 176> backwards;
  IMB_AES_KEYEXP_128(manager_.get(), secret.encryption_key.data(), keys.round_keys.data(), backwards.data());
  wipe(backwards.data(), backwards.size());
  std::memcpy(&keys.salt, secret.salt.data(), sizeof keys.salt);
  keys.extended_sequence = secret.extended_sequence;
  // RFC 2104: the state after the block (key ^ pad) is the same for every packet
  const auto hash_pad = [&](std::uint8_t pad, std::array<std::uint32_t, 5>& state) {
    std::array<std::uint8_t, kSha1BlockBytes> block;
    block.fill(pad);
    for (std::size_t i = 0; i < secret.authentication_key.size(); ++i) {
      block[i] = static_cast<std::uint8_t>(block[i] ^ secret.authentication_key[i]);
    }
    IMB_SHA1_ONE_BLOCK(manager_.get(), block.data(), state.data());
    wipe(block.data(), block.size());
  };
  hash_pad(0x36, keys.inner_state);
  hash_pad(0x5C, keys.outer_state);
  return keys;
}

std::string CryptoBurst::fingerprint(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kShown = 12;
  std::array<std::uint8_t, 32> digest;
  IMB_SHA256(manager_.get(), bytes.data(), bytes.size(), digest.data());
  return fmt::format("{:02x}", fmt::join(digest.begin(), digest.begin() + kShown, ""));
}

bool CryptoBurst::encrypt() {
  for (std::uint32_t i = 0; i < size_; ++i) {
    jobs_[i].auth_tag_output = jobs_[i].dst + jobs_[i].msg_len_to_cipher_in_bytes;
  }
  const std::uint32_t packets = size_;
  size_ = 0;
  displaced_size_ = 0;  // the ICV is written over the halves
  return IMB_SUBMIT_CIPHER_BURST_NOCHECK(manager_.get(), jobs_.data(), packets, IMB_CIPHER_CNTR, IMB_DIR_ENCRYPT,
                                         IMB_KEY_128_BYTES) == packets &&
         IMB_SUBMIT_HASH_BURST_NOCHECK(manager_.get(), jobs_.data(), packets, IMB_AUTH_HMAC_SHA_1) == packets;
}

bool CryptoBurst::decrypt(std::array<bool, kPackets>& good) {
  for (std::uint32_t i = 0; i < size_; ++i) {
    jobs_[i].auth_tag_output = icvs_[i].data();
  }
  const std::uint32_t packets = size_;
  size_ = 0;
  const bool hashed =
      IMB_SUBMIT_HASH_BURST_NOCHECK(manager_.get(), jobs_.data(), packets, IMB_AUTH_HMAC_SHA_1) == packets;
  for (; displaced_size_ > 0; --displaced_size_) {
    Displaced const& displaced = displaced_[displaced_size_ - 1];
    std::memcpy(displaced.at, displaced.bytes.data(), displaced.bytes.size());
  }
  if (!hashed || IMB_SUBMIT_CIPHER_BURST_NOCHECK(manager_.get(), jobs_.data(), packets, IMB_CIPHER_CNTR,
                                                 IMB_DIR_DECRYPT, IMB_KEY_128_BYTES) != packets) {
    return false;
  }
  for (std::uint32_t i = 0; i < packets; ++i) {
    good[i] = equal_icv(icvs_[i].data(), jobs_[i].dst + jobs_[i].msg_len_to_cipher_in_bytes);
  }
  return true;
}

}  // namespace catena::cipher
