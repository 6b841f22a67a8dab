// SPDX-License-Identifier: Apache-2.0
// Two applications of the TCP stack that write any numbers into their shared memory between polls of the stack: rings,
// lines of sessions and listeners, FIFOs, and bytes and descriptors to their sockets. An honest application beside them
// sends a stream, which arrives whole. At the end all connections are over and all buffers are back.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include <poll.h>
#include <sys/socket.h>

#include "base/hostcopy/testing/faulty_engine.hpp"
#include "base/ipc/frames.hpp"
#include "script.hpp"
#include "stack/session/testing/local_stack.hpp"

namespace {

using namespace catena::stack;
using catena::fuzz::Script;
using catena::hostcopy::AcceleratorPool;
using catena::hostcopy::testing::FaultyEngine;
using catena::hostcopy::testing::FaultyEngineScript;
using testing::FakeTcp;
using testing::LocalStack;

constexpr SegmentShape kShape{.sessions = 8, .rx_bytes = 4096, .tx_bytes = 16 * 1024};
constexpr std::uint16_t kHonestPort = LocalStack::kPort;
constexpr std::size_t kHonestPeer = 0;  ///< its connection is the first one

void require(bool condition) {
  if (!condition) {
    __builtin_trap();
  }
}

std::byte byte_of(std::uint32_t at) { return static_cast<std::byte>(at * 7 + (at >> 9U)); }

/// An application that knows its shared memory alone.
class Application {
 public:
  explicit Application(LocalStack& stack) : attachment_(stack.attach()), memory_(stack.last_segment()) {}

  SharedSegment const& segment() const { return attachment_->segment(); }
  int socket() const { return attachment_->descriptor(); }
  /// The stack's view of the memory.
  std::span<std::byte> memory() const { return memory_; }
  void command(std::uint32_t number) const {
    catena::ipc::RingHead& head = segment().commands_head();
    segment().commands().first(head.pushed)[0] = number;
    segment().commands().entries(head.pushed) = 1;
    ++head.pushed;
  }
  void listen(std::uint32_t line, std::uint32_t port, std::uint32_t backlog) const {
    ListenerLine& request = segment().listener(line);
    request.port = port;
    request.backlog = backlog;
    ++request.request;
    command(kShape.sessions + line);
  }

 private:
  std::unique_ptr<Attachment> attachment_;
  std::span<std::byte> memory_;
};

/// The honest application, with one connection.
class Sender {
 public:
  explicit Sender(LocalStack& stack) : application_(stack) {
    application_.listen(0, kHonestPort, 1);
    stack.poll();
    require(stack.tcp.connect(kHonestPort));
    while (application_.segment().stack_line(slot_).generation == 0) {
      ++slot_;
    }
    line().wishes = AppLine::kAccepted;
  }
  /// Sends up to 500 bytes.
  void send() {
    const std::uint32_t freed = application_.segment().stack_line(slot_).freed;
    const std::uint32_t count = std::min(500U, kShape.tx_bytes - (sent_ - freed));
    const std::span<std::byte> fifo = application_.segment().tx(slot_);
    for (std::uint32_t i = 0; i < count; ++i) {
      fifo[sent_ % fifo.size()] = byte_of(sent_);
      ++sent_;
    }
    line().committed = sent_;
    application_.command(slot_);
  }
  void close() {
    line().wishes = AppLine::kAccepted | AppLine::kClose;
    application_.command(slot_);
  }
  std::uint32_t sent() const { return sent_; }
  std::span<std::byte> memory() const { return application_.memory(); }

 private:
  AppLine& line() const { return application_.segment().app_line(slot_); }

  Application application_;
  std::uint32_t slot_ = 0;
  std::uint32_t sent_ = 0;
};

std::vector<AcceleratorPool::Member> members_of(std::span<FaultyEngineScript> scripts) {
  std::vector<AcceleratorPool::Member> members;
  for (FaultyEngineScript& script : scripts) {
    members.push_back({.engine = std::make_unique<FaultyEngine>(script), .node = -1});
  }
  return members;
}

class Run {
 public:
  explicit Run(Script& script)
      : mode_(static_cast<CopyMode>(script.number(1) % 5)),
        stack_({.mode = mode_, .threshold = 1024}, kShape, members_of(engines_), 1,
               {.patience = std::chrono::seconds(10)}),
        sender_(stack_) {
    const std::uint32_t faults = script.number(1);
    for (FaultyEngineScript& engine : engines_) {
      engine.with_illegal = static_cast<FaultyEngineScript::Illegal>(faults % 3);
    }
    has_illegal_ = faults % 2 == 1;
    segments_.push_back(sender_.memory());
    for (auto& application : hostile_) {
      attach(application);
    }
    poll(0);
  }

