// SPDX-License-Identifier: Apache-2.0
// The NF's CPU implementation against intel-ipsec-mb called directly by a hand-written loop, on the same packets in
// batches of 256. Both take plain frames to finished ESP frames, or back with ICV and replay window checked. The loop
// knows its one tunnel and untagged frames without options; the NF looks that up, and parses what it decrypted.
//   bytes_per_second of ipsec_<direction>/<frame bytes> divided by that of library_<direction>/<frame bytes> is what
//   the framework leaves of the library's speed. Frame bytes are those of the plain frame.
// Packets are put back between two batches, unmeasured. Times are CPU time.
#include "ipsec.hpp"

#include <catena/core/testing/scratch_folder.hpp>
#include <catena/nf/testing/bench.hpp>
#include <catena/nf/testing/harness.hpp>
#include <catena/nf/testing/packet_store.hpp>

#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

namespace nf = catena::nf;
namespace packet = catena::packet;
namespace ipsec = catena::ipsec;
using nf::testing::Frame;
using nf::testing::PacketStore;
using nf::testing::thread_seconds;
using nf::testing::value_or_throw;

constexpr std::uint32_t kBatch = 256;
constexpr const char* kSaFile = R"(associations:
  - spi: 4096
    source: 192.0.2.1
    destination: 198.51.100.1
    encryption_key: 000102030405060708090a0b0c0d0e0ff0f1f2f3
    authentication_key: 303132333435363738393a3b3c3d3e3f40414243
    selector: {destination: 10.2.0.0/16}
)";

std::unique_ptr<nf::Nf> make_nf(std::string const& direction) {
  const catena::ScratchFolder folder;
  folder.write("sa.yaml", kSaFile);
  return value_or_throw(
      nf::testing::make_nf(catena_nf_ipsec(), "direction: " + direction + "\nsa: sa.yaml\n", folder.path()));
}

/// The session that kSaFile describes.
ipsec::Session make_session() {
  auto config = value_or_throw(nf::Config::parse(kSaFile, "sa.yaml"));
  const auto associations = value_or_throw(ipsec::read_associations(config, ipsec::Direction::kEncrypt));
  return {associations[0],
          value_or_throw(catena::cipher::CryptoBurst::create())->expand(ipsec::keys_of(associations[0])),
          ipsec::OuterHeaders(associations[0])};
}

/// 256 packets and what they are put back to.
class Packets {
 public:
  explicit Packets(std::uint32_t frame_bytes)
      : frames_(kBatch, nf::testing::make_frame(packet::kProtocolUdp, 0x0A010001, 0x0A020001, 1000, 2000,
                                                std::string(frame_bytes - 42, 'x'))),
        store_(frames_) {}

  packet::Batch batch() { return store_.all(); }
  void put_back() {
    for (std::uint32_t i = 0; i < kBatch; ++i) {
      const packet::Packet packet = store_.all()[i];
      packet.set_extent(packet::kSlotHeadroom, static_cast<std::uint32_t>(frames_[i].size()));
      std::memcpy(packet.frame(), frames_[i].data(), frames_[i].size());
      packet.set_verdict(packet::Verdict::kPass);
      packet.reparse();
    }
  }

 private:
  std::vector<Frame> frames_;
  PacketStore store_;
};

/// What both loops on the library share: jobs with all that no packet changes.
class Direct {
 public:
  Direct() : session_(make_session()), manager_(alloc_mb_mgr(0)), jobs_(kBurst), ivs_(kBurst), icvs_(kBurst) {
    init_mb_mgr_auto(manager_, nullptr);
    for (std::uint32_t i = 0; i < kBurst; ++i) {
      IMB_JOB& job = jobs_[i];
      job.enc_keys = session_.keys.round_keys.data();
      job.dec_keys = session_.keys.round_keys.data();
      job.key_len_in_bytes = 16;
      job.cipher_start_src_offset_in_bytes = 16;
      job.iv = ivs_[i].data();
      job.iv_len_in_bytes = 12;
      job.auth_tag_output = icvs_[i].data();
      job.auth_tag_output_len_in_bytes = 12;
      job.u.HMAC._hashed_auth_key_xor_ipad = reinterpret_cast<std::uint8_t*>(session_.keys.inner_state.data());
      job.u.HMAC._hashed_auth_key_xor_opad = reinterpret_cast<std::uint8_t*>(session_.keys.outer_state.data());
      job.cipher_mode = IMB_CIPHER_CNTR;
      job.hash_alg = IMB_AUTH_HMAC_SHA_1;
      std::memcpy(ivs_[i].data(), &session_.keys.salt, 4);
    }
  }
  ~Direct() { free_mb_mgr(manager_); }
  Direct(Direct const&) = delete;
  Direct& operator=(Direct const&) = delete;

