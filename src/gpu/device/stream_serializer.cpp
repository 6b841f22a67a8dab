// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/stream_serializer.hpp"

namespace catena::device {

Status StreamSerializer::take(Stream& stream, std::function<Status()> const& enqueue) {
  const std::scoped_lock lock(mutex_);
  if (last_ != nullptr) {
    CATENA_RETURN_IF_ERROR(stream.wait_for(*last_));
  }
  CATENA_RETURN_IF_ERROR(enqueue());
  CATENA_ASSIGN_OR_RETURN(last_, stream.record());
  return absl::OkStatus();
}

}  // namespace catena::device
