// SPDX-License-Identifier: Apache-2.0
#include "stack/session/session_server.hpp"

#include <catena/session.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include <sys/socket.h>

#include "packet/address_bytes.hpp"
#include "stack/segment/fifo.hpp"

namespace catena::stack {
namespace {

constexpr std::chrono::milliseconds kLookEvery{20};
constexpr std::uint32_t kMaxBacklog = CATENA_MAX_BACKLOG;

SharedEndpoint shared(Endpoint const& endpoint) {
  return {.address = packet::to_bytes(endpoint.address), .port = endpoint.port};
}

}  // namespace

/// A slot of a segment, as the stack knows it: nothing here is read from shared memory.
struct SessionServer::Session {
  enum class State : std::uint8_t {
    kFree,
    kOpen,
    kClosing,  ///< the application has closed it; the peer does not have all bytes yet
    kLost,     ///< the connection is gone; the application has not closed it yet
  };
  Worker* worker = nullptr;
  std::uint32_t slot = 0;
  ConnectionId connection = 0;
  State state = State::kFree;
  bool ends_sending = false;  ///< the application sends no more
  bool has_sent_fin = false;
  bool is_used = false;  ///< it has sent or consumed bytes, or ended its sending: no other application gets it
  std::uint32_t generation = 0;
  std::uint32_t state_bits = 0;  ///< as in its StackLine
  std::uint32_t received = 0;
  std::uint32_t consumed = 0;
  SharedEndpoint local{};
  SharedEndpoint peer{};
  std::unique_ptr<TxSession> tx;  ///< while there is a connection
};

/// An application. What it can write is in its segment and its rings alone.
struct SessionServer::Worker {
  explicit Worker(Application attached)
      : application(std::move(attached)),
        segment(application.memory->bytes(), application.shape),
        events(segment.events_head(), segment.events(), application.socket.get()),
        commands(segment.commands_head(), segment.commands(), application.socket.get()),
        source(std::make_shared<TxSource>(
            TxSource{.memory = application.memory, .reach = application.reach, .owner = {}})),
        sessions(application.shape.sessions) {
    for (std::uint32_t slot = application.shape.sessions; slot > 0; --slot) {
      sessions[slot - 1].worker = this;
      sessions[slot - 1].slot = slot - 1;
      free_slots.push_back(slot - 1);
    }
  }

  /// A slot for a connection; null: none is free.
  Session* take() {
    if (free_slots.empty() || is_gone) {
      return nullptr;
    }
    Session& session = sessions[free_slots.back()];
    free_slots.pop_back();
    return &session;
  }
  void free(Session& session) {
    session.state = Session::State::kFree;
    free_slots.push_back(session.slot);
  }
  void push(std::uint32_t number) {
    events.next()[0] = number;
    events.push(1);
    has_pushed = true;
  }
  /// Tells the application that a session has changed.
  void notify(Session const& session) {
    if (segment.stack_line(session.slot).notified.exchange(1) == 0) {
      push(session.slot);
    }
  }
  void wake() {
    if (std::exchange(has_pushed, false)) {
      events.wake();
    }
  }

  Application application;
  SharedSegment segment;
  ipc::RingWriter<std::uint32_t> events;
  ipc::RingReader<std::uint32_t> commands;
  std::shared_ptr<TxSource> source;
  std::vector<Session> sessions;
  std::vector<std::uint32_t> free_slots;
  bool has_pushed = false;  ///< events since the last wake()
  bool is_gone = false;     ///< only sessions that close by themselves are left
  std::uint32_t ports = 0;  ///< at which it listens
};

SessionServer::SessionServer() = default;
SessionServer::~SessionServer() = default;

void SessionServer::start(Tcp& tcp, TxStage& stage) {
  tcp_ = &tcp;
  stage_ = &stage;
}

void SessionServer::stop() {
  for (auto const& worker : workers_) {
    detach(*worker);
    give_up(*worker);
  }
  workers_.clear();
}

/// Resets what an application that has ended left to be sent.
void SessionServer::give_up(Worker& worker) {
  for (Session& session : worker.sessions) {
    if (session.tx != nullptr) {
      tcp_->reset(session.connection);
      reset(session.connection);
    }
  }
}

void SessionServer::attach(Application application) {
  workers_.push_back(std::make_unique<Worker>(std::move(application)));
  ++counters_.attached;
}

std::uint32_t SessionServer::applications() const {
  return static_cast<std::uint32_t>(counters_.attached - counters_.detached);
}

std::uint32_t SessionServer::applications_of(pid_t process) const {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      workers_, [process](auto const& worker) { return !worker->is_gone && worker->application.process == process; }));
}

