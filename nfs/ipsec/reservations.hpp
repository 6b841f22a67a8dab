// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "state_file.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace catena::ipsec {

/// Sequence numbers of associations, reserved on the disk before they are used: who starts again after a crash goes on
/// after everything that was reserved. A thread of its own writes; numbers are reserved in blocks, half a block ahead
/// of need, and blocks grow with the traffic until one lasts about a second, so the thread of the packets waits for a
/// disk only where that is slower than a second.
class Reservations {
 public:
  /// An association that needs a state.
  struct Entry {
    std::string name;         ///< of its file
    std::uint32_t spi = 0;    ///< for messages and readers
    std::uint64_t first = 1;  ///< the number that it starts with if there is no state
    std::uint64_t end = 0;    ///< the first number that it may not use
  };

  /// The smallest block. A crash costs up to two: numbers that are never used when encrypting, which hurts nobody; when
  /// decrypting, packets that count as seen though they were not.
  static constexpr std::uint64_t smallest_block(Direction direction) {
    return direction == Direction::kEncrypt ? 1U << 16 : 64;
  }

  /// Opens the states and reserves the first block of each. `new_keys`: where there is no state, no number was used
  /// yet; without it that is InvalidArgument, also where another state is in use. Errors else: as StateFile.
  static Result<std::unique_ptr<Reservations>> open(nf::Outputs& outputs, std::string const& folder,
                                                    Direction direction, bool new_keys, std::vector<Entry> entries);
  /// What open() would refuse. Reserves nothing, and keeps no right to a file.
  static Status check(nf::Outputs& outputs, std::string const& folder, Direction direction, bool new_keys,
                      std::vector<Entry> entries);
  ~Reservations();
  Reservations(Reservations const&) = delete;
  Reservations& operator=(Reservations const&) = delete;

  std::size_t size() const { return slots_.size(); }
  /// Where entry `number` goes on: what its file said, or its first number.
  SavedState const& start(std::uint32_t number) const { return slots_[number]->start; }
  /// How many had no state.
  std::size_t new_states() const { return new_states_; }

  /// The number up to which (not included) the caller may go, from `next` on, before it asks again. Not above `next`
  /// where no more could be reserved: the disk failed, which was logged, or the numbers have ended. Waits for the disk
  /// only where `next` is not reserved yet. Thread rule: one thread at a time, and the same for a given entry.
  std::uint64_t take(std::uint32_t number, std::uint64_t next);

  /// Ends the thread and writes where each entry is: `states` by entry. What failed last, with its file.
  Status finish(std::span<const SavedState> states);

 private:
  using Clock = std::chrono::steady_clock;
  static Result<std::unique_ptr<Reservations>> load(nf::Outputs& outputs, std::string const& folder,
                                                    Direction direction, bool new_keys, std::vector<Entry> entries);
  struct Slot {
    Slot(Entry known, StateFile opened) : entry(std::move(known)), file(std::move(opened)) {}
    Entry entry;
    StateFile file;
    SavedState start;
    std::atomic<std::uint64_t> reserved{0};  // the first number that is not
    std::atomic<std::uint64_t> block{0};
    // of the mutex
    std::uint64_t wanted = 0;  // reserve beyond this number; 0: nothing
    bool failed = false;
    Clock::time_point failed_at;
    // of the thread that writes
    Clock::time_point written_at;
  };

  explicit Reservations(Direction direction) : direction_(direction) {}
  Status reserve(Slot& slot, std::uint64_t beyond);
  void work();
  void ask(std::uint32_t number, std::uint64_t beyond);
  void stop();

  Direction direction_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::size_t new_states_ = 0;
  std::mutex mutex_;
  std::condition_variable asked_;
  std::condition_variable answered_;
  std::vector<std::uint32_t> queue_;  // entries whose `wanted` is set
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace catena::ipsec
