// SPDX-License-Identifier: Apache-2.0
#include "io/port_switch.hpp"

#include "io/bell.hpp"
#include "io/frame_queue.hpp"
#include "io/interface.hpp"

#include <catena/core/counter.hpp>
#include <catena/core/text.hpp>

#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

namespace catena::io {
namespace {

using Clock = std::chrono::steady_clock;

/// Frames taken from the port at once, and from each chain in its turn.
constexpr std::size_t kBurst = FrameQueue::kBurst;
constexpr std::uint32_t kSpinsBeforeYield = 64;
constexpr std::uint32_t kSpinsBeforeSleep = 4096;
/// A port that cannot say when it has frames is asked as often as this.
constexpr std::chrono::microseconds kSleep{50};
/// How often a port is asked what it could not send.
constexpr std::chrono::milliseconds kErrorCheck{10};
/// Whoever ends the thread need not wake it.
constexpr int kWaitMs = 10;

std::uint32_t waiting_in(memory::PacketPool const& pool) {
  return std::bit_floor(std::min(PortSwitches::kMaxWaiting, pool.slots() / 4));
}

}  // namespace

/// A port, its thread and its chains.
class PortSwitches::Switch {
 public:
  static Result<std::unique_ptr<Switch>> open(std::string name, std::string const& device, Open const& open);
  ~Switch();
  Switch(Switch const&) = delete;
  Switch& operator=(Switch const&) = delete;

  Status add(MemberPort& member);
  void remove(MemberPort& member);
  /// Any thread: a chain has given frames.
  void wake();
  Port& port() { return *port_; }
  SharedPort view() const;

 private:
  Switch(std::string name, std::unique_ptr<memory::PacketPool> pool, std::shared_ptr<Port> port)
      : name_(std::move(name)), pool_(std::move(pool)), port_(std::move(port)) {}
  void work();
  bool work_once();
  void rest(std::uint32_t idle_rounds);
  bool take_in();
  bool send_out(MemberPort& member);
  bool send_left(MemberPort& member);
  void note_errors(MemberPort& member);
  bool has_frames_of_members();
  void make_table();
  /// For who is not the thread: it lets nobody wait for long.
  std::unique_lock<std::mutex> lock_members() const;

  std::string name_;
  std::unique_ptr<memory::PacketPool> pool_;
  std::shared_ptr<Port> port_;
  Bell bell_;
  mutable std::atomic<int> wanted_by_others_{0};
  mutable std::mutex mutex_;  ///< of what follows
  std::vector<MemberPort*> members_;
  TrafficTable table_{{}};
  std::array<SlotFrame, kBurst> frames_;
  Counter received_;
  Counter unmatched_;
  Counter too_long_;
  Counter busy_ns_;
  std::uint64_t tx_errors_ = 0;  ///< of the port, when it was last asked
  Clock::time_point asked_;
  std::atomic<bool> is_asleep_{false};
  std::atomic<bool> is_ending_{false};
  std::thread thread_;
};

/// A chain's side.
class PortSwitches::MemberPort final : public Port {
 public:
  MemberPort(std::shared_ptr<PortSwitches> owner, std::string name, PortMember member, memory::PacketPool& pool)
      : owner_(std::move(owner)),
        name_(std::move(name)),
        member_(std::move(member)),
        pool_(&pool),
        in_(pool, waiting_in(pool)),
        out_(pool, waiting_in(pool)) {}
  ~MemberPort() override {
    if (switch_ != nullptr) {
      owner_->detach(name_, *this);
    }
    in_.release_all();
    out_.release_all();
  }

  std::size_t receive(std::span<SlotFrame> frames) override {
    const std::size_t count = in_.pop(frames);
    if (count == 0) {
      bell_.quiet();
      if (in_.size() != 0) {
        bell_.ring();
      }
    }
    return count;
  }
  std::size_t send(std::span<const SlotFrame> frames) override {
    const std::size_t count = std::min({frames.size(), kBurst, out_.room()});
    out_.push(frames.first(count));
    switch_->wake();
    return count;
  }
  int readable_when_received() const override { return bell_.descriptor(); }
  PortCounters counters() const override {
    return {.missed = missed_, .no_slot = no_slot_, .sent = sent_, .tx_errors = tx_errors_};
  }
  std::uint32_t max_tx_bytes() const override { return switch_->port().max_tx_bytes(); }
  std::string const& interface() const override { return switch_->port().interface(); }
  Status check_interface() override { return switch_->port().check_interface(); }
  std::string describe() const override {
    std::string matches;
    for (TrafficMatch const& match : member_.matches) {
      matches += concat(matches.empty() ? ": " : " or ", to_string(match));
    }
    return concat(switch_->port().describe(), ", shared", matches);
  }

  PortMember const& member() const { return member_; }