/// A slot of the next application that listens at `port`; null: none has space.
SessionServer::Session* SessionServer::take_slot(std::uint16_t port) {
  const auto listener = std::ranges::find(listeners_, port, &Listener::port);
  Session* session = nullptr;
  for (std::size_t i = 0; listener != listeners_.end() && i < listener->workers.size() && session == nullptr; ++i) {
    session = listener->workers[listener->next++ % listener->workers.size()]->take();
  }
  return session;
}

/// Gives a connection to a slot's application, which is not notified yet.
void SessionServer::place(Session& session, ConnectionId connection, SharedEndpoint const& local,
                          SharedEndpoint const& peer) {
  Worker& worker = *session.worker;
  session = {.worker = &worker,
             .slot = session.slot,
             .connection = connection,
             .state = Session::State::kOpen,
             .generation = session.generation + 1,
             .state_bits = StackLine::kOpen,
             .local = local,
             .peer = peer,
             .tx = stage_->open(connection, worker.segment.tx(session.slot), worker.source)};
  if (by_connection_.size() <= connection) {
    by_connection_.resize(connection + 1);
  }
  by_connection_[connection] = &session;
  AppLine& wishes = worker.segment.app_line(session.slot);
  wishes.wishes.store(0, std::memory_order_relaxed);
  wishes.committed.store(0, std::memory_order_relaxed);
  wishes.consumed.store(0, std::memory_order_relaxed);
  wishes.wants_space.store(0, std::memory_order_relaxed);
  StackLine& line = worker.segment.stack_line(session.slot);
  line.state.store(StackLine::kOpen, std::memory_order_relaxed);
  line.received.store(0, std::memory_order_relaxed);
  line.freed.store(0, std::memory_order_relaxed);
  line.local = local;
  line.peer = peer;
  line.generation.store(session.generation, std::memory_order_release);
}

bool SessionServer::accepted(ConnectionId connection, Endpoint const& local, Endpoint const& peer) {
  Session* const session = take_slot(local.port);
  if (session == nullptr) {
    ++counters_.refused;
    return false;
  }
  place(*session, connection, shared(local), shared(peer));
  session->worker->notify(*session);
  ++counters_.accepted;
  return true;
}

/// Another application that listens at the port gets the connection and the bytes that it received, so that a server
/// which restarts its workers loses no connection.
void SessionServer::return_connection(Session& session) {
  Worker& worker = *session.worker;
  const ConnectionId connection = session.connection;
  Session* const next = take_slot(session.local.port);
  if (next == nullptr) {
    session.state = Session::State::kClosing;
    tcp_->reset(connection);
    reset(connection);
    return;
  }
  stage_->close(std::move(session.tx));
  place(*next, connection, session.local, session.peer);
  SharedSegment const& segment = next->worker->segment;
  // both FIFOs have received from their start on: the application that returns it consumed no bytes
  std::memcpy(segment.rx(next->slot).data(), worker.segment.rx(session.slot).data(), session.received);
  next->received = session.received;
  next->state_bits = session.state_bits;
  StackLine& line = segment.stack_line(next->slot);
  line.received.store(next->received, std::memory_order_release);
  line.state.store(next->state_bits, std::memory_order_release);
  next->worker->notify(*next);
  worker.free(session);
}

