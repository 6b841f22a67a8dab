// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/remote/memory.hpp"

#include <catena/core/text.hpp>

#include "base/core/keep.hpp"
#include "gpu/device/backend.hpp"

namespace catena::device::remote {

Result<std::unique_ptr<Buffer>> RemoteDevice::allocate(std::size_t bytes) {
  CATENA_ASSIGN_OR_RETURN(const Connection::Answer answer,
                          connection_->call(Call::kAllocate, ipc::Writer().put(std::uint64_t{bytes})));
  return std::make_unique<RemoteBuffer>(connection_, answer.body().take<std::uint32_t>(), bytes);
}

Result<std::unique_ptr<PinnedBuffer>> RemoteDevice::allocate_pinned(std::size_t bytes) {
  if (bytes == 0) {
    CATENA_RETURN_IF_ERROR(failed());
    return std::make_unique<RemotePinnedBuffer>(connection_, ipc::Mapping(), 0, nullptr);
  }
  CATENA_ASSIGN_OR_RETURN(Connection::Answer answer,
                          connection_->call(Call::kAllocatePinned, ipc::Writer().put(std::uint64_t{bytes})));
  ipc::Reader body = answer.body();
  const auto memory_range = body.take<std::uint32_t>();
  const auto window = body.take<std::uint32_t>();
  CATENA_ASSIGN_OR_RETURN(ipc::Mapping memory, ipc::Mapping::map(std::move(answer.frame.fd), bytes));
  return std::make_unique<RemotePinnedBuffer>(
      connection_, std::move(memory), memory_range,
      window == 0 ? nullptr : std::make_unique<RemoteBuffer>(connection_, window, bytes));
}

Result<std::unique_ptr<Buffer>> RemoteDevice::map_host(HostMemory const& memory) {
  CATENA_RETURN_IF_ERROR(failed());
  CATENA_RETURN_IF_ERROR(check_mappable(memory.bytes));
  if (memory.fd < 0) {
    return absl::UnimplementedError(
        "a device server can map only memory with a descriptor: see HostMemory, and memfd_create(2)");
  }
  CATENA_ASSIGN_OR_RETURN(
      const Connection::Answer answer,
      connection_->call(Call::kMapHost, ipc::Writer().put(std::uint64_t{memory.bytes.size()}).put(memory.offset),
                        memory.fd));
  ipc::Reader body = answer.body();
  const auto memory_range = body.take<std::uint32_t>();
  connection_->add_memory_range(memory_range, memory.bytes);
  return std::make_unique<RemoteBuffer>(connection_, body.take<std::uint32_t>(), memory.bytes.size(), memory_range);
}

RemoteBuffer::~RemoteBuffer() {
  connection_->free(Kind::kBuffer, number_);
  if (memory_range_) {
    connection_->remove_memory_range(*memory_range_);
  }
}

RemotePinnedBuffer::RemotePinnedBuffer(std::shared_ptr<Connection> connection, ipc::Mapping memory,
                                       std::uint32_t memory_range, std::unique_ptr<RemoteBuffer> window)
    : connection_(std::move(connection)),
      memory_(std::move(memory)),
      memory_range_(memory_range),
      window_(std::move(window)) {
  if (!memory_.bytes().empty()) {
    connection_->add_memory_range(memory_range_, memory_.bytes());
  }
}

RemotePinnedBuffer::~RemotePinnedBuffer() {
  window_.reset();
  if (!memory_.bytes().empty()) {
    connection_->remove_memory_range(memory_range_);
  }
}

}  // namespace catena::device::remote
