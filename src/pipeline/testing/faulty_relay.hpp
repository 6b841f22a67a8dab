// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace catena::runtime::testing {

using Datagram = std::vector<std::uint8_t>;

inline sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/// A UDP socket of 127.0.0.1 and its port.
inline FileDescriptor udp_socket(std::uint16_t& port) {
  FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in own = loopback(port);
  socklen_t size = sizeof own;
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&own), size) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) {
    return {};
  }
  port = ntohs(own.sin_port);
  return socket;
}

/// A port unused at the moment.
inline std::uint16_t free_udp_port() {
  std::uint16_t port = 0;
  udp_socket(port);
  return port;
}

/// Relay between a requester and a server on 127.0.0.1. It loses, repeats and delays datagrams of both, each a given
/// number per thousand. A delayed datagram follows the next one.
class FaultyRelay {
 public:
  FaultyRelay(std::uint16_t server, std::uint32_t faults_of_1000) : server_(server), faults_(faults_of_1000) {
    socket_ = udp_socket(port_);
    thread_ = std::thread([this] { relay(); });
  }
  ~FaultyRelay() {
    is_ending_ = true;
    thread_.join();
  }
  FaultyRelay(FaultyRelay const&) = delete;
  FaultyRelay& operator=(FaultyRelay const&) = delete;

  std::uint16_t port() const { return port_; }
  /// Blocks both directions from now on, or passes everything again.
  void cut(bool is_cut) { is_cut_ = is_cut; }
  std::uint64_t lost() const { return lost_; }
  std::uint64_t repeated() const { return repeated_; }
  std::uint64_t delayed() const { return delayed_; }
  /// Datagrams from the server.
  std::vector<Datagram> answers() const {
    const std::lock_guard lock(mutex_);
    return answers_;
  }
  void send_to_client(Datagram const& datagram) const {
    const std::lock_guard lock(mutex_);
    send(datagram, client_);
  }

 private:
  void relay() {
    Datagram late;
    sockaddr_in late_to{};
    while (!is_ending_) {
      pollfd watched{socket_.get(), POLLIN, 0};
      if (::poll(&watched, 1, 5) <= 0) {
        continue;
      }
      Datagram datagram(256);
      sockaddr_in from{};
      socklen_t size = sizeof from;
      const ssize_t bytes = ::recvfrom(socket_.get(), datagram.data(), datagram.size(), MSG_DONTWAIT,
                                       reinterpret_cast<sockaddr*>(&from), &size);
      if (bytes < 0) {
        continue;
      }
      datagram.resize(static_cast<std::size_t>(bytes));
      const bool is_answer = ntohs(from.sin_port) == server_;
      const std::lock_guard lock(mutex_);
      if (is_answer) {
        answers_.push_back(datagram);
      } else {
        client_ = from;
      }
      const sockaddr_in to = is_answer ? client_ : loopback(server_);
      const auto luck = static_cast<std::uint32_t>(random_() % 1000);
      if (is_cut_ || luck < faults_) {
        ++lost_;
      } else if (luck < 2 * faults_) {
        ++repeated_;
        send(datagram, to);
        send(datagram, to);
      } else if (luck < 3 * faults_ && late.empty()) {
        ++delayed_;
        late = std::move(datagram);
        late_to = to;
        continue;
      } else {
        send(datagram, to);
      }
      if (!late.empty()) {
        send(std::exchange(late, {}), late_to);
      }
    }
  }
  void send(Datagram const& datagram, sockaddr_in const& to) const {
    ::sendto(socket_.get(), datagram.data(), datagram.size(), 0, reinterpret_cast<sockaddr const*>(&to), sizeof to);
  }

  std::uint16_t server_;
  std::uint32_t faults_;
  std::uint16_t port_ = 0;
  FileDescriptor socket_;
  std::mt19937 random_{1};
  mutable std::mutex mutex_;
  sockaddr_in client_{};
  std::vector<Datagram> answers_;
  std::atomic<bool> is_cut_{false};
  std::atomic<std::uint64_t> lost_{0};
  std::atomic<std::uint64_t> repeated_{0};
  std::atomic<std::uint64_t> delayed_{0};
  std::atomic<bool> is_ending_{false};
  std::thread thread_;
};

}  // namespace catena::runtime::testing
