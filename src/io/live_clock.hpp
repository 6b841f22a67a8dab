// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace catena::io {

/// The clock of live packets: the monotonic clock plus the wall clock's lead at construction. Times are nanoseconds
/// since 1970; later changes of the wall clock have no effect. Cheap to copy; all copies agree. Thread rule: any
/// thread.
class LiveClock {
 public:
  using Reading = std::uint64_t (*)();  ///< nanoseconds

  LiveClock() : LiveClock(&read<std::chrono::system_clock>, &read<std::chrono::steady_clock>) {}
  /// For tests: other clocks. `wall` is read once.
  LiveClock(Reading wall, Reading monotonic) : monotonic_(monotonic), ahead_ns_(wall() - monotonic()) {}

  std::uint64_t now_ns() const { return monotonic_() + ahead_ns_; }

 private:
  template <typename Clock>
  static std::uint64_t read() {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count());
  }

  Reading monotonic_;
  std::uint64_t ahead_ns_;  // wraps if the wall clock is less than the monotonic one
};

}  // namespace catena::io