bool SessionServer::received(ConnectionId connection, std::span<const std::byte> bytes) {
  Session& session = *by_connection_[connection];
  if (session.state != Session::State::kOpen) {
    tcp_->consumed(connection, bytes.size());
    return true;
  }
  Worker& worker = *session.worker;
  const std::span<std::byte> fifo = worker.segment.rx(session.slot);
  if (bytes.size() > fifo.size() - (session.received - session.consumed)) {
    return false;
  }
  counters_.received_bytes += bytes.size();
  while (!bytes.empty()) {
    const std::span<std::byte> piece = piece_of(fifo, session.received, bytes.size());
    std::memcpy(piece.data(), bytes.data(), piece.size());
    session.received += static_cast<std::uint32_t>(piece.size());
    bytes = bytes.subspan(piece.size());
  }
  worker.segment.stack_line(session.slot).received.store(session.received, std::memory_order_release);
  worker.notify(session);
  return true;
}

void SessionServer::acknowledged(ConnectionId connection, std::size_t bytes) {
  Session& session = *by_connection_[connection];
  stage_->acknowledged(*session.tx, bytes);
  changed(*session.tx);
}

void SessionServer::peer_closed(ConnectionId connection) {
  Session& session = *by_connection_[connection];
  session.state_bits |= StackLine::kPeerClosed;
  if (session.state == Session::State::kOpen) {
    session.worker->segment.stack_line(session.slot).state.store(session.state_bits, std::memory_order_release);
    session.worker->notify(session);
  }
}

void SessionServer::reset(ConnectionId connection) {
  Session& session = *std::exchange(by_connection_[connection], nullptr);
  stage_->close(std::move(session.tx));
  if (session.state == Session::State::kClosing || session.worker->is_gone) {
    session.worker->free(session);
    return;
  }
  session.state = Session::State::kLost;
  session.state_bits |= StackLine::kReset;
  session.worker->segment.stack_line(session.slot).state.store(session.state_bits, std::memory_order_release);
  session.worker->notify(session);
}

/// What has left the FIFO is the application's again.
void SessionServer::changed(TxSession& tx) {
  Session& session = *by_connection_[tx.connection];
  changed_.push_back(tx.connection);
  if (session.state != Session::State::kOpen) {
    return;
  }
  SharedSegment const& segment = session.worker->segment;
  segment.stack_line(session.slot).freed.store(tx.freed, std::memory_order_release);
  AppLine& wishes = segment.app_line(session.slot);
  // the application sets this, then looks at `freed` again
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (wishes.wants_space.load(std::memory_order_relaxed) != 0 && tx.committed - tx.freed <= tx.fifo.size() / 2) {
    wishes.wants_space.store(0, std::memory_order_relaxed);
    session.worker->notify(session);
  }
}

/// Sends the FIN where it is due, and ends a session whose bytes are all with the peer.
void SessionServer::finish(Session& session) {
  if (session.tx->is_failed) {
    ++counters_.failed;
    give_up(session);
    return;
  }
  if (session.ends_sending && !session.has_sent_fin && session.tx->is_written()) {
    tcp_->close_sending(session.connection);
    session.has_sent_fin = true;
  }
  if (session.state == Session::State::kClosing && session.tx->is_empty()) {
    by_connection_[session.connection] = nullptr;
    tcp_->close(session.connection);
    stage_->close(std::move(session.tx));
    session.worker->free(session);
  }
}

/// Resets a session, because of its application or of an engine.
void SessionServer::give_up(Session& session) {
  tcp_->reset(session.connection);
  reset(session.connection);
}

