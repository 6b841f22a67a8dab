// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>

/// What a device server leaves behind when it dies, in memory that its supervisor has too: whose work was unfinished.
/// Written by the server alone; read once it has ended.
namespace catena::device::remote {

/// A text that another process reads: always ends with a NUL.
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
    std::atomic<std::uint32_t> number;  ///< as the supervisor said it; 0: nobody
    /// When the oldest work began that is not finished, in nanoseconds of the steady clock; 0: there is none.
    std::atomic<std::int64_t> working_since;
    SharedText<256> kernels;  ///< what was launched last: several are of one recording
  };
  std::array<Client, kClients> clients;
  std::atomic<std::uint32_t> has_device;  ///< it was opened
  std::atomic<std::uint32_t> has_reason;
  SharedText<512> reason;  ///< why the server ended itself
};

}  // namespace catena::device::remote
