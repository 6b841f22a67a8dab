// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/device.hpp"
#include "device/health.hpp"
#include "device/remote/message.hpp"
#include "device/remote/protocol.hpp"
#include "device/remote/socket.hpp"

#include <mutex>
#include <optional>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace catena::device::remote {

/// What connects a client with its server: the socket, the memory of timestamps, and whether the server still lives.
/// All that a device makes holds on to it. Any thread.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  /// Says hello over `socket`. `page`: as connect(). Unavailable where nobody answers, or one of another version.
  static Result<std::shared_ptr<Connection>> create(Fd socket, Mapping page, DeviceInfo& info);
  ~Connection();
  Connection(Connection const&) = delete;
  Connection& operator=(Connection const&) = delete;

  struct Answer {
    Frame frame;
    /// What follows the Status in the body. Good as long as the frame.
    Reader body() const;
  };
  /// Waits for the answer. Errors: those of the server; Unavailable where it is gone.
  Result<Answer> call(Call call, Writer const& body, int fd = -1);
  /// Does not wait; a server that is gone has freed everything.
  void free(Kind kind, std::uint32_t number);
  /// Wakes the server where it sleeps, after a command was put into a ring.
  void wake();

  Health& health() { return health_; }
  /// Whether the server's process has ended.
  bool is_server_gone() const { return is_server_gone_.load(std::memory_order_acquire); }
  Status failed() const { return health_.status(); }

  /// A place for the time of a timestamp; kNotReached is in it. ResourceExhausted: kTimeSlots are in use.
  Result<std::uint32_t> take_time_slot();
  void give_time_slot(std::uint32_t slot);
  std::atomic<std::int64_t>& time(std::uint32_t slot) { return page_.as<ClientPage>().times[slot]; }

  /// Memory of this process that the server has, too.
  struct Place {
    std::uint32_t region;
    std::uint64_t offset;
  };
  void add_region(std::uint32_t region, std::span<const std::byte> bytes);
  void remove_region(std::uint32_t region);
  /// Where `bytes` are in the server's eyes; nothing: it has no such memory.
  std::optional<Place> find(std::span<const std::byte> bytes) const;

 private:
  Connection(Fd socket, Mapping page) : socket_(std::move(socket)), page_(std::move(page)) {}
  Status hello(DeviceInfo& info);
  void watch();
  void note_server_gone();

  struct Region {
    const std::byte* begin;
    std::size_t bytes;
    std::uint32_t number;
  };
  Fd socket_;
  Mapping page_;
  Fd bell_;     ///< an eventfd
  Fd server_;   ///< a pidfd
  Fd leaving_;  ///< an eventfd: watch() is to end
  Health health_;
  std::atomic<bool> is_server_gone_{false};
  std::mutex calls_;
  std::mutex slots_mutex_;
  std::vector<std::uint32_t> free_slots_;
  mutable std::shared_mutex regions_mutex_;
  std::vector<Region> regions_;
  std::thread watcher_;
};

/// A device that another process owns.
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

/// Opens the device behind `socket`, one end of a socketpair whose other end a device server has (see server.hpp). All
/// calls of the Device go there; once the server is gone, the device is lost.
///
/// The server ends when its device fails for good. So an error that says as much (Unavailable) is not handed on at
/// once: commands are swallowed and events are not ready until the server is gone, and then its client knows that
/// nothing works on the client's memory any more (is_gone()).
///
/// What is the same as on the server's own device: everything, but that map_host() takes memory with a descriptor alone
/// (Unimplemented without), and that an error of a command which nobody waited for (a launch of a kernel that was
/// launched with such arguments before, a copy) is returned by the next event of its stream.
/// Unavailable where nobody answers, or a server of another version.
///
/// `page`: memory of make_client_page(), mapped, that another process made for this one, which may not make any; as it
/// is by default, this process makes it. InvalidArgument where it is too small.
Result<std::unique_ptr<Device>> connect(Fd socket, Mapping page = {});
/// Memory that a client and its server have in common. ResourceExhausted where there is none.
Result<Mapping> make_client_page();
/// That of another process, by its descriptor. Errors: as Mapping::map().
Result<Mapping> map_client_page(Fd fd);

}  // namespace catena::device::remote