  void encrypt(packet::Batch const& batch) {
    for (std::uint32_t first = 0; first < kBatch; first += kBurst) {
      for (std::uint32_t i = 0; i < kBurst; ++i) {
        encapsulate(batch[first + i], i);
      }
      cipher(IMB_DIR_ENCRYPT);
      hash();
    }
  }

  /// Number of packets with a good ICV.
  std::uint32_t decrypt(packet::Batch const& batch) {
    std::uint32_t good = 0;
    for (std::uint32_t first = 0; first < kBatch; first += kBurst) {
      for (std::uint32_t i = 0; i < kBurst; ++i) {
        std::uint8_t* esp = batch[first + i].frame() + 34;
        set(i, esp, batch[first + i].length() - 34U - 16 - 12);
        jobs_[i].auth_tag_output = icvs_[i].data();
        std::memcpy(ivs_[i].data() + 4, esp + 8, 8);
      }
      hash();
      cipher(IMB_DIR_DECRYPT);
      for (std::uint32_t i = 0; i < kBurst; ++i) {
        const packet::Packet packet = batch[first + i];
        std::uint8_t* frame = packet.frame();
        const std::uint8_t* icv = jobs_[i].dst + jobs_[i].msg_len_to_cipher_in_bytes;
        if (std::memcmp(icvs_[i].data(), icv, 12) == 0 && icv[-1] == 4 && is_fresh(packet::load_be32(frame + 38))) {
          ++good;
          std::memcpy(frame + 36, frame, 14);
          packet.set_extent(packet.offset() + 36U, 14U + packet::load_be16(frame + 52));
        }
      }
    }
    return good;
  }

 private:
  static constexpr std::uint32_t kBurst = IMB_MAX_BURST_SIZE;
  static_assert(kBatch % kBurst == 0);

  void set(std::uint32_t i, std::uint8_t* esp, std::uint32_t text) {
    IMB_JOB& job = jobs_[i];
    job.src = esp;
    job.dst = esp + 16;
    job.msg_len_to_cipher_in_bytes = text;
    job.msg_len_to_hash_in_bytes = 16 + text;
  }
  /// The replay window of RFC 4303 appendix A2.
  bool is_fresh(std::uint32_t sequence) {
    if (sequence > last_) {
      const std::uint32_t ahead = sequence - last_;
      window_ = ahead < 64 ? window_ << ahead | 1U : 1U;
      last_ = sequence;
      return true;
    }
    const std::uint32_t behind = last_ - sequence;
    const bool fresh = behind < 64 && (window_ >> behind & 1U) == 0;
    window_ |= fresh ? std::uint64_t{1} << behind : 0;
    return fresh;
  }
  void encapsulate(packet::Packet const& packet, std::uint32_t i) {
    std::uint8_t* frame = packet.frame();
    std::uint8_t* inner = frame + 14;
    const std::uint32_t inner_bytes = packet::load_be16(inner + 2);
    const std::uint32_t text = (inner_bytes + 2 + 3) / 4 * 4;
    const std::uint32_t total = 36 + text + 12;
    const std::uint16_t flags = packet::load_be16(inner + 6) & 0x4000;
    const std::uint32_t sequence = ++sequence_;
    std::memcpy(frame - 36, frame, 14);
    std::uint8_t* ip = inner - 36;
    std::memcpy(ip, session_.outer.bytes.data(), 24);
    ip[1] = inner[1];
    packet::store_be16(ip + 2, static_cast<std::uint16_t>(total));
    packet::store_be16(ip + 4, static_cast<std::uint16_t>(sequence));
    packet::store_be16(ip + 6, flags);
    packet::store_be16(ip + 10, packet::checksum_finish(std::uint64_t{session_.outer.checksum} + inner[1] + total +
                                                        (sequence & 0xFFFF) + flags));
    packet::store_be32(ip + 24, sequence);
    packet::store_be32(ip + 28, 0);
    packet::store_be32(ip + 32, sequence);
    const std::uint32_t pad = text - 2 - inner_bytes;
    for (std::uint32_t at = 0; at < pad; ++at) {
      inner[inner_bytes + at] = static_cast<std::uint8_t>(at + 1);
    }
    inner[text - 2] = static_cast<std::uint8_t>(pad);
    inner[text - 1] = 4;
    packet.set_extent(packet.offset() - 36U, 14 + total);
    set(i, ip + 20, text);
    jobs_[i].auth_tag_output = inner + text;
    const std::uint64_t iv = __builtin_bswap64(sequence);
    std::memcpy(ivs_[i].data() + 4, &iv, 8);
  }
  void cipher(IMB_CIPHER_DIRECTION direction) {
    IMB_SUBMIT_CIPHER_BURST_NOCHECK(manager_, jobs_.data(), kBurst, IMB_CIPHER_CNTR, direction, IMB_KEY_128_BYTES);
  }
  void hash() { IMB_SUBMIT_HASH_BURST_NOCHECK(manager_, jobs_.data(), kBurst, IMB_AUTH_HMAC_SHA_1); }

