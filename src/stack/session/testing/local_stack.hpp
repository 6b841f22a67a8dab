// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/hostcopy/accelerator.hpp"
#include "base/hostcopy/accelerator_pool.hpp"
#include "base/ipc/mapping.hpp"
#include "base/ipc/socket_pair.hpp"
#include "stack/segment/attachment.hpp"
#include "stack/session/session_server.hpp"
#include "stack/session/testing/fake_tcp.hpp"

namespace catena::stack::testing {

/// A stack without a process: its parts, and applications in this one.
class LocalStack {
 public:
  static constexpr std::uint16_t kPort = 80;

  /// `shape`: of each application's segment. `accelerator`: by default it compares all copies, and does not wait long.
  LocalStack(TxOptions const& options, SegmentShape const& shape,
             std::vector<hostcopy::AcceleratorPool::Member> engines, std::uint32_t seed,
             hostcopy::AcceleratorOptions const& accelerator = {.patience = std::chrono::milliseconds(2),
                                                                .verify_every = 1})
      : tcp(server, seed),
        shape_(shape),
        buffers_(*TxBuffers::create(std::size_t{4} << 20U)),
        pool_(std::move(engines), {.jobs = 16, .moves = 1}),
        accelerator_(pool_, accelerator),
        stage_(std::make_unique<TxStage>(options, tcp, accelerator_, buffers_, clock_)) {
    buffers_reach_ = *pool_.register_memory(buffers_.memory(), nullptr);
    server.start(tcp, *stage_);
  }
  ~LocalStack() { server.stop(); }

  std::unique_ptr<Attachment> attach() {
    auto ends = *ipc::make_socket_pair();
    auto memory = *ipc::Mapping::create("sessions", SharedSegment::bytes(shape_));
    auto again = *ipc::Mapping::map(FileDescriptor(::dup(memory.fd())), SharedSegment::bytes(shape_));
    const auto segment = std::make_shared<ipc::Mapping>(std::move(memory));
    last_segment_ = segment->bytes();
    server.attach({.memory = segment,
                   .shape = shape_,
                   .socket = std::move(ends.first),
                   .reach = pool_.register_memory(segment->bytes(), segment).value_or(nullptr)});
    return std::make_unique<Attachment>(std::move(again), shape_, std::move(ends.second));
  }
  /// The call waits for the stack, so that must run meanwhile.
  int listen(Attachment& application, std::uint16_t port = kPort) {
    return meanwhile([&] { return application.listen(port, 5); });
  }
  int unlisten(Attachment& application, std::uint16_t port = kPort) {
    return meanwhile([&] { return application.unlisten(port); });
  }
  void poll(std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now()) { server.poll(now); }
  /// The stack's view of the last attached application's segment.
  std::span<std::byte> last_segment() const { return last_segment_; }
  std::uint32_t buffers_in_use() const { return buffers_.in_use(); }
  TxCounters const& counters() const { return stage_->counters(); }
  hostcopy::Accelerator const& accelerator() const { return accelerator_; }

  SessionServer server;
  FakeTcp tcp;

 private:
  template <typename Call>
  int meanwhile(Call const& call) {
    std::atomic<bool> is_over = false;
    int answer = 0;
    std::thread asks([&] {
      answer = call();
      is_over = true;
    });
    while (!is_over) {
      poll();
    }
    asks.join();
    return answer;
  }

  SegmentShape shape_;
  std::span<std::byte> last_segment_;
  TxBuffers buffers_;
  hostcopy::AcceleratorPool pool_;
  hostcopy::AcceleratorPool::Reach buffers_reach_;
  hostcopy::Accelerator accelerator_;
  PartClock clock_;
  std::unique_ptr<TxStage> stage_;
};

}  // namespace catena::stack::testing
