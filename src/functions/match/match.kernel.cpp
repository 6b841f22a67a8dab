// SPDX-License-Identifier: Apache-2.0
#include <catena/kernel/context.hpp>

#include "functions/match/match.layout.hpp"

// CATENA_LANES work-items per packet look for the positions at which patterns end. Reads: payload bytes, state. Writes:
// result [packet]{count, listed[7]}, spill [packet][matches beyond 7]. An automaton lists at most one match a byte and
// a match takes 4 bytes, so 4 spill bytes per payload byte and automaton hold any packet's matches.
//
// The payload is cut into one piece a lane. Lane k walks its piece from the start state, and goes on after it until
// it is certain: until no pattern can have begun in its piece or before, because the state's depth is no more than the
// bytes after the piece. From there on its state is that of lane k + 1, which began with the next piece. So at any
// position the first lane that is not certain before has the state that one walk over the whole payload would have,
// and lists what ends there; the set of listed matches is that of one walk, for any number of lanes and any length of
// patterns.
//
// The first walk writes nothing. It finds where the lane is certain, whether a deciding pattern ends, and between which
// blocks matches lie. Only if a deciding pattern ended, each lane walks between its matches once more and lists its
// own; the packet's lanes take places in the list by an atomic counter, so the matches are in no order. Results grow
// in local memory, local_words() words, and are written whole, by lanes side by side: they may go to the host, over a
// bus that carries 32 bytes as fast as 4.
namespace catena::match {

using kernel::Bytes;
using kernel::Context;
using kernel::IsoPtr;
using kernel::PacketView;

constexpr u32 kBlockBytes = 8;
constexpr u32 kBlockWords = kBlockBytes / 4;
/// A shorter piece costs more in walking on after it than it saves.
constexpr u32 kLeastPiece = 16;
constexpr u32 kClasses = 256;

/// In a lane's report, beside the position from which on it is certain.
constexpr u32 kProcesses = 1U << 31;

struct Table {
  IsoPtr<u8> classes;
  IsoPtr<u32> next;
  IsoPtr<u16> longest;
  IsoPtr<u16> depths;
  u32 class_count;
  u32 start;
  u32 deciding_rows;
  u32 match_rows;
};

// Pointers are in variables first: clang 15 writes bitcode that no reader takes where a member is initialised by the
// result of a call that it does not inline.
inline Table table_of(Context const& ctx, DeviceAutomaton const& automaton) {
  const IsoPtr<u8> classes = ctx.array(automaton.classes);
  const IsoPtr<u32> next = ctx.array(automaton.next);
  const IsoPtr<u16> longest = ctx.array(automaton.longest);
  const IsoPtr<u16> depths = ctx.array(automaton.depths);
  return {classes,
          next,
          longest,
          depths,
          automaton.class_count,
          automaton.start,
          automaton.deciding_rows,
          automaton.match_rows};
}

/// A row of each automaton.
struct Rows {
  u32 first;
  u32 second;
};

/// What the first walk of a lane finds. All matches end in (begin, end]; without any, begin is kNowhere.
constexpr u32 kNowhere = 0xFFFFFFFFU;
struct Found {
  u32 begin;
  u32 end;
  Rows rows;    ///< before byte `begin`
  u32 certain;  ///< payload bytes before the position from which on the lane is certain
  bool decides;
};

/// One automaton, or both side by side: their look-ups do not wait for each other.
template <bool Both>
class Automata {
 public:
  Automata(Table const& first, Table const& second) : first_(first), second_(second) {}

  /// False where there are no patterns, or a table is not as the host made it.
  bool usable() const {
    // seen here once, no look-up by a byte needs a check
    return first_.class_count != 0 && first_.classes.size() == kClasses &&
           (!Both || (second_.class_count != 0 && second_.classes.size() == kClasses));
  }
  Rows start() const { return {first_.start, second_.start}; }

  void step(Rows& rows, u8 byte) const {
    rows.first = first_.next[rows.first + first_.classes[byte]];
    if constexpr (Both) {
      rows.second = second_.next[rows.second + second_.classes[byte]];
    }
  }
  /// kBlockBytes bytes from `words`, which hold them in packet order. `lowest`: least rows so far.
  void step_block(Rows& rows, u32 const (&words)[kBlockWords], Rows& lowest) const {
    u32 first[kBlockBytes]{};
    u32 second[kBlockBytes]{};
    CATENA_UNROLL
    for (u32 i = 0; i < kBlockBytes; ++i) {
      const u8 byte = static_cast<u8>(words[i / 4] >> (24 - 8 * (i % 4)));
      first[i] = first_.classes[byte];
      if constexpr (Both) {
        second[i] = second_.classes[byte];
      }
    }
    auto first_next = first_.next.lookups();
    auto second_next = second_.next.lookups();
    CATENA_UNROLL
    for (u32 i = 0; i < kBlockBytes; ++i) {
      rows.first = first_next[rows.first + first[i]];
      if constexpr (Both) {
        rows.second = second_next[rows.second + second[i]];
      }
      note(rows, lowest);
    }
  }
  void note(Rows const& rows, Rows& lowest) const {
    lowest.first = rows.first < lowest.first ? rows.first : lowest.first;
    if constexpr (Both) {
      lowest.second = rows.second < lowest.second ? rows.second : lowest.second;
    }
  }
  bool match(Rows const& lowest) const {
    return lowest.first < first_.match_rows || (Both && lowest.second < second_.match_rows);
  }
  bool decide(Rows const& lowest) const {
    return lowest.first < first_.deciding_rows || (Both && lowest.second < second_.deciding_rows);
  }
  /// Whether no pattern of which more than the last `bytes` bytes were read can still end.
  bool certain(Rows const& rows, u32 bytes) const {
    return first_.depths[rows.first / first_.class_count] <= bytes &&
           (!Both || second_.depths[rows.second / second_.class_count] <= bytes);
  }
  /// Calls list(pattern) for the longest pattern that ends in each automaton.
  template <typename List>
  void for_matches(Rows const& rows, List list) const {
    if (rows.first < first_.match_rows) {
      list(first_.longest[rows.first / first_.class_count]);
    }
    if constexpr (Both) {
      if (rows.second < second_.match_rows) {
        list(second_.longest[rows.second / second_.class_count]);
      }
    }
  }