 private:
  friend class PortSwitches;
  friend class Switch;

  std::shared_ptr<PortSwitches> owner_;
  std::string name_;
  PortMember member_;
  memory::PacketPool* pool_;
  Switch* switch_ = nullptr;  ///< null: it is not at the port yet
  FrameQueue in_;
  FrameQueue out_;
  Bell bell_;
  // all of the switch's thread
  std::vector<std::uint16_t> arrived_;  ///< positions in the burst at hand
  std::vector<SlotFrame> left_;         ///< in the switch's slots: those that the port did not take yet
  Counter missed_;
  Counter no_slot_;
  Counter sent_;
  Counter tx_errors_;
};

Result<std::unique_ptr<PortSwitches::Switch>> PortSwitches::Switch::open(std::string name, std::string const& device,
                                                                         Open const& open) {
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<memory::PacketPool> pool, memory::PacketPool::create(kSlots));
  CATENA_ASSIGN_OR_RETURN(std::shared_ptr<Port> port, open(device, *pool));
  std::unique_ptr<Switch> opened(new Switch(std::move(name), std::move(pool), std::move(port)));
  if (opened->bell_.descriptor() < 0) {
    return absl::ResourceExhaustedError("no descriptor for a shared port");
  }
  try {
    opened->thread_ = std::thread([self = opened.get()] { self->work(); });
  } catch (std::system_error const& error) {
    return absl::ResourceExhaustedError(concat("no thread for a shared port: ", error.code().message()));
  }
  return opened;
}

PortSwitches::Switch::~Switch() {
  is_ending_.store(true);
  if (thread_.joinable()) {
    thread_.join();
  }
  if (unmatched_ != 0) {
    spdlog::warn("{}: {} of {} frames met no chain's `match` and were dropped", name_, std::uint64_t{unmatched_},
                 std::uint64_t{received_});
  }
}

std::unique_lock<std::mutex> PortSwitches::Switch::lock_members() const {
  ++wanted_by_others_;
  std::unique_lock lock(mutex_);
  --wanted_by_others_;
  return lock;
}

Status PortSwitches::Switch::add(MemberPort& member) {
  const auto lock = lock_members();
  for (MemberPort const* other : members_) {
    if (const std::string text = conflict(member.member(), other->member()); !text.empty()) {
      return absl::AlreadyExistsError(concat(name_, ": ", text));
    }
  }
  member.switch_ = this;
  members_.push_back(&member);
  make_table();
  return absl::OkStatus();
}

void PortSwitches::Switch::remove(MemberPort& member) {
  const auto lock = lock_members();
  std::erase(members_, &member);
  release_frames(*pool_, member.left_);
  make_table();
}

void PortSwitches::Switch::make_table() {
  std::vector<TrafficTable::Entry> entries;
  for (std::size_t owner = 0; owner < members_.size(); ++owner) {
    for (TrafficMatch const& match : members_[owner]->member_.matches) {
      entries.push_back({match, owner});
    }
  }
  table_ = TrafficTable(std::move(entries));
}

void PortSwitches::Switch::wake() {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the one in rest()
  if (is_asleep_.load(std::memory_order_relaxed)) {
    bell_.ring();
  }
}

void PortSwitches::Switch::work() {
  std::uint32_t idle_rounds = 0;
  while (!is_ending_.load(std::memory_order_relaxed)) {
    while (wanted_by_others_.load() > 0) {
      std::this_thread::yield();
    }
    const Clock::time_point before = Clock::now();
    if (work_once()) {
      idle_rounds = 0;
      busy_ns_ += static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now() - before).count());
    } else {
      rest(++idle_rounds);
    }
  }
}

bool PortSwitches::Switch::work_once() {
  const std::lock_guard lock(mutex_);
  bool worked = take_in();
  for (MemberPort* member : members_) {
    worked |= send_out(*member);
  }
  return worked;
}

void PortSwitches::Switch::rest(std::uint32_t idle_rounds) {
  const int socket = port_->readable_when_received();
  if (idle_rounds < kSpinsBeforeYield) {
    return;
  }
  if (socket < 0 || idle_rounds < 2 * kSpinsBeforeYield) {
    if (idle_rounds < kSpinsBeforeSleep) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kSleep);
    }
    return;
  }
  is_asleep_.store(true, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the one in wake()
  if (!has_frames_of_members()) {
    std::array<pollfd, 2> waited{{{socket, POLLIN, 0}, {bell_.descriptor(), POLLIN, 0}}};
    ::poll(waited.data(), waited.size(), kWaitMs);
    if ((waited[0].revents & ~POLLIN) != 0) {
      std::this_thread::sleep_for(kSleep);  // an interface that is down: poll() does not wait
    }
  }
  is_asleep_.store(false, std::memory_order_relaxed);
  bell_.quiet();
}

