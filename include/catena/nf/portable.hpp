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

/// Numbers for a state, one after another, as this machine has them. Who reads it may be another version of the NF: one
/// whose state changes its form begins it with a number that says which it is.
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
  /// So much is to come, about.
  void reserve(std::size_t bytes) { bytes_.reserve(bytes_.size() + bytes); }
  std::vector<std::byte> const& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads what a StateWriter wrote; the bytes, which may be any, outlive it. Where they end too early all that is read
/// is 0, and is_sound() false from then on.
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
      value = bytes_.front() != std::byte{0};  // another byte is no bool
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
  /// Whether it was sound to its end.
  bool is_done() const { return is_sound_ && bytes_.empty(); }

 private:
  void fail() {
    is_sound_ = false;
    bytes_ = {};
  }
  std::span<const std::byte> bytes_;
  bool is_sound_ = true;
};

/// What an Nf implements besides, if what packets leave in it can go on in another process: where Nf::adopt() would be
/// called if both were in one.
class Portable {
 public:
  virtual ~Portable() = default;

  /// Makes all ready so that load() can go on for another one, which still has packets and its files. Errors, for
  /// people: what stands against it. Persistent::start() may come after it instead of load().
  virtual Status prepare_to_load() { return absl::OkStatus(); }
  /// Writes it, when there are no more packets for this NF. finish() is not called then.
  virtual void save(StateWriter& state) const = 0;
  /// Takes over what save() of another NF of the same type wrote, which is gone and has closed its files, before the
  /// first packet. Whatever it reads may be wrong. Errors leave the NF as it was made:
  ///   FailedPrecondition  this configuration has no place for it; says for people what stands against it
  ///   DataLoss            no such NF wrote this
  virtual Status load(StateReader& state) = 0;
};

}  // namespace catena::nf
