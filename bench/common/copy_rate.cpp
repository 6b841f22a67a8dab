// SPDX-License-Identifier: Apache-2.0
#include "bench/common/copy_rate.hpp"

#include <chrono>
#include <vector>

namespace catena::bench {
namespace {

constexpr std::size_t kBytes = std::size_t{32} << 20;
constexpr std::chrono::seconds kCopyLimit{60};

struct Lane {
  std::unique_ptr<device::Buffer> buffer;
  std::unique_ptr<device::PinnedBuffer> pinned;
  std::unique_ptr<device::Stream> stream;
};

Result<Lane> make_lane(device::Device& device) {
  Lane lane;
  CATENA_ASSIGN_OR_RETURN(lane.buffer, device.allocate(kBytes));
  CATENA_ASSIGN_OR_RETURN(lane.pinned, device.allocate_pinned(kBytes));
  CATENA_ASSIGN_OR_RETURN(lane.stream, device.create_stream());
  return lane;
}

/// Bytes a second of a copy of `bytes` that is made again and again.
template <typename Copy>
Result<double> rate_of(Copy const& copy, std::size_t bytes, double seconds) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  std::chrono::duration<double> passed{};
  std::uint64_t copies = 0;
  do {
    CATENA_RETURN_IF_ERROR(copy());
    ++copies;
    passed = Clock::now() - begin;
  } while (passed.count() < seconds);
  return static_cast<double>(copies * bytes) / passed.count();
}

}  // namespace

Result<double> copy_bytes_per_s(device::Device& device, double seconds) {
  CATENA_ASSIGN_OR_RETURN(const Lane in, make_lane(device));
  CATENA_ASSIGN_OR_RETURN(const Lane out, make_lane(device));
  const auto copy_both = [&]() -> Status {
    CATENA_RETURN_IF_ERROR(in.stream->copy_to_device(*in.buffer, 0, in.pinned->bytes().first(kBytes)));
    CATENA_RETURN_IF_ERROR(out.stream->copy_to_host(out.pinned->bytes().first(kBytes), *out.buffer, 0));
    for (Lane const* lane : {&in, &out}) {
      CATENA_ASSIGN_OR_RETURN(const auto done, lane->stream->record());
      CATENA_RETURN_IF_ERROR(done->wait(kCopyLimit, "the copies that show the speed of the bus"));
    }
    return absl::OkStatus();
  };
  CATENA_RETURN_IF_ERROR(copy_both());
  return rate_of(copy_both, kBytes, seconds);
}

Result<double> copy_in_bytes_per_s(device::Device& device, std::size_t bytes, bool pinned, double seconds) {
  CATENA_ASSIGN_OR_RETURN(const auto buffer, device.allocate(bytes));
  CATENA_ASSIGN_OR_RETURN(const auto stream, device.create_stream());
  std::unique_ptr<device::PinnedBuffer> memory;
  std::vector<std::byte> pageable;
  if (pinned) {
    CATENA_ASSIGN_OR_RETURN(memory, device.allocate_pinned(bytes));
  } else {
    pageable.resize(bytes);
  }
  const std::span<const std::byte> source = pinned ? memory->bytes().first(bytes) : std::span(pageable);
  const auto copy = [&]() -> Status {
    CATENA_RETURN_IF_ERROR(stream->copy_to_device(*buffer, 0, source));
    CATENA_ASSIGN_OR_RETURN(const auto done, stream->record());
    return done->wait(kCopyLimit, "a copy to the device");
  };
  CATENA_RETURN_IF_ERROR(copy());
  return rate_of(copy, bytes, seconds);
}

}  // namespace catena::bench
