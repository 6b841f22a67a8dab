// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nca/handles.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace catena::nca {

/// Memory aligned to 64 bytes.
class AlignedMemory {
 public:
  explicit AlignedMemory(std::size_t bytes);
  std::span<std::byte> bytes() const { return {memory_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t size_;
};

/// Configuration of a stream, with all defaults resolved.
struct StreamShape {
  std::uint32_t queues;  ///< buffers on the device at the same time
  std::uint32_t buffers;
  std::uint32_t buffer_packets;
  std::uint64_t buffer_bytes;
  std::uint32_t packet_bytes;
  std::uint32_t link;  ///< nca_link
  bool times;          ///< NCA_TIMES
};

/// One buffer. It passes through the states in order, and back to kFree.
struct Buffer {
  enum State { kFree, kOpen, kSubmitted, kRunning, kCollecting, kComplete, kRead };
  State state = kFree;
  std::uint64_t number = 0;  ///< valid once submitted
  // Calls still copying packets into it, and true if no call will be added: the last one to finish wakes the stream's
  // thread. Not guarded by the lock, which a call would otherwise take twice for them.
  std::atomic<std::uint32_t> writers{0};
  std::atomic<bool> is_closed{false};
  nca_status status = NCA_OK;
  std::unique_ptr<kernel::PackedLaunch> launch;  ///< on a device
  std::unique_ptr<AlignedMemory> memory;         ///< on the host
  std::unique_ptr<kernel::PackedPackets> own_packets;
  kernel::PackedPackets* packets = nullptr;
  std::vector<nca_packet> accepted;
  std::vector<std::uint64_t> tags;
  std::vector<FunctionResults> results;
  std::vector<nca_function_results> views;
  std::vector<const nca_function_results*> view_pointers;
  nca_times times{};
};

/// A FIFO of buffers. It allocates no memory after reserve(), so moving a buffer between queues cannot fail.
class BufferQueue {
 public:
  void reserve(std::size_t buffers) { buffers_.reserve(buffers); }
  bool empty() const { return buffers_.empty(); }
  std::size_t size() const { return buffers_.size(); }
  Buffer& front() const { return *buffers_.front(); }
  /// Precondition: it holds fewer buffers than reserved.
  void push(Buffer& buffer) noexcept { buffers_.push_back(&buffer); }
  Buffer& pop() noexcept {
    Buffer& first = *buffers_.front();
    buffers_.erase(buffers_.begin());
    return first;
  }

 private:
  std::vector<Buffer*> buffers_;
};

/// Sizes of a call's first packets, computed before the stream is locked for them.
struct Sizes {
  static constexpr std::size_t kPackets = 256;
  std::size_t packets = 0;                    ///< acceptable packets
  std::array<std::uint32_t, kPackets> ends;   ///< as for PackedPackets::reserve()
  std::array<std::uint32_t, kPackets> bytes;  ///< of each packet and all earlier ones
};

}  // namespace catena::nca

/// `mutex_` guards the state shared by the stream's thread and the callers. It is not held while packets are copied,
/// the device is called, or results are collected: a buffer's state determines its current user.
struct nca_stream {
 public:
  using Buffer = catena::nca::Buffer;

  /// `functions` belong to `context`, and the caller has counted them as in use. Errors: as PackedLaunch::create() and
  /// Function::host_worker(); ResourceExhausted without descriptors or threads.
  static catena::Result<std::unique_ptr<nca_stream>> create(nca_context& context, std::vector<nca_function*> functions,
                                                            catena::nca::StreamShape const& shape,
                                                            nca_notify_callback notify, void* user);
  ~nca_stream();
  nca_stream(nca_stream const&) = delete;
  nca_stream& operator=(nca_stream const&) = delete;

  // the calls of the API; each sets the error text
  nca_status add(std::span<const nca_packet> packets, std::size_t& accepted);
  void buffer_ready();
  nca_status flush(std::optional<std::chrono::nanoseconds> limit);
  nca_status read(nca_results& results);
  nca_status release(nca_results const& results);
  nca_statistics statistics() const;
  bool is_idle() const;  ///< no accepted packet has unreleased results
  std::uint64_t unread_packets() const;
  bool on_own_thread() const { return std::this_thread::get_id() == thread_.get_id(); }
  int descriptor() const { return descriptor_; }

  nca_context& context() const { return *context_; }
  std::span<nca_function* const> functions() const { return functions_; }
  catena::nca::LastError& error() const { return error_; }

 private:
  nca_stream(nca_context& context, std::vector<nca_function*> functions, catena::nca::StreamShape const& shape,
             nca_notify_callback notify, void* user)
      : context_(&context), functions_(std::move(functions)), shape_(shape), notify_(notify), user_(user) {}
  catena::Status allocate();
  catena::Status start();
  nca_status refuse(nca_packet const& packet, std::size_t position);
  void write(Buffer& buffer, catena::kernel::PackedPackets::Reservation const& reservation,
             std::span<const nca_packet> packets, catena::nca::Sizes const& sizes);
  // called with the mutex held
  void close_open_buffer() noexcept;
  // called by the stream's thread
  void run();
  bool may_submit() const;
  void submit(std::unique_lock<std::mutex>& lock);
  bool work(std::unique_lock<std::mutex>& lock);
  void compute(Buffer& buffer);
  catena::Status collect(Buffer& buffer);
  void complete(Buffer& buffer, std::unique_lock<std::mutex>& lock);
  void fail(catena::Status const& status) noexcept;

  nca_context* context_;
  std::vector<nca_function*> functions_;
  catena::nca::StreamShape shape_;
  nca_notify_callback notify_;
  void* user_;
  bool reads_headers_ = false;
  int descriptor_ = -1;
  mutable catena::nca::LastError error_;

  catena::kernel::PackedFormat format_;
  std::vector<std::unique_ptr<catena::nca::HostWorker>> workers_;  ///< on the host; by function
  std::vector<std::unique_ptr<Buffer>> buffers_;

  mutable std::mutex mutex_;
  std::condition_variable work_;  ///< wakes the stream's thread
  std::condition_variable done_;  ///< wakes flush()
  bool stop_ = false;
  nca_status failed_ = NCA_OK;  ///< set once the device is lost
  std::string failure_;         ///< the reason
  Buffer* open_ = nullptr;
  catena::nca::BufferQueue free_;
  catena::nca::BufferQueue handed_over_;
  catena::nca::BufferQueue running_;
  catena::nca::BufferQueue complete_;
  std::uint64_t next_number_ = 0;
  nca_statistics counts_{};
  std::thread thread_;
};
