// SPDX-License-Identifier: Apache-2.0
#include "base/ipc/unix_address.hpp"

#include <catena/core/text.hpp>

namespace catena::ipc {

Result<sockaddr_un> unix_address(std::string_view path) {
  constexpr std::size_t kMaxPath = sizeof(sockaddr_un::sun_path) - 1;
  if (path.empty() || path.size() > kMaxPath) {
    return absl::InvalidArgumentError(concat("socket '", path, "': write a path of 1 to ", kMaxPath, " bytes"));
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(static_cast<char*>(address.sun_path), kMaxPath);
  return address;
}

}  // namespace catena::ipc
