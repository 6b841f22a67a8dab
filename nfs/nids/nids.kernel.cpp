// SPDX-License-Identifier: Apache-2.0
#include <catena/kernel/context.hpp>

#include "nids.layout.hpp"

// One work-item per packet walks the payload through up to two automata and lists each position at which a pattern
// ends. Reads: payload bytes, state. Writes: result [packet]{count, listed[7]}, spill [packet][matches beyond 7].
// An automaton lists at most one match a byte and a match takes 4 bytes, so 4 spill bytes per payload byte and
// automaton hold any packet's matches. Deterministic: matches stand in the order of their ends.
namespace catena::nids {

// Members take the pointers as parameters: clang 15 writes bitcode that no reader takes where a member is initialised
// by the result of a call that it does not inline.
class MatchList {
 public:
  MatchList(kernel::IsoPtr<u32> result, kernel::IsoPtr<u32> spill) : result_(result), spill_(spill) {}

  void add(u32 longest, u32 end) {
    deciding_ |= longest & kDeciding;
    const u32 entry = match_entry(longest & ~kDeciding, end);
    if (count_ < kListedMatches) {
      result_.set(1 + count_, entry);
    } else {
      spill_.set(count_ - kListedMatches, entry);
    }
    ++count_;
  }
  void finish() const { result_.set(0, deciding_ != 0 ? count_ : 0); }

 private:
  kernel::IsoPtr<u32> result_;
  kernel::IsoPtr<u32> spill_;
  u32 count_ = 0;
  u32 deciding_ = 0;
};

class Walk {
 public:
  Walk(NidsAutomaton const& automaton, kernel::IsoPtr<u8> classes, kernel::IsoPtr<u32> next,
       kernel::IsoPtr<u32> longest)
      : classes_(classes),
        next_(next),
        longest_(longest),
        class_count_(automaton.class_count),
        match_rows_(automaton.match_rows),
        row_(automaton.start) {}

  bool present() const { return class_count_ != 0; }
  void step(u8 byte, u32 end, MatchList& matches) {
    row_ = next_[row_ + classes_[byte]];
    if (row_ < match_rows_) {
      matches.add(longest_[row_ / class_count_], end);
    }
  }

 private:
  kernel::IsoPtr<u8> classes_;
  kernel::IsoPtr<u32> next_;
  kernel::IsoPtr<u32> longest_;
  u32 class_count_;
  u32 match_rows_;
  u32 row_;
};

inline Walk walk_of(kernel::Context const& ctx, NidsAutomaton const& automaton) {
  kernel::IsoPtr<u8> classes = ctx.array(automaton.classes);
  kernel::IsoPtr<u32> next = ctx.array(automaton.next);
  kernel::IsoPtr<u32> longest = ctx.array(automaton.longest);
  return {automaton, classes, next, longest};
}

}  // namespace catena::nids

CATENA_KERNEL(nids) {
  using namespace catena;
  auto packet = ctx.packet();
  if (!packet.valid()) {
    return;
  }
  nids::NidsState const& state = ctx.state<nids::NidsState>();
  nids::Walk exact = nids::walk_of(ctx, state.exact);
  nids::Walk nocase = nids::walk_of(ctx, state.nocase);
  nids::MatchList matches(packet.result_array<u32>(), packet.spill<u32>());
  kernel::Bytes payload = packet.payload();
  for (u32 i = 0; i < payload.length(); ++i) {
    const u8 byte = payload[static_cast<i32>(i)];
    if (exact.present()) {
      exact.step(byte, i + 1, matches);
    }
    if (nocase.present()) {
      nocase.step(byte, i + 1, matches);
    }
  }
  matches.finish();
}
