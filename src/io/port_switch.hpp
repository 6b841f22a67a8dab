// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/poll_backoff.hpp"
#include "io/bell.hpp"
#include "io/frame_queue.hpp"
#include "io/port.hpp"
#include "io/shared_port.hpp"
#include "io/traffic_match.hpp"
#include "memory/packet_pool.hpp"

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

/// A port that several chains have: its packet memory, and the thread that finds whose each frame is, copies it there,
/// and sends what chains give. What is not said otherwise, any thread.
class PortSwitch {
 public:
  class Member;
  /// Opens the port of a device with a queue for that pool, which outlives it.
  using Open = std::function<Result<std::shared_ptr<Port>>(std::string const& device, memory::PacketPool& pool)>;

  /// Frames for a chain, and of a chain, that may wait; fewer where its pool is small.
  static constexpr std::uint32_t kMaxWaiting = 4096;
  /// Packet memory of the port. What chains send may fill all but a part of it, which is for what arrives.
  static constexpr std::uint32_t kSlots = 8192;
  static constexpr std::uint32_t kSlotsForRx = 2048;

  /// Errors: as `open`; ResourceExhausted: no thread, no descriptor, no packet memory.
  static Result<std::unique_ptr<PortSwitch>> open(std::string name, std::string const& device, Open const& open);
  ~PortSwitch();
  PortSwitch(PortSwitch const&) = delete;
  PortSwitch& operator=(PortSwitch const&) = delete;

  /// From here on others may not want the same. AlreadyExists: another chain has a match which is the same or crosses
  /// one of these.
  Status add(Member& member);
  /// What arrives from here on may be the chain's.
  void start(Member& member);
  /// And no longer; what waits for it is left behind, and the caller's to release. Another may want the same then.
  void stop(Member& member);
  /// What the chain has given and was not sent counts as errors.
  void stop_sending(Member& member);
  /// After these, if they are called at all.
  void remove(Member& member);
  /// Any thread: a chain has given frames.
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
  /// For who is not the thread: it lets nobody wait for long.
  std::unique_lock<std::mutex> lock_members() const;

  std::string name_;
  std::unique_ptr<memory::PacketPool> pool_;
  std::shared_ptr<Port> port_;
  Bell bell_;
  mutable std::atomic<int> wanted_by_others_{0};
  mutable std::mutex mutex_;  ///< of what follows
  std::vector<Member*> members_;
  TrafficTable table_{{}};
  std::array<SlotFrame, FrameQueue::kBurst> frames_;
  Counter received_;
  Counter unmatched_;
  Counter malformed_;
  std::uint64_t left_behind_ = 0;
  Counter too_long_;
  Counter busy_ns_;
  std::uint64_t tx_errors_ = 0;  ///< of the port, when it was last asked
  std::chrono::steady_clock::time_point asked_;
  std::atomic<bool> is_asleep_{false};
  std::atomic<bool> is_ending_{false};
  std::thread thread_;
};

/// A chain's side of a shared port. Thread rule: as Port.
class PortSwitch::Member final : public Port {
 public:
  using Leave = std::function<void(Member&)>;
  /// `leave`: called at its end, if it was added to a switch.
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
      bell_.quiet();
      if (in_.size() != 0) {
        bell_.ring();
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
  static std::uint32_t waiting_in(memory::PacketPool const& pool) {
    return std::bit_floor(std::min(kMaxWaiting, pool.slots() / 4));
  }
  friend class PortSwitch;
  /// Of the switch's mutex.
  enum class Receiving { kNotYet, kNow, kNoMore };
  /// Whether it has a place at the port that all should see.
  bool is_there() const {
    return receiving_ == Receiving::kNow || (receiving_ == Receiving::kNotYet && member_.matches.empty());
  }

  Leave leave_;
  PortMember member_;
  memory::PacketPool* pool_;
  PortSwitch* switch_ = nullptr;  ///< null: it is not at the port yet
  Receiving receiving_ = Receiving::kNotYet;
  FrameQueue in_;
  FrameQueue out_;
  Bell bell_;
  // all of the switch's thread, or under its mutex
  std::vector<std::uint16_t> arrived_;  ///< positions in the burst at hand
  std::vector<SlotFrame> left_;         ///< in the switch's slots: those that the port did not take yet
  Counter missed_;
  Counter no_slot_;
  Counter sent_;
  Counter tx_errors_;
};

}  // namespace catena::io
