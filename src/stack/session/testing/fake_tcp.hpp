// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <span>
#include <vector>

#include "stack/tcp/tcp.hpp"

namespace catena::stack::testing {

/// A TCP without frames, and the peers of its connections. Written bytes are read when the peer acknowledges them: a
/// buffer that was used again too early shows wrong bytes.
class FakeTcp final : public Tcp {
 public:
  struct Connection {
    std::deque<std::span<const std::byte>> unacknowledged;
    std::vector<std::byte> arrived;  ///< at the peer
    std::size_t written = 0;         ///< and not acknowledged
    std::size_t credited = 0;        ///< received bytes that the application has consumed
    bool has_fin = false;            ///< the peer got it, after all bytes
    bool is_reset = false;           ///< by the stack or by the peer
    bool is_over = false;            ///< closed or reset
  };

  FakeTcp(TcpEvents& events, std::uint32_t seed) : events_(&events), random_(seed) {}

  // ---- the peers
  /// A new connection to `port`; its number among all. False: it is refused.
  bool connect(std::uint16_t port) {
    const auto id = static_cast<ConnectionId>(free_.empty() ? by_id_.size() : free_.back());
    if (free_.empty()) {
      by_id_.push_back(0);
    } else {
      free_.pop_back();
    }
    by_id_[id] = connections_.size();
    connections_.emplace_back();
    if (!events_->accepted(id, {packet::Address::of_v4(1), port}, {packet::Address::of_v4(2), 1000})) {
      connections_.back().is_over = true;
      free_.push_back(id);
      return false;
    }
    return true;
  }
  /// Sends bytes to the stack. False: it has no room.
  bool send(std::size_t connection, std::span<const std::byte> bytes) {
    return events_->received(id_of(connection), bytes);
  }
  void close_as_peer(std::size_t connection) { events_->peer_closed(id_of(connection)); }
  void reset_as_peer(std::size_t connection) {
    const ConnectionId id = id_of(connection);
    connections_[connection].is_reset = true;
    end(id);
    events_->reset(id);
  }
  /// The peer gets up to `bytes`.
  void acknowledge(std::size_t connection, std::size_t bytes) {
    Connection& at = connections_[connection];
    std::size_t done = 0;
    while (done < bytes && !at.unacknowledged.empty()) {
      std::span<const std::byte>& oldest = at.unacknowledged.front();
      const std::size_t part = std::min(bytes - done, oldest.size());
      at.arrived.insert(at.arrived.end(), oldest.begin(), oldest.begin() + static_cast<std::ptrdiff_t>(part));
      oldest = oldest.subspan(part);
      done += part;
      if (oldest.empty()) {
        at.unacknowledged.pop_front();
      }
    }
    at.written -= done;
    if (done > 0) {
      events_->acknowledged(id_of(connection), done);
    }
  }
  std::vector<Connection>& all() { return connections_; }

  // ---- the stack's calls
  void input(std::span<const std::byte> /*frame*/) override {}
  void tick(std::chrono::steady_clock::time_point /*now*/) override {}
  Status listen(std::uint16_t /*port*/, std::uint16_t /*backlog*/) override {
    ++listeners;
    return absl::OkStatus();
  }
  void stop_listening(std::uint16_t /*port*/) override { --listeners; }
  std::size_t room(ConnectionId connection) const override { return kRoom - at(connection).written; }
  bool write(ConnectionId connection, std::span<const std::byte> bytes, bool /*more*/) override {
    Connection& to = at(connection);
    if (bytes.empty() || bytes.size() > kMaxWrite || bytes.size() > kRoom - to.written || to.has_fin) {
      ++faults;
      return false;
    }
    if (random_() % 16 == 0) {
      return false;  // no memory
    }
    to.unacknowledged.push_back(bytes);
    to.written += bytes.size();
    return true;
  }
  void consumed(ConnectionId connection, std::size_t bytes) override { at(connection).credited += bytes; }
  void close(ConnectionId connection) override {
    faults += at(connection).written == 0 ? 0 : 1;
    at(connection).has_fin = true;
    end(connection);
  }
  void close_sending(ConnectionId connection) override {
    faults += at(connection).has_fin ? 1 : 0;
    at(connection).has_fin = true;
  }
  void reset(ConnectionId connection) override {
    at(connection).is_reset = true;
    end(connection);
  }
  std::uint32_t connections() const override { return static_cast<std::uint32_t>(by_id_.size() - free_.size()); }

  TcpCounters counters() const override { return {}; }

  std::uint32_t faults = 0;  ///< calls against the interface
  int listeners = 0;

 private:
  static constexpr std::size_t kRoom = std::size_t{200} * 1024;

  Connection& at(ConnectionId id) { return connections_[by_id_[id]]; }
  Connection const& at(ConnectionId id) const { return connections_[by_id_[id]]; }
  ConnectionId id_of(std::size_t connection) const {
    return static_cast<ConnectionId>(std::find(by_id_.begin(), by_id_.end(), connection) - by_id_.begin());
  }
  void end(ConnectionId id) {
    at(id).is_over = true;
    at(id).unacknowledged.clear();
    at(id).written = 0;
    by_id_[id] = static_cast<std::size_t>(-1);
    free_.push_back(id);
  }

  TcpEvents* events_;
  std::mt19937 random_;
  std::vector<Connection> connections_;
  std::vector<std::size_t> by_id_;
  std::vector<ConnectionId> free_;
};

}  // namespace catena::stack::testing
