// SPDX-License-Identifier: Apache-2.0
#include "gpu/copy/shared_buffer.hpp"

#include <catena/core/text.hpp>

#include "base/core/keep.hpp"
#include "gpu/copy/layout.hpp"

namespace catena::copy {

Result<std::unique_ptr<SharedBuffer>> SharedBuffer::create(device::Device& device, device::HostMemory const& pool,
                                                           std::shared_ptr<const void> owner, bool kernels_reach_host) {
  std::unique_ptr<SharedBuffer> shared(new SharedBuffer(device, kernels_reach_host));
  shared->pool_ = pool.bytes;
  shared->owner_ = std::move(owner);
  const std::size_t bytes = kernel::shared_buffer_bytes(shared->slots());
  CATENA_ASSIGN_OR_RETURN(shared->buffer_, device.allocate(bytes));
  Result<std::unique_ptr<device::Buffer>> mapped = device.map_host(pool);
  if (mapped.ok()) {
    shared->mapped_ = std::move(mapped).value();
    if (!kernels_reach_host) {
      shared->why_not_mapped_ = absl::FailedPreconditionError("kernels are to stay off the host's memory");
    }
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

SharedBuffer::~SharedBuffer() {
  if (!device_->failed().ok() && !device_->is_gone()) {
    keep_until_exit(std::make_unique<std::shared_ptr<const void>>(std::move(owner_)));
  }
}

}  // namespace catena::copy
