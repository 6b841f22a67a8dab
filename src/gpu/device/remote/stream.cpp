// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/remote/stream.hpp"

#include <catena/core/text.hpp>

#include "gpu/device/backend.hpp"
#include "gpu/device/remote/command_buffer.hpp"
#include "gpu/device/remote/memory.hpp"
#include "gpu/device/remote/program.hpp"

#include <algorithm>
#include <cstring>

namespace catena::device::remote {
namespace {

/// How long the server may leave a ring unread, or a command without its reply, before it counts as lost.
constexpr std::chrono::seconds kPatience{10};

std::uint32_t number_of(Buffer const& buffer) { return static_cast<RemoteBuffer const&>(buffer).number(); }

/// From the first byte of the first row to the last one of the last.
std::size_t reach_of(RowShape const& shape, std::size_t bytes) {
  return shape.rows == 0 ? bytes : (shape.rows - 1) * shape.stride + shape.row_bytes;
}

void copy_rows(std::span<std::byte> target, std::span<const std::byte> source, RowShape const& shape) {
  if (shape.rows == 0) {
    std::memcpy(target.data(), source.data(), target.size());
  }
  for (std::size_t row = 0; row < shape.rows; ++row) {
    std::memcpy(&target[row * shape.stride], &source[row * shape.stride], shape.row_bytes);
  }
}

}  // namespace

Status StreamState::broken() const {
  const std::string text(page_->reply_text.data(), strnlen(page_->reply_text.data(), kReplyTextBytes));
  return {static_cast<absl::StatusCode>(page_->reply_code), text};
}

Status StreamState::wait_for_room(std::size_t bytes) {
  const auto has_room = [this, bytes] {
    known_head_ = page_->head.load(std::memory_order_acquire);
    return kRingBytes - (tail_ - known_head_) >= bytes || is_broken() || !connection_->failed().ok();
  };
  if (kRingBytes - (tail_ - known_head_) >= bytes) {
    return absl::OkStatus();
  }
  if (!wait_until(has_room, kPatience)) {
    connection_->health().fail(
        absl::UnavailableError(concat("the device server has taken no command for ", kPatience.count(), " seconds")));
  }
  return connection_->failed();
}

Status StreamState::put(Command command, ipc::Writer const& body, std::uint32_t reply) {
  CATENA_RETURN_IF_ERROR(connection_->failed());
  constexpr std::size_t kAlignment = 8;
  const std::size_t length = (sizeof(CommandHeader) + body.bytes().size() + kAlignment - 1) / kAlignment * kAlignment;
  CATENA_RETURN_IF_ERROR(wait_for_room(length));
  if (is_broken()) {
    return is_going_down() ? absl::OkStatus() : broken();
  }
  const CommandHeader header{command, static_cast<std::uint32_t>(length), reply, 0};
  std::uint64_t at = tail_;
  const auto write = [this, &at](std::span<const std::byte> bytes) {
    const std::size_t begin = at % kRingBytes;
    const std::size_t first = std::min<std::size_t>(bytes.size(), kRingBytes - begin);
    std::copy_n(bytes.begin(), first, page_->ring.begin() + static_cast<std::ptrdiff_t>(begin));
    std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(first), bytes.end(), page_->ring.begin());
    at += bytes.size();
  };
  write(std::as_bytes(std::span(&header, 1)));
  write(body.bytes());
  tail_ += length;
  page_->tail.store(tail_, std::memory_order_release);
  connection_->wake();
  return absl::OkStatus();
}

Status StreamState::put_and_wait(Command command, ipc::Writer const& body) {
  last_reply_ = std::max(1U, last_reply_ + 1);
  CATENA_RETURN_IF_ERROR(put(command, body, last_reply_));
  const auto is_done = [this] {
    return page_->replied.load(std::memory_order_acquire) == last_reply_ || (is_broken() && !is_going_down()) ||
           !connection_->failed().ok();
  };
  if (!wait_until(is_done, kPatience)) {
    connection_->health().fail(
        absl::UnavailableError(concat("the device server has not answered for ", kPatience.count(), " seconds")));
  }
  CATENA_RETURN_IF_ERROR(connection_->failed());
  return broken();  // of a stream that is not broken: the reply
}

