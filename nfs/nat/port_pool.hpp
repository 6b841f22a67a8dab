// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace catena::nat {

/// The free ports (or ICMP identifiers) of one external address and protocol. Even and odd ports are separate (RFC 4787
/// REQ-4), each as a bitmap with a summary, so taking a port reads a few words for any set of free ports. Results
/// depend only on the calls. Not thread safe.
class PortPool {
 public:
  /// Ports first .. last.
  PortPool(std::uint16_t first, std::uint16_t last);

  /// `preferred` if it is free; else the next free port of the same parity, wrapping at the end of the range; else the
  /// same search in the other parity, from the neighbour of `preferred` on. nullopt if no port is free.
  std::optional<std::uint16_t> take(std::uint16_t preferred);
  /// This port. False if it is not free, or not in this pool.
  bool take_exactly(std::uint16_t port);
  /// Precondition: the port was taken, or is not in this pool; then it is from now on.
  void give_back(std::uint16_t port);
  std::uint32_t free_count() const { return halves_[0].count + halves_[1].count; }

 private:
  static constexpr std::uint32_t kWordBits = 64;
  static constexpr std::uint32_t kWords = 65536 / 2 / kWordBits;
  static constexpr std::uint32_t kSummaryWords = kWords / kWordBits;

  /// The ports of one parity; number n is port 2n or 2n + 1.
  struct Half {
    std::array<std::uint64_t, kWords> free{};            // bit set: free
    std::array<std::uint64_t, kSummaryWords> summary{};  // bit set: that word of `free` is not zero
    std::uint32_t count = 0;

    void add(std::uint32_t number);
    bool has(std::uint32_t number) const;
    void remove(std::uint32_t number);
    std::uint32_t next_free(std::uint32_t from) const;
    std::uint32_t next_word(std::uint32_t from) const;
  };
  std::array<Half, 2> halves_{};  // even, odd
};

}  // namespace catena::nat