bool PortSwitches::Switch::has_frames_of_members() {
  const std::lock_guard lock(mutex_);
  return std::any_of(members_.begin(), members_.end(),
                     [](MemberPort const* member) { return member->out_.size() != 0 || !member->left_.empty(); });
}

/// Gives what has arrived to the chains.
bool PortSwitches::Switch::take_in() {
  const std::span<SlotFrame> frames = std::span(frames_).first(port_->receive(frames_));
  received_ += frames.size();
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (frames[i].slot == kTooLong) {
      ++too_long_;
      continue;
    }
    const std::uint8_t* frame = pool_->slot(frames[i].slot) + frames[i].offset;
    if (const std::optional<std::size_t> owner = table_.owner_of(frame, frames[i].length)) {
      members_[*owner]->arrived_.push_back(static_cast<std::uint16_t>(i));
    } else {
      ++unmatched_;
    }
  }
  for (MemberPort* member : members_) {
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
    member->bell_.ring();
  }
  release_frames(*pool_, frames);
  return !frames.empty();
}

/// Sends what the port did not take before, then what the chain has given since.
bool PortSwitches::Switch::send_out(MemberPort& member) {
  if (!member.left_.empty()) {
    return send_left(member);
  }
  const std::size_t most = std::min<std::size_t>(kBurst, pool_->free_slots());
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

bool PortSwitches::Switch::send_left(MemberPort& member) {
  const std::size_t taken = port_->send(member.left_);
  member.left_.erase(member.left_.begin(), member.left_.begin() + static_cast<std::ptrdiff_t>(taken));
  member.sent_ += taken;
  note_errors(member);
  return taken != 0;
}

/// Errors that the port has counted since it was last asked are of the chain that sends now: of an interface of the
/// kernel that is so, and of a NIC, which is slow to tell, all but.
void PortSwitches::Switch::note_errors(MemberPort& member) {
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

SharedPort PortSwitches::Switch::view() const {
  const auto lock = lock_members();
  SharedPort view;
  view.name = name_;
  view.describe = port_->describe();
  for (MemberPort const* member : members_) {
    view.members.push_back(member->member());
  }
  view.received = received_;
  view.unmatched = unmatched_;
  view.too_long = too_long_;
  view.port = port_->counters();
  view.busy_ns = busy_ns_;
  return view;
}

std::string shared_name(std::string const& device) {
  const std::string interface = interface_of(device);
  return interface.empty() ? concat("device ", device.substr(0, device.find(','))) : concat("interface ", interface);
}

std::string conflict(PortMember const& a, PortMember const& b) {
  for (TrafficMatch const& of_a : a.matches) {
    for (TrafficMatch const& of_b : b.matches) {
      const Overlap lie = overlap(of_a, of_b);
      if (lie == Overlap::kSame || lie == Overlap::kCrossing) {
        return concat(
            "chains '", a.chain, "' (", to_string(of_a), ") and '", b.chain, "' (", to_string(of_b), ") ",
            lie == Overlap::kSame ? "want the same frames" : "want some of the same frames, and neither only those");
      }
    }
  }
  return {};
}

PortSwitches::PortSwitches(Open open) : open_(std::move(open)) {}

PortSwitches::~PortSwitches() = default;

Result<std::shared_ptr<Port>> PortSwitches::attach(std::string const& device, PortMember member,
                                                   memory::PacketPool& pool) {
  const std::string name = shared_name(device);
  auto port = std::make_shared<MemberPort>(shared_from_this(), name, std::move(member), pool);
  if (port->readable_when_received() < 0) {
    return absl::ResourceExhaustedError("no descriptor for a shared port");
  }
  const std::lock_guard lock(mutex_);
  Opened& opened = opened_[name];
  if (opened.port == nullptr) {
    opened.device = device;
    Result<std::unique_ptr<Switch>> made = Switch::open(name, device, open_);
    if (!made.ok()) {
      opened_.erase(name);
      return made.status();
    }
    opened.port = *std::move(made);
  } else if (opened.device != device) {
    return absl::InvalidArgumentError(
        concat("dpdk ", device, ": another chain has the port as '", opened.device, "'; write the same"));
  }
  CATENA_RETURN_IF_ERROR(opened.port->add(*port));  // the first one has no other to cross
  ++opened.members;
  return port;
}

void PortSwitches::detach(std::string const& name, MemberPort& member) {
  const std::lock_guard lock(mutex_);
  const auto found = opened_.find(name);
  found->second.port->remove(member);
  if (--found->second.members == 0) {
    opened_.erase(found);
  }
}

std::vector<SharedPort> PortSwitches::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<SharedPort> all;
  for (auto const& [name, opened] : opened_) {
    all.push_back(opened.port->view());
  }
  return all;
}

}  // namespace catena::io
