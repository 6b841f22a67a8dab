// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <poll.h>
#include <sys/types.h>

#include "base/core/file_descriptor.hpp"
#include "base/ipc/mapping.hpp"
#include "stack/segment/segment.hpp"
#include "stack/tcp/tcp.hpp"
#include "stack/tx/tx_stage.hpp"

namespace catena::stack {

struct SessionCounters {
  std::uint64_t accepted = 0;    ///< connections that an application got
  std::uint64_t refused = 0;     ///< connections without a listening application with space; reset
  std::uint64_t violations = 0;  ///< wrong numbers of an application: its session is reset, or all of them
  std::uint64_t failed = 0;      ///< sessions reset because engines did not make a copy
  std::uint64_t received_bytes = 0;
  std::uint64_t attached = 0;  ///< applications, since the start
  std::uint64_t detached = 0;
};

/// An application: its segment and its connection.
struct Application {
  std::shared_ptr<ipc::Mapping> memory;    ///< SharedSegment::bytes(shape) bytes, zeroed
  SegmentShape shape;                      ///< precondition: is_possible(shape)
  FileDescriptor socket;                   ///< each end wakes the other one by bytes, and its end is the application's
  hostcopy::AcceleratorPool::Reach reach;  ///< of the memory; null: the CPU makes its copies
  pid_t process = 0;                       ///< that attached; 0: not known
};

/// The stack's end of the sessions of all applications: deals connections to the listening applications in turn, moves
/// received bytes to them and their commands to TCP. Every number that an application writes is checked: a wrong one
/// costs its own session, a wrong ring all its sessions. Belongs to Tcp's thread.
class SessionServer final : public TcpEvents {
 public:
  /// Applications that have ended, and whose peers do not have all bytes yet. Above it the connections of the first one
  /// are reset: each has its segment until then.
  static constexpr std::uint32_t kMostEnding = 64;

  SessionServer();
  ~SessionServer() override;
  SessionServer(SessionServer const&) = delete;
  SessionServer& operator=(SessionServer const&) = delete;

  /// Before all else, once; both outlive all calls but the destructor.
  void start(Tcp& tcp, TxStage& stage);
  /// Resets all connections. Before Tcp ends.
  void stop();
  void attach(Application application);
  /// Serves commands and copies, ends sessions, and detaches dead applications. Whether there was anything to do.
  bool poll(std::chrono::steady_clock::time_point now);
  /// Asks all applications to wake the stack by their next command, and appends their sockets to `sockets`. Call poll()
  /// once more before a sleep.
  void arm(std::vector<pollfd>& sockets);
  /// Attached ones, of all processes and of one.
  std::uint32_t applications() const;
  std::uint32_t applications_of(pid_t process) const;
  SessionCounters const& counters() const { return counters_; }

  bool accepted(ConnectionId connection, Endpoint const& local, Endpoint const& peer) override;
  bool received(ConnectionId connection, std::span<const std::byte> bytes) override;
  void acknowledged(ConnectionId connection, std::size_t bytes) override;
  void peer_closed(ConnectionId connection) override;
  void reset(ConnectionId connection) override;

 private:
  struct Worker;
  struct Session;
  struct Listener {
    std::uint16_t port;
    std::vector<Worker*> workers;
    std::size_t next = 0;
  };

  Session* take_slot(std::uint16_t port);
  void place(Session& session, ConnectionId connection, SharedEndpoint const& local, SharedEndpoint const& peer);
  void return_connection(Session& session);
  bool serve(Worker& worker);
  void serve_session(Worker& worker, Session& session);
  void serve_listener(Worker& worker, std::uint32_t number);
  std::uint32_t listen(Worker& worker, std::uint16_t port, std::uint32_t backlog);
  void unlisten(Worker& worker, std::uint16_t port);
  void changed(TxSession& tx);
  void finish(Session& session);
  void give_up(Session& session);
  void detach(Worker& worker);
  void give_up(Worker& worker);
  bool detach_gone();

  Tcp* tcp_ = nullptr;
  TxStage* stage_ = nullptr;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Listener> listeners_;
  std::vector<Session*> by_connection_;
  std::vector<ConnectionId> changed_;  ///< to be looked at by finish(): TCP may not be closed within its events
  std::chrono::steady_clock::time_point next_look_;  ///< for applications that are gone
  SessionCounters counters_;
};

}  // namespace catena::stack
