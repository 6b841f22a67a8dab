// SPDX-License-Identifier: Apache-2.0
#include "bench/havs/stack_run.hpp"

#include <catena/session.h>
#include <sys/socket.h>
#include <x86intrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "base/ipc/frames.hpp"
#include "base/ipc/socket_pair.hpp"
#include "bench/havs/free_peers.hpp"
#include "stack/process/stack_loop.hpp"
#include "stack/segment/attachment.hpp"

namespace catena::bench {
namespace {

using Clock = std::chrono::steady_clock;
using stack::Attachment;
using stack::StackReport;

/// Words that count up: more of them than caches hold, so that bodies of distinct addresses are sent.
std::vector<std::uint64_t> const& source() {
  static const std::vector<std::uint64_t> kWords = [] {
    std::vector<std::uint64_t> made(std::size_t{64} * 1024 * 1024 / sizeof(std::uint64_t));
    for (std::size_t i = 0; i < made.size(); ++i) {
      made[i] = i;
    }
    return made;
  }();
  return kWords;
}

/// Answers each request with a body of the source.
class Server {
 public:
  Server(std::unique_ptr<Attachment> attachment, std::uint32_t body_bytes)
      : attachment_(std::move(attachment)), body_bytes_(body_bytes) {}

  Status listen() {
    const int error = attachment_->listen(FreePeers::kServerPort, 255);
    return error == 0 ? absl::OkStatus() : absl::UnavailableError(std::strerror(-error));
  }
  void run(std::atomic<bool> const& stop) {
    std::array<catena_event, 64> events{};
    while (!stop) {
      const int count = attachment_->events(events);
      for (catena_event const& event : std::span(events).first(static_cast<std::size_t>(std::max(count, 0)))) {
        for (catena_session session = 0; (event.events & CATENA_ACCEPTABLE) != 0U;) {
          if (attachment_->accept(FreePeers::kServerPort, session) != 0) {
            break;
          }
          serve(session);
        }
        if (event.session != 0) {
          serve(event.session);
        }
      }
      // the server has a core of its own, and is no part of what is measured
      constexpr int kSpins = 2000;
      for (int spin = 0; !attachment_->has_events() && spin < kSpins; ++spin) {
        _mm_pause();
      }
      if (!attachment_->has_events()) {
        constexpr int kLookMs = 50;
        attachment_->wait(kLookMs);
      }
    }
  }

 private:
  struct Body {
    std::uint64_t from = 0;  ///< byte of the source
    std::uint32_t left = 0;
  };
  void serve(catena_session number) {
    Attachment::Session* const session = attachment_->find(number);
    if (session == nullptr) {
      return;
    }
    if (session->slot >= bodies_.size()) {
      bodies_.resize(session->slot + 1);
    }
    Body& body = bodies_[session->slot];
    while (body.left > 0 || attachment_->readable(*session) >= FreePeers::kRequestBytes) {
      if (body.left == 0) {
        attachment_->consume(*session, FreePeers::kRequestBytes);
        const std::size_t bytes = source().size() * sizeof(std::uint64_t);
        if (next_ + body_bytes_ > bytes) {
          next_ = 0;
        }
        body = {.from = next_, .left = body_bytes_};
        next_ += body_bytes_;
      }
      const std::span<std::byte> space = attachment_->reserve(*session);
      if (space.empty()) {
        return;
      }
      const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(space.size(), body.left));
      std::memcpy(space.data(), reinterpret_cast<const std::byte*>(source().data()) + body.from, count);
      body.from += count;
      body.left -= count;
      attachment_->commit(*session, count);
    }
  }

  std::unique_ptr<Attachment> attachment_;
  std::uint32_t body_bytes_;
  std::vector<Body> bodies_;
  std::uint64_t next_ = 0;
};

/// Attaches a server of this process.
Result<std::unique_ptr<Attachment>> attach(int control, stack::SegmentShape const& shape) {
  CATENA_ASSIGN_OR_RETURN(auto ends, ipc::make_socket_pair());
  CATENA_RETURN_IF_ERROR(stack::send_application(control, shape, ends.first.get(), 0));
  std::unique_ptr<Attachment> attachment;
  if (const int error = Attachment::attach(std::move(ends.second), attachment); error != 0) {
    return absl::UnavailableError(std::strerror(-error));
  }
  return attachment;
}

/// The next report of the stack.
Result<StackReport> next_report(int control) {
  CATENA_ASSIGN_OR_RETURN(const ipc::Frame frame, ipc::receive_frame(control, stack::kMaxStackFrame));
  StackReport report{};
  if (frame.body.size() == sizeof report) {
    std::memcpy(&report, frame.body.data(), sizeof report);
  }
  return report;
}

}  // namespace

Result<StackResult> run_stack(StackRun run) {
  stack::StackSettings settings;
  settings.tcp = FreePeers::tcp_options();
  settings.tcp.cuts_segments = run.cuts_segments;
  settings.tx = run.tx;
  settings.shape.sessions = std::bit_ceil(run.connections);
  static_cast<void>(source());
  CATENA_ASSIGN_OR_RETURN(auto control, ipc::make_socket_pair());
  auto made = std::make_unique<FreePeers>(run.connections, run.body_bytes);
  FreePeers& peers = *made;
  std::vector<std::unique_ptr<hostcopy::Engine>> engines;
  if (run.engine != nullptr) {
    engines.push_back(std::move(run.engine));
  }
  CATENA_ASSIGN_OR_RETURN(const auto loop, stack::StackLoop::create(settings, std::move(made), std::move(engines),
                                                                    std::move(control.second)));
  std::atomic<bool> stop = false;
  Result<StackResult> result = StackResult{};
  std::jthread serve;
  std::thread measure([&] {
    Result<std::unique_ptr<Attachment>> attachment = attach(control.first.get(), settings.shape);
    std::optional<Server> server;
    Status status = attachment.status();
    if (status.ok()) {
      server.emplace(*std::move(attachment), run.body_bytes);
      status = server->listen();
    }
    if (status.ok()) {
      serve = std::jthread([&] { server->run(stop); });
      peers.start();
      const auto at = [&](double seconds) {
        std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
        for (std::byte byte{}; ::recv(control.first.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;) {
          result->end = *next_report(control.first.get());
        }
        return std::pair(*next_report(control.first.get()), Clock::now());
      };
      const auto [begin, begun] = at(run.warm_up_seconds);
      const std::uint64_t responses = peers.responses();
      const std::uint64_t cycles = __rdtsc();
      const auto [end, ended] = at(run.seconds - run.warm_up_seconds);
      result->begin = begin;
      result->end = end;
      result->responses = peers.responses() - responses;
      result->seconds = std::chrono::duration<double>(ended - begun).count();
      result->cycles_per_second = static_cast<double>(__rdtsc() - cycles) / result->seconds;
    } else {
      result = status;
    }
    stop = true;
    serve = {};
    ::shutdown(control.first.get(), SHUT_RDWR);
  });
  loop->run();
  measure.join();
  if (result.ok()) {
    result->compared = peers.compared();
    result->wrong = peers.wrong();
    std::vector<std::uint64_t> waits = peers.waits();
    if (!waits.empty()) {
      std::ranges::nth_element(waits, waits.begin() + static_cast<std::ptrdiff_t>(waits.size() / 2));
      result->median_wait_s = static_cast<double>(waits[waits.size() / 2]) / result->cycles_per_second;
    }
  }
  return result;
}

}  // namespace catena::bench
