// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "state_file.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace catena::ipsec {

/// Sequence numbers of associations, reserved on disk before use: a restart after a crash continues after all reserved
/// numbers. A separate thread writes. Numbers are reserved in blocks, half a block ahead of need. Blocks grow with the
/// traffic until one lasts about a second, so the packet thread waits for the disk only if a write takes longer than a
/// second.
class Reservations {
 public:
  /// An association with a persistent state.
  struct Entry {
    std::string name;                                  ///< of its file
    std::uint32_t spi = 0;                             ///< for messages and readers
    std::uint64_t first = 1;                           ///< the start if no state exists
    std::uint64_t end = 0;                             ///< the first disallowed number
    std::uint32_t window = ReplayWindow::kMinPackets;  ///< decrypt: of a state that begins
  };

  /// The smallest block. A crash costs up to two blocks: when encrypting, numbers that are never used, which is
  /// harmless; when decrypting, unseen packets that count as seen.
  static constexpr std::uint64_t smallest_block(Direction direction) {
    return direction == Direction::kEncrypt ? 1U << 16 : 64;
  }

  /// Opens the states and reserves the first block of each. `new_keys`: SPIs of which a missing state means no used
  /// number. A missing state of any other SPI is InvalidArgument, also if another state is in use. Other errors: as
  /// StateFile.
  static Result<std::unique_ptr<Reservations>> open(nf::Outputs& outputs, std::string const& folder,
                                                    Direction direction, std::set<std::uint32_t> const& new_keys,
                                                    std::vector<Entry> entries);
  /// The error that open() would return. Reserves nothing, and holds no lock.
  static Status check(nf::Outputs& outputs, std::string const& folder, Direction direction,
                      std::set<std::uint32_t> const& new_keys, std::vector<Entry> entries);
  ~Reservations();
  Reservations(Reservations const&) = delete;
  Reservations& operator=(Reservations const&) = delete;

  std::size_t size() const { return slots_.size(); }
  /// Where entry `number` continues: the state in its file, or its first number.
  SavedState const& start(std::uint32_t number) const { return slots_[number]->start; }
  /// Number of entries without a state.
  std::size_t new_states() const { return new_states_; }

  /// The end (exclusive) of the numbers from `next` on that the caller may use before the next call. Not above `next`
  /// if no more could be reserved: the disk failed, which was logged, or the numbers are exhausted. Waits for the disk
  /// only if `next` is not reserved yet. Thread rule: any thread, but one at a time for an entry.
  std::uint64_t take(std::uint32_t number, std::uint64_t next);

  /// Ends the use of an entry: the thread writes its state and closes its file. Does not wait. The log reports a
  /// failure; numbers reserved before remain used then. Precondition: no take() for the entry from now on.
  void close(std::uint32_t number, SavedState state);
  /// Waits until the files of close() are closed, or finish() is called.
  void await_closed();
  /// True if all entries are closed. The thread has ended then.
  bool is_closed() const;

  /// Ends the thread and writes the state of each open entry: `states` by entry. Returns the last failure, with its
  /// file.
  Status finish(std::span<const SavedState> states);

 private:
  using Clock = std::chrono::steady_clock;
  static Result<std::unique_ptr<Reservations>> load(nf::Outputs& outputs, std::string const& folder,
                                                    Direction direction, std::set<std::uint32_t> const& new_keys,
                                                    std::vector<Entry> entries);
  struct Slot {
    Slot(Entry known, StateFile opened) : entry(std::move(known)), file(std::move(opened)) {}
    Entry entry;
    std::optional<StateFile> file;  // nullopt: closed
    SavedState start;
    std::atomic<std::uint64_t> reserved{0};  // the first unreserved number
    std::atomic<std::uint64_t> block{0};
    // guarded by the mutex
    std::uint64_t wanted = 0;  // reserve beyond this number; 0: no request
    bool failed = false;
    Clock::time_point failed_at;
    std::optional<SavedState> last;  // set: close the file
    // used by the writer thread
    Clock::time_point written_at;
  };

  explicit Reservations(Direction direction) : direction_(direction) {}
  Status reserve(Slot& slot, std::uint64_t beyond);
  static void save_last(Slot& slot);
  void work();
  void ask(std::uint32_t number, std::uint64_t beyond);
  void stop();

  Direction direction_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::size_t new_states_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable asked_;
  std::condition_variable answered_;
  std::vector<std::uint32_t> queue_;  // entries with `wanted` or `last` set
  std::size_t closing_ = 0;           // entries with `last` set and an open file
  std::size_t closed_ = 0;            // entries
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace catena::ipsec