void SessionServer::serve_session(Worker& worker, Session& session) {
  AppLine& wishes = worker.segment.app_line(session.slot);
  wishes.commanded.exchange(0);  // before the rest is read: what is written later comes with another command
  const std::uint32_t wished = wishes.wishes.load(std::memory_order_acquire);
  const bool ends = (wished & (AppLine::kClose | AppLine::kAbort | AppLine::kReturn)) != 0;
  if (session.state == Session::State::kLost && ends) {
    worker.free(session);
  }
  if (session.state != Session::State::kOpen) {
    return;
  }
  const std::uint32_t committed = wishes.committed.load(std::memory_order_acquire);
  const std::uint32_t consumed = wishes.consumed.load(std::memory_order_acquire);
  TxSession& tx = *session.tx;
  const bool is_wrong = consumed - session.consumed > session.received - session.consumed ||
                        committed - tx.committed > tx.fifo.size() - (tx.committed - tx.freed) ||
                        (session.ends_sending && committed != tx.committed);
  if (is_wrong) {
    ++counters_.violations;
    give_up(session);
    return;
  }
  session.is_used = session.is_used || committed != tx.committed || consumed != session.consumed ||
                    (wished & AppLine::kShutdown) != 0;
  if ((wished & AppLine::kReturn) != 0 && !session.is_used) {
    return_connection(session);
    return;
  }
  if ((wished & (AppLine::kAbort | AppLine::kReturn)) != 0) {
    session.state = Session::State::kClosing;
    tcp_->reset(session.connection);
    reset(session.connection);
    return;
  }
  if (consumed != session.consumed) {
    tcp_->consumed(session.connection, consumed - session.consumed);
    session.consumed = consumed;
  }
  if ((wished & AppLine::kClose) != 0) {
    // what it did not read would keep the window closed
    if (session.received != session.consumed) {
      tcp_->consumed(session.connection, session.received - session.consumed);
      session.consumed = session.received;
    }
    session.state = Session::State::kClosing;
  }
  session.ends_sending |= (wished & (AppLine::kClose | AppLine::kShutdown)) != 0;
  if (committed != tx.committed) {
    tx.committed = committed;
    stage_->submit(tx);
  }
  changed(tx);
}

void SessionServer::serve_listener(Worker& worker, std::uint32_t number) {
  ListenerLine& line = worker.segment.listener(number);
  line.commanded.exchange(0);
  const std::uint32_t request = line.request.load(std::memory_order_acquire);
  const std::uint32_t port = line.port.load(std::memory_order_relaxed);
  const std::uint32_t backlog = line.backlog.load(std::memory_order_relaxed);
  std::uint32_t error = 0;
  if (port == 0 || port > 0xFFFF) {
    error = EINVAL;
  } else if (backlog == 0) {
    unlisten(worker, static_cast<std::uint16_t>(port));
  } else {
    error = listen(worker, static_cast<std::uint16_t>(port), backlog);
  }
  line.error.store(error, std::memory_order_relaxed);
  line.answered.store(request, std::memory_order_release);
  worker.push(worker.segment.shape().sessions + number);
}

std::uint32_t SessionServer::listen(Worker& worker, std::uint16_t port, std::uint32_t backlog) {
  auto listener = std::ranges::find(listeners_, port, &Listener::port);
  const bool is_new = listener == listeners_.end();
  if (!is_new && std::ranges::find(listener->workers, &worker) != listener->workers.end()) {
    return EADDRINUSE;
  }
  if (worker.ports == SharedSegment::kListeners) {
    return ENOSPC;  // it may write any number of requests to one line
  }
  if (is_new) {
    const auto most = static_cast<std::uint16_t>(std::min(backlog, kMaxBacklog));
    if (Status const& status = tcp_->listen(port, most); !status.ok()) {
      return ENOMEM;
    }
    listener = listeners_.insert(listeners_.end(), {.port = port, .workers = {}});
  }
  ++worker.ports;
  listener->workers.push_back(&worker);
  return 0;
}

void SessionServer::unlisten(Worker& worker, std::uint16_t port) {
  const auto listener = std::ranges::find(listeners_, port, &Listener::port);
  if (listener == listeners_.end() || std::erase(listener->workers, &worker) == 0) {
    return;
  }
  --worker.ports;
  if (!listener->workers.empty()) {
    return;
  }
  tcp_->stop_listening(port);
  listeners_.erase(listener);
}

