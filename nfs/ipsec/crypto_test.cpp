// SPDX-License-Identifier: Apache-2.0
// Published vectors: RFC 3686 (AES-CTR), NIST's known-answer tests (AES), RFC 2202 (HMAC-SHA1).
#include "functions/cipher/crypto.hpp"

#include "catena_kernel_ipsec_vectors.hpp"
#include "device_state.hpp"
#include "ipsec_testing.hpp"

#include <catena/core/testing/test_data.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/testing/packet_store.hpp>
#include <catena/nf/testing/vector_file.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace catena::ipsec::testing {
namespace {

using Bytes = std::vector<std::uint8_t>;
using nf::testing::Vector;

/// Of a file of the shared test data.
std::vector<Vector> read_vectors(std::string const& name, std::string_view first) {
  return nf::testing::read_vectors(shared_data() + "/crypto/" + name, first);
}

Association with_keys(Bytes const& encryption, Bytes const& authentication) {
  Association association;
  std::copy(encryption.begin(), encryption.end(), association.encryption_key.begin());
  // a key shorter than the hash's block counts as padded with zeros (RFC 2104)
  std::copy(authentication.begin(), authentication.end(), association.authentication_key.begin());
  return association;
}

/// A key of RFC 2202 as 20 bytes with the same meaning: longer than a block, it is its hash. Empty: it has none.
Bytes twenty_bytes(Bytes key) {
  if (key.size() > 64) {
    Bytes hash(20);
    std::unique_ptr<IMB_MGR, decltype(&free_mb_mgr)> manager(alloc_mb_mgr(0), &free_mb_mgr);
    init_mb_mgr_auto(manager.get(), nullptr);
    IMB_SHA1(manager.get(), key.data(), key.size(), hash.data());
    return hash;
  }
  if (key.size() > 20) {
    return {};
  }
  key.resize(20);
  return key;
}

constexpr std::size_t kResultBytes = 20;
nf::Descriptor vectors() {
  nf::Descriptor descriptor;
  descriptor.type = "vectors";
  descriptor.needs = 0;
  descriptor.refuses = 0;
  descriptor.aux_bytes = sizeof(std::uint32_t);
  descriptor.result_bytes = kResultBytes;
  descriptor.has_kernel = true;
  return descriptor;
}

/// A kernel of crypto_vectors.kernel.cpp as an NF: packet i with the keys of association i.
class Vectors final : public nf::Nf {
 public:
  Vectors(nf::KernelSide side, std::vector<Bytes>& results) : side_(std::move(side)), results_(&results) {}

  nf::Hints hints() const override { return {.gr = packet::kFrameFields}; }
  void prepare(packet::Batch const& batch, std::span<std::byte> aux, nf::Outcome& /*outcome*/) override {
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      nf::array_of<std::uint32_t>(aux)[i] = static_cast<std::uint32_t>(batch[i].index());
    }
  }
  void compute(packet::Batch const& /*batch*/, std::span<const std::byte> /*aux*/,
               std::span<std::byte> /*results*/) override {
    ADD_FAILURE() << "there is nothing for the CPU";
  }
  void complete(nf::Completion const& completion) override {
    const auto words = completion.results<std::uint32_t>();
    constexpr std::size_t kWords = kResultBytes / sizeof(std::uint32_t);
    for (std::size_t i = 0; i < completion.batch().size(); ++i) {
      Bytes& result = results_->emplace_back(kResultBytes);
      for (std::size_t word = 0; word < kWords; ++word) {
        packet::store_be32(result.data() + word * 4, words[i * kWords + word]);
      }
    }
  }
  Result<nf::KernelSide> kernel_side() const override { return side_; }

 private:
  nf::KernelSide side_;
  std::vector<Bytes>* results_;
};

class CryptoVectors : public ::testing::Test {
 protected:
  void SetUp() override {
    auto crypto = cipher::CryptoBurst::create();
    ASSERT_TRUE(crypto.ok()) << crypto.status();
    crypto_ = std::move(crypto).value();
  }