  ipsec::Session session_;
  IMB_MGR* manager_;
  std::vector<IMB_JOB> jobs_;
  std::vector<std::array<std::uint8_t, 16>> ivs_;
  std::vector<std::array<std::uint8_t, 12>> icvs_;
  std::uint32_t sequence_ = 0;
  std::uint32_t last_ = 0;
  std::uint64_t window_ = 0;
};

/// Measures `work` alone: `restore` before each batch is not.
template <typename Restore, typename Work>
void measure(benchmark::State& state, Restore restore, Work work) {
  for (auto _ : state) {
    restore();
    const double start = thread_seconds();
    work();
    state.SetIterationTime(thread_seconds() - start);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * kBatch);
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * kBatch * state.range(0));
}

void expect_no_drops(benchmark::State& state, nf::testing::CpuNf const& runner) {
  if (runner.drops() > 0) {
    state.SkipWithError("packets were dropped");
  }
}

void ipsec_encrypt(benchmark::State& state) {
  Packets packets(static_cast<std::uint32_t>(state.range(0)));
  nf::testing::CpuNf runner(catena_nf_ipsec(), make_nf("encrypt"));
  measure(
      state, [&] { packets.put_back(); }, [&] { runner.process(packets.batch()); });
  expect_no_drops(state, runner);
}

void library_encrypt(benchmark::State& state) {
  Packets packets(static_cast<std::uint32_t>(state.range(0)));
  Direct direct;
  measure(
      state, [&] { packets.put_back(); }, [&] { direct.encrypt(packets.batch()); });
}

/// Encrypts the packets anew, so that sequence numbers go on.
class EncryptedPackets {
 public:
  explicit EncryptedPackets(std::uint32_t frame_bytes)
      : packets_(frame_bytes), peer_(catena_nf_ipsec(), make_nf("encrypt")) {}
  packet::Batch batch() { return packets_.batch(); }
  void put_back() {
    packets_.put_back();
    peer_.process(packets_.batch());
  }

 private:
  Packets packets_;
  nf::testing::CpuNf peer_;
};

void ipsec_decrypt(benchmark::State& state) {
  EncryptedPackets packets(static_cast<std::uint32_t>(state.range(0)));
  nf::testing::CpuNf runner(catena_nf_ipsec(), make_nf("decrypt"));
  measure(
      state, [&] { packets.put_back(); }, [&] { runner.process(packets.batch()); });
  expect_no_drops(state, runner);
}

void library_decrypt(benchmark::State& state) {
  EncryptedPackets packets(static_cast<std::uint32_t>(state.range(0)));
  Direct direct;
  measure(
      state, [&] { packets.put_back(); },
      [&] {
        if (direct.decrypt(packets.batch()) != kBatch) {
          state.SkipWithError("bad ICV");
        }
      });
}

constexpr std::int64_t kSizes[] = {64, 512, 1024, 1500};
void sizes(benchmark::internal::Benchmark* benchmark) {
  for (const std::int64_t size : kSizes) {
    benchmark->Arg(size);
  }
  benchmark->ArgName("bytes")->UseManualTime();
}
BENCHMARK(library_encrypt)->Apply(sizes);
BENCHMARK(ipsec_encrypt)->Apply(sizes);
BENCHMARK(library_decrypt)->Apply(sizes);
BENCHMARK(ipsec_decrypt)->Apply(sizes);

}  // namespace

int main(int argc, char** argv) { return catena::nf::testing::run_benchmarks(argc, argv); }
