// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstring>

#include "base/hostcopy/engine.hpp"
#include "base/hostcopy/instant_engine.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace catena::hostcopy {

Status probe_stream_engine();
Result<std::unique_ptr<Engine>> open_stream_engine();

#if defined(__x86_64__)
namespace {

/// Copies `bytes`, a multiple of a vector, to `to`, aligned to a vector, past the caches.
using StreamCopy = void (*)(std::byte* to, const std::byte* from, std::size_t bytes);

__attribute__((target("avx512f"))) void stream_512(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += sizeof(__m512i)) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + at), _mm512_loadu_si512(from + at));
  }
}

__attribute__((target("avx2"))) void stream_256(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += sizeof(__m256i)) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at)));
  }
}

struct Streams {
  StreamCopy copy;
  std::size_t vector;  ///< bytes

  /// Whole vectors are streamed; memcpy copies what lies before the first and behind the last one.
  void operator()(std::span<const Move> moves) const {
    for (Move const& move : moves) {
      const std::size_t before = (vector - reinterpret_cast<std::uintptr_t>(move.to) % vector) % vector;
      if (move.bytes < before + vector) {
        std::memcpy(move.to, move.from, move.bytes);
        continue;
      }
      const std::size_t whole = (move.bytes - before) / vector * vector;
      std::memcpy(move.to, move.from, before);
      copy(move.to + before, move.from + before, whole);
      std::memcpy(move.to + before + whole, move.from + before + whole, move.bytes - before - whole);
    }
    _mm_sfence();  // streaming stores are weakly ordered: who learns of the job must see its bytes
  }
};

}  // namespace

Status probe_stream_engine() {
  return __builtin_cpu_supports("avx2") != 0
             ? absl::OkStatus()
             : absl::UnavailableError("this processor has neither AVX2 nor AVX-512; use the engine 'cpu'");
}

Result<std::unique_ptr<Engine>> open_stream_engine() {
  if (Status missing = probe_stream_engine(); !missing.ok()) {
    return missing;
  }
  const Streams streams = __builtin_cpu_supports("avx512f") != 0 ? Streams{&stream_512, sizeof(__m512i)}
                                                                 : Streams{&stream_256, sizeof(__m256i)};
  return std::make_unique<InstantEngine<Streams>>("cpu-stream", streams);
}
#else
Status probe_stream_engine() {
  return absl::UnavailableError("streaming stores are implemented for x86-64 alone; use the engine 'cpu'");
}
Result<std::unique_ptr<Engine>> open_stream_engine() { return probe_stream_engine(); }
#endif

}  // namespace catena::hostcopy