 private:
  Table first_;
  Table second_;
};

/// Bytes of a piece: all lanes but the last one that has any have as many.
inline u32 piece_bytes(u32 length) {
  const u32 even = (length + CATENA_LANES * kBlockBytes - 1) / (CATENA_LANES * kBlockBytes) * kBlockBytes;
  return even < kLeastPiece ? kLeastPiece : even;
}

/// The walk of one lane; see the top. It begins before byte `begin`.
template <bool Both>
inline Found walk(Automata<Both> const& automata, Bytes payload, u32 begin, u32 end) {
  constexpr u32 kNoRow = 0xFFFFFFFFU;
  Rows rows = automata.start();
  Found found{kNowhere, 0, rows, 0, false};
  const auto note = [&](u32 at, u32 bytes, Rows const& before, Rows const& lowest) {
    if (automata.match(lowest)) {
      if (found.begin == kNowhere) {
        found.begin = at;
        found.rows = before;
      }
      found.end = at + bytes;
      found.decides = found.decides || automata.decide(lowest);
    }
  };
  u32 at = begin;
  const auto fetch_block = [&](u32 from) {  // none after the last whole one
    return payload.fetch<kBlockWords>(static_cast<i32>(from), from + kBlockBytes <= end ? kBlockWords : 0);
  };
  kernel::Fetched<kBlockWords> fetched = fetch_block(at);
  for (; at + kBlockBytes <= end; at += kBlockBytes) {
    const u32 words[kBlockWords] = {fetched[0], fetched[1]};
    fetched = fetch_block(at + kBlockBytes);  // the steps of this block hide the way of the next one from memory
    const Rows before = rows;
    Rows lowest{kNoRow, kNoRow};
    automata.step_block(rows, words, lowest);
    note(at, kBlockBytes, before, lowest);
  }
  const u32 length = payload.length();
  for (; at < length && (at < end || !automata.certain(rows, at - end)); ++at) {
    const Rows before = rows;
    automata.step(rows, payload[static_cast<i32>(at)]);
    Rows lowest{kNoRow, kNoRow};
    automata.note(rows, lowest);
    note(at, 1, before, lowest);
  }
  found.certain = at;
  return found;
}

template <bool Both>
inline void find(Context const& ctx) {
  const MatchState state = ctx.state<MatchState>();
  const Table first = table_of(ctx, state.first);
  const Table second = table_of(ctx, Both ? state.second : state.first);
  const Automata<Both> automata(first, second);
  const PacketView packet = ctx.packet();
  const u32 item = kernel::local_id();
  const u32 items = kernel::group_size();
  const IsoPtr<u32> reports = ctx.local<u32>(0, items);
  const IsoPtr<u32> results =
      ctx.local<u32>(items * static_cast<u32>(sizeof(u32)), items / CATENA_LANES * kResultWords);
  const u32 result = item / CATENA_LANES * kResultWords;
  const u32 lane = ctx.lane();

  Found found{kNowhere, 0, {0, 0}, 0, false};
  if (packet.valid()) {
    for (u32 word = lane; word < kResultWords; word += CATENA_LANES) {
      results.set(result + word, 0);
    }
    if (automata.usable()) {
      const Bytes payload = packet.payload();
      const u32 piece = piece_bytes(payload.length());
      const u32 begin = lane * piece;
      if (begin < payload.length()) {
        const u32 rest = payload.length() - begin;
        found = walk(automata, payload, begin, begin + (rest < piece ? rest : piece));
      }
    }
    reports.set(item, found.certain | (found.decides ? kProcesses : 0));
  }
  kernel::barrier_all();

  if (packet.valid()) {
    bool decides = false;
    u32 taken = 0;  // matches that end up to here are those of lanes before this one
    for (u32 i = 0; i < CATENA_LANES; ++i) {
      const u32 report = reports[item - lane + i];
      decides = decides || (report & kProcesses) != 0;
      const u32 certain = report & ~kProcesses;
      taken = i < lane && certain > taken ? certain : taken;
    }
    if (decides && found.end > taken) {
      const Bytes payload = packet.payload();
      const IsoPtr<u32> spill = packet.spill<u32>();
      Rows rows = found.rows;
      for (u32 at = found.begin; at < found.end; ++at) {
        automata.step(rows, payload[static_cast<i32>(at)]);
        if (at >= taken) {
          automata.for_matches(rows, [&](u32 pattern) {
            const u32 place = results.add(result, 1);
            const u32 entry = match_entry(pattern, at + 1);
            if (place < kListedMatches) {
              results.set(result + 1 + place, entry);
            } else {
              spill.set(place - kListedMatches, entry);
            }
          });
        }
      }
    }
  }
  kernel::barrier_all();
  if (packet.valid()) {
    const IsoPtr<u32> out = packet.result_array<u32>();
    for (u32 word = lane; word < kResultWords; word += CATENA_LANES) {
      out.set(word, results[result + word]);
    }
  }
}

}  // namespace catena::match

CATENA_KERNEL(match_one) { catena::match::find<false>(ctx); }
CATENA_KERNEL(match_two) { catena::match::find<true>(ctx); }
