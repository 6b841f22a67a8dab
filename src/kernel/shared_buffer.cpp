// SPDX-License-Identifier: Apache-2.0
#include "kernel/shared_buffer.hpp"

#include <catena/core/text.hpp>

#include "kernel/launch_support.hpp"

namespace catena::kernel {

Result<std::unique_ptr<SharedBuffer>> SharedBuffer::create(device::Device& device, device::HostMemory const& pool) {
  std::unique_ptr<SharedBuffer> shared(new SharedBuffer());
  shared->pool_ = pool.bytes;
  const std::size_t bytes = shared_buffer_bytes(shared->slots());
  CATENA_ASSIGN_OR_RETURN(shared->buffer_, device.allocate(bytes));
  Result<std::unique_ptr<device::Buffer>> mapped = device.map_host(pool);
  if (mapped.ok()) {
    shared->mapped_ = std::move(mapped).value();
  } else {
    CATENA_RETURN_IF_ERROR(device.failed());
    shared->why_not_mapped_ = mapped.status();
  }
  CATENA_ASSIGN_OR_RETURN(const auto stream, device.create_stream());
  CATENA_RETURN_IF_ERROR(stream->fill(*shared->buffer_, 0, bytes, kPoison));
  CATENA_ASSIGN_OR_RETURN(const auto done, stream->record());
  CATENA_RETURN_IF_ERROR(done->wait(kSetUpLimit, concat("filling the shared buffer on ", device.info().name)));
  return shared;
}

}  // namespace catena::kernel
