// SPDX-License-Identifier: Apache-2.0
#include "base/ipc/message.hpp"

namespace catena::ipc {

Writer& Writer::append(std::span<const std::byte> bytes) {
  const std::size_t size = bytes_.size();
  bytes_.resize(size + bytes.size());
  if (!bytes.empty()) {
    std::memcpy(bytes_.data() + size, bytes.data(), bytes.size());
  }
  return *this;
}

}  // namespace catena::ipc
