// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/remote/device.hpp"
#include "gpu/device/remote/event.hpp"

#include <deque>

namespace catena::device::remote {

/// The client's end of a stream: puts commands into its ring, and tracks the progress of the device. Belongs to one
/// thread at a time, with the stream and its events.
class StreamState {
 public:
  StreamState(std::shared_ptr<Connection> connection, ipc::Mapping page)
      : connection_(std::move(connection)), page_memory_(std::move(page)), page_(&page_memory_.as<StreamPage>()) {}

  Connection& connection() { return *connection_; }
  /// Puts a command into the ring without waiting for its result: an error breaks the stream. If the ring is full,
  /// waits for free space, at most ten seconds; then the device is lost.
  Status put(Command command, ipc::Writer const& body) { return put(command, body, 0); }
  /// Puts a command and waits until the server has passed it to its device. Errors: the server's, of this command or an
  /// earlier one.
  Status put_and_wait(Command command, ipc::Writer const& body);
  /// Puts the command of a new event and returns its sequence number.
  Result<std::uint64_t> record(std::shared_ptr<RemoteTime> const& time);
  /// Whether the device has reached an event. Errors: of an earlier command; Unavailable if the server is gone.
  Result<bool> has_reached(std::uint64_t sequence);

  /// A copy through intermediate memory shared with the server; a row copy if the shape has rows.
  struct Detour {
    std::unique_ptr<PinnedBuffer> memory;
    std::uint64_t sequence = 0;     ///< of the first event after the copy
    std::span<std::byte> target{};  ///< empty: the copy goes to the device
    RowShape shape{};
  };
  void add(Detour detour);

 private:
  Status put(Command command, ipc::Writer const& body, std::uint32_t reply);
  Status wait_for_room(std::size_t bytes);
  Status broken() const;
  bool is_broken() const { return page_->is_broken.load(std::memory_order_acquire) != 0; }
  /// Whether the server is about to end because its device failed.
  bool is_going_down() const { return is_broken() && absl::IsUnavailable(broken()); }
  void settle(std::uint64_t reached);

  std::shared_ptr<Connection> connection_;
  ipc::Mapping page_memory_;
  StreamPage* page_;
  std::uint64_t tail_ = 0;
  std::uint64_t known_head_ = 0;
  std::uint64_t last_sequence_ = 0;
  std::uint32_t last_reply_ = 0;
  std::deque<Detour> detours_;
  /// Times not yet written by the server.
  std::deque<std::pair<std::uint64_t, std::shared_ptr<RemoteTime>>> times_;
};

class RemoteStream final : public Stream {
 public:
  RemoteStream(RemoteDevice& device, std::shared_ptr<StreamState> state, std::uint32_t number)
      : device_(&device), state_(std::move(state)), number_(number) {}
  ~RemoteStream() override;

  Status copy_to_device(Buffer& target, std::size_t target_offset, std::span<const std::byte> source) override;
  Status copy_to_host(std::span<std::byte> target, Buffer& source, std::size_t source_offset) override;
  Status copy_rows_to_device(Buffer& target, std::size_t target_offset, std::span<const std::byte> source,
                             RowShape const& shape) override;
  Status copy_rows_to_host(std::span<std::byte> target, Buffer& source, std::size_t source_offset,
                           RowShape const& shape) override;
  Status fill(Buffer& target, std::size_t offset, std::size_t bytes, std::uint8_t value) override;
  Status launch(Kernel& kernel, LaunchShape const& shape, std::span<const KernelArgument> arguments) override;
  Status enqueue(CommandBuffer& commands) override;
  Status finalize(CommandBuffer& commands) override;
  Result<std::unique_ptr<Event>> record() override;
  Result<std::unique_ptr<Event>> record_timestamp() override;
  Status flush() override;

 private:
  /// `shape` without rows: one run of bytes.
  Status copy_in(Buffer& target, std::size_t offset, std::span<const std::byte> source, RowShape const& shape);
  Status copy_out(std::span<std::byte> target, Buffer& source, std::size_t offset, RowShape const& shape);
  Status put_copy(Buffer& buffer, std::size_t offset, Connection::MemoryPlace place, RowShape const& shape,
                  std::size_t bytes, bool to_device);

  RemoteDevice* device_;
  std::shared_ptr<StreamState> state_;
  std::uint32_t number_;
};

}  // namespace catena::device::remote
