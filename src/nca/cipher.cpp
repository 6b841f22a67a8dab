// SPDX-License-Identifier: Apache-2.0
#include <catena/core/text.hpp>
#include <catena/nf/nf.hpp>
#include <catena/packet/headers.hpp>

#include "catena_kernel_nca_cipher.hpp"
#include "functions/cipher/aes_table.hpp"
#include "functions/cipher/cipher.layout.hpp"
#include "functions/cipher/crypto.hpp"
#include "nca/cipher.layout.hpp"
#include "nca/function.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

namespace catena::nca {
namespace {

constexpr std::uint32_t kMaxTextOffset = 256;
constexpr std::uint32_t kIvBytes = 8;
/// As the ipsec NF has them.
constexpr std::uint32_t kLanes = 8;
constexpr std::uint32_t kGroupSize = 256;

struct Settings {
  bool decrypts;
  std::uint32_t text_offset;
  std::uint32_t iv_offset;

  /// Bytes of header and text of a packet; 0: it is too short.
  std::uint32_t covered(std::uint32_t length) const {
    const std::uint32_t icv = decrypts ? kCipherIcvBytes : 0;
    return length < text_offset + icv ? 0 : length - icv;
  }
};

/// Without an early exit, which would tell how many bytes were right.
bool same_icv(const std::uint8_t* a, const std::uint8_t* b) {
  unsigned difference = 0;
  for (std::uint32_t i = 0; i < kCipherIcvBytes; ++i) {
    difference |= static_cast<unsigned>(a[i] ^ b[i]);
  }
  return difference == 0;
}

/// Room in `results.bytes` for header, text and ICV of each packet that is long enough; the others are so marked. The
/// bytes of entry i begin where entries[i].bytes says.
void lay_out(Settings const& settings, kernel::PackedPackets const& packets, FunctionResults& results) {
  std::size_t total = 0;
  for (std::uint32_t row = 0; row < packets.count(); ++row) {
    const std::uint32_t covered = settings.covered(packets.extent(row).length);
    total += covered == 0 ? 0 : covered + kCipherIcvBytes;
  }
  results.bytes.resize(total);
  std::uint8_t* at = results.bytes.data();
  for (std::uint32_t row = 0; row < packets.count(); ++row) {
    const std::uint32_t covered = settings.covered(packets.extent(row).length);
    if (covered == 0) {
      results.ciphered.push_back({nullptr, 0, NCA_CIPHER_TOO_SHORT});
      continue;
    }
    results.ciphered.push_back({at, covered, NCA_CIPHER_DONE});
    at += covered + kCipherIcvBytes;
  }
}

/// Ends a packet whose header, text and ICV are at their places: `computed` is the ICV that it must have.
void finish(Settings const& settings, std::span<const std::uint8_t> packet, std::uint8_t* out,
            nca_cipher_packet& entry) {
  if (!settings.decrypts) {
    entry.length += kCipherIcvBytes;
  } else if (!same_icv(out + entry.length, packet.data() + entry.length)) {
    // nobody may see a text that is not authentic
    std::memset(out, 0, entry.length);
    entry = {nullptr, 0, NCA_CIPHER_BAD_ICV};
  }
}

/// As cipher::CryptoBurst, for headers of any length.
class CipherWorker final : public HostWorker {
 public:
  CipherWorker(Settings settings, cipher::SessionKeys const& keys, cipher::Manager manager)
      : settings_(settings), keys_(keys), manager_(std::move(manager)) {
    for (IMB_JOB& job : jobs_) {
      job.enc_keys = keys_.round_keys.data();
      job.key_len_in_bytes = IMB_KEY_128_BYTES;
      job.cipher_start_src_offset_in_bytes = settings.text_offset;
      job.hash_start_src_offset_in_bytes = 0;
      job.iv_len_in_bytes = sizeof keys.salt + kIvBytes;  // the library appends RFC 3686's block counter
      job.auth_tag_output_len_in_bytes = kCipherIcvBytes;
      job.u.HMAC._hashed_auth_key_xor_ipad = reinterpret_cast<const std::uint8_t*>(keys_.inner_state.data());
      job.u.HMAC._hashed_auth_key_xor_opad = reinterpret_cast<const std::uint8_t*>(keys_.outer_state.data());
      job.cipher_mode = IMB_CIPHER_CNTR;
      job.hash_alg = IMB_AUTH_HMAC_SHA_1;
    }
  }

