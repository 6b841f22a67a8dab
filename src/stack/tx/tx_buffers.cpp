// SPDX-License-Identifier: Apache-2.0
#include "stack/tx/tx_buffers.hpp"

#include <catena/core/text.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace catena::stack {

Result<TxBuffers> TxBuffers::create(std::size_t bytes) {
  const std::size_t whole = std::max<std::size_t>(bytes / (2 * kLarge), 1) * 2 * kLarge;
  void* const memory =
      ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(concat(whole, " bytes for buffers: ", std::strerror(errno)));
  }
  return TxBuffers(Memory(static_cast<std::byte*>(memory), {whole}));
}

void TxBuffers::Unmap::operator()(std::byte* memory) const { ::munmap(memory, bytes); }

TxBuffers::TxBuffers(Memory memory) : memory_(std::move(memory)) {
  const std::span<std::byte> all = this->memory();
  // the first ones are taken first, so that memory stays untouched as long as it is not needed
  for (std::size_t end = all.size(); end > all.size() / 2; end -= kLarge) {
    free_[1].push_back(&all[end - kLarge]);
  }
  for (std::size_t end = all.size() / 2; end > 0; end -= kSmall) {
    free_[0].push_back(&all[end - kSmall]);
  }
  buffers_ = static_cast<std::uint32_t>(free_[0].size() + free_[1].size());
}

std::optional<TxBuffers::Buffer> TxBuffers::take(std::uint32_t bytes) {
  const bool is_large = bytes > kSmall || free_[0].empty();
  std::vector<std::byte*>& list = free_[is_large];
  if (list.empty()) {
    return std::nullopt;
  }
  const Buffer buffer{list.back(), is_large ? kLarge : kSmall};
  list.pop_back();
  return buffer;
}

}  // namespace catena::stack
