// SPDX-License-Identifier: Apache-2.0
#include "packet/memory/free_slots.hpp"

#include <bit>

namespace catena::memory {
namespace {

constexpr std::uint32_t kWordBits = 64;

/// The lowest `wanted` of the bits that are set, or all of them.
std::uint64_t lowest(std::uint64_t bits, std::uint32_t wanted) {
  const auto there = static_cast<std::uint32_t>(std::popcount(bits));
  if (there <= wanted) {
    return bits;
  }
  std::uint64_t rest = bits;
  for (std::uint32_t i = 0; i < wanted; ++i) {
    rest &= rest - 1;
  }
  return bits & ~rest;
}

}  // namespace

FreeSlots::FreeSlots(std::uint32_t slots, bool are_free)
    : words_(slots / kWordBits), unreserved_(are_free ? slots : 0) {
  for (std::atomic<std::uint64_t>& word : words_) {
    word.store(are_free ? ~std::uint64_t{0} : 0, std::memory_order_relaxed);
  }
}

bool FreeSlots::reserve(std::uint32_t wanted) {
  std::uint32_t there = unreserved_.load(std::memory_order_relaxed);
  do {
    if (there < wanted) {
      return false;
    }
  } while (
      !unreserved_.compare_exchange_weak(there, there - wanted, std::memory_order_acquire, std::memory_order_relaxed));
  return true;
}

bool FreeSlots::acquire(std::span<std::uint32_t> slots) {
  const auto wanted = static_cast<std::uint32_t>(slots.size());
  if (!reserve(wanted)) {
    return false;
  }
  const std::uint32_t from = cursor_.load(std::memory_order_relaxed);
  std::uint32_t word = from / kWordBits;
  // the rest of its first word; that word's beginning comes last, after a round
  std::uint64_t visible = ~std::uint64_t{0} << (from % kWordBits);
  std::uint32_t taken = 0;
  while (taken < wanted) {
    std::atomic<std::uint64_t>& bits = words_[word];
    if (std::uint64_t mine = lowest(bits.load(std::memory_order_relaxed) & visible, wanted - taken); mine != 0) {
      mine &= bits.fetch_and(~mine, std::memory_order_acquire);  // another thread may have been faster
      for (; mine != 0; mine &= mine - 1) {
        slots[taken++] = word * kWordBits + static_cast<std::uint32_t>(std::countr_zero(mine));
      }
    }
    if (taken < wanted) {
      visible = ~std::uint64_t{0};
      word = word + 1 == words_.size() ? 0 : word + 1;
    }
  }
  if (wanted != 0) {
    cursor_.store(slots.back() + 1 == words_.size() * kWordBits ? 0 : slots.back() + 1, std::memory_order_relaxed);
  }
  return true;
}

void FreeSlots::release(std::span<const std::uint32_t> slots) {
  std::uint32_t released = 0;
  for (std::size_t i = 0; i < slots.size();) {
    // all that are neighbours in a word at once
    const std::uint32_t word = slots[i] / kWordBits;
    std::uint64_t bits = 0;
    for (; i < slots.size() && slots[i] / kWordBits == word; ++i) {
      bits |= std::uint64_t{1} << (slots[i] % kWordBits);
    }
    const std::uint64_t before = words_[word].fetch_or(bits, std::memory_order_release);
    released += static_cast<std::uint32_t>(std::popcount(bits & ~before));
  }
  unreserved_.fetch_add(released, std::memory_order_release);
}

std::uint32_t FreeSlots::count() const { return unreserved_.load(std::memory_order_acquire); }

}  // namespace catena::memory
