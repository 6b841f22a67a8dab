// SPDX-License-Identifier: Apache-2.0
#include "base/hostcopy/host_mover.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace catena::hostcopy {

using Clock = std::chrono::steady_clock;

namespace {

std::unique_ptr<Engine> engine_or_cpu(Result<std::unique_ptr<Engine>> engine) {
  if (engine.ok()) {
    return *std::move(engine);
  }
  spdlog::warn("no copy engine: {}. The CPU copies in its place.", engine.status().ToString());
  return make_cpu_engine();
}

}  // namespace

HostMover::HostMover(Result<std::unique_ptr<Engine>> engine, Engine::Limits const& limits,
                     std::chrono::nanoseconds patience)
    : patience_(patience), engine_(engine_or_cpu(std::move(engine))) {
  if (const Status configured = engine_->configure(limits); !configured.ok()) {
    lose(configured);
  }
}

void HostMover::lose(Status const& why) {
  spdlog::warn("copy engine {} is out of use: {}. The CPU copies in its place.", engine_->name(), why.ToString());
  engine_ = make_cpu_engine();
  for (Entry& entry : entries_) {
    if (entry.state == Entry::State::kInFlight) {
      make_moves(entry.moves);  // from the start: the sources are as they were
      entry.state = Entry::State::kDone;
    }
  }
}

HostMover::Ticket HostMover::start(std::span<const Move> moves) {
  auto entry = std::find_if(entries_.begin(), entries_.end(),
                            [](Entry const& candidate) { return candidate.state == Entry::State::kFree; });
  if (entry == entries_.end()) {
    entry = entries_.insert(entries_.end(), Entry{});
  }
  entry->moves = moves;
  Result<Engine::Job> job = engine_->submit(moves);
  if (job.ok()) {
    entry->job = *job;
    entry->since = Clock::now();
    entry->state = Entry::State::kInFlight;
  } else {
    if (!absl::IsResourceExhausted(job.status())) {
      lose(job.status());
    }
    make_moves(moves);
    entry->state = Entry::State::kDone;
  }
  return static_cast<Ticket>(entry - entries_.begin());
}

void HostMover::collect() {
  for (;;) {
    const Result<std::optional<Engine::Job>> job = engine_->poll();
    if (!job.ok()) {
      lose(job.status());
      return;
    }
    if (!*job) {
      check_patience();
      return;
    }
    for (Entry& entry : entries_) {
      if (entry.state == Entry::State::kInFlight && entry.job == **job) {
        entry.state = Entry::State::kDone;
      }
    }
  }
}

void HostMover::check_patience() {
  const auto now = Clock::now();
  const bool is_stuck = std::any_of(entries_.begin(), entries_.end(), [&](Entry const& entry) {
    return entry.state == Entry::State::kInFlight && now - entry.since > patience_;
  });
  if (is_stuck) {
    lose(absl::DeadlineExceededError(concat(
        "a job was not done after ", std::chrono::duration_cast<std::chrono::milliseconds>(patience_).count(), " ms")));
  }
}

bool HostMover::is_done(Ticket ticket) {
  if (entries_[ticket].state == Entry::State::kInFlight) {
    collect();
  }
  const bool done = entries_[ticket].state == Entry::State::kDone;
  if (done) {
    entries_[ticket].state = Entry::State::kFree;
  }
  return done;
}

}  // namespace catena::hostcopy
