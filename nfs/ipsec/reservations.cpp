// SPDX-License-Identifier: Apache-2.0
#include "reservations.hpp"

#include <catena/core/text.hpp>

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace catena::ipsec {
namespace {

constexpr std::uint64_t kFirstDecryptBlock = 1024;
constexpr std::uint64_t kLargestBlock = std::uint64_t{1} << 26;
/// A block that was used up faster is too small, one that lasted this many times longer too large.
constexpr std::chrono::seconds kBlockLasts{1};
constexpr int kStaleAfterBlocks = 8;
/// After a failure the disk is asked again no sooner, so that a full disk does not stop the other associations.
constexpr std::chrono::seconds kAfterFailure{1};

/// SPIs in a message, at most.
constexpr std::size_t kMaxNamed = 32;

/// `path`: of the missing state of the first of `spis`, which have none.
Status no_state(std::string const& path, std::span<const std::uint32_t> spis) {
  return absl::InvalidArgumentError(fmt::format(
      "{}: no state of the association with SPI {}, and its keys are refused: if they were used before, the same "
      "sequence numbers would be used again. Restore the folder written by the last run, or give the association new "
      "keys and pass --new-keys {}{} to `catena run` or `catena apply`; --new-keys counts once, and never at SIGHUP",
      path, spis.front(), fmt::join(spis.first(std::min(spis.size(), kMaxNamed)), ","),
      spis.size() > kMaxNamed ? concat(" and ", spis.size() - kMaxNamed, " more") : ""));
}

}  // namespace

/// Opens the states, and reserves nothing.
Result<std::unique_ptr<Reservations>> Reservations::load(nf::Outputs& outputs, std::string const& folder,
                                                         Direction direction, std::set<std::uint32_t> const& new_keys,
                                                         std::vector<Entry> entries) {
  std::unique_ptr<Reservations> made(new Reservations(direction));
  std::vector<std::uint32_t> missing;
  std::string missing_path;  // of the first of them
  Status taken;              // what is in use now may be free later: what is wrong with another entry goes first
  for (Entry& entry : entries) {
    Result<StateFile> file = StateFile::open(outputs, folder, entry.name, direction);
    if (absl::IsFailedPrecondition(file.status())) {
      taken.Update(file.status());
      continue;
    }
    CATENA_RETURN_IF_ERROR(file.status());
    auto slot = std::make_unique<Slot>(std::move(entry), *std::move(file));
    if (slot->file->is_new()) {
      if (!new_keys.contains(slot->entry.spi)) {
        missing_path = missing.empty() ? slot->file->path() : missing_path;
        missing.push_back(slot->entry.spi);
        continue;
      }
      ++made->new_states_;
      // of numbers before the first one none was seen, as RFC 4303 section 3.4.3 has it
      slot->start = {.next = slot->entry.first, .seen = ReplayWindow::Seen(ReplayWindow::words_of(slot->entry.window))};
    } else {
      slot->start = slot->file->loaded();
      if (slot->start.next < slot->entry.first) {
        slot->start = {.next = slot->entry.first, .seen = {}};
      }
    }
    slot->block = direction == Direction::kEncrypt ? smallest_block(direction) : kFirstDecryptBlock;
    made->slots_.push_back(std::move(slot));
  }
  if (!missing.empty()) {
    return no_state(missing_path, missing);
  }
  CATENA_RETURN_IF_ERROR(taken);
  return made;
}

Result<std::unique_ptr<Reservations>> Reservations::open(nf::Outputs& outputs, std::string const& folder,
                                                         Direction direction, std::set<std::uint32_t> const& new_keys,
                                                         std::vector<Entry> entries) {
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<Reservations> made,
                          load(outputs, folder, direction, new_keys, std::move(entries)));
  // only now, when nothing refuses any more
  for (auto& slot : made->slots_) {
    slot->reserved = slot->start.next;
    CATENA_RETURN_IF_ERROR(made->reserve(*slot, slot->start.next));
    slot->written_at = Clock::now();
  }
  try {
    made->thread_ = std::thread([reservations = made.get()] { reservations->work(); });
  } catch (std::system_error const& error) {
    return absl::ResourceExhaustedError(concat("ipsec: no thread for its state: ", error.what()));
  }
  return made;
}

Status Reservations::check(nf::Outputs& outputs, std::string const& folder, Direction direction,
                           std::set<std::uint32_t> const& new_keys, std::vector<Entry> entries) {
  return load(outputs, folder, direction, new_keys, std::move(entries)).status();
}

Reservations::~Reservations() { stop(); }

