// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/remote/event.hpp"

#include "gpu/device/backend.hpp"
#include "gpu/device/remote/stream.hpp"

namespace catena::device::remote {

Result<std::shared_ptr<RemoteTime>> take_time(std::shared_ptr<Connection> connection) {
  CATENA_ASSIGN_OR_RETURN(const std::uint32_t slot, connection->take_time_slot());
  return std::make_shared<RemoteTime>(std::move(connection), slot);
}

Result<bool> RemoteEvent::ready() {
  if (stream_ != nullptr) {
    return stream_->has_reached(sequence_);
  }
  CATENA_RETURN_IF_ERROR(time_->failed());
  return time_->value() != kNotReached;
}

Result<std::chrono::nanoseconds> RemoteEvent::since(Event& earlier) {
  auto& from = static_cast<RemoteEvent&>(earlier);
  if (time_ == nullptr || from.time_ == nullptr) {
    return not_a_timestamp();
  }
  CATENA_RETURN_IF_ERROR(time_->failed());
  const std::int64_t begin = from.time_->value();
  const std::int64_t end = time_->value();
  if (begin == kNotReached || end == kNotReached) {
    return not_reached();
  }
  return std::chrono::nanoseconds(end - begin);
}

}  // namespace catena::device::remote
