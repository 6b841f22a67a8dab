// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "stack/tcp/tcp.hpp"

/// For tests.
namespace catena::stack {

/// Sends received bytes back, and closes after the peer.
class EchoServer final : public TcpEvents {
 public:
  void attach(Tcp& tcp) { tcp_ = &tcp; }
  bool accepted(ConnectionId connection, Endpoint const&, Endpoint const&) override {
    ++taken;
    sessions_[connection] = {};
    return true;
  }
  bool received(ConnectionId connection, std::span<const std::byte> bytes) override {
    Session& session = sessions_[connection];
    session.pieces.push_back({{bytes.begin(), bytes.end()}, 0});
    return true;
  }
  void acknowledged(ConnectionId connection, std::size_t bytes) override {
    Session& session = sessions_[connection];
    session.acknowledged += bytes;
    while (!session.pieces.empty() && session.acknowledged >= session.pieces.front().bytes.size() &&
           session.pieces.front().written == session.pieces.front().bytes.size()) {
      session.acknowledged -= session.pieces.front().bytes.size();
      tcp_->consumed(connection, session.pieces.front().bytes.size());
      session.pieces.pop_front();
    }
  }
  void peer_closed(ConnectionId connection) override { sessions_[connection].is_closing = true; }
  void reset(ConnectionId connection) override {
    ++lost;
    sessions_.erase(connection);
  }
  /// Writes bytes within room(), and closes connections at their end.
  void work() {
    std::vector<ConnectionId> ended;
    for (auto& [connection, session] : sessions_) {
      for (Piece& piece : session.pieces) {
        while (piece.written < piece.bytes.size()) {
          const std::size_t part =
              std::min({piece.bytes.size() - piece.written, tcp_->room(connection), Tcp::kMaxWrite});
          if (part == 0 || !tcp_->write(connection, std::span(piece.bytes).subspan(piece.written, part), false)) {
            break;
          }
          piece.written += part;
        }
        if (piece.written < piece.bytes.size()) {
          break;
        }
      }
      if (session.is_closing && session.pieces.empty()) {
        ended.push_back(connection);
      }
    }
    for (const ConnectionId connection : ended) {
      tcp_->close(connection);
      sessions_.erase(connection);
    }
  }
  /// One of its connections. Precondition: it has one.
  ConnectionId any() const { return sessions_.begin()->first; }
  /// The caller has ended the connection.
  void forget(ConnectionId connection) { sessions_.erase(connection); }
  std::atomic<std::uint32_t> taken = 0;
  std::atomic<std::uint32_t> lost = 0;

 private:
  struct Piece {
    std::vector<std::byte> bytes;
    std::size_t written;
  };
  struct Session {
    std::deque<Piece> pieces;
    std::size_t acknowledged = 0;  ///< beyond the removed pieces
    bool is_closing = false;
  };
  Tcp* tcp_ = nullptr;
  std::map<ConnectionId, Session> sessions_;
};

}  // namespace catena::stack