  /// Runs a kernel of crypto_vectors.kernel.cpp: message i with the keys of association i.
  std::vector<Bytes> run_kernel(device::Device& device, std::string const& kernel, std::vector<Bytes> const& messages,
                                std::vector<Association> const& associations) {
    std::vector<std::uint32_t> words;
    std::vector<std::uint32_t> aux;
    for (Association const& association : associations) {
      const Session session{association, crypto_->expand(keys_of(association)), OuterHeaders(association)};
      const auto one = device_association(session);
      words.insert(words.end(), one.begin(), one.end());
      aux.push_back(static_cast<std::uint32_t>(aux.size()));
    }
    nf::StateBuilder state(sizeof(DeviceState));
    DeviceState header{};
    header.t_table = state.add(std::span<const std::uint32_t>(cipher::aes_t_table()));
    header.associations = state.add(std::span(words));
    nf::KernelSide side;
    side.spec.source = catena_kernel_ipsec_vectors();
    side.spec.name = kernel;
    side.state = state.finish(header);
    std::vector<Bytes> results;
    const auto run =
        nf::testing::run(vectors(), std::make_unique<Vectors>(std::move(side), results), messages, &device);
    EXPECT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(run.ok() ? run->counters.kernel_faults : 0, 0U);
    return results;
  }

  std::unique_ptr<cipher::CryptoBurst> crypto_;
};

TEST_F(CryptoVectors, library_path_encrypts_as_rfc_3686_says) {
  const std::vector<Vector> vectors = read_vectors("rfc3686_aes-128-ctr.txt", "KEY");
  ASSERT_EQ(vectors.size(), 3U);
  for (Vector const& vector : vectors) {
    Association association = with_keys(vector.at("KEY"), {});
    std::copy_n(vector.at("IV").begin(), 4, association.salt.begin());
    const cipher::SessionKeys keys = crypto_->expand(keys_of(association));
    Bytes const& text = vector.at("PLAINTEXT");
    Bytes esp(cipher::kTextOffset + text.size() + cipher::kIcvBytes);
    const std::uint8_t* iv_bytes = vector.at("IV").data() + 4;
    const std::uint64_t iv = std::uint64_t{packet::load_be32(iv_bytes)} << 32 | packet::load_be32(iv_bytes + 4);
    std::copy(text.begin(), text.end(), esp.begin() + cipher::kTextOffset);
    crypto_->add(keys, esp.data(), iv, static_cast<std::uint32_t>(text.size()));
    ASSERT_TRUE(crypto_->encrypt());
    EXPECT_EQ(Bytes(esp.begin() + cipher::kTextOffset, esp.end() - cipher::kIcvBytes), vector.at("CIPHERTEXT"));

    std::array<bool, cipher::CryptoBurst::kPackets> good{};
    crypto_->add(keys, esp.data(), iv, static_cast<std::uint32_t>(text.size()));
    ASSERT_TRUE(crypto_->decrypt(good));
    EXPECT_TRUE(good[0]);
    EXPECT_EQ(Bytes(esp.begin() + cipher::kTextOffset, esp.end() - cipher::kIcvBytes), text);
  }
}

// What is decrypted stays in the frame of a packet that is dropped for its ICV, so the NF itself can be held to the
// vectors, on the CPU and on devices.
TEST_F(CryptoVectors, network_function_decrypts_as_rfc_3686_says) {
  for (Vector const& vector : read_vectors("rfc3686_aes-128-ctr.txt", "KEY")) {
    const auto hex = [](Bytes const& bytes) {
      std::string text;
      for (const std::uint8_t byte : bytes) {
        text += fmt::format("{:02x}", byte);
      }
      return text;
    };
    const std::string sa_file =
        concat("associations:\n  - {spi: 256, source: 192.0.2.1, destination: 192.0.2.2, encryption_key: ",
               hex(vector.at("KEY")), ", salt: '", hex(vector.at("IV")).substr(0, 8),
               "', authentication_key: 0000000000000000000000000000000000000000}\n");
    Bytes const& cipher = vector.at("CIPHERTEXT");
    Frame frame = nf::testing::make_datagram(packet::kProtocolEsp, 0xC0000201, 0xC0000202,
                                             Frame(cipher::kTextOffset + cipher.size() + cipher::kIcvBytes, 0));
    packet::store_be32(frame.data() + 34, 256);
    packet::store_be32(frame.data() + 38, 1);
    std::copy_n(vector.at("IV").begin() + 4, cipher::kIvBytes, frame.begin() + 42);
    std::copy(cipher.begin(), cipher.end(), frame.begin() + 50);
    const RunResult result = run_everywhere("decrypt", sa_file, {frame}, "", {1});
    EXPECT_EQ(result.dropped("bad_icv"), 1U);
    ASSERT_EQ(result.packets.size(), 1U);
    Frame const& out = result.packets[0].frame;
    ASSERT_EQ(out.size(), frame.size());
    EXPECT_EQ(Bytes(out.begin() + 50, out.end() - cipher::kIcvBytes), vector.at("PLAINTEXT"));
  }
}

