// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/device.hpp"

#include "device/health.hpp"

#include <absl/container/inlined_vector.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

/// What every backend offers to device.cpp, and what the backends check alike.
namespace catena::device {

Probe probe_cuda();
Result<std::unique_ptr<Device>> open_cuda(int ordinal);
Probe probe_opencl();
Result<std::unique_ptr<Device>> open_opencl(int ordinal);

/// Number of the first device that is not this machine's own cores, as Backend::open() takes it; nothing where there is
/// none.
std::optional<int> first_accelerator(std::span<const DeviceInfo> devices);

/// What Event::since() answers for an event of Stream::record(), and for a timestamp that is not ready.
Status not_a_timestamp();
Status not_reached();

/// InvalidArgument unless [offset, offset + bytes) lies within `size` bytes. `what` names the operation.
Status check_range(std::string_view what, std::size_t offset, std::size_t bytes, std::size_t size);

/// InvalidArgument unless the rows have a shape that Stream's row copies take, and all lie within the `host_bytes` from
/// the first row on and within a buffer of `size` bytes, the first row at `offset`. OK for no rows.
Status check_rows(std::string_view what, RowShape const& shape, std::size_t host_bytes, std::size_t offset,
                  std::size_t size);

/// InvalidArgument unless Device::map_host takes `memory`: not empty, and beginning at a page.
Status check_mappable(std::span<const std::byte> memory);

/// InvalidArgument if the device cannot launch this shape: no groups, no work-items, too many of them in a group, or
/// more local memory than a group can have. The text gives the value and the limit.
Status check_shape(LaunchShape const& shape, DeviceInfo const& info);

/// Arguments as a kernel takes them: what BufferSizes stands for is in its place. Keeps what get() returns, and must
/// not outlive `arguments`.
class SizedArguments {
 public:
  SizedArguments(std::span<const KernelArgument> arguments, LaunchShape const& shape);
  SizedArguments(SizedArguments const&) = delete;
  SizedArguments& operator=(SizedArguments const&) = delete;
  /// Without BufferSizes.
  std::span<const KernelArgument> get() const { return arguments_; }

 private:
  std::span<const KernelArgument> arguments_;
  absl::InlinedVector<std::uint64_t, 8> sizes_;
  absl::InlinedVector<KernelArgument, 8> replaced_;
};

/// InvalidArgument unless the arguments are of that form.
Status check_form(LaunchForm const& form, std::span<const KernelArgument> arguments);

/// Asks until `is_done()` says so, for `limit` at most: at once for about as long as a launch and its copies take, then
/// with short sleeps. Asks once at least. Returns what was said last.
bool wait_until(std::function<bool()> const& is_done, std::chrono::nanoseconds limit);

/// Waits until everything on `stream` is done, so that its owner may free what the device works on. A device that takes
/// longer than ten seconds counts as lost: `health` is told, and whoever owns memory that it may still write keeps it.
void drain(Stream& stream, Health& health);

/// "memory.cpp:33" from __FILE__ and __LINE__, without the folders of the machine that built it.
std::string source_position(std::string_view file, int line);

}  // namespace catena::device
