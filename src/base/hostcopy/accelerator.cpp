// SPDX-License-Identifier: Apache-2.0
#include "base/hostcopy/accelerator.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace catena::hostcopy {
namespace {

/// The clock is read at one of so many polls: it costs as much as a poll.
constexpr std::uint32_t kPollsPerWatch = 32;

bool is_quarantined(JobOwner const* owner) { return owner != nullptr && owner->is_quarantined; }

bool are_equal(std::span<const Move> moves) {
  return std::ranges::all_of(moves, [](Move const& move) { return std::memcmp(move.from, move.to, move.bytes) == 0; });
}

}  // namespace

Accelerator::Accelerator(AcceleratorPool& pool, AcceleratorOptions const& options)
    : pool_(&pool), options_(options), current_{pool.take(options.node)} {}

Accelerator::~Accelerator() {
  for (Attached& attached : {std::ref(current_), std::ref(retiring_)}) {
    if (attached.engine != nullptr && attached.in_flight == 0) {
      pool_->give_back(attached.engine);
    } else if (attached.engine != nullptr) {
      pool_->lose(attached.engine);
    }
  }
}

Accelerator::Ticket Accelerator::start(std::span<const Move> moves, JobOwner* owner) {
  if (first_free_ == kNone) {
    first_free_ = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  }
  const std::uint32_t slot = first_free_;
  Slot& job = slots_[slot];
  first_free_ = job.next_free;
  job.moves = moves;
  job.owner = owner;
  job.failures = 0;
  // with another job beside it, a loss would not tell which of the two is to blame
  if (current_.engine == nullptr || tried_ || !suspects_.empty() || is_quarantined(owner)) {
    make_by_cpu(slot);
  } else {
    submit(slot);
  }
  return ticket_of(slot);
}

void Accelerator::submit(std::uint32_t slot) {
  Slot& job = slots_[slot];
  const Status enqueued = current_.engine->enqueue_copy(ticket_of(slot), job.moves);
  if (enqueued.ok()) {
    job.state = State::kInFlight;
    job.engine = current_.engine;
    job.since = {};
    ++current_.in_flight;
  } else if (absl::IsResourceExhausted(enqueued)) {
    make_by_cpu(slot);
    note_refusal();
  } else if (absl::IsInvalidArgument(enqueued)) {
    fail_job(slot, current_.engine);
  } else {
    // it fails with this job as with those in flight
    job.state = State::kInFlight;
    job.engine = current_.engine;
    ++current_.in_flight;
    lose(current_, enqueued);
  }
}

void Accelerator::make_by_cpu(std::uint32_t slot) {
  make_moves(slots_[slot].moves);
  slots_[slot].state = State::kDone;
  ++counters_.by_cpu;
}

void Accelerator::set_illegal(Slot& job) {
  job.state = State::kIllegal;
  ++counters_.illegal;
  if (job.owner != nullptr && !std::exchange(job.owner->is_quarantined, true)) {
    ++counters_.quarantined;
    spdlog::warn("a copy failed on two engines: the CPU makes all later copies of its owner");
  }
}

void Accelerator::note_refusal() {
  ++counters_.refused;
  const Clock::time_point now = Clock::now();
  if (now - refusals_.period_begin > options_.busy_period) {
    refusals_ = {now, 0};
  }
  if (++refusals_.count > options_.busy_limit && change_engine()) {
    ++counters_.changes;
    refusals_.count = 0;
  }
}

bool Accelerator::change_engine() {
  if (retiring_.engine != nullptr) {
    return false;
  }
  Engine* const next = pool_->take(options_.node);
  if (next == nullptr) {
    return false;
  }
  retiring_ = current_;
  current_ = {next};
  return true;
}

void Accelerator::fail_job(std::uint32_t slot, Engine const* engine) {
  Slot& job = slots_[slot];
  job.engine = nullptr;
  if (++job.failures == 2) {
    set_illegal(job);
  } else if (!is_quarantined(job.owner) && (engine != current_.engine || change_engine())) {
    job.state = State::kInFlight;
    suspects_.push_back(slot);
  } else {
    make_by_cpu(slot);
  }
}

