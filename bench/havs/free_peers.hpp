// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "base/core/file_descriptor.hpp"
#include "stack/port/port.hpp"

namespace catena::bench {

/// Clients of a server on a stack, without a wire: they ask for a body, acknowledge each frame, and ask again. They
/// touch headers alone, so the stack's thread shows the stack's cost; their own cost is in its part `port`.
/// Belongs to the stack's thread, but for the counters.
class FreePeers final : public stack::Port {
 public:
  static constexpr std::uint16_t kServerPort = 80;
  static constexpr std::size_t kRequestBytes = 64;

  /// The address of the stack is server_address(). `body_bytes`: a multiple of 8; its words count up.
  FreePeers(std::uint32_t connections, std::uint32_t body_bytes);

  static stack::TcpOptions tcp_options();
  /// Lets the clients connect: the server listens. Any thread.
  void start() { is_started_ = true; }
  bool send(stack::OutgoingFrame const& frame) override;
  std::optional<std::span<const std::byte>> receive() override;
  int descriptor() const override { return event_.get(); }

  std::uint64_t responses() const { return responses_; }
  /// Compared words of bodies, and wrong ones.
  std::uint64_t compared() const { return compared_; }
  std::uint64_t wrong() const { return wrong_; }
  /// Cycles from each request to the last byte of its answer, the last 64 Ki of them.
  std::vector<std::uint64_t> const& waits() const { return waits_; }

 private:
  enum class Kind : std::uint8_t { kSyn, kAck, kRequest, kArp };
  struct Connection {
    std::uint32_t sent = 0;        ///< sequence number of the next byte to the server
    std::uint32_t received = 0;    ///< the next byte from it
    std::uint32_t of_body = 0;     ///< bytes of the body that arrived
    std::uint64_t first_word = 0;  ///< of the body
    std::uint64_t asked_at = 0;    ///< cycles
  };
  struct Next {
    Kind kind;
    std::uint32_t connection;
  };

  void take_data(std::uint32_t number, stack::OutgoingFrame const& frame, std::size_t header_bytes);
  std::span<const std::byte> make_frame(Next const& next);

  FileDescriptor event_;  ///< never readable: each frame answers one of the stack
  std::atomic<bool> is_started_ = false;
  std::uint32_t body_bytes_;
  std::vector<Connection> connections_;
  std::deque<Next> queue_;
  std::array<std::byte, 256> frame_{};
  std::uint64_t responses_ = 0;
  std::uint64_t compared_ = 0;
  std::uint64_t wrong_ = 0;
  std::vector<std::uint64_t> waits_;
};

}  // namespace catena::bench
