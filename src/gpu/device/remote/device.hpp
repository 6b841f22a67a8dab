// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"
#include "base/ipc/frames.hpp"
#include "base/ipc/mapping.hpp"
#include "base/ipc/message.hpp"
#include "gpu/device/device.hpp"
#include "gpu/device/health.hpp"
#include "gpu/device/remote/protocol.hpp"

#include <mutex>
#include <optional>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace catena::device::remote {

/// Connection of a client to its server: the socket, the memory of timestamps, and the liveness of the server. All
/// objects of a device hold a reference to it. Any thread.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  /// Sends hello over `socket`. `page`: as connect(). Unavailable if no server replies, or a server of another version.
  static Result<std::shared_ptr<Connection>> create(FileDescriptor socket, ipc::Mapping page, DeviceInfo& info);
  ~Connection();
  Connection(Connection const&) = delete;
  Connection& operator=(Connection const&) = delete;

  struct Answer {
    ipc::Frame frame;
    /// The body after its Status. Valid as long as the frame.
    ipc::Reader body() const;
  };
  /// Waits for the reply. Errors: the server's; Unavailable if the server is gone.
  Result<Answer> call(Call call, ipc::Writer const& body, int fd = -1);
  /// Does not wait. A server that is gone has freed everything.
  void free(Kind kind, std::uint32_t number);
  /// Wakes a sleeping server, after a command was put into a ring.
  void wake();

  Health& health() { return health_; }
  /// Whether the server's process has ended.
  bool is_server_gone() const { return is_server_gone_.load(std::memory_order_acquire); }
  Status failed() const { return health_.status(); }

  /// A slot for the time of a timestamp, set to kNotReached. ResourceExhausted: all kTimeSlots are in use.
  Result<std::uint32_t> take_time_slot();
  void give_time_slot(std::uint32_t slot);
  std::atomic<std::int64_t>& time(std::uint32_t slot) { return page_.as<ClientPage>().times[slot]; }

  /// Memory of this process shared with the server.
  struct MemoryPlace {
    std::uint32_t memory_range;
    std::uint64_t offset;
  };
  void add_memory_range(std::uint32_t memory_range, std::span<const std::byte> bytes);
  void remove_memory_range(std::uint32_t memory_range);
  /// The place of `bytes` in shared memory, as known to the server; nullopt if the server has no such memory.
  std::optional<MemoryPlace> find(std::span<const std::byte> bytes) const;

 private:
  Connection(FileDescriptor socket, ipc::Mapping page) : socket_(std::move(socket)), page_(std::move(page)) {}
  Status hello(DeviceInfo& info);
  void watch();
  void note_server_gone();

  struct MemoryRange {
    const std::byte* begin;
    std::size_t bytes;
    std::uint32_t number;
  };
  FileDescriptor socket_;
  ipc::Mapping page_;
  FileDescriptor notifier_;  ///< an eventfd
  FileDescriptor server_;    ///< a pidfd
  FileDescriptor leaving_;   ///< an eventfd that ends watch()
  Health health_;
  std::atomic<bool> is_server_gone_{false};
  std::mutex calls_;
  std::mutex slots_mutex_;
  std::vector<std::uint32_t> free_slots_;
  mutable std::shared_mutex memory_ranges_mutex_;
  std::vector<MemoryRange> memory_ranges_;
  std::thread watcher_;
};

/// A device owned by another process.
class RemoteDevice final : public Device {
 public:
  RemoteDevice(std::shared_ptr<Connection> connection, DeviceInfo info)
      : connection_(std::move(connection)), info_(std::move(info)) {}

  DeviceInfo const& info() const override { return info_; }
  Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes) override;
  Result<std::unique_ptr<PinnedBuffer>> allocate_pinned(std::size_t bytes) override;
  Result<std::unique_ptr<Buffer>> map_host(HostMemory const& memory) override;
  Result<std::unique_ptr<Stream>> create_stream(StreamOptions const& options) override;
  Result<std::unique_ptr<CommandBuffer>> create_command_buffer(Partition* partition) override;
  Result<std::vector<std::unique_ptr<Partition>>> divide(std::span<const std::uint32_t> compute_units) override;
  Result<Binary> compile(ProgramSource const& source) override;
  Result<std::unique_ptr<Program>> load(std::span<const std::byte> binary) override;
  Status failed() const override { return connection_->failed(); }
  bool is_gone() const override { return connection_->is_server_gone(); }
  void abandon(Status const& reason) override { connection_->health().fail(reason); }

 private:
  std::shared_ptr<Connection> connection_;
  DeviceInfo info_;
};

/// Opens the device of the server at the other end of `socket`, one end of a socketpair (see server.hpp). All calls of
/// the Device go to the server. Once the server is gone, the device is lost.
///
/// The server ends when its device fails permanently. So such an error (Unavailable) is not returned at once: commands
/// are ignored and events are not ready until the server is gone. Then the client knows that nothing accesses its
/// memory any more (is_gone()).
///
/// The Device behaves as the server's own device, with two exceptions. map_host() only takes memory with a descriptor
/// (else Unimplemented). An error of a command without a waiter (a copy, or a launch of a kernel launched before with
/// such arguments) is returned by the next event of its stream.
/// Unavailable if no server replies, or a server of another version.
///
/// `page`: mapped memory of make_client_page(), made by another process for this one, which may not make any. By
/// default, this process makes it. InvalidArgument if it is too small.
Result<std::unique_ptr<Device>> connect(FileDescriptor socket, ipc::Mapping page = {});
/// Memory shared by a client and its server. ResourceExhausted if it cannot be allocated.
Result<ipc::Mapping> make_client_page();
/// Maps the page of another process by its descriptor. Errors: as ipc::Mapping::map().
Result<ipc::Mapping> map_client_page(FileDescriptor fd);

}  // namespace catena::device::remote
