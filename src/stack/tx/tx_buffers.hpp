// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace catena::stack {

/// Memory of the stack's own for bytes between an application's FIFO and the peer's acknowledgement: buffers of two
/// sizes, so that a short answer does not hold 64 KiB. Belongs to one thread at a time.
class TxBuffers {
 public:
  static constexpr std::uint32_t kSmall = 4 * 1024;
  static constexpr std::uint32_t kLarge = 64 * 1024;

  struct Buffer {
    std::byte* data = nullptr;
    std::uint32_t bytes = 0;  ///< its size: kSmall or kLarge
  };

  /// `bytes` in all, half of them as buffers of each size. Memory is used when it is first written.
  /// ResourceExhausted: not enough memory.
  static Result<TxBuffers> create(std::size_t bytes);

  /// The smallest free buffer for `bytes`, at most kLarge: a large one for a few bytes too, if no small one is left;
  /// nullopt: all are taken.
  std::optional<Buffer> take(std::uint32_t bytes);
  void give_back(Buffer const& buffer) { free_[buffer.bytes == kLarge].push_back(buffer.data); }
  /// All of it, for Engine::register_memory().
  std::span<std::byte> memory() const { return {memory_.get(), memory_.get_deleter().bytes}; }
  /// Taken buffers.
  std::uint32_t in_use() const {
    return buffers_ - static_cast<std::uint32_t>(free_[0].size()) - static_cast<std::uint32_t>(free_[1].size());
  }

 private:
  struct Unmap {
    std::size_t bytes = 0;
    void operator()(std::byte* memory) const;
  };
  using Memory = std::unique_ptr<std::byte[], Unmap>;
  explicit TxBuffers(Memory memory);

  Memory memory_;                                ///< whole pages
  std::array<std::vector<std::byte*>, 2> free_;  ///< small, large
  std::uint32_t buffers_ = 0;
};

}  // namespace catena::stack