Result<std::uint64_t> StreamState::record(std::shared_ptr<RemoteTime> const& time) {
  const RecordCommand command{last_sequence_ + 1, time == nullptr ? kNoTime : time->slot(), 0};
  CATENA_RETURN_IF_ERROR(put(Command::kRecord, ipc::Writer().put(command)));
  ++last_sequence_;
  settle(page_->reached.load(std::memory_order_acquire));
  if (time != nullptr) {
    times_.emplace_back(last_sequence_, time);
  }
  return last_sequence_;
}

Result<bool> StreamState::has_reached(std::uint64_t sequence) {
  const std::uint64_t reached = page_->reached.load(std::memory_order_acquire);
  if (reached >= sequence) {
    settle(reached);
    return true;
  }
  CATENA_RETURN_IF_ERROR(connection_->failed());
  if (is_broken() && !is_going_down()) {
    return broken();
  }
  return false;
}

void StreamState::add(Detour detour) {
  detour.sequence = last_sequence_ + 1;
  detours_.push_back(std::move(detour));
}

/// Ends what waited for the device to get so far.
void StreamState::settle(std::uint64_t reached) {
  for (; !detours_.empty() && detours_.front().sequence <= reached; detours_.pop_front()) {
    if (Detour& done = detours_.front(); !done.target.empty()) {
      copy_rows(done.target, done.memory->bytes(), done.shape);
    }
  }
  while (!times_.empty() && times_.front().first <= reached) {
    times_.pop_front();
  }
}

Result<std::unique_ptr<Stream>> RemoteDevice::create_stream(StreamOptions const& options) {
  CATENA_ASSIGN_OR_RETURN(
      Connection::Answer answer,
      connection_->call(Call::kCreateStream, ipc::Writer().put(static_cast<std::uint32_t>(options.is_urgent))));
  CATENA_ASSIGN_OR_RETURN(ipc::Mapping page, ipc::Mapping::map(std::move(answer.frame.fd), sizeof(StreamPage)));
  return std::make_unique<RemoteStream>(*this, std::make_shared<StreamState>(connection_, std::move(page)),
                                        answer.body().take<std::uint32_t>());
}

RemoteStream::~RemoteStream() {
  drain(*this, state_->connection().health());
  state_->connection().free(Kind::kStream, number_);
}

Status RemoteStream::put_copy(Buffer& buffer, std::size_t offset, Connection::MemoryPlace place, RowShape const& shape,
                              std::size_t bytes, bool to_device) {
  const bool has_rows = shape.rows != 0;
  const CopyCommand command{offset,
                            place.offset,
                            has_rows ? shape.row_bytes : bytes,
                            has_rows ? shape.stride : bytes,
                            shape.rows,
                            number_of(buffer),
                            place.memory_range,
                            static_cast<std::uint32_t>(to_device)};
  return state_->put(Command::kCopy, ipc::Writer().put(command));
}

Status RemoteStream::copy_in(Buffer& target, std::size_t offset, std::span<const std::byte> source,
                             RowShape const& shape) {
  const std::span<const std::byte> reach = source.first(reach_of(shape, source.size()));
  if (const auto place = state_->connection().find(reach)) {
    return put_copy(target, offset, *place, shape, reach.size(), true);
  }
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<PinnedBuffer> memory, device_->allocate_pinned(reach.size()));
  copy_rows(memory->bytes(), reach, shape);
  CATENA_RETURN_IF_ERROR(
      put_copy(target, offset, *state_->connection().find(memory->bytes()), shape, reach.size(), true));
  state_->add({std::move(memory)});
  return absl::OkStatus();
}

Status RemoteStream::copy_out(std::span<std::byte> target, Buffer& source, std::size_t offset, RowShape const& shape) {
  const std::span<std::byte> reach = target.first(reach_of(shape, target.size()));
  if (const auto place = state_->connection().find(reach)) {
    return put_copy(source, offset, *place, shape, reach.size(), false);
  }
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<PinnedBuffer> memory, device_->allocate_pinned(reach.size()));
  CATENA_RETURN_IF_ERROR(
      put_copy(source, offset, *state_->connection().find(memory->bytes()), shape, reach.size(), false));
  state_->add({std::move(memory), 0, reach, shape});
  return absl::OkStatus();
}

Status RemoteStream::copy_to_device(Buffer& target, std::size_t target_offset, std::span<const std::byte> source) {
  CATENA_RETURN_IF_ERROR(device_->failed());
  CATENA_RETURN_IF_ERROR(check_range("copy to device", target_offset, source.size(), target.size()));
  return source.empty() ? absl::OkStatus() : copy_in(target, target_offset, source, {});
}

