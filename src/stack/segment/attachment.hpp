// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/session.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "base/core/file_descriptor.hpp"
#include "base/ipc/mapping.hpp"
#include "stack/segment/segment.hpp"

namespace catena::stack {

/// The application's end of its sessions, as catena/session.h describes it. Results are a number, or a negative number
/// of errno.h. Belongs to one thread at a time.
class Attachment {
 public:
  /// Connects to the stack's socket at `path`.
  static int open(const char* path, std::unique_ptr<Attachment>& attachment);
  /// Waits for the stack's first frame over `socket`, whose other end the stack has or gets.
  static int attach(FileDescriptor socket, std::unique_ptr<Attachment>& attachment);
  /// `memory` and `socket`: as the stack sent them. Precondition: is_possible(shape).
  Attachment(ipc::Mapping memory, SegmentShape const& shape, FileDescriptor socket);
  Attachment(Attachment const&) = delete;
  Attachment& operator=(Attachment const&) = delete;

  int descriptor() const { return socket_.get(); }
  int events(std::span<catena_event> events);
  /// Whether events() would find a change. Asks for no wake-up.
  bool has_events() const { return events_.has_messages(); }
  int wait(int timeout_ms);
  int listen(std::uint16_t port, int backlog);
  int unlisten(std::uint16_t port);
  int accept(std::uint16_t port, catena_session& session);

  /// A session that was accepted and not closed; null: no such session.
  struct Session {
    enum class State : std::uint8_t { kFree, kWaiting, kOpen };
    State state = State::kFree;
    bool ends_sending = false;
    std::uint32_t slot = 0;
    std::uint32_t generation = 0;
    std::uint32_t committed = 0;
    std::uint32_t consumed = 0;
    std::uint32_t reported = 0;  ///< of `consumed`: the stack knows so many
  };
  Session* find(catena_session session);
  std::uint32_t state(Session const& session) const;
  /// Received bytes, in all.
  std::uint32_t readable(Session const& session) const;
  /// The oldest of them, in one piece.
  std::span<const std::byte> peek(Session const& session) const;
  void consume(Session& session, std::uint32_t count);
  /// Where the next bytes go; empty: no space, and an event comes when there is some.
  std::span<std::byte> reserve(Session& session);
  /// Committed bytes that have not left the FIFO.
  std::uint32_t unsent(Session const& session) const;
  void commit(Session& session, std::uint32_t count);
  void shutdown(Session& session);
  void end(Session& session, AppLine::Wish how);
  SharedSegment const& segment() const { return segment_; }

 private:
  struct Listener {
    std::uint32_t number;  ///< of its line
    std::uint16_t port;
    std::deque<std::uint32_t> waiting;  ///< slots
  };

  Listener* listener_of(std::uint16_t port);
  bool note(std::uint32_t number, catena_event& event);
  int ask(std::uint32_t number, std::uint16_t port, std::uint32_t backlog);
  void command(std::uint32_t number, std::atomic<std::uint32_t>& commanded);
  void command(Session const& session);
  bool is_stack_gone();

  FileDescriptor socket_;
  ipc::Mapping memory_;
  SharedSegment segment_;
  ipc::RingReader<std::uint32_t> events_;
  ipc::RingWriter<std::uint32_t> commands_;
  std::vector<Session> sessions_;
  std::deque<Listener> listeners_;
  bool has_lost_stack_ = false;
};

}  // namespace catena::stack