  ~CipherWorker() override { wipe(ivs_.data(), sizeof ivs_); }  // each begins with the nonce

  Status run(kernel::PackedPackets const& packets, FunctionResults& results) override {
    lay_out(settings_, packets, results);
    std::uint32_t size = 0;
    for (std::uint32_t row = 0; row < packets.count(); ++row) {
      nca_cipher_packet& entry = results.ciphered[row];
      if (entry.state != NCA_CIPHER_DONE) {
        continue;
      }
      std::uint8_t* out = bytes_of(results, entry);
      std::memcpy(out, packets.bytes(row).data(), entry.length);
      std::memcpy(ivs_[size].data(), &keys_.salt, sizeof keys_.salt);
      std::memcpy(ivs_[size].data() + sizeof keys_.salt, out + settings_.iv_offset, kIvBytes);
      IMB_JOB& job = jobs_[size];
      job.iv = ivs_[size].data();
      job.src = out;
      job.dst = out + settings_.text_offset;
      job.msg_len_to_cipher_in_bytes = entry.length - settings_.text_offset;
      job.msg_len_to_hash_in_bytes = entry.length;
      job.auth_tag_output = out + entry.length;
      rows_[size++] = row;
      if (size == jobs_.size()) {
        CATENA_RETURN_IF_ERROR(run_jobs(size, packets, results));
        size = 0;
      }
    }
    return run_jobs(size, packets, results);
  }

 private:
  static std::uint8_t* bytes_of(FunctionResults& results, nca_cipher_packet const& entry) {
    return results.bytes.data() + (entry.bytes - results.bytes.data());
  }

  Status run_jobs(std::uint32_t size, kernel::PackedPackets const& packets, FunctionResults& results) {
    // a text of no bytes has nothing to encrypt, and the library does not take it
    const auto middle = std::stable_partition(jobs_.begin(), jobs_.begin() + size,
                                              [](IMB_JOB const& job) { return job.msg_len_to_cipher_in_bytes > 0; });
    const auto texts = static_cast<std::uint32_t>(middle - jobs_.begin());
    const auto cipher = [&] {
      return IMB_SUBMIT_CIPHER_BURST_NOCHECK(manager_.get(), jobs_.data(), texts, IMB_CIPHER_CNTR,
                                             settings_.decrypts ? IMB_DIR_DECRYPT : IMB_DIR_ENCRYPT,
                                             IMB_KEY_128_BYTES) == texts;
    };
    const auto hash = [&] {
      return IMB_SUBMIT_HASH_BURST_NOCHECK(manager_.get(), jobs_.data(), size, IMB_AUTH_HMAC_SHA_1) == size;
    };
    const bool done = settings_.decrypts ? hash() && cipher() : cipher() && hash();
    if (!done) {
      return absl::InternalError("intel-ipsec-mb did not finish a burst");
    }
    for (std::uint32_t i = 0; i < size; ++i) {
      nca_cipher_packet& entry = results.ciphered[rows_[i]];
      finish(settings_, packets.bytes(rows_[i]), bytes_of(results, entry), entry);
    }
    return absl::OkStatus();
  }

  Settings settings_;
  cipher::SessionKeys keys_;
  cipher::Manager manager_;
  std::array<IMB_JOB, IMB_MAX_BURST_SIZE> jobs_{};
  std::array<std::array<std::uint8_t, 16>, IMB_MAX_BURST_SIZE> ivs_{};
  std::array<std::uint32_t, IMB_MAX_BURST_SIZE> rows_{};
};

class CipherFunction final : public Function {
 public:
  CipherFunction(Settings settings, cipher::SessionKeys const& keys) : settings_(settings), keys_(keys) {}

  nca_kind kind() const override { return NCA_CIPHER; }

  Result<std::unique_ptr<HostWorker>> host_worker() const override {
    CATENA_ASSIGN_OR_RETURN(cipher::Manager manager, cipher::make_manager());
    return std::make_unique<CipherWorker>(settings_, keys_, std::move(manager));
  }

