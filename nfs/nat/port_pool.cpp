// SPDX-License-Identifier: Apache-2.0
#include "port_pool.hpp"

#include <bit>

namespace catena::nat {

void PortPool::Half::add(std::uint32_t number) {
  const std::uint32_t word = number / kWordBits;
  free[word] |= std::uint64_t{1} << (number % kWordBits);
  summary[word / kWordBits] |= std::uint64_t{1} << (word % kWordBits);
  ++count;
}

bool PortPool::Half::has(std::uint32_t number) const {
  return (free[number / kWordBits] >> (number % kWordBits) & 1U) != 0;
}

void PortPool::Half::remove(std::uint32_t number) {
  const std::uint32_t word = number / kWordBits;
  free[word] &= ~(std::uint64_t{1} << (number % kWordBits));
  if (free[word] == 0) {
    summary[word / kWordBits] &= ~(std::uint64_t{1} << (word % kWordBits));
  }
  --count;
}

/// The first word at or after `from` that is not zero, around the end. Precondition: there is one.
std::uint32_t PortPool::Half::next_word(std::uint32_t from) const {
  std::uint32_t group = from / kWordBits % kSummaryWords;
  std::uint64_t words = summary[group] >> (from % kWordBits) << (from % kWordBits);
  while (words == 0) {
    group = (group + 1) % kSummaryWords;
    words = summary[group];
  }
  return group * kWordBits + static_cast<std::uint32_t>(std::countr_zero(words));
}

/// The first free number at or after `from`, around the end. Precondition: count > 0.
std::uint32_t PortPool::Half::next_free(std::uint32_t from) const {
  const std::uint32_t word = from / kWordBits;
  if (const std::uint64_t behind = free[word] >> (from % kWordBits); behind != 0) {
    return from + static_cast<std::uint32_t>(std::countr_zero(behind));
  }
  const std::uint32_t other = next_word(word + 1);
  return other * kWordBits + static_cast<std::uint32_t>(std::countr_zero(free[other]));
}

PortPool::PortPool(std::uint16_t first, std::uint16_t last) {
  for (std::uint32_t port = first; port <= last; ++port) {
    halves_[port % 2].add(port / 2);
  }
}

std::optional<std::uint16_t> PortPool::take(std::uint16_t preferred) {
  for (const std::uint32_t parity : {preferred % 2U, 1U - preferred % 2U}) {
    Half& half = halves_[parity];
    if (half.count > 0) {
      const std::uint32_t number = half.next_free(preferred / 2U);
      half.remove(number);
      return static_cast<std::uint16_t>(number * 2 + parity);
    }
  }
  return std::nullopt;
}

bool PortPool::take_exactly(std::uint16_t port) {
  Half& half = halves_[port % 2U];
  const bool is_free = half.has(port / 2U);
  if (is_free) {
    half.remove(port / 2U);
  }
  return is_free;
}

void PortPool::give_back(std::uint16_t port) { halves_[port % 2U].add(port / 2U); }

}  // namespace catena::nat