  void step(Script& script) {
    auto& hostile = hostile_[script.number(1) % hostile_.size()];
    const SharedSegment& segment = hostile->segment();
    const std::uint32_t slot = script.number(1) % kShape.sessions;
    switch (script.number(1) % 16) {
      case 0: {  // a word of anything but the FIFOs
        auto* const control = reinterpret_cast<std::byte*>(&segment.events_head());
        const auto words = static_cast<std::uint32_t>(segment.rx(0).data() - control) / 4;
        const std::uint32_t word = script.number(4);
        std::memcpy(control + std::size_t{4} * (script.number(2) % words), &word, sizeof word);
        break;
      }
      case 1:
        segment.app_line(slot).committed += script.number(2);
        hostile->command(slot);
        break;
      case 2:
        segment.app_line(slot).consumed += script.number(2);
        hostile->command(slot);
        break;
      case 3:
        segment.app_line(slot).wishes = script.number(1);
        hostile->command(slot);
        break;
      case 4:
        segment.app_line(slot).wants_space = script.number(1);
        segment.stack_line(slot).notified = script.number(1);
        break;
      case 5:
        hostile->listen(script.number(1) % SharedSegment::kListeners, kHonestPort + script.number(1) % 4,
                        script.number(1) % 4);
        break;
      case 6:
        hostile->listen(script.number(1), script.number(4), script.number(4));
        break;
      case 7:
        hostile->command(script.number(4));
        break;
      case 8:
        segment.commands_head().pushed += script.number(1);
        break;
      case 9:
        std::memset(segment.tx(slot).data(), static_cast<int>(script.number(1)), kShape.tx_bytes);
        break;
      case 10:
        talk(hostile->socket(), script.number(1));
        break;
      case 11:
        if (segments_.size() < kMaxSegments) {
          attach(hostile);
        }
        break;
      case 12: {
        std::vector<pollfd> sockets;
        stack_.server.arm(sockets);
        break;
      }
      case 13:
        step_peer(script);
        break;
      default:
        sender_.send();
        poll(script.number(1));
        break;
    }
  }

  /// The hostile applications end, and the honest one closes its connection.
  void end() {
    for (auto& application : hostile_) {
      application.reset();
    }
    sender_.close();
    constexpr int kRounds = 10'000;
    for (int round = 0; round < kRounds && !is_over(); ++round) {
      poll(kLookEvery);
      for (std::size_t peer = 0; peer < stack_.tcp.all().size(); ++peer) {
        acknowledge(peer, kShape.tx_bytes);
      }
    }
    require(is_over());
    require(stack_.tcp.faults == 0);
    FakeTcp::Connection const& honest = stack_.tcp.all()[kHonestPeer];
    require(!honest.is_reset && honest.arrived.size() == sender_.sent());
    for (std::uint32_t at = 0; at < sender_.sent(); ++at) {
      require(honest.arrived[at] == byte_of(at));
    }
  }

 private:
  static constexpr std::size_t kMaxSegments = 100;  ///< each takes descriptors
  static constexpr std::uint32_t kLookEvery = 30;   ///< milliseconds in which the stack notices ended applications

  bool is_over() const {
    return stack_.tcp.connections() == 0 && stack_.buffers_in_use() == 0 && stack_.server.applications() == 1;
  }
  void attach(std::unique_ptr<Application>& application) {
    application = std::make_unique<Application>(stack_);
    segments_.push_back(application->memory());
    if (has_illegal_) {
      engines_[0].illegal_memory = engines_[1].illegal_memory = engines_[2].illegal_memory = application->memory();
    }
    application->listen(0, kHonestPort + 1, 4);
  }
  void poll(std::uint32_t milliseconds) {
    now_ += std::chrono::milliseconds(milliseconds);
    stack_.poll(now_);
    acknowledge(kHonestPeer, kShape.tx_bytes);
  }
  /// A peer of the hostile applications.
  void step_peer(Script& script) {
    const std::uint32_t what = script.number(1);
    if (what % 4 == 0) {
      stack_.tcp.connect(static_cast<std::uint16_t>(kHonestPort + 1 + what / 4 % 3));
      closed_.resize(stack_.tcp.all().size());
      return;
    }
    const std::size_t peer = 1 + script.number(1);
    if (peer >= closed_.size() || stack_.tcp.all()[peer].is_over) {
      return;
    }
    if (what % 4 == 1) {
      acknowledge(peer, script.number(2));
    } else if (what == 255) {
      stack_.tcp.reset_as_peer(peer);
    } else if (!closed_[peer] && what % 4 == 2) {
      static_cast<void>(stack_.tcp.send(peer, std::vector<std::byte>(1 + script.number(2) % (2 * kShape.rx_bytes))));
    } else if (!closed_[peer]) {
      closed_[peer] = true;
      stack_.tcp.close_as_peer(peer);
    }
  }
  void acknowledge(std::size_t peer, std::size_t bytes) {
    FakeTcp::Connection& connection = stack_.tcp.all()[peer];
    if (connection.is_over) {
      return;
    }
    for (std::span<const std::byte> const& piece : connection.unacknowledged) {
      require(mode_ != CopyMode::kReference || is_in_segment(piece));
    }
    stack_.tcp.acknowledge(peer, bytes);
  }
  bool is_in_segment(std::span<const std::byte> piece) const {
    return std::ranges::any_of(segments_, [piece](std::span<std::byte> segment) {
      return piece.data() >= segment.data() && piece.data() + piece.size() <= segment.data() + segment.size();
    });
  }
  static void talk(int socket, std::uint32_t what) {
    const std::array<char, 200> bytes{};
    if (what % 8 == 0) {
      static_cast<void>(catena::ipc::send_frame(socket, what, {}, socket, std::chrono::milliseconds(1)));
    } else if (what == 255) {
      ::shutdown(socket, SHUT_WR);
    } else {
      static_cast<void>(::send(socket, bytes.data(), what % bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
    }
  }

  CopyMode mode_;
  std::array<FaultyEngineScript, 3> engines_;
  bool has_illegal_ = false;
  LocalStack stack_;
  Sender sender_;
  std::array<std::unique_ptr<Application>, 2> hostile_;
  std::vector<std::span<std::byte>> segments_;  ///< of all applications, the ended ones, too
  std::vector<bool> closed_;                    ///< by peer: it sends no more
  std::chrono::steady_clock::time_point now_ = std::chrono::steady_clock::now();
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spdlog::set_level(spdlog::level::off);
  Script script({data, size});
  Run run(script);
  while (!script.is_done()) {
    run.step(script);
  }
  run.end();
  return 0;
}
