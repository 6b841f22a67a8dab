// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>

/// Unfinished work recorded by a device server for its supervisor, in memory shared by both. Written by the server
/// only, and read once the server has ended.
namespace catena::device::remote {

/// A text for another process; always ends with a NUL.
template <std::size_t Bytes>
class SharedText {
 public:
  void set(std::string_view text) {
    const std::size_t length = std::min(text.size(), Bytes - 1);
    std::memcpy(bytes_.data(), text.data(), length);
    bytes_[length] = '\0';
  }
  std::string_view get() const { return {bytes_.data(), strnlen(bytes_.data(), Bytes)}; }

 private:
  std::array<char, Bytes> bytes_;
};

struct BlackBox {
  static constexpr std::uint32_t kClients = 64;
  struct Client {
    std::atomic<std::uint32_t> number;  ///< given by the supervisor; 0: unused
    /// Start of the oldest unfinished work, in nanoseconds of the steady clock; 0: no unfinished work.
    std::atomic<std::int64_t> working_since;
    SharedText<256> kernels;  ///< names of the kernels launched last; several in a recording
  };
  std::array<Client, kClients> clients;
  std::atomic<std::uint32_t> has_device;  ///< the device was opened
  std::atomic<std::uint32_t> has_reason;
  SharedText<512> reason;  ///< why the server ended itself
};

}  // namespace catena::device::remote
