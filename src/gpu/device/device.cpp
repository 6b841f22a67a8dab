// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/device.hpp"

#include <catena/core/text.hpp>

#include "gpu/device/backend.hpp"

#include <algorithm>
#include <thread>

namespace catena::device {

namespace {

/// How long a wait asks again at once before it starts to sleep: about one launch and its copies.
constexpr std::chrono::microseconds kSpin{50};
constexpr std::chrono::microseconds kSleep{20};
constexpr std::chrono::seconds kDrainLimit{10};
/// What Device::map_host promises to want; larger pages begin at multiples of it.
constexpr std::uintptr_t kPageBytes = 4096;

}  // namespace

Result<std::chrono::nanoseconds> Event::since(Event& /*earlier*/) { return not_a_timestamp(); }

Status Stream::wait_for(Event& /*event*/) {
  return absl::UnimplementedError("streams of a device in another process do not wait for one another");
}

Status Event::wait(std::chrono::nanoseconds limit, std::string_view what) {
  Result<bool> done = false;
  const auto is_over = [this, &done] {
    done = ready();
    return !done.ok() || *done;
  };
  if (wait_until(is_over, limit)) {
    return done.status();
  }
  return absl::DeadlineExceededError(concat(what, ": the device did not finish within ",
                                            std::chrono::duration_cast<std::chrono::milliseconds>(limit).count(),
                                            " ms"));
}

bool wait_until(std::function<bool()> const& is_done, std::chrono::nanoseconds limit) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  while (!is_done()) {
    const Clock::duration waited = Clock::now() - start;
    if (waited >= limit) {
      return false;
    }
    if (waited < kSpin) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::min<Clock::duration>(kSleep, limit - waited));
    }
  }
  return true;
}

Status not_a_timestamp() {
  return absl::InvalidArgumentError("the event has no timestamp: only events of Stream::record_timestamp() have one");
}

Status not_reached() { return absl::FailedPreconditionError("the device has not reached both timestamps yet"); }

Status check_range(std::string_view what, std::size_t offset, std::size_t bytes, std::size_t size) {
  if (offset > size || bytes > size - offset) {
    return absl::InvalidArgumentError(
        concat(what, ": ", bytes, " bytes at offset ", offset, " leave a buffer of ", size, " bytes"));
  }
  return absl::OkStatus();
}

Status check_rows(std::string_view what, RowShape const& shape, std::size_t host_bytes, std::size_t offset,
                  std::size_t size) {
  if (shape.rows == 0) {
    return absl::OkStatus();
  }
  if (shape.row_bytes == 0 || shape.row_bytes > shape.stride) {
    return absl::InvalidArgumentError(concat(what, ": rows of ", shape.row_bytes, " bytes, ", shape.stride,
                                             " bytes apart; a row has at least 1 byte and at most this distance"));
  }
  const std::size_t gaps = shape.rows - 1;
  if (gaps > (SIZE_MAX - shape.row_bytes) / shape.stride) {
    return absl::InvalidArgumentError(
        concat(what, ": ", shape.rows, " rows, ", shape.stride, " bytes apart, are more than an address can tell"));
  }
  const std::size_t bytes = gaps * shape.stride + shape.row_bytes;
  if (bytes > host_bytes) {
    return absl::InvalidArgumentError(concat(what, ": ", shape.rows, " rows, ", shape.stride,
                                             " bytes apart, reach over ", bytes, " bytes; the host's memory has ",
                                             host_bytes));
  }
  return check_range(what, offset, bytes, size);
}

Status check_mappable(std::span<const std::byte> memory) {
  if (memory.empty()) {
    return absl::InvalidArgumentError("map host memory: no bytes to map");
  }
  if (reinterpret_cast<std::uintptr_t>(memory.data()) % kPageBytes != 0) {
    return absl::InvalidArgumentError(concat("map host memory: it begins ",
                                             reinterpret_cast<std::uintptr_t>(memory.data()) % kPageBytes,
                                             " bytes into a page; it must begin at a multiple of ", kPageBytes));
  }
  return absl::OkStatus();
}

SizedArguments::SizedArguments(std::span<const KernelArgument> arguments, LaunchShape const& shape)
    : arguments_(arguments) {
  const auto are_sizes = [](KernelArgument const& argument) { return std::holds_alternative<BufferSizes>(argument); };
  if (std::ranges::none_of(arguments, are_sizes)) {
    return;
  }
  for (KernelArgument const& argument : arguments) {
    if (Buffer* const* buffer = std::get_if<Buffer*>(&argument); buffer != nullptr) {
      sizes_.push_back(*buffer == nullptr ? 0 : (*buffer)->size());
    }
  }
  sizes_.push_back(shape.local_bytes);
  replaced_.assign(arguments.begin(), arguments.end());
  for (KernelArgument& argument : replaced_) {
    if (are_sizes(argument)) {
      argument = std::as_bytes(std::span(sizes_.data(), sizes_.size()));
    }
  }
  arguments_ = std::span(replaced_.data(), replaced_.size());
}

Status check_form(LaunchForm const& form, std::span<const KernelArgument> arguments) {
  const std::size_t structs = form.struct_bytes == 0 ? 0 : 1;
  bool is_of_form =
      arguments.size() == form.buffers + structs + 1 && std::holds_alternative<BufferSizes>(arguments.back());
  for (std::size_t i = 0; is_of_form && i < form.buffers; ++i) {
    is_of_form = std::holds_alternative<Buffer*>(arguments[i]);
  }
  if (is_of_form && structs != 0) {
    const auto* bytes = std::get_if<std::span<const std::byte>>(&arguments[form.buffers]);
    is_of_form = bytes != nullptr && bytes->size() == form.struct_bytes;
  }
  return is_of_form ? absl::OkStatus()
                    : absl::InvalidArgumentError(concat("launch: its kernel takes ", form.buffers, " buffers, ",
                                                        form.struct_bytes, " bytes by value and their sizes"));
}

Status check_shape(LaunchShape const& shape, DeviceInfo const& info) {
  if (shape.groups == 0 || shape.group_size == 0) {
    return absl::InvalidArgumentError(
        concat("launch: ", shape.groups, " groups of ", shape.group_size, " work-items; both must be at least 1"));
  }
  if (shape.group_size > info.max_group_size) {
    return absl::InvalidArgumentError(concat("launch: groups of ", shape.group_size, " work-items; ", info.name,
                                             " takes at most ", info.max_group_size));
  }
  if (shape.local_bytes > info.local_memory_bytes) {
    return absl::InvalidArgumentError(concat("launch: ", shape.local_bytes, " bytes of local memory; ", info.name,
                                             " has ", info.local_memory_bytes, " per group"));
  }
  return absl::OkStatus();
}

void drain(Stream& stream, Health& health) {
  Result<std::unique_ptr<Event>> end = stream.record();
  if (!end.ok()) {
    health.fail(end.status());  // nobody can tell any more what still runs; a device lost before keeps its reason
    return;
  }
  const Status status = (*end)->wait(kDrainLimit, "closing a stream");
  if (absl::IsDeadlineExceeded(status)) {
    health.fail(absl::UnavailableError(status.message()));
  }
}

std::string source_position(std::string_view file, int line) {
  return concat(file.substr(file.rfind('/') + 1), ":", line);
}

}  // namespace catena::device
