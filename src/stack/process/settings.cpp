// SPDX-License-Identifier: Apache-2.0
#include "stack/process/settings.hpp"

#include <type_traits>

#include "base/ipc/frames.hpp"
#include "base/ipc/shared_memory.hpp"

namespace catena::stack {

// Plain values are sent as they are: both ends are programs of one build.
static_assert(std::is_trivially_copyable_v<TcpOptions> && std::is_trivially_copyable_v<TxOptions> &&
              std::is_trivially_copyable_v<SegmentShape>);

void put(ipc::Writer& writer, StackSettings const& settings) {
  writer.put(settings.tcp)
      .put(settings.tx)
      .put(settings.shape)
      .put(settings.tx_buffer_bytes)
      .put(settings.max_applications)
      .put(settings.max_of_process)
      .put(static_cast<std::uint32_t>(settings.engines.size()));
  for (std::string const& engine : settings.engines) {
    writer.put_text(engine);
  }
}

Result<StackSettings> take_settings(std::span<const std::byte> body) {
  ipc::Reader reader(body);
  StackSettings settings;
  settings.tcp = reader.take<TcpOptions>();
  settings.tx = reader.take<TxOptions>();
  settings.shape = reader.take<SegmentShape>();
  settings.tx_buffer_bytes = reader.take<std::uint64_t>();
  settings.max_applications = reader.take<std::uint32_t>();
  settings.max_of_process = reader.take<std::uint32_t>();
  settings.engines.clear();
  for (auto left = reader.take<std::uint32_t>(); left > 0 && reader.ok(); --left) {
    settings.engines.push_back(reader.take_text());
  }
  if (!reader.ok() || reader.left() != 0 || !is_possible(settings.shape)) {
    return absl::InvalidArgumentError("settings of another version");
  }
  return settings;
}

Status send_application(int control, SegmentShape const& shape, int connection, pid_t process) {
  CATENA_ASSIGN_OR_RETURN(const FileDescriptor memory,
                          ipc::make_peer_memory("catena_sessions", SharedSegment::bytes(shape)));
  CATENA_RETURN_IF_ERROR(ipc::send_frame(control, static_cast<std::uint32_t>(StackCall::kConnection),
                                         std::as_bytes(std::span(&process, 1)), connection));
  return ipc::send_frame(control, static_cast<std::uint32_t>(StackCall::kMemory), {}, memory.get());
}

}  // namespace catena::stack
