// SPDX-License-Identifier: Apache-2.0
// Random schedules of copies over engines that fail: each byte arrives once, in its place, in its session's order.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/hostcopy/session_copies.hpp"
#include "base/hostcopy/testing/faulty_engine.hpp"

namespace catena::hostcopy {
namespace {

using testing::FaultyEngine;
using testing::FaultyEngineScript;

constexpr Engine::Limits kScheduleLimits{8, 4};
constexpr std::size_t kStreamBytes = 600;
constexpr std::size_t kPieceBytes = 120;
constexpr std::byte kUntouched{0xA5};

/// A stream that leaves its source in pieces, each by way of a buffer of its own.
struct Session {
  explicit Session(Accelerator& accelerator) : copies(accelerator) {}

  struct Piece {
    std::vector<std::byte> buffer;
    std::vector<Move> moves;
  };
  std::vector<std::byte> source = std::vector<std::byte>(kStreamBytes);
  std::vector<std::byte> arrived;
  std::deque<Piece> pieces;  ///< in flight or made, oldest first
  std::vector<Piece> held;   ///< buffers of abandoned copies
  std::size_t sent = 0;
  SessionCopies copies;
  bool has_illegal = false;  ///< one piece of it is illegal for every engine
  bool is_reset = false;
};

class Schedule {
 public:
  explicit Schedule(std::uint32_t seed) : random_(seed) {}

  /// True with a probability of 1 / `of`.
  bool one_in(std::uint32_t of) { return random_() % of == 0; }
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }

  FaultyEngineScript make_script() {
    FaultyEngineScript script;
    script.seed = static_cast<std::uint32_t>(random_());
    script.mean_polls = 1 + below(4);
    script.is_ordered = one_in(2);
    if (one_in(3)) {
      script.max_jobs = 1 + below(4);
    }
    switch (below(6)) {
      case 0:
        script.fails_after = below(12);
        break;
      case 1:
        script.stuck_after = below(12);
        break;
      case 2:
        script.lies_after = 1 + below(8);
        script.lie = static_cast<FaultyEngineScript::Lie>(1 + below(3));
        break;
      case 3:
        script.fails_to_start = true;
        break;
      default:
        break;
    }
    script.with_illegal = static_cast<FaultyEngineScript::Illegal>(below(3));
    script.cannot_stop = one_in(8);
    return script;
  }

