// SPDX-License-Identifier: Apache-2.0
#include "io/port_switch.hpp"

#include <poll.h>
#include <spdlog/spdlog.h>

#include <system_error>

namespace catena::io {
namespace {

using Clock = std::chrono::steady_clock;

/// Frames taken from the port at once, and from each chain in its turn.
constexpr std::size_t kBurst = FrameQueue::kBurst;
/// How often a port is asked what it could not send.
constexpr std::chrono::milliseconds kErrorCheck{10};
/// Whoever ends the thread need not wake it.
constexpr int kWaitMs = 10;

}  // namespace

Result<std::unique_ptr<PortSwitch>> PortSwitch::open(std::string name, std::string const& device, Open const& open) {
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<memory::PacketPool> pool, memory::PacketPool::create(kSlots));
  CATENA_ASSIGN_OR_RETURN(std::shared_ptr<Port> port, open(device, *pool));
  std::unique_ptr<PortSwitch> opened(new PortSwitch(std::move(name), std::move(pool), std::move(port)));
  if (opened->notifier_.descriptor() < 0) {
    return absl::ResourceExhaustedError("no descriptor for a shared port");
  }
  try {
    opened->thread_ = std::thread([self = opened.get()] { self->work(); });
  } catch (std::system_error const& error) {
    return absl::ResourceExhaustedError(concat("no thread for a shared port: ", error.code().message()));
  }
  return opened;
}

PortSwitch::~PortSwitch() {
  is_ending_.store(true);
  if (thread_.joinable()) {
    thread_.join();
  }
  if (unmatched_ != 0) {
    spdlog::warn("{}: {} of {} frames met no chain's `match` and were dropped", name_, std::uint64_t{unmatched_},
                 std::uint64_t{received_});
  }
}

std::unique_lock<std::mutex> PortSwitch::lock_members() const {
  ++wanted_by_others_;
  std::unique_lock lock(mutex_);
  --wanted_by_others_;
  return lock;
}

Status PortSwitch::add(Member& member) {
  const auto lock = lock_members();
  for (Member const* other : members_) {
    const std::string text =
        other->receiving_ == Member::Receiving::kNoMore ? std::string() : conflict(member.member(), other->member());
    if (!text.empty()) {
      return absl::AlreadyExistsError(concat(name_, ": ", text));
    }
  }
  member.switch_ = this;
  members_.push_back(&member);
  return absl::OkStatus();
}

void PortSwitch::start(Member& member) {
  const auto lock = lock_members();
  if (member.receiving_ == Member::Receiving::kNotYet) {
    member.receiving_ = Member::Receiving::kNow;
    make_table();
  }
}

void PortSwitch::stop(Member& member) {
  const auto lock = lock_members();
  left_behind_ += member.receiving_ == Member::Receiving::kNow ? member.in_.size() : 0;
  member.receiving_ = Member::Receiving::kNoMore;
  make_table();
}

void PortSwitch::stop_sending(Member& member) {
  const auto lock = lock_members();
  member.tx_errors_ += member.left_.size() + member.out_.size();
  release_frames(*pool_, member.left_);
  member.left_.clear();
  member.out_.release_all();
}

void PortSwitch::remove(Member& member) {
  const auto lock = lock_members();
  std::erase(members_, &member);
  left_behind_ += member.receiving_ == Member::Receiving::kNow ? member.in_.size() : 0;
  release_frames(*pool_, member.left_);
  make_table();
}

void PortSwitch::make_table() {
  std::vector<TrafficTable::Entry> entries;
  for (std::size_t owner = 0; owner < members_.size(); ++owner) {
    if (members_[owner]->receiving_ != Member::Receiving::kNow) {
      continue;
    }
    for (TrafficMatch const& match : members_[owner]->member_.matches) {
      entries.push_back({match, owner});
    }
  }
  table_ = TrafficTable(std::move(entries));
}

void PortSwitch::wake() {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the one in rest()
  if (is_asleep_.load(std::memory_order_relaxed)) {
    notifier_.ring();
  }
}

void PortSwitch::work() {
  PollBackoff backoff;
  while (!is_ending_.load(std::memory_order_relaxed)) {
    while (wanted_by_others_.load() > 0) {
      std::this_thread::yield();
    }
    const Clock::time_point before = Clock::now();
    if (work_once()) {
      backoff.found_work();
      busy_ns_ += static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now() - before).count());
    } else {
      backoff.found_nothing();
      rest(backoff);
    }
  }
}

bool PortSwitch::work_once() {
  const std::lock_guard lock(mutex_);
  bool worked = take_in();
  for (Member* member : members_) {
    worked |= send_out(*member);
  }
  return worked;
}