void Reservations::stop() {
  if (!thread_.joinable()) {
    return;
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  asked_.notify_all();
  answered_.notify_all();
  thread_.join();
}

/// Writes that the numbers up to a block beyond `beyond` are reserved.
Status Reservations::reserve(Slot& slot, std::uint64_t beyond) {
  const std::uint64_t end = slot.entry.end;
  const std::uint64_t from = std::max(beyond, slot.reserved.load(std::memory_order_relaxed));
  const std::uint64_t block = slot.block.load(std::memory_order_relaxed);
  const std::uint64_t up_to = from >= end || end - from <= block ? end : from + block;
  if (up_to <= slot.reserved.load(std::memory_order_relaxed)) {
    return absl::OkStatus();  // the numbers have ended
  }
  CATENA_RETURN_IF_ERROR(slot.file->save({.next = up_to, .seen = {}}, slot.entry.spi));
  slot.reserved.store(up_to, std::memory_order_release);
  return absl::OkStatus();
}

/// Writes the last state of an entry, and closes its file.
void Reservations::save_last(Slot& slot) {
  if (const Status status = slot.file->save(*slot.last, slot.entry.spi); !status.ok()) {
    spdlog::error("ipsec: the last state of the association with SPI {}: {}", slot.entry.spi,
                  std::string(status.message()));
  }
  slot.file.reset();
}

void Reservations::work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    asked_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) {
      return;
    }
    Slot& slot = *slots_[queue_.back()];
    queue_.pop_back();
    if (!slot.file) {
      continue;
    }
    if (slot.last) {
      lock.unlock();
      save_last(slot);
      lock.lock();
      --closing_;
      answered_.notify_all();
      if (++closed_ == slots_.size()) {
        return;
      }
      continue;
    }
    const std::uint64_t beyond = slot.wanted;
    lock.unlock();
    const Clock::time_point now = Clock::now();
    const std::uint64_t block = slot.block.load(std::memory_order_relaxed);
    if (now - slot.written_at < kBlockLasts) {
      slot.block = std::min(2 * block, kLargestBlock);
    } else if (now - slot.written_at > kStaleAfterBlocks * kBlockLasts) {
      slot.block = std::max(block / 2, smallest_block(direction_));
    }
    const Status status = reserve(slot, beyond);
    slot.written_at = now;
    if (!status.ok()) {
      spdlog::error("ipsec: no more sequence numbers for the association with SPI {}: {}", slot.entry.spi,
                    std::string(status.message()));
    }
    lock.lock();
    slot.failed = !status.ok();
    slot.failed_at = now;
    slot.wanted = 0;
    answered_.notify_all();
  }
}

/// Precondition: the mutex is held.
void Reservations::ask(std::uint32_t number, std::uint64_t beyond) {
  Slot& slot = *slots_[number];
  if (slot.wanted == 0) {
    slot.wanted = beyond;
    queue_.push_back(number);
    asked_.notify_one();
  }
}

std::uint64_t Reservations::take(std::uint32_t number, std::uint64_t next) {
  Slot& slot = *slots_[number];
  if (next >= slot.entry.end) {
    return next;
  }
  std::uint64_t reserved = slot.reserved.load(std::memory_order_acquire);
  const std::uint64_t half = slot.block.load(std::memory_order_relaxed) / 2;
  if (reserved > next && reserved - next > half) {
    return reserved - half;
  }
  if (reserved == slot.entry.end) {
    return reserved;
  }
  std::unique_lock<std::mutex> lock(mutex_);
  if (slot.failed && Clock::now() - slot.failed_at < kAfterFailure) {
    return reserved;  // for this long what is left must do
  }
  ask(number, next);
  if (reserved <= next) {
    // asked once, answered once: a request that was there already may have been for less
    answered_.wait(lock, [&slot] { return slot.wanted == 0; });
    if (slot.reserved.load(std::memory_order_relaxed) <= next && !slot.failed) {
      ask(number, next);
      answered_.wait(lock, [&slot] { return slot.wanted == 0; });
    }
    reserved = slot.reserved.load(std::memory_order_relaxed);
  }
  return reserved;
}

void Reservations::close(std::uint32_t number, SavedState state) {
  const std::lock_guard<std::mutex> lock(mutex_);
  slots_[number]->last = std::move(state);
  ++closing_;
  queue_.push_back(number);
  asked_.notify_one();
}

void Reservations::await_closed() {
  std::unique_lock<std::mutex> lock(mutex_);
  answered_.wait(lock, [this] { return closing_ == 0 || stopping_; });
}

bool Reservations::is_closed() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return closed_ == slots_.size();
}

Status Reservations::finish(std::span<const SavedState> states) {
  stop();
  Status status;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i]->file) {
      status.Update(slots_[i]->file->save(states[i], slots_[i]->entry.spi));
    }
  }
  return status.ok() ? status : absl::DataLossError(std::string(status.message()));
}

}  // namespace catena::ipsec