void Accelerator::lose(Attached& attached, Status const& why) {
  Engine* const engine = attached.engine;
  const bool is_stopped = pool_->lose(engine);
  attached = {};
  if (&attached == &current_) {
    current_.engine = pool_->take(options_.node);
  }
  ++counters_.losses;
  if (tried_ && slots_[*tried_].engine == engine) {
    tried_.reset();
  }
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    Slot& job = slots_[slot];
    if (job.state != State::kInFlight || job.engine != engine) {
      continue;
    }
    job.engine = nullptr;
    if (!is_stopped) {
      job.state = State::kAbandoned;
      ++counters_.abandoned;
    } else if (++job.failures == 2) {  // the second engine had it alone
      set_illegal(job);
    } else {
      suspects_.push_back(slot);
      try_suspects();  // the next engine has work before all jobs are looked at
    }
  }
  spdlog::warn("copy engine {} is out of use: {}. {} takes over.", engine->name(), why.ToString(),
               current_.engine == nullptr ? "The CPU" : concat("Engine ", current_.engine->name()));
}

void Accelerator::try_suspects() {
  while (!suspects_.empty()) {
    const std::uint32_t slot = suspects_.back();
    const bool needs_engine = current_.engine != nullptr && !is_quarantined(slots_[slot].owner);
    if (needs_engine && (tried_ || current_.in_flight > 0)) {
      return;
    }
    suspects_.pop_back();
    if (!needs_engine) {
      make_by_cpu(slot);
      continue;
    }
    ++counters_.resubmitted;
    tried_ = slot;
    submit(slot);
    if (tried_ == slot && slots_[slot].engine == nullptr) {  // it is not in flight
      tried_.reset();
    }
  }
}

void Accelerator::poll() {
  for (Attached* attached : {&retiring_, &current_}) {
    take_completions(*attached);
  }
  if (retiring_.engine != nullptr && retiring_.in_flight == 0) {
    pool_->give_back(retiring_.engine);
    retiring_ = {};
  }
  if (++polls_ % kPollsPerWatch == 0) {
    watch();
  }
  try_suspects();
}

void Accelerator::take_completions(Attached& attached) {
  while (attached.in_flight > 0) {
    const Result<std::optional<Engine::Completion>> completion = attached.engine->dequeue_copy();
    if (completion.ok() && !*completion) {
      return;
    }
    // the usual case, which costs no Status
    if (completion.ok() && (*completion)->is_moved && options_.verify_every == 0 && !tried_ &&
        has(attached, (*completion)->job)) {
      --attached.in_flight;
      Slot& job = slots_[slot_of((*completion)->job)];
      job.engine = nullptr;
      job.state = State::kDone;
      ++counters_.by_engine;
      continue;
    }
    const Status taken = completion.ok() ? complete(attached, **completion) : completion.status();
    if (!taken.ok()) {
      lose(attached, taken);
      return;
    }
  }
}

bool Accelerator::has(Attached const& attached, Engine::Job number) const {
  const std::uint32_t slot = slot_of(number);
  return slot < slots_.size() && ticket_of(slot) == number && slots_[slot].state == State::kInFlight &&
         slots_[slot].engine == attached.engine;
}

Status Accelerator::complete(Attached& attached, Engine::Completion const& completion) {
  if (!has(attached, completion.job)) {
    return absl::InternalError(concat("it completed job ", completion.job, ", which it does not have"));
  }
  const std::uint32_t slot = slot_of(completion.job);
  Slot& job = slots_[slot];
  if (completion.is_moved && options_.verify_every != 0 && counters_.by_engine % options_.verify_every == 0 &&
      !are_equal(job.moves)) {
    return absl::DataLossError("it completed a job whose bytes are not in place");
  }
  --attached.in_flight;
  if (tried_ == slot) {
    tried_.reset();
  }
  if (!completion.is_moved) {
    fail_job(slot, attached.engine);
    return absl::OkStatus();
  }
  job.engine = nullptr;
  job.state = State::kDone;
  ++counters_.by_engine;
  return absl::OkStatus();
}

void Accelerator::watch() {
  if (current_.in_flight + retiring_.in_flight == 0) {
    return;
  }
  const Clock::time_point now = Clock::now();
  for (Attached* attached : {&retiring_, &current_}) {
    bool is_late = false;
    for (Slot& job : slots_) {
      if (job.state != State::kInFlight || job.engine == nullptr || job.engine != attached->engine) {
        continue;
      }
      if (job.since == Clock::time_point{}) {
        job.since = now;
      }
      is_late = is_late || now - job.since > options_.patience;
    }
    if (is_late) {
      lose(*attached, absl::DeadlineExceededError(concat(
                          "a job was not done after ",
                          std::chrono::duration_cast<std::chrono::milliseconds>(options_.patience).count(), " ms")));
    }
  }
}

void Accelerator::forget(Ticket ticket) {
  const std::uint32_t slot = slot_of(ticket);
  ++slots_[slot].generation;
  slots_[slot].next_free = first_free_;
  first_free_ = slot;
}

}  // namespace catena::hostcopy