Status RemoteStream::copy_to_host(std::span<std::byte> target, Buffer& source, std::size_t source_offset) {
  CATENA_RETURN_IF_ERROR(device_->failed());
  CATENA_RETURN_IF_ERROR(check_range("copy to host", source_offset, target.size(), source.size()));
  return target.empty() ? absl::OkStatus() : copy_out(target, source, source_offset, {});
}

Status RemoteStream::copy_rows_to_device(Buffer& target, std::size_t target_offset, std::span<const std::byte> source,
                                         RowShape const& shape) {
  CATENA_RETURN_IF_ERROR(device_->failed());
  CATENA_RETURN_IF_ERROR(check_rows("copy rows to device", shape, source.size(), target_offset, target.size()));
  return shape.rows == 0 ? absl::OkStatus() : copy_in(target, target_offset, source, shape);
}

Status RemoteStream::copy_rows_to_host(std::span<std::byte> target, Buffer& source, std::size_t source_offset,
                                       RowShape const& shape) {
  CATENA_RETURN_IF_ERROR(device_->failed());
  CATENA_RETURN_IF_ERROR(check_rows("copy rows to host", shape, target.size(), source_offset, source.size()));
  return shape.rows == 0 ? absl::OkStatus() : copy_out(target, source, source_offset, shape);
}

Status RemoteStream::fill(Buffer& target, std::size_t offset, std::size_t bytes, std::uint8_t value) {
  CATENA_RETURN_IF_ERROR(device_->failed());
  CATENA_RETURN_IF_ERROR(check_range("fill", offset, bytes, target.size()));
  return bytes == 0
             ? absl::OkStatus()
             : state_->put(Command::kFill, ipc::Writer().put(FillCommand{offset, bytes, number_of(target), value}));
}

Status RemoteStream::launch(Kernel& kernel, LaunchShape const& shape, std::span<const KernelArgument> arguments) {
  CATENA_RETURN_IF_ERROR(device_->failed());
  CATENA_RETURN_IF_ERROR(check_shape(shape, device_->info()));
  auto& known = static_cast<RemoteKernel&>(kernel);
  CATENA_ASSIGN_OR_RETURN(const ipc::Writer body, known.launch_body(shape, arguments));
  if (known.has_taken(shape, arguments)) {
    return state_->put(Command::kLaunch, body);
  }
  CATENA_RETURN_IF_ERROR(state_->put_and_wait(Command::kLaunch, body));
  known.takes(shape, arguments);
  return absl::OkStatus();
}

Status RemoteStream::enqueue(CommandBuffer& commands) {
  CATENA_RETURN_IF_ERROR(device_->failed());
  auto& recorded = static_cast<RemoteCommandBuffer&>(commands);
  const ipc::Writer body = ipc::Writer().put(EnqueueCommand{recorded.number(), 0});
  if (recorded.is_final()) {
    return state_->put(Command::kEnqueue, body);
  }
  CATENA_RETURN_IF_ERROR(state_->put_and_wait(Command::kEnqueue, body));
  recorded.set_final();
  return absl::OkStatus();
}

Status RemoteStream::finalize(CommandBuffer& commands) {
  CATENA_RETURN_IF_ERROR(device_->failed());
  auto& recorded = static_cast<RemoteCommandBuffer&>(commands);
  CATENA_RETURN_IF_ERROR(
      state_->put_and_wait(Command::kFinalize, ipc::Writer().put(EnqueueCommand{recorded.number(), 0})));
  recorded.set_final();
  return absl::OkStatus();
}

Result<std::unique_ptr<Event>> RemoteStream::record() {
  CATENA_ASSIGN_OR_RETURN(const std::uint64_t sequence, state_->record(nullptr));
  return std::make_unique<RemoteEvent>(state_, sequence, nullptr);
}

Result<std::unique_ptr<Event>> RemoteStream::record_timestamp() {
  CATENA_ASSIGN_OR_RETURN(std::shared_ptr<RemoteTime> time, take_time(state_->connection().shared_from_this()));
  CATENA_ASSIGN_OR_RETURN(const std::uint64_t sequence, state_->record(time));
  return std::make_unique<RemoteEvent>(state_, sequence, std::move(time));
}

Status RemoteStream::flush() {
  CATENA_RETURN_IF_ERROR(device_->failed());
  return state_->put(Command::kFlush, ipc::Writer());
}

}  // namespace catena::device::remote
