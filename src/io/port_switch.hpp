// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/poll_backoff.hpp"
#include "base/ipc/event_notifier.hpp"
#include "io/frame_queue.hpp"
#include "io/port.hpp"
#include "io/shared_port.hpp"
#include "io/traffic_match.hpp"
#include "packet/memory/packet_pool.hpp"

#include <catena/core/counter.hpp>
#include <catena/core/status.hpp>
#include <catena/core/text.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace catena::io {

/// A port shared by several chains: its packet memory and its thread. The thread finds the chain of each frame, copies
/// the frame to this chain, and sends the chains' frames. Any thread, unless noted otherwise.
class PortSwitch {
 public:
  class Member;
  /// Opens the port of a device with a queue for `pool`, which must outlive it.
  using Open = std::function<Result<std::shared_ptr<Port>>(std::string const& device, memory::PacketPool& pool)>;

  /// Maximum number of queued frames to a chain, and from a chain; fewer if its pool is small.
  static constexpr std::uint32_t kMaxWaiting = 4096;
  /// Packet memory of the port. Frames sent by chains may use all of it except kSlotsForRx, reserved for arriving
  /// frames.
  static constexpr std::uint32_t kSlots = 8192;
  static constexpr std::uint32_t kSlotsForRx = 2048;

  /// Errors: as `open`; ResourceExhausted: no thread, no descriptor, no packet memory.
  static Result<std::unique_ptr<PortSwitch>> open(std::string name, std::string const& device, Open const& open);
  ~PortSwitch();
  PortSwitch(PortSwitch const&) = delete;
  PortSwitch& operator=(PortSwitch const&) = delete;

  /// Reserves the matches of `member`. AlreadyExists: another chain has a match equal to or crossing one of these.
  Status add(Member& member);
  /// Frames arriving from now on may be delivered to the chain.
  void start(Member& member);
  /// Ends delivery. Frames still queued count as left_behind, and the caller must release them. Another chain may then
  /// use the same matches.
  void stop(Member& member);
  /// Counts the chain's unsent frames as errors.
  void stop_sending(Member& member);
  /// Called last; the calls above are optional.
  void remove(Member& member);
  /// Any thread: a chain has queued frames.
  void wake();
  Port& port() { return *port_; }
  SharedPort view() const;

 private:
  PortSwitch(std::string name, std::unique_ptr<memory::PacketPool> pool, std::shared_ptr<Port> port)
      : name_(std::move(name)), pool_(std::move(pool)), port_(std::move(port)) {}
  void work();
  bool work_once();
  void rest(PollBackoff const& backoff);
  bool take_in();
  bool send_out(Member& member);
  bool send_left(Member& member);
  void note_errors(Member& member);
  bool has_frames_of_members();
  void make_table();
  /// For all threads but the switch's own, which yields the lock to them without delay.
  std::unique_lock<std::mutex> lock_members() const;

  std::string name_;
  std::unique_ptr<memory::PacketPool> pool_;
  std::shared_ptr<Port> port_;
  ipc::EventNotifier notifier_;
  mutable std::atomic<int> wanted_by_others_{0};
  mutable std::mutex mutex_;  ///< protects the members below
  std::vector<Member*> members_;
  TrafficTable table_{{}};
  std::array<SlotFrame, FrameQueue::kBurst> frames_;
  Counter received_;
  Counter unmatched_;
  Counter malformed_;
  std::uint64_t left_behind_ = 0;
  Counter too_long_;
  Counter busy_ns_;
  std::uint64_t tx_errors_ = 0;  ///< of the port, at the last check
  std::chrono::steady_clock::time_point asked_;
  std::atomic<bool> is_asleep_{false};
  std::atomic<bool> is_ending_{false};
  std::thread thread_;
};

/// A chain's side of a shared port. Thread rule: as Port.
class PortSwitch::Member final : public Port {
 public:
  using Leave = std::function<void(Member&)>;
  /// `leave`: called by the destructor, if it was added to a switch.
  Member(PortMember member, memory::PacketPool& pool, Leave leave)
      : leave_(std::move(leave)),
        member_(std::move(member)),
        pool_(&pool),
        in_(pool, waiting_in(pool)),
        out_(pool, waiting_in(pool)) {}
  ~Member() override {
    if (switch_ != nullptr) {
      leave_(*this);
    }
    in_.release_all();
    out_.release_all();
  }

  void start_receiving() override { switch_->start(*this); }
  void stop_receiving() override {
    switch_->stop(*this);
    in_.release_all();
  }
  void stop_sending() override { switch_->stop_sending(*this); }
  std::size_t receive(std::span<SlotFrame> frames) override {
    const std::size_t count = in_.pop(frames);
    if (count == 0) {
      notifier_.quiet();
      if (in_.size() != 0) {
        notifier_.ring();
      }
    }
    return count;
  }
  std::size_t send(std::span<const SlotFrame> frames) override {
    const std::size_t count = std::min({frames.size(), FrameQueue::kBurst, out_.room()});
    out_.push(frames.first(count));
    switch_->wake();
    return count;
  }
  int readable_when_received() const override { return notifier_.descriptor(); }
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
  static std::uint32_t waiting_in(memory::PacketPool const& pool) {
    return std::bit_floor(std::min(kMaxWaiting, pool.slots() / 4));
  }
  friend class PortSwitch;
  /// Protected by the switch's mutex.
  enum class Receiving { kNotYet, kNow, kNoMore };
  /// Whether it is listed as a member of the port.
  bool is_there() const {
    return receiving_ == Receiving::kNow || (receiving_ == Receiving::kNotYet && member_.matches.empty());
  }

  Leave leave_;
  PortMember member_;
  memory::PacketPool* pool_;
  PortSwitch* switch_ = nullptr;  ///< null: not yet at the port
  Receiving receiving_ = Receiving::kNotYet;
  FrameQueue in_;
  FrameQueue out_;
  ipc::EventNotifier notifier_;
  // used by the switch's thread, or under its mutex
  std::vector<std::uint16_t> arrived_;  ///< positions in the current burst
  std::vector<SlotFrame> left_;         ///< in the switch's slots: not yet taken by the port
  Counter missed_;
  Counter no_slot_;
  Counter sent_;
  Counter tx_errors_;
};

}  // namespace catena::io
