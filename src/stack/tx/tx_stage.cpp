// SPDX-License-Identifier: Apache-2.0
#include "stack/tx/tx_stage.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include "stack/segment/fifo.hpp"

namespace catena::stack {
namespace {

using hostcopy::SessionCopies;

constexpr std::array<std::pair<std::string_view, CopyMode>, 5> kModes{{{"reference", CopyMode::kReference},
                                                                       {"cpu", CopyMode::kCpu},
                                                                       {"sync", CopyMode::kSync},
                                                                       {"async", CopyMode::kAsync},
                                                                       {"full", CopyMode::kFull}}};

}  // namespace

std::optional<CopyMode> copy_mode_of(std::string_view name) {
  for (auto const& [known, mode] : kModes) {
    if (known == name) {
      return mode;
    }
  }
  return std::nullopt;
}

std::string_view to_string(CopyMode mode) { return kModes[static_cast<std::size_t>(mode)].first; }

std::string copy_mode_names() {
  std::string names;
  for (auto const& [name, mode] : kModes) {
    names += concat(names.empty() ? "" : ", ", name);
  }
  return names;
}

TxStage::~TxStage() {
  while (!closed_.empty()) {
    accelerator_->poll();
    free_closed();
  }
}

void TxStage::submit(TxSession& session) {
  while (session.committed != session.submitted && !session.is_waiting && !session.is_failed) {
    // what is being copied will be written, and must not fail for space then
    const std::size_t room = tcp_->room(session.connection);
    if (room <= session.copying_bytes) {
      break;
    }
    const std::size_t most = std::min(room - session.copying_bytes, Tcp::kMaxWrite);
    const std::size_t left = session.committed - session.submitted;
    if (!take(session, piece_of(session.fifo, session.submitted, std::min(most, left)))) {
      break;
    }
  }
  write_copied(session);
}

bool TxStage::take(TxSession& session, std::span<std::byte> bytes) {
  const auto count = static_cast<std::uint32_t>(bytes.size());
  if (options_.mode == CopyMode::kReference) {
    const bool more = session.submitted + count != session.committed;
    if (!write(session, bytes, more)) {
      wait(session);
      return false;
    }
    session.written.push_back({.move = {.from = bytes.data(), .to = nullptr, .bytes = count}, .buffer = {}});
    ++counters_.by_reference;
  } else {
    const std::optional<TxBuffers::Buffer> buffer = buffers_->take(count);
    if (!buffer) {
      ++counters_.waits;
      wait(session);
      return false;
    }
    copy(session, bytes, *buffer);
  }
  session.submitted += count;
  counters_.bytes += count;
  return true;
}

bool TxStage::write(TxSession const& session, std::span<const std::byte> bytes, bool more) {
  const Part before = clock_->enter(Part::kTcp);
  const bool is_written = tcp_->write(session.connection, bytes, more);
  clock_->enter(before);
  return is_written;
}

void TxStage::copy(TxSession& session, std::span<std::byte> bytes, TxBuffers::Buffer const& buffer) {
  const auto count = static_cast<std::uint32_t>(bytes.size());
  session.copying.push_back({.move = {.from = bytes.data(), .to = buffer.data, .bytes = count}, .buffer = buffer});
  const std::span<const hostcopy::Move> moves(&session.copying.back().move, 1);
  session.copying_bytes += count;
  const Part before = clock_->enter(Part::kCopy);
  if (options_.mode == CopyMode::kCpu || !session.source->is_for_engines() ||
      (options_.mode == CopyMode::kFull && count < options_.threshold)) {
    session.copies.make(moves);
    session.copying.back().is_looked_at = true;
    ++counters_.by_cpu;
  } else {
    session.copies.start(moves);
    ++counters_.by_engine;
    while (options_.mode == CopyMode::kSync && accelerator_->in_flight() > 0) {
      accelerator_->poll();
    }
    if (!session.is_copying) {
      session.is_copying = true;
      copying_.push_back(&session);
    }
  }
  clock_->enter(before);
}

void TxStage::write_copied(TxSession& session) {
  if (session.copying.empty()) {
    return;
  }
  const Part before = clock_->enter(Part::kPostCopy);
  write_ready(session);
  clock_->enter(before);
}

void TxStage::write_ready(TxSession& session) {
  while (session.ready < session.copying.size() && !session.is_failed) {
    const SessionCopies::Next next = session.copies.take();
    TxSession::Piece& piece = session.copying[session.ready];
    const bool is_first_look = !std::exchange(piece.is_looked_at, true);
    if (next == SessionCopies::Next::kNone) {
      break;
    }
    counters_.first_polls += is_first_look ? 1 : 0;
    if (next != SessionCopies::Next::kDone) {
      session.is_failed = true;
      ++counters_.illegal;
      if (next == SessionCopies::Next::kAbandoned) {
        piece.buffer.data = nullptr;  // an engine may still write there
      }
    }
    ++session.ready;
  }
  while (session.ready > 0 && !session.is_failed) {
    TxSession::Piece& piece = session.copying.front();
    if (!write(session, {piece.buffer.data, piece.move.bytes}, session.ready > 1)) {
      wait(session);
      return;
    }
    --session.ready;
    session.copying_bytes -= piece.move.bytes;
    session.freed += piece.move.bytes;
    session.written.push_back(piece);
    session.copying.pop_front();
  }
}

void TxStage::wait(TxSession& session) {
  if (!std::exchange(session.is_waiting, true)) {
    waiting_.push_back(&session);
  }
}

void TxStage::acknowledged(TxSession& session, std::size_t bytes) {
  session.acknowledged += static_cast<std::uint32_t>(bytes);
  while (!session.written.empty() && session.acknowledged >= session.written.front().move.bytes) {
    TxSession::Piece const& piece = session.written.front();
    session.acknowledged -= piece.move.bytes;
    if (piece.buffer.data != nullptr) {
      buffers_->give_back(piece.buffer);
    } else {
      session.freed += piece.move.bytes;
    }
    session.written.pop_front();
  }
  submit(session);
}

void TxStage::close(std::unique_ptr<TxSession> session) {
  for (TxSession::Piece const& piece : session->written) {
    if (piece.buffer.data != nullptr) {
      buffers_->give_back(piece.buffer);
    }
  }
  session->written.clear();
  std::erase(waiting_, session.get());
  std::erase(copying_, session.get());
  session->is_failed = true;  // nothing is written any more
  closed_.push_back(std::move(session));
  free_closed();
}

void TxStage::free_closed() {
  std::erase_if(closed_, [this](std::unique_ptr<TxSession> const& session) {
    while (session->ready < session->copying.size()) {
      const SessionCopies::Next next = session->copies.take();
      if (next == SessionCopies::Next::kNone) {
        return false;
      }
      if (next == SessionCopies::Next::kAbandoned) {
        session->copying[session->ready].buffer.data = nullptr;
      }
      ++session->ready;
    }
    for (TxSession::Piece const& piece : session->copying) {
      if (piece.buffer.data != nullptr) {
        buffers_->give_back(piece.buffer);
      }
    }
    return true;
  });
}

bool TxStage::resume_waiting(absl::FunctionRef<void(TxSession&)> changed) {
  bool has_worked = false;
  for (std::size_t left = waiting_.size(); left > 0 && !waiting_.empty(); --left) {
    TxSession& session = *waiting_.front();
    waiting_.pop_front();
    session.is_waiting = false;
    const std::uint32_t before = session.submitted + session.freed;
    submit(session);
    const bool has_moved = session.submitted + session.freed != before;
    if (has_moved) {
      changed(session);
    }
    has_worked |= has_moved;
    if (!has_moved) {
      break;  // what is missing is missing for the others, too
    }
  }
  return has_worked;
}

bool TxStage::poll(std::chrono::steady_clock::time_point now, absl::FunctionRef<void(TxSession&)> changed) {
  bool has_worked = resume_waiting(changed);
  const std::uint32_t in_flight = accelerator_->in_flight();
  if (!is_copying() || (in_flight > 0 && in_flight <= options_.poll_at && now - last_poll_ < options_.poll_every)) {
    return has_worked;
  }
  last_poll_ = now;
  ++counters_.polls;
  const Part before_poll = clock_->enter(Part::kPoll);
  accelerator_->poll();
  clock_->enter(before_poll);
  std::vector<TxSession*> moved;  // `changed` may close a session
  std::erase_if(copying_, [&](TxSession* session) {
    const std::uint32_t before = session->freed;
    write_copied(*session);
    if (session->freed != before || session->is_failed) {
      moved.push_back(session);
    }
    session->is_copying = !session->copies.is_empty();
    return !session->is_copying;
  });
  for (TxSession* const session : moved) {
    changed(*session);
  }
  free_closed();
  return has_worked || !moved.empty();
}

}  // namespace catena::stack
