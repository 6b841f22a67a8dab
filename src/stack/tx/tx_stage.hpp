// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/functional/function_ref.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hostcopy/accelerator.hpp"
#include "base/hostcopy/session_copies.hpp"
#include "stack/tcp/tcp.hpp"
#include "stack/tx/part_clock.hpp"
#include "stack/tx/tx_buffers.hpp"

namespace catena::stack {

/// The way in which sent bytes leave an application's FIFO: the configurations of the HAVS paper (section V), and
/// `reference`. Their names: copy_mode_of().
enum class CopyMode : std::uint8_t {
  kReference,  ///< no copy: frames point into the application's memory, which it can change until they leave
  kCpu,        ///< the CPU
  kSync,       ///< an engine; the stack waits for each copy
  kAsync,      ///< an engine; the stack continues meanwhile
  kFull,       ///< an engine from `threshold` bytes on, else the CPU; the stack continues meanwhile
};
constexpr bool uses_engine(CopyMode mode) { return mode != CopyMode::kReference && mode != CopyMode::kCpu; }
/// nullopt: no such name.
std::optional<CopyMode> copy_mode_of(std::string_view name);
std::string_view to_string(CopyMode mode);
/// "reference, cpu, ..."
std::string copy_mode_names();

struct TxOptions {
  CopyMode mode = CopyMode::kCpu;
  std::uint32_t threshold = 1024;               ///< bytes; with kFull
  std::uint32_t poll_at = 10;                   ///< copies in flight; more are polled for at once
  std::chrono::nanoseconds poll_every{20'000};  ///< if nothing was polled meanwhile
};

struct TxCounters {
  std::uint64_t by_reference = 0;  ///< pieces without a copy
  std::uint64_t by_cpu = 0;
  std::uint64_t by_engine = 0;
  std::uint64_t bytes = 0;        ///< of all pieces
  std::uint64_t waits = 0;        ///< for a buffer
  std::uint64_t polls = 0;        ///< of engines
  std::uint64_t first_polls = 0;  ///< pieces of an engine, complete at the first check
  std::uint64_t illegal = 0;      ///< pieces that were not copied, by an engine's fault: their sessions are reset
};

/// The memory of an application, from which its sessions' bytes are copied.
struct TxSource {
  std::shared_ptr<const void> memory;      ///< keeps the FIFOs mapped while TCP or an engine reads them
  hostcopy::AcceleratorPool::Reach reach;  ///< of the memory; null: engines do not reach it
  hostcopy::JobOwner owner;

  bool is_for_engines() const { return reach != nullptr && !owner.is_quarantined; }
};

/// A session's bytes on their way from its FIFO to TCP. Made by TxStage::open().
struct TxSession {
  /// Bytes that were taken from the FIFO: being copied, or written to TCP and not acknowledged.
  struct Piece {
    hostcopy::Move move;
    TxBuffers::Buffer buffer;  ///< without data: a reference to the FIFO
    bool is_looked_at = false;
  };

  TxSession(ConnectionId of, std::span<std::byte> from, std::shared_ptr<TxSource> its, hostcopy::Accelerator& by)
      : connection(of), fifo(from), source(std::move(its)), copies(by, &source->owner) {}

  ConnectionId connection;
  std::span<std::byte> fifo;         ///< a power of two of bytes
  std::shared_ptr<TxSource> source;  ///< with `fifo`
  hostcopy::SessionCopies copies;
  std::deque<Piece> copying;    ///< in order
  std::deque<Piece> written;    ///< in order; TCP reads their memory
  std::uint32_t committed = 0;  ///< by the application; a position of the FIFO, as the next two
  std::uint32_t submitted = 0;
  std::uint32_t freed = 0;  ///< the application may write up to here, plus the FIFO's size
  std::uint32_t ready = 0;  ///< pieces of `copying` whose bytes are in place
  std::uint32_t copying_bytes = 0;
  std::uint32_t acknowledged = 0;  ///< of the oldest written piece
  bool is_copying = false;         ///< in the stage's list of copying sessions
  bool is_waiting = false;         ///< for a buffer, or for memory of TCP
  bool is_failed = false;          ///< a copy was not made; to be reset

  /// All bytes are with the peer.
  bool is_empty() const { return committed == submitted && copying.empty() && written.empty(); }
  /// All bytes are with TCP.
  bool is_written() const { return committed == submitted && copying.empty(); }
};

/// Takes committed bytes from FIFOs, has them copied, and writes them to TCP in order: the submit, polling and
/// post-copy stages of the HAVS paper (section IV-B). While engines copy, the stack does other work; a piece waits for
/// earlier ones of its own session alone. Belongs to one thread at a time.
class TxStage {
 public:
  /// All arguments but `options` outlive it.
  TxStage(TxOptions const& options, Tcp& tcp, hostcopy::Accelerator& accelerator, TxBuffers& buffers, PartClock& clock)
      : options_(options), tcp_(&tcp), accelerator_(&accelerator), buffers_(&buffers), clock_(&clock) {}
  /// Waits for copies in flight.
  ~TxStage();
  TxStage(TxStage const&) = delete;
  TxStage& operator=(TxStage const&) = delete;

  /// `source` has `fifo`.
  std::unique_ptr<TxSession> open(ConnectionId connection, std::span<std::byte> fifo,
                                  std::shared_ptr<TxSource> source) {
    return std::make_unique<TxSession>(connection, fifo, std::move(source), *accelerator_);
  }
  /// Takes bytes from `submitted` to `committed`, within the room of TCP and of the buffers; the rest after
  /// acknowledged() or poll().
  void submit(TxSession& session);
  /// The peer has `bytes` more.
  void acknowledged(TxSession& session, std::size_t bytes);
  /// Ends a session whose connection TCP has forgotten. Copies in flight end by themselves.
  void close(std::unique_ptr<TxSession> session);
  /// Polls engines if it is time, writes copied pieces, and continues waiting sessions. Calls `changed` with sessions
  /// whose `freed` or `is_failed` changed. Whether there was anything to do.
  bool poll(std::chrono::steady_clock::time_point now, absl::FunctionRef<void(TxSession&)> changed);
  /// Copies are in flight: poll() again within `poll_every`.
  bool is_copying() const { return !copying_.empty() || !closed_.empty(); }
  TxCounters const& counters() const { return counters_; }

 private:
  /// Takes the next `bytes` from the FIFO. False: the session waits.
  bool take(TxSession& session, std::span<std::byte> bytes);
  void copy(TxSession& session, std::span<std::byte> bytes, TxBuffers::Buffer const& buffer);
  bool write(TxSession const& session, std::span<const std::byte> bytes, bool more);
  /// Writes the oldest pieces whose bytes are in place.
  void write_copied(TxSession& session);
  void write_ready(TxSession& session);
  void wait(TxSession& session);
  bool resume_waiting(absl::FunctionRef<void(TxSession&)> changed);
  void free_closed();

  TxOptions options_;
  Tcp* tcp_;
  hostcopy::Accelerator* accelerator_;
  TxBuffers* buffers_;
  PartClock* clock_;
  std::vector<TxSession*> copying_;
  std::deque<TxSession*> waiting_;
  std::vector<std::unique_ptr<TxSession>> closed_;  ///< with copies in flight
  std::chrono::steady_clock::time_point last_poll_;
  TxCounters counters_;
};

}  // namespace catena::stack