  Result<FunctionKernel> kernel_side() const override {
    std::array<std::uint32_t, cipher::kKeyWords> words{};
    for (std::uint32_t i = 0; i < 44; ++i) {
      words[cipher::kRoundKeys + i] = packet::load_be32(keys_.round_keys.data() + std::size_t{4} * i);
    }
    words[cipher::kSalt] = __builtin_bswap32(keys_.salt);
    std::copy(keys_.inner_state.begin(), keys_.inner_state.end(), words.begin() + cipher::kInnerState);
    std::copy(keys_.outer_state.begin(), keys_.outer_state.end(), words.begin() + cipher::kOuterState);
    nf::StateBuilder state(sizeof(CipherState));
    CipherState header{};
    header.t_table = state.add(std::span<const std::uint32_t>(cipher::aes_t_table()));
    header.keys = state.add(std::span<const std::uint32_t>(words));
    header.text_offset = settings_.text_offset;
    header.iv_offset = settings_.iv_offset;
    header.decrypts = settings_.decrypts ? 1 : 0;
    wipe(words.data(), sizeof words);
    FunctionKernel side;
    side.has_keys = true;
    side.spec.source = catena_kernel_nca_cipher();
    side.spec.name = "nca_cipher";
    side.plan.reads = packet::fields(packet::kPayload);
    side.plan.result_bytes = sizeof(CipherResult);
    side.spec.lanes = kLanes;
    side.spec.group_size = kGroupSize;
    side.spec.local_bytes = kCipherTableWords * std::uint32_t{sizeof(u32)};
    side.spec.spill_factor = 1;
    side.state = state.finish(header);
    side.returns_spill = true;
    return side;
  }

  Status collect(kernel::PackedLaunch& launch, std::size_t number, FunctionResults& results) const override {
    kernel::PackedPackets const& packets = launch.packets();
    lay_out(settings_, packets, results);
    const auto rows = nf::array_of<CipherResult>(launch.results(number));
    std::uint8_t* out = results.bytes.data();
    for (std::uint32_t row = 0; row < rows.size(); ++row) {
      nca_cipher_packet& entry = results.ciphered[row];
      if (launch.faulted(number, row)) {
        ++results.out_of_bounds;
        out += entry.state == NCA_CIPHER_DONE ? entry.length + kCipherIcvBytes : 0;
        entry = {nullptr, 0, NCA_CIPHER_OUT_OF_BOUNDS};
        continue;
      }
      if (entry.state != NCA_CIPHER_DONE) {
        continue;
      }
      const std::uint32_t covered = entry.length;
      std::memcpy(out, launch.returned_spill(number, row).data(), covered);
      for (std::uint32_t i = 0; i < 3; ++i) {
        packet::store_be32(out + covered + std::size_t{4} * i, rows[row].icv[i]);
      }
      finish(settings_, packets.bytes(row), out, entry);
      out += covered + kCipherIcvBytes;
    }
    return absl::OkStatus();
  }

 private:
  Settings settings_;
  cipher::SessionKeys keys_;
};

}  // namespace

Result<std::unique_ptr<Function>> make_cipher(nca_cipher_config const& config) {
  const bool good = (config.direction == NCA_ENCRYPT || config.direction == NCA_DECRYPT) &&
                    config.text_offset <= kMaxTextOffset && config.text_offset >= kIvBytes &&
                    config.iv_offset <= config.text_offset - kIvBytes;
  if (!good) {
    return absl::InvalidArgumentError(
        concat("direction ", config.direction, ", text_offset ", config.text_offset, ", iv_offset ", config.iv_offset,
               "; a cipher needs NCA_ENCRYPT or NCA_DECRYPT, and an IV of 8 bytes before the "
               "text, which begins at byte ",
               kMaxTextOffset, " at the latest"));
  }
  cipher::Keys association;
  std::copy_n(config.key, sizeof config.key, association.encryption_key.begin());
  std::copy_n(config.nonce, sizeof config.nonce, association.salt.begin());
  std::copy_n(config.authentication_key, sizeof config.authentication_key, association.authentication_key.begin());
  CATENA_ASSIGN_OR_RETURN(const auto burst, cipher::CryptoBurst::create());
  const Settings settings{config.direction == NCA_DECRYPT, config.text_offset, config.iv_offset};
  return std::make_unique<CipherFunction>(settings, burst->expand(association));
}

}  // namespace catena::nca
