// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace catena::nf {

/// Writes the numbers of a state one after another, in this machine's representation. The reader may be another version
/// of the NF, so an NF whose state format changes starts the state with a version number.
class StateWriter {
 public:
  template <std::integral T>
  void put(T value) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void put(std::string_view text) {
    put(text.size());
    const std::span<const std::byte> bytes = std::as_bytes(std::span(text.data(), text.size()));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  /// Reserves memory for about `bytes` more bytes.
  void reserve(std::size_t bytes) { bytes_.reserve(bytes_.size() + bytes); }
  std::vector<std::byte> const& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads the output of a StateWriter. The bytes may be arbitrary and outlive the reader. Past their end every value is
/// 0, and is_sound() is false from then on.
class StateReader {
 public:
  explicit StateReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <std::integral T>
  T get() {
    T value{};
    if (bytes_.size() < sizeof value) {
      fail();
      return value;
    }
    if constexpr (std::same_as<T, bool>) {
      value = bytes_.front() != std::byte{0};  // other bytes are no bool
    } else {
      std::memcpy(&value, bytes_.data(), sizeof value);
    }
    bytes_ = bytes_.subspan(sizeof value);
    return value;
  }
  std::string get_text() {
    const auto size = get<std::size_t>();
    if (size > bytes_.size()) {
      fail();
      return {};
    }
    std::string text(reinterpret_cast<char const*>(bytes_.data()), size);
    bytes_ = bytes_.subspan(size);
    return text;
  }
  bool is_sound() const { return is_sound_; }
  /// Whether all bytes were read without an error.
  bool is_done() const { return is_sound_ && bytes_.empty(); }

 private:
  void fail() {
    is_sound_ = false;
    bytes_ = {};
  }
  std::span<const std::byte> bytes_;
  bool is_sound_ = true;
};

/// Implemented, besides Nf, by an NF whose state can move to another process. Used in place of Nf::migrate_state(),
/// which needs both NFs in one process.
class Portable {
 public:
  virtual ~Portable() = default;

  /// Prepares load(), while the NF to be replaced still has packets and its files. An error gives the reason, for the
  /// operator. Persistent::start() may follow instead of load().
  virtual Status prepare_to_load() { return absl::OkStatus(); }
  /// Writes the state, after the last packet of this NF. finish() is not called then.
  virtual void save(StateWriter& state) const = 0;
  /// Takes over the output of save() of another NF of the same type, before the first packet. The other NF is gone and
  /// has closed its files. The bytes may be arbitrary. Errors leave the NF as it was created:
  ///   FailedPrecondition  this configuration has no place for the state; the message tells the operator why
  ///   DataLoss            no such NF wrote these bytes
  virtual Status load(StateReader& state) = 0;
};

}  // namespace catena::nf