bool SessionServer::serve(Worker& worker) {
  bool has_worked = false;
  // a ring holds each number once at most, so one round of it is bounded
  for (std::uint32_t left = worker.segment.commands().shape().depth; left > 0 && worker.commands.has_messages();
       --left) {
    const auto command = worker.commands.poll();
    if (!command.ok() || !command->has_value() || (*command)->size() != 1) {
      ++counters_.violations;
      spdlog::warn("an application writes wrong numbers to its command ring: its connections are reset");
      detach(worker);
      return true;
    }
    const std::uint32_t number = (**command)[0];
    worker.commands.take();
    has_worked = true;
    const std::uint32_t sessions = worker.segment.shape().sessions;
    if (number < sessions) {
      serve_session(worker, worker.sessions[number]);
    } else if (number - sessions < SharedSegment::kListeners) {
      serve_listener(worker, number - sessions);
    } else {
      ++counters_.violations;
      detach(worker);
      return true;
    }
  }
  return has_worked;
}

bool SessionServer::poll(std::chrono::steady_clock::time_point now) {
  bool has_worked = false;
  for (auto const& worker : workers_) {
    if (!worker->is_gone) {
      has_worked |= serve(*worker);
    }
  }
  has_worked |= stage_->poll(now, [this](TxSession& tx) { changed(tx); });
  for (std::size_t i = 0; i < changed_.size(); ++i) {
    if (Session* const session = by_connection_[changed_[i]]; session != nullptr) {
      finish(*session);
    }
  }
  changed_.clear();
  if (now >= next_look_) {
    next_look_ = now + kLookEvery;
    has_worked |= detach_gone();
  }
  for (auto const& worker : workers_) {
    worker->wake();
  }
  return has_worked;
}

void SessionServer::arm(std::vector<pollfd>& sockets) {
  for (auto const& worker : workers_) {
    if (!worker->is_gone) {
      static_cast<void>(worker->commands.poll());  // an empty ring is armed by the look
      sockets.push_back({.fd = worker->application.socket.get(), .events = POLLIN, .revents = 0});
    }
  }
}

/// Sessions that the application has closed end by themselves. Those that it did not accept go to others that listen;
/// the rest are reset.
void SessionServer::detach(Worker& worker) {
  if (std::exchange(worker.is_gone, true)) {
    return;
  }
  ++counters_.detached;
  ::shutdown(worker.application.socket.get(), SHUT_RDWR);  // it may live on, and must notice
  std::vector<std::uint16_t> ports;
  for (Listener const& listener : listeners_) {
    ports.push_back(listener.port);
  }
  for (const std::uint16_t port : ports) {
    unlisten(worker, port);
  }
  for (Session& session : worker.sessions) {
    const bool is_accepted = (worker.segment.app_line(session.slot).wishes.load() & AppLine::kAccepted) != 0;
    if (session.state == Session::State::kOpen && !is_accepted && !session.is_used) {
      return_connection(session);
    } else if (session.state == Session::State::kOpen) {
      tcp_->reset(session.connection);
      reset(session.connection);
    } else if (session.state == Session::State::kLost) {
      worker.free(session);
    }
  }
}

bool SessionServer::detach_gone() {
  bool has_worked = false;
  for (auto const& worker : workers_) {
    if (worker->is_gone) {
      continue;
    }
    // an application may have sent descriptors, its own end among them, which is not closed while they are unread
    const int socket = worker->application.socket.get();
    ipc::clear_wake_ups(socket);
    has_worked |= worker->commands.has_messages();  // whose wake-up was cleared
    if (ipc::is_other_end_closed(socket)) {
      serve(*worker);  // it may have closed connections, and ended since
      detach(*worker);
    }
  }
  const auto erase_ended = [this] {
    return std::erase_if(workers_, [](auto const& worker) {
      return worker->is_gone && worker->free_slots.size() == worker->sessions.size();
    });
  };
  auto erased = erase_ended();
  for (auto ending = workers_.size() - applications(); ending > kMostEnding; --ending) {
    give_up(**std::ranges::find_if(workers_, [](auto const& worker) { return worker->is_gone; }));
    erased += erase_ended();
  }
  return has_worked || erased > 0;
}

}  // namespace catena::stack
