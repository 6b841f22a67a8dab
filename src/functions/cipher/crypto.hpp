// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/wipe.hpp"
#include "functions/cipher/cipher.layout.hpp"

#include <catena/core/status.hpp>

#include <intel-ipsec-mb.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>

/// AES-128-CTR and HMAC-SHA1-96 by intel-ipsec-mb, many packets at a time.
namespace catena::cipher {

/// The keys of one direction between two peers. The destructor wipes them.
struct Keys {
  std::array<std::uint8_t, 16> encryption_key{};
  std::array<std::uint8_t, 4> salt{};  ///< RFC 3686 nonce
  std::array<std::uint8_t, 20> authentication_key{};
  bool extended_sequence = false;  ///< RFC 4303 section 2.2.1

  ~Keys() { wipe(this, sizeof *this); }
};

/// The expanded keys. The destructor wipes them.
struct SessionKeys {
  alignas(16) std::array<std::uint8_t, 176> round_keys{};  ///< AES-128 key schedule, bytes in FIPS 197 order
  std::array<std::uint32_t, 5> inner_state{};              ///< SHA-1 after the block key ^ ipad
  std::array<std::uint32_t, 5> outer_state{};              ///< SHA-1 after the block key ^ opad
  std::uint32_t salt = 0;                                  ///< RFC 3686 nonce, in memory order
  bool extended_sequence = false;                          ///< RFC 4303 section 2.2.1

  ~SessionKeys() { wipe(this, sizeof *this); }
};

/// Frees intel-ipsec-mb's state, after wiping it, because hashes may leave expanded keys in it.
struct FreeManager {
  void operator()(IMB_MGR* manager) const {
    wipe(manager, imb_get_mb_mgr_size());
    free_mb_mgr(manager);
  }
};
using Manager = std::unique_ptr<IMB_MGR, FreeManager>;
/// The library's state for one thread at a time. ResourceExhausted: no memory. Unavailable: the library cannot run on
/// this processor.
Result<Manager> make_manager();

/// A burst of ESP packets for the library. Call order: add() up to kPackets times, then encrypt() or decrypt(), which
/// empty the burst again. Belongs to one thread at a time; owns the library's state.
///
/// The synchronous cipher and hash bursts are used, not the job queue (IMB_SUBMIT_BURST): in version 1.3 the queue
/// loses jobs when it wraps around full, and on whole batches the synchronous calls are as fast.
class CryptoBurst {
 public:
  static constexpr std::uint32_t kPackets = IMB_MAX_BURST_SIZE;

  /// ResourceExhausted: no memory. Unavailable: the library refuses this processor or failed its self-test.
  static Result<std::unique_ptr<CryptoBurst>> create();

  /// Thread rule: as the object.
  SessionKeys expand(Keys const& keys);
  /// 24 hexadecimal digits of the SHA-256 of some bytes: identifies them without revealing them. Thread rule: as the
  /// object.
  std::string fingerprint(std::span<const std::uint8_t> bytes);

  std::uint32_t size() const { return size_; }
  bool full() const { return size_ == kPackets; }

  /// Adds the packet with the ESP header at `esp`, followed by its IV `iv` and `text_length` bytes of text. The IV is a
  /// separate argument, because it has often just been written, and a read would wait for it. `keys` and the packet
  /// must stay until the burst is run. `sequence_high`: the half of an extended sequence number that only the ICV
  /// covers.
  void add(SessionKeys const& keys, std::uint8_t* esp, std::uint64_t iv, std::uint32_t text_length,
           std::uint32_t sequence_high = 0) {
    const std::uint32_t number = size_++;
    const std::uint64_t iv_in_memory = __builtin_bswap64(iv);
    std::uint8_t* nonce = ivs_[number].data();
    std::memcpy(nonce, &keys.salt, sizeof keys.salt);
    std::memcpy(nonce + sizeof keys.salt, &iv_in_memory, sizeof iv_in_memory);
    IMB_JOB& job = jobs_[number];
    job.enc_keys = keys.round_keys.data();  // counter mode runs the cipher forward only
    job.src = esp;
    job.dst = esp + kTextOffset;
    job.msg_len_to_cipher_in_bytes = text_length;
    job.msg_len_to_hash_in_bytes = kTextOffset + text_length;
    if (keys.extended_sequence) {
      // the library hashes contiguous bytes, so the half replaces the ICV temporarily
      std::uint8_t* behind_text = job.dst + text_length;
      Displaced& displaced = displaced_[displaced_size_++];
      displaced.at = behind_text;
      std::memcpy(displaced.bytes.data(), behind_text, kExtensionBytes);
      const std::uint32_t half_in_memory = __builtin_bswap32(sequence_high);
      std::memcpy(behind_text, &half_in_memory, sizeof half_in_memory);
      job.msg_len_to_hash_in_bytes += kExtensionBytes;
    }
    job.u.HMAC._hashed_auth_key_xor_ipad = reinterpret_cast<const std::uint8_t*>(keys.inner_state.data());
    job.u.HMAC._hashed_auth_key_xor_opad = reinterpret_cast<const std::uint8_t*>(keys.outer_state.data());
  }

  /// Encrypts every text in place and writes every ICV after its text. False if the library did not finish; no packet
  /// may then leave.
  bool encrypt();
  /// Computes every ICV, then decrypts every text in place, whatever its ICV. `good[i]` tells whether packet number i
  /// has the right ICV, compared in constant time. False as for encrypt().
  bool decrypt(std::array<bool, kPackets>& good);

 private:
  explicit CryptoBurst(Manager manager);

  /// The bytes replaced by a half of a sequence number.
  struct Displaced {
    std::uint8_t* at;
    std::array<std::uint8_t, kExtensionBytes> bytes;
  };

  Manager manager_;
  std::uint32_t size_ = 0;
  std::uint32_t displaced_size_ = 0;
  std::array<IMB_JOB, kPackets> jobs_{};
  std::array<std::array<std::uint8_t, 16>, kPackets> ivs_{};
  std::array<std::array<std::uint8_t, kIcvBytes>, kPackets> icvs_{};
  std::array<Displaced, kPackets> displaced_{};
};

}  // namespace catena::cipher
