// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/core/text.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

/// Rings of messages in shared memory, each from one thread of one process to one thread of another one. A message has
/// up to `max_entries` entries of one type. Neither end has to trust the memory's content.
namespace catena::ipc {

/// State of a ring, before its messages. Zeroed memory is an empty ring.
struct alignas(64) RingHead {
  std::atomic<std::uint32_t> pushed;             ///< messages since the start
  std::atomic<std::uint32_t> closed;             ///< 0: open, else as passed to RingWriter::close()
  alignas(64) std::atomic<std::uint32_t> armed;  ///< 1: the reader waits for a wake-up
};

struct RingShape {
  std::uint32_t max_entries = 0;  ///< of a message
  std::uint32_t depth = 0;        ///< messages in flight, at most; a power of two
};

/// Clears pending wake-ups of `socket`, one end of make_socket_pair(). Of several thousand only a part is cleared,
/// since a peer may send them without end.
void clear_wake_ups(int socket);

/// Whether the other end of `socket` is closed or shut down, also while wake-ups from it are unread.
bool is_other_end_closed(int socket);

/// Wakes the reader of a ring through `socket` if it waits. Never blocks.
void wake_reader(RingHead& head, int socket);

/// The reader's position in a ring, and its wait for the next message. One thread.
class RingCursor {
 public:
  RingCursor(RingHead& head, int socket) : head_(&head), socket_(socket) {}
  /// Messages not yet taken; if 0, the next message wakes the reader through the socket. DataLoss if the other end
  /// reports more than `depth`.
  Result<std::uint32_t> waiting(std::uint32_t depth);
  /// Whether messages wait. Asks for no wake-up.
  bool has_messages() const { return head_->pushed.load(std::memory_order_acquire) != taken_; }
  /// Number of the oldest message not yet taken.
  std::uint32_t number() const { return taken_; }
  void take() { ++taken_; }
  std::uint32_t closed() const { return head_->closed.load(std::memory_order_acquire); }

 private:
  void arm();

  RingHead* head_;
  int socket_;
  std::uint32_t taken_ = 0;
  std::uint32_t idle_polls_ = 0;
  bool is_armed_ = false;
};

/// The messages of a ring in memory.
template <typename Entry>
class RingMessages {
  static_assert(std::is_trivially_copyable_v<Entry>);

 public:
  /// `memory`: bytes(shape) bytes, aligned for an Entry.
  RingMessages(std::span<std::byte> memory, RingShape shape) : memory_(memory), shape_(shape) {}

  static std::size_t bytes(RingShape const& shape) { return message_bytes(shape) * shape.depth; }
  RingShape const& shape() const { return shape_; }
  /// Number of entries of message `number`, as its writer reports it.
  std::atomic<std::uint32_t>& entries(std::uint32_t number) const {
    return reinterpret_cast<Head*>(at(number))->entries;
  }
  /// Its entries: max_entries of them.
  Entry* first(std::uint32_t number) const { return reinterpret_cast<Entry*>(at(number) + sizeof(Head)); }

 private:
  struct alignas(Entry) Head {
    std::atomic<std::uint32_t> entries;
  };
  static std::size_t message_bytes(RingShape const& shape) {
    return sizeof(Head) + std::size_t{shape.max_entries} * sizeof(Entry);
  }
  std::byte* at(std::uint32_t number) const {
    return memory_.data() + message_bytes(shape_) * (number & (shape_.depth - 1));
  }

  std::span<std::byte> memory_;
  RingShape shape_;
};

/// The writing end. It never reads state of the other end. So its user must keep no more messages in flight than the
/// depth. One thread.
template <typename Entry>
class RingWriter {
 public:
  /// `head` and the memory of `messages` outlive this; `socket`: this side's end of make_socket_pair().
  RingWriter(RingHead& head, RingMessages<Entry> messages, int socket)
      : head_(&head), messages_(messages), socket_(socket) {}
  /// Position of the next message, with space for max_entries.
  std::span<Entry> next() const { return {messages_.first(pushed_), messages_.shape().max_entries}; }
  /// Publishes the next message, which has `entries` entries.
  void push(std::uint32_t entries) {
    messages_.entries(pushed_).store(entries, std::memory_order_relaxed);
    ++pushed_;
    head_->pushed.store(pushed_, std::memory_order_release);
  }
  /// Wakes the reader if it sleeps: after one push() or several. Never blocks.
  void wake() { wake_reader(*head_, socket_); }
  /// Ends the messages. `reason`: not 0; the reader gets it.
  void close(std::uint32_t reason) {
    head_->closed.store(reason, std::memory_order_release);
    wake();
  }

 private:
  RingHead* head_;
  RingMessages<Entry> messages_;
  int socket_;
  std::uint32_t pushed_ = 0;
};

/// The reading end. The other end may change a message during the read: copy it once, then check the copy. One thread.
template <typename Entry>
class RingReader {
 public:
  /// Lifetimes as for RingWriter.
  RingReader(RingHead& head, RingMessages<Entry> messages, int socket) : cursor_(head, socket), messages_(messages) {}
  /// The oldest message not yet taken; nullopt if the ring is empty, and the next message then wakes the reader.
  /// DataLoss if the other end reports impossible numbers.
  Result<std::optional<std::span<const Entry>>> poll() {
    CATENA_ASSIGN_OR_RETURN(const std::uint32_t waiting, cursor_.waiting(messages_.shape().depth));
    if (waiting == 0) {
      return std::nullopt;
    }
    const std::uint32_t entries = messages_.entries(cursor_.number()).load(std::memory_order_relaxed);
    if (entries > messages_.shape().max_entries) {
      return absl::DataLossError(
          concat("it claims a message of ", entries, " entries; one has at most ", messages_.shape().max_entries));
    }
    return std::span<const Entry>(messages_.first(cursor_.number()), entries);
  }
  /// Whether poll() has something to return. Unlike poll() it does not ask for a wake-up.
  bool has_messages() const { return cursor_.has_messages(); }
  /// Marks the oldest message as read.
  void take() { cursor_.take(); }
  /// 0 until the other end has closed the ring, then its reason. Messages may be left.
  std::uint32_t closed() const { return cursor_.closed(); }

 private:
  RingCursor cursor_;
  RingMessages<Entry> messages_;
};

}  // namespace catena::ipc
