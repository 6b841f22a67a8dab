// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/device.hpp"

#include "gpu/device/health.hpp"

#include <absl/container/inlined_vector.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

/// Checks common to all backends. registry.cpp declares the functions of each backend.
namespace catena::device {

/// Number of the first device other than this machine's own cores, as for Backend::open(); nullopt if no such device
/// exists.
std::optional<int> first_accelerator(std::span<const DeviceInfo> devices);

/// The errors of Event::since() for an event of Stream::record(), and for a timestamp that is not ready.
Status not_a_timestamp();
Status not_reached();

/// InvalidArgument unless [offset, offset + bytes) lies within `size` bytes. `what` names the operation.
Status check_range(std::string_view what, std::size_t offset, std::size_t bytes, std::size_t size);

/// InvalidArgument unless Stream's row copies accept the shape, and all rows lie within the `host_bytes` bytes from the
/// first row on and within a buffer of `size` bytes, with the first row at `offset`. OK for no rows.
Status check_rows(std::string_view what, RowShape const& shape, std::size_t host_bytes, std::size_t offset,
                  std::size_t size);

/// InvalidArgument unless Device::map_host() accepts `memory`: not empty, and starting at a page.
Status check_mappable(std::span<const std::byte> memory);

/// InvalidArgument if the device cannot launch this shape: no groups, no work-items, too many work-items in a group, or
/// more local memory than a group can have. The text gives the value and the limit.
Status check_shape(LaunchShape const& shape, DeviceInfo const& info);

/// Kernel arguments with BufferSizes replaced by the sizes. Owns the memory of get(), and must not outlive `arguments`.
class SizedArguments {
 public:
  SizedArguments(std::span<const KernelArgument> arguments, LaunchShape const& shape);
  SizedArguments(SizedArguments const&) = delete;
  SizedArguments& operator=(SizedArguments const&) = delete;
  /// The arguments without BufferSizes.
  std::span<const KernelArgument> get() const { return arguments_; }

 private:
  std::span<const KernelArgument> arguments_;
  absl::InlinedVector<std::uint64_t, 8> sizes_;
  absl::InlinedVector<KernelArgument, 8> replaced_;
};

/// InvalidArgument unless the arguments have this form.
Status check_form(LaunchForm const& form, std::span<const KernelArgument> arguments);

/// Polls `is_done()` until it returns true, for at most `limit`: without sleeping for about the time of a launch and
/// its copies, then with short sleeps. Polls at least once. Returns the last result.
bool wait_until(std::function<bool()> const& is_done, std::chrono::nanoseconds limit);

/// Waits until all work on `stream` is done, so that its owner may free the memory used by it. A device that takes
/// longer than ten seconds counts as lost: `health` is marked as failed, and the memory that the device may still write
/// must be kept.
void drain(Stream& stream, Health& health);

/// "memory.cpp:33" from __FILE__ and __LINE__, without the folders of the build machine.
std::string source_position(std::string_view file, int line);

}  // namespace catena::device