void PortSwitch::rest(PollBackoff const& backoff) {
  const int socket = port_->readable_when_received();
  if (socket < 0 || !backoff.should_block()) {
    backoff.rest();
    return;
  }
  is_asleep_.store(true, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the one in wake()
  const bool is_stuck = has_frames_of_members();        // or one gave some just now
  if (!is_stuck) {
    std::array<pollfd, 2> waited{{{socket, POLLIN, 0}, {notifier_.descriptor(), POLLIN, 0}}};
    ::poll(waited.data(), waited.size(), kWaitMs);
    if ((waited[0].revents & ~POLLIN) != 0) {
      std::this_thread::sleep_for(PollBackoff::kShortSleep);  // an interface that is down: poll() does not wait
    }
  }
  is_asleep_.store(false, std::memory_order_relaxed);
  notifier_.quiet();
  if (is_stuck) {
    backoff.rest();
  }
}

bool PortSwitch::has_frames_of_members() {
  const std::lock_guard lock(mutex_);
  return std::any_of(members_.begin(), members_.end(),
                     [](Member const* member) { return member->out_.size() != 0 || !member->left_.empty(); });
}

/// Gives what has arrived to the chains.
bool PortSwitch::take_in() {
  const std::span<SlotFrame> frames = std::span(frames_).first(port_->receive(frames_));
  received_ += frames.size();
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (frames[i].slot == kTooLong) {
      ++too_long_;
      continue;
    }
    const std::uint8_t* frame = pool_->slot(frames[i].slot) + frames[i].offset;
    const TrafficTable::Found found = table_.owner_of(frame, frames[i].length);
    if (found.owner) {
      members_[*found.owner]->arrived_.push_back(static_cast<std::uint16_t>(i));
    } else {
      ++(found.is_hidden ? malformed_ : unmatched_);
    }
  }
  for (Member* member : members_) {
    std::array<SlotFrame, kBurst> own;
    const std::size_t all = member->arrived_.size();
    if (all == 0) {
      continue;
    }
    const std::size_t wanted = std::min(all, member->in_.room());
    std::transform(member->arrived_.begin(), member->arrived_.begin() + static_cast<std::ptrdiff_t>(wanted),
                   own.begin(), [&frames](std::uint16_t position) { return frames[position]; });
    member->arrived_.clear();
    const std::size_t copied = copy_frames(*pool_, *member->pool_, std::span(own).first(wanted));
    member->missed_ += all - wanted;
    member->no_slot_ += wanted - copied;
    member->in_.push(std::span(own).first(copied));
    member->notifier_.ring();
  }
  release_frames(*pool_, frames);
  return !frames.empty();
}

/// Sends what the port did not take before, then what the chain has given since.
bool PortSwitch::send_out(Member& member) {
  if (!member.left_.empty()) {
    return send_left(member);
  }
  const std::size_t free = pool_->free_slots();
  const std::size_t most = std::min<std::size_t>(kBurst, free - std::min<std::size_t>(free, kSlotsForRx));
  std::array<SlotFrame, kBurst> given;
  const std::span<SlotFrame> frames = std::span(given).first(member.out_.pop(std::span(given).first(most)));
  if (frames.empty()) {
    return false;
  }
  const std::vector<SlotFrame> own(frames.begin(), frames.end());
  const std::size_t copied = copy_frames(*member.pool_, *pool_, frames);
  release_frames(*member.pool_, own);
  member.tx_errors_ += frames.size() - copied;  // the port's own driver took the slots meanwhile
  member.left_.assign(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(copied));
  send_left(member);
  return true;
}

bool PortSwitch::send_left(Member& member) {
  const std::size_t taken = port_->send(member.left_);
  member.left_.erase(member.left_.begin(), member.left_.begin() + static_cast<std::ptrdiff_t>(taken));
  member.sent_ += taken;
  note_errors(member);
  return taken != 0;
}

/// Errors that the port has counted since it was last asked are of the chain that sends now: of an interface of the
/// kernel that is so, and of a NIC, which is slow to tell, all but.
void PortSwitch::note_errors(Member& member) {
  const Clock::time_point now = Clock::now();
  if (port_->interface().empty() && now - asked_ < kErrorCheck) {
    return;
  }
  asked_ = now;
  const std::uint64_t errors = port_->counters().tx_errors;
  const std::uint64_t more = std::min<std::uint64_t>(errors - std::exchange(tx_errors_, errors), member.sent_);
  member.sent_ -= more;
  member.tx_errors_ += more;
}

SharedPort PortSwitch::view() const {
  const auto lock = lock_members();
  SharedPort view;
  view.name = name_;
  view.describe = port_->describe();
  for (Member const* member : members_) {
    if (member->is_there()) {
      view.members.push_back(member->member());
    }
  }
  view.received = received_;
  view.unmatched = unmatched_;
  view.malformed = malformed_;
  view.left_behind = left_behind_;
  view.too_long = too_long_;
  view.port = port_->counters();
  view.busy_ns = busy_ns_;
  return view;
}

}  // namespace catena::io