TEST_F(CryptoVectors, kernel_passes_the_known_answer_tests_of_nist) {
  if (nf::testing::devices().empty()) {
    GTEST_SKIP() << "there is no device";
  }
  std::vector<Bytes> blocks;
  std::vector<Bytes> expected;
  std::vector<Association> associations;
  for (const char* name : {"ECBGFSbox128.rsp", "ECBVarKey128.rsp"}) {
    for (Vector const& vector : read_vectors(name, "KEY")) {
      blocks.push_back(vector.at("PLAINTEXT"));
      expected.push_back(vector.at("CIPHERTEXT"));
      associations.push_back(with_keys(vector.at("KEY"), {}));
    }
  }
  ASSERT_GT(blocks.size(), 128U);
  for (device::Device* device : nf::testing::devices()) {
    const std::vector<Bytes> results = run_kernel(*device, "aes128_block", blocks, associations);
    ASSERT_EQ(results.size(), blocks.size());
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_EQ(Bytes(results[i].begin(), results[i].begin() + 16), expected[i])
          << nf::testing::name_of(device) << ", vector " << i;
    }
  }
}

TEST_F(CryptoVectors, kernel_hashes_as_rfc_2202_says) {
  if (nf::testing::devices().empty()) {
    GTEST_SKIP() << "there is no device";
  }
  std::vector<Bytes> messages;
  std::vector<Bytes> expected;
  std::vector<Association> associations;
  for (Vector const& vector : read_vectors("rfc2202_hmac_sha1.txt", "Key")) {
    const Bytes key = twenty_bytes(vector.at("Key"));
    if (!key.empty()) {
      messages.push_back(vector.at("Msg"));
      expected.push_back(vector.at("MD"));
      associations.push_back(with_keys({}, key));
    }
  }
  ASSERT_EQ(messages.size(), 6U);
  for (device::Device* device : nf::testing::devices()) {
    EXPECT_EQ(run_kernel(*device, "hmac_sha1_message", messages, associations), expected)
        << nf::testing::name_of(device);
  }
}

TEST_F(CryptoVectors, library_path_hashes_as_rfc_2202_says) {
  std::unique_ptr<IMB_MGR, decltype(&free_mb_mgr)> manager(alloc_mb_mgr(0), &free_mb_mgr);
  init_mb_mgr_auto(manager.get(), nullptr);
  std::size_t checked = 0;
  for (Vector const& vector : read_vectors("rfc2202_hmac_sha1.txt", "Key")) {
    const Bytes key = twenty_bytes(vector.at("Key"));
    if (key.empty()) {
      continue;
    }
    // the two states that our key schedule makes, with the library's hash
    const cipher::SessionKeys keys = crypto_->expand(keys_of(with_keys({}, key)));
    Bytes digest(20);
    IMB_JOB job{};
    job.src = vector.at("Msg").data();
    job.msg_len_to_hash_in_bytes = vector.at("Msg").size();
    job.auth_tag_output = digest.data();
    job.auth_tag_output_len_in_bytes = digest.size();
    job.u.HMAC._hashed_auth_key_xor_ipad = reinterpret_cast<const std::uint8_t*>(keys.inner_state.data());
    job.u.HMAC._hashed_auth_key_xor_opad = reinterpret_cast<const std::uint8_t*>(keys.outer_state.data());
    job.hash_alg = IMB_AUTH_HMAC_SHA_1;
    ASSERT_EQ(IMB_SUBMIT_HASH_BURST(manager.get(), &job, 1, IMB_AUTH_HMAC_SHA_1), 1U);
    EXPECT_EQ(digest, vector.at("MD"));
    ++checked;
  }
  EXPECT_EQ(checked, 6U);
}

}  // namespace
}  // namespace catena::ipsec::testing
