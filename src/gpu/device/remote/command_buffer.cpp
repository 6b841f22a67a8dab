// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/remote/command_buffer.hpp"

#include "gpu/device/backend.hpp"
#include "gpu/device/remote/partition.hpp"
#include "gpu/device/remote/program.hpp"
#include "gpu/device/remote/stream.hpp"

namespace catena::device::remote {

Result<std::unique_ptr<CommandBuffer>> RemoteDevice::create_command_buffer(Partition* partition) {
  const std::uint32_t part = partition == nullptr ? 0 : static_cast<RemotePartition*>(partition)->number();
  CATENA_ASSIGN_OR_RETURN(const Connection::Answer answer,
                          connection_->call(Call::kCreateCommandBuffer, ipc::Writer().put(part)));
  return std::make_unique<RemoteCommandBuffer>(*this, connection_, answer.body().take<std::uint32_t>());
}

Status RemoteCommandBuffer::launch(Kernel& kernel, LaunchShape const& shape,
                                   std::span<const KernelArgument> arguments) {
  CATENA_RETURN_IF_ERROR(check_shape(shape, device_->info()));
  CATENA_ASSIGN_OR_RETURN(const ipc::Writer launch, static_cast<RemoteKernel&>(kernel).launch_body(shape, arguments));
  return connection_->call(Call::kRecordLaunch, ipc::Writer().put(number_).put_bytes(launch.bytes())).status();
}

Result<Event*> RemoteCommandBuffer::record_timestamp() {
  CATENA_ASSIGN_OR_RETURN(std::shared_ptr<RemoteTime> time, take_time(connection_));
  CATENA_RETURN_IF_ERROR(
      connection_->call(Call::kRecordTimestamp, ipc::Writer().put(number_).put(time->slot())).status());
  timestamps_.push_back(std::make_unique<RemoteEvent>(nullptr, 0, std::move(time)));
  return timestamps_.back().get();
}

}  // namespace catena::device::remote
