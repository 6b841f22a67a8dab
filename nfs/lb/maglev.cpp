// SPDX-License-Identifier: Apache-2.0
#include "maglev.hpp"

#include <algorithm>

#include "hash.hpp"

namespace catena::lb {
namespace {

constexpr std::uint16_t kFree = 0xFFFF;

/// A backend while the table is filled.
struct Player {
  Permutation permutation;
  std::uint32_t next;        ///< the entry that it tries next
  std::uint64_t half_turns;  ///< 2k - 1, its next turn being the k-th
  std::uint32_t position;    ///< in the list
};

/// Whether the next turn of `a` comes after that of `b`: (2k - 1) / weight compared without rounding.
bool is_later(Player const& a, Player const& b) {
  const std::uint64_t left = a.half_turns * b.permutation.weight;
  const std::uint64_t right = b.half_turns * a.permutation.weight;
  return left != right ? left > right : a.position > b.position;
}

/// Takes the player's first entry that is still free. There must be one.
void take_turn(Player& player, std::vector<std::uint16_t>& entries) {
  const auto size = static_cast<std::uint32_t>(entries.size());
  std::uint32_t entry = 0;
  do {
    entry = player.next;
    const std::uint32_t left = size - entry;
    const std::uint32_t skip = player.permutation.skip;
    player.next = skip >= left ? skip - left : entry + skip;
  } while (entries[entry] != kFree);
  entries[entry] = player.permutation.number;
}

}  // namespace

std::vector<std::uint16_t> fill_maglev_table(std::span<const Permutation> permutations, std::uint32_t size) {
  std::vector<Player> waiting;
  for (Permutation const& permutation : permutations) {
    waiting.push_back({permutation, permutation.offset, 1, static_cast<std::uint32_t>(waiting.size())});
  }
  std::make_heap(waiting.begin(), waiting.end(), is_later);
  std::vector<std::uint16_t> entries(size, kFree);
  for (std::uint32_t turn = 0; turn < size; ++turn) {
    std::pop_heap(waiting.begin(), waiting.end(), is_later);
    take_turn(waiting.back(), entries);
    waiting.back().half_turns += 2;
    std::push_heap(waiting.begin(), waiting.end(), is_later);
  }
  return entries;
}

MaglevTable::MaglevTable(std::span<const MaglevMember> members, std::uint32_t size) {
  if (members.empty()) {
    return;
  }
  std::vector<MaglevMember> by_name(members.begin(), members.end());
  std::sort(by_name.begin(), by_name.end(),
            [](MaglevMember const& a, MaglevMember const& b) { return a.name < b.name; });
  std::vector<Permutation> permutations;
  for (MaglevMember const& member : by_name) {
    const std::uint64_t hash = hash_name(member.name);
    permutations.push_back({.offset = static_cast<std::uint32_t>(hash % size),
                            .skip = static_cast<std::uint32_t>(mix(~hash) % (size - 1) + 1),
                            .weight = member.weight,
                            .number = member.number});
  }
  entries_ = std::make_shared<const std::vector<std::uint16_t>>(fill_maglev_table(permutations, size));
}

bool is_prime(std::uint32_t number) {
  for (std::uint32_t divisor = 2; std::uint64_t{divisor} * divisor <= number; ++divisor) {
    if (number % divisor == 0) {
      return false;
    }
  }
  return number >= 2;
}

std::uint32_t next_prime(std::uint32_t number) {
  while (!is_prime(number)) {
    ++number;
  }
  return number;
}

}  // namespace catena::lb