 private:
  std::mt19937 random_;
};

void start_piece(Session& session, Schedule& schedule, std::set<const std::byte*> const& illegal) {
  const std::size_t bytes = std::min<std::size_t>(1 + schedule.below(kPieceBytes), kStreamBytes - session.sent);
  Session::Piece& piece = session.pieces.emplace_back();
  piece.buffer.assign(bytes, kUntouched);
  const std::size_t moves = std::min<std::size_t>(1 + schedule.below(kScheduleLimits.moves), bytes);
  for (std::size_t move = 0; move < moves; ++move) {
    const std::size_t begin = bytes * move / moves;
    piece.moves.push_back({session.source.data() + session.sent + begin, piece.buffer.data() + begin,
                           static_cast<std::uint32_t>(bytes * (move + 1) / moves - begin)});
  }
  session.sent += bytes;
  const bool is_illegal =
      std::ranges::any_of(piece.moves, [&](Move const& move) { return illegal.contains(move.from); });
  if (!is_illegal && schedule.one_in(4)) {
    session.copies.make(piece.moves);
  } else {
    session.copies.start(piece.moves);
  }
}

/// Takes what is ready. After a reset nothing more of the session arrives.
void release(Session& session) {
  for (;;) {
    const SessionCopies::Next next = session.copies.take();
    if (next == SessionCopies::Next::kNone) {
      return;
    }
    Session::Piece& piece = session.pieces.front();
    session.is_reset = session.is_reset || next != SessionCopies::Next::kDone;
    if (!session.is_reset) {
      session.arrived.insert(session.arrived.end(), piece.buffer.begin(), piece.buffer.end());
    }
    if (next == SessionCopies::Next::kAbandoned) {
      session.held.push_back(std::move(piece));
    }
    session.pieces.pop_front();
  }
}

/// What all schedules together went through, so that none of it is missing.
struct Seen {
  AcceleratorCounters counters;
  std::uint32_t resets = 0;
};

void run(std::uint32_t seed, Seen& seen) {
  SCOPED_TRACE("schedule " + std::to_string(seed));
  Schedule schedule(seed);
  std::set<const std::byte*> illegal;
  std::deque<FaultyEngineScript> scripts;
  const std::uint32_t engines = schedule.below(5);
  for (std::uint32_t engine = 0; engine < engines; ++engine) {
    scripts.push_back(schedule.make_script());
  }
  std::vector<AcceleratorPool::Member> members;
  for (FaultyEngineScript& script : scripts) {
    members.push_back({std::make_unique<FaultyEngine>(script), static_cast<int>(schedule.below(2))});
  }
  AcceleratorPool pool(std::move(members), kScheduleLimits);
  Accelerator accelerator(
      pool, {.node = 0, .patience = std::chrono::nanoseconds(1), .busy_limit = schedule.below(4), .verify_every = 1});
  std::deque<Session> sessions;
  const std::uint32_t count = 1 + schedule.below(4);
  for (std::uint32_t i = 0; i < count; ++i) {
    Session& session = sessions.emplace_back(accelerator);
    std::ranges::generate(session.source, [&] { return static_cast<std::byte>(schedule.below(256)); });
    session.has_illegal = schedule.one_in(6);
  }
  for (Session const& session : sessions) {
    if (session.has_illegal) {
      for (std::size_t at = 0; at < kPieceBytes; ++at) {  // the piece that begins in here
        illegal.insert(session.source.data() + kStreamBytes / 2 + at);
      }
    }
  }
  for (FaultyEngineScript& script : scripts) {
    script.illegal = illegal;
  }
  const auto is_at_end = [](Session const& session) {
    return session.sent == kStreamBytes && session.copies.is_empty();
  };
  for (std::uint32_t round = 0; !std::ranges::all_of(sessions, is_at_end); ++round) {
    ASSERT_LT(round, 100'000U) << "it hangs";
    Session& session = sessions[schedule.below(static_cast<std::uint32_t>(sessions.size()))];
    if (session.sent < kStreamBytes && !session.is_reset && schedule.one_in(2)) {
      start_piece(session, schedule, illegal);
    } else if (session.is_reset) {
      session.sent = kStreamBytes;  // a reset session sends no more
    }
    accelerator.poll();
    std::ranges::for_each(sessions, &release);
  }
  // who reset a session: an illegal piece, or two engines that failed with one job, or one that could not be stopped
  std::uint32_t resets = 0;
  for (Session const& session : sessions) {
    resets += session.is_reset ? 1 : 0;
    ASSERT_LE(session.arrived.size(), kStreamBytes);
    ASSERT_TRUE(std::ranges::equal(session.arrived, std::span(session.source).first(session.arrived.size())));
    ASSERT_TRUE(session.is_reset || session.arrived.size() == kStreamBytes);
  }
  AcceleratorCounters const& counters = accelerator.counters();
  ASSERT_LE(resets, counters.illegal + counters.abandoned);
  seen.resets += resets;
  seen.counters.by_engine += counters.by_engine;
  seen.counters.by_cpu += counters.by_cpu;
  seen.counters.refused += counters.refused;
  seen.counters.resubmitted += counters.resubmitted;
  seen.counters.illegal += counters.illegal;
  seen.counters.abandoned += counters.abandoned;
  seen.counters.changes += counters.changes;
  seen.counters.losses += counters.losses;
  const auto is_broken = [](FaultyEngineScript const& script) {
    return script.fails_after != FaultyEngineScript::kNever || script.stuck_after != FaultyEngineScript::kNever ||
           script.lie != FaultyEngineScript::Lie::kNone || script.cannot_stop;
  };
  if (std::ranges::none_of(scripts, is_broken)) {
    for (Session const& session : sessions) {
      ASSERT_TRUE(!session.is_reset || session.has_illegal) << "a session of legal copies was reset";
    }
  }
}

TEST(Schedules, each_byte_arrives_once_in_its_place_in_the_order_of_its_session) {
  const char* const wanted = std::getenv("CATENA_COPY_SCHEDULES");
  const std::uint32_t schedules = wanted == nullptr ? 10'000 : static_cast<std::uint32_t>(std::stoul(wanted));
  Seen seen;
  spdlog::set_level(spdlog::level::err);  // each loss is a warning
  for (std::uint32_t seed = 1; seed <= schedules && !::testing::Test::HasFatalFailure(); ++seed) {
    run(seed, seen);
  }
  spdlog::set_level(spdlog::level::info);
  AcceleratorCounters const& counters = seen.counters;
  for (const std::uint64_t count : {counters.by_engine, counters.by_cpu, counters.refused, counters.resubmitted,
                                    counters.illegal, counters.abandoned, counters.changes, counters.losses}) {
    EXPECT_GT(count, schedules / 100);
  }
  EXPECT_GT(seen.resets, schedules / 100);
}

}  // namespace
}  // namespace catena::hostcopy
