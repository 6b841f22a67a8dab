// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

/// Maglev hashing (Eisenbud et al.: "Maglev: A Fast and Reliable Software Network Load Balancer", NSDI 2016, section
/// 3.4): a table of prime size M whose entries name backends. Each backend has a permutation of the entries, made from
/// its name alone: entry number j is (offset + j * skip) mod M. The backends take turns. At its turn a backend takes
/// the first free entry of its permutation. So entries are shared evenly, and removing a backend moves few entries
/// besides its own.
///
/// Weights change the frequency of turns, as the paper suggests: the k-th turn of a backend of weight w comes at the
/// virtual time (k - 1/2) / w, which does not depend on the other backends. So without another backend a table is
/// filled in the same order, except for that backend's turns.
namespace catena::lb {

/// A backend's order of preference for the entries of a table.
struct Permutation {
  std::uint32_t offset;  ///< below the table's size
  std::uint32_t skip;    ///< 1 to the table's size - 1
  std::uint32_t weight;  ///< at least 1
  std::uint16_t number;  ///< value of the table's entries; below 0xFFFF
};
/// Fills the table by turns of the permutations; simultaneous turns go in list order. `size`: a prime. Pure.
std::vector<std::uint16_t> fill_maglev_table(std::span<const Permutation> permutations, std::uint32_t size);

/// A backend in a table.
struct MaglevMember {
  std::string_view name;  ///< unique within a table
  std::uint32_t weight;   ///< at least 1
  std::uint16_t number;   ///< below 0xFFFF
};

/// Copies share the immutable entries.
class MaglevTable {
 public:
  /// Without entries: empty().
  MaglevTable() = default;
  /// Deterministic for the same members in any order, in every process. `size`: a prime. Without members the table is
  /// empty().
  MaglevTable(std::span<const MaglevMember> members, std::uint32_t size);

  bool empty() const { return entries_ == nullptr; }
  /// The number of the backend for a flow with this hash. Precondition: not empty().
  std::uint16_t find(std::uint64_t hash) const { return (*entries_)[((hash >> 32) * entries_->size()) >> 32]; }
  std::span<const std::uint16_t> entries() const {
    return empty() ? std::span<const std::uint16_t>() : std::span(*entries_);
  }

 private:
  std::shared_ptr<const std::vector<std::uint16_t>> entries_;
};

/// True if `number` is a prime.
bool is_prime(std::uint32_t number);
/// The smallest prime not below `number`; `number` at most 2^31.
std::uint32_t next_prime(std::uint32_t number);

}  // namespace catena::lb
