// SPDX-License-Identifier: Apache-2.0
// The copy engine's kernel: moves bytes within host memory that is mapped. A work-group per part of a move, which tells
// the host that the part is in place, so that nobody needs to ask the driver.
#include <catena/kernel/dialect.hpp>
#include <catena/kernel/launch_params.hpp>

#include "gpu/copy/move_params.hpp"

#define CATENA_MOVE_WINDOWS(memory)                                                                                   \
  memory catena::u8 *window_0, memory catena::u8 *window_1, memory catena::u8 *window_2, memory catena::u8 *window_3, \
      memory catena::u8 *window_4, memory catena::u8 *window_5, memory catena::u8 *window_6,                          \
      memory catena::u8 *window_7, memory catena::u8 *window_8, memory catena::u8 *window_9,                          \
      memory catena::u8 *window_10, memory catena::u8 *window_11, memory catena::u8 *window_12,                       \
      memory catena::u8 *window_13, memory catena::u8 *window_14, memory catena::u8 *window_15
#if defined(__CUDACC_RTC__)
#define CATENA_MOVE_KERNEL(name)                                                                             \
  extern "C" __global__ void name(catena::u8* table, CATENA_MOVE_WINDOWS(), catena::copy::MoveParams params, \
                                  catena::copy::MoveSizes sizes)
/// Earlier writes of the work-item reach the host before later ones.
inline void fence_for_host() { __threadfence_system(); }
#else
#define CATENA_MOVE_KERNEL(name)                                                                                 \
  __kernel void name(__global catena::u8* table, CATENA_MOVE_WINDOWS(__global), catena::copy::MoveParams params, \
                     catena::copy::MoveSizes sizes, __local catena::u8* /*unused*/)
inline void fence_for_host() {}  // the barrier is one, and the host's own cores are the device
#endif

namespace catena::copy {

using namespace kernel;

struct alignas(16) Word16 {
  u64 low;
  u64 high;
};

/// Words of `to` from `begin` on, by the work-items of a group in turn; several are loaded before the first is stored,
/// because each takes its way over the bus. `load` gives word i.
template <typename Word, typename Load>
inline void copy_words(u8* to, u32 words, Load const& load) {
  constexpr u32 kTogether = 4;
  const u32 step = group_size();
  for (u32 word = local_id(); word < words; word += kTogether * step) {
    Word values[kTogether] = {};
    CATENA_UNROLL
    for (u32 i = 0; i < kTogether; ++i) {
      const u32 at = word + i * step;
      if (at < words) {
        values[i] = load(at);
      }
    }
    CATENA_UNROLL
    for (u32 i = 0; i < kTogether; ++i) {
      const u32 at = word + i * step;
      if (at < words) {
        reinterpret_cast<Word*>(to)[at] = values[i];
      }
    }
  }
}

inline void copy_part(u8* to, const u8* from, u32 bytes) {
  constexpr u32 kWord = sizeof(u64);
  const bool is_congruent = (reinterpret_cast<u64>(to) - reinterpret_cast<u64>(from)) % sizeof(Word16) == 0;
  const u32 word = is_congruent ? static_cast<u32>(sizeof(Word16)) : kWord;
  u32 before = (word - static_cast<u32>(reinterpret_cast<u64>(to) % word)) % word;
  before = before < bytes ? before : bytes;
  const u32 words = (bytes - before) / word;
  const u32 end = before + words * word;
  for (u32 i = local_id(); i < before; i += group_size()) {
    to[i] = from[i];
  }
  for (u32 i = end + local_id(); i < bytes; i += group_size()) {
    to[i] = from[i];
  }
  const u8* const source = from + before;
  if (is_congruent) {
    copy_words<Word16>(to + before, words, [source](u32 at) { return reinterpret_cast<const Word16*>(source)[at]; });
    return;
  }
  const u32 shift = static_cast<u32>(reinterpret_cast<u64>(source) % kWord) * 8;
  const u64* const aligned = reinterpret_cast<const u64*>(source - shift / 8);
  if (shift == 0) {
    copy_words<u64>(to + before, words, [aligned](u32 at) { return aligned[at]; });
    return;
  }
  // the words that hold the wanted bytes; each has one of them at least, so no word beyond the part's pages is read
  copy_words<u64>(to + before, words,
                  [aligned, shift](u32 at) { return aligned[at] >> shift | aligned[at + 1] << (64 - shift); });
}

}  // namespace catena::copy

CATENA_MOVE_KERNEL(catena_move) {
  using catena::kernel::lies_in;
  const catena::u32 at = catena::kernel::group_id();
  if (at >= params.parts || at >= catena::copy::kMoveParts || sizes.table < sizeof(catena::copy::MoveTable)) {
    return;
  }
  catena::u8* const windows[catena::copy::kMoveWindows] = {
      window_0, window_1, window_2,  window_3,  window_4,  window_5,  window_6,  window_7,
      window_8, window_9, window_10, window_11, window_12, window_13, window_14, window_15};
  catena::copy::MoveTable* const shared = reinterpret_cast<catena::copy::MoveTable*>(table);
  const catena::copy::MovePart part = shared->parts[at];
  const bool is_right = part.from_window < catena::copy::kMoveWindows && part.to_window < catena::copy::kMoveWindows &&
                        lies_in(part.from, part.bytes, sizes.windows[part.from_window]) &&
                        lies_in(part.to, part.bytes, sizes.windows[part.to_window]);
  if (is_right) {
    catena::copy::copy_part(windows[part.to_window] + part.to, windows[part.from_window] + part.from, part.bytes);
  }
  fence_for_host();
  catena::kernel::barrier_all();
  if (is_right && catena::kernel::local_id() == 0) {
    fence_for_host();
    shared->copied[at] = params.launch;
  }
}
