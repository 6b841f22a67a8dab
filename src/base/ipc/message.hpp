// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// Bodies of frames and commands: numbers in native representation (both ends are on one machine), and byte strings
/// after their length.
namespace catena::ipc {

class Writer {
 public:
  template <typename T>
  Writer& put(T const& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return append(std::as_bytes(std::span(&value, 1)));
  }
  Writer& put_bytes(std::span<const std::byte> bytes) {
    put(static_cast<std::uint32_t>(bytes.size()));
    return append(bytes);
  }
  Writer& put_text(std::string_view text) { return put_bytes(std::as_bytes(std::span(text))); }
  Writer& put_status(Status const& status) {
    put(static_cast<std::uint32_t>(status.code()));
    return put_text(std::string(status.message()));
  }
  std::span<const std::byte> bytes() const { return bytes_; }
  /// Appends the content of another Writer.
  Writer& add(Writer const& other) { return append(other.bytes()); }

 private:
  Writer& append(std::span<const std::byte> bytes);
  std::vector<std::byte> bytes_;
};

/// Reads the content of a Writer, or any other received bytes. After the first read beyond the end, all reads are empty
/// and ok() is false. Spans point into the given bytes.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  T take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (const auto from = take_raw(sizeof value); !from.empty()) {
      std::memcpy(&value, from.data(), sizeof value);
    }
    return value;
  }
  std::span<const std::byte> take_bytes() { return take_raw(take<std::uint32_t>()); }
  std::string take_text() {
    const auto bytes = take_bytes();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  Status take_status() {
    const auto code = static_cast<absl::StatusCode>(take<std::uint32_t>());
    const std::string text = take_text();
    return {code, text};
  }
  bool ok() const { return is_ok_; }
  std::size_t left() const { return bytes_.size(); }

 private:
  std::span<const std::byte> take_raw(std::size_t count) {
    if (!is_ok_ || count > bytes_.size()) {
      is_ok_ = false;
      bytes_ = {};
      return {};
    }
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }
  std::span<const std::byte> bytes_;
  bool is_ok_ = true;
};

}  // namespace catena::ipc
