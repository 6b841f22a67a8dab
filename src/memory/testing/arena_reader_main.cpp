// SPDX-License-Identifier: Apache-2.0
// Another process that maps an arena, for arena_test.
//   arena_reader walk FD BEGIN END   says in lines what is in every structure; ends with status 1 where something is in
//                                    two places or in none, or where the arena holds an address between BEGIN and END
//   arena_reader forward FD          takes the units of queue 0, has them dropped, and puts them into queue 1
#include "memory/arena.hpp"
#include "memory/testing/arena_text.hpp"
#include "memory/unit_queue.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string_view>
#include <vector>

namespace catena::memory {
namespace {

using testing::line;

std::vector<std::uint32_t> inside(IndexRing const& ring) {
  std::vector<std::uint32_t> indices(ring.size());
  if (!ring.peek(indices)) {
    std::cout << "a ring with an index that cannot be\n";
    std::exit(1);
  }
  return indices;
}

void print_list(std::string_view name, std::vector<std::uint32_t> const& indices) {
  std::cout << name;
  for (const std::uint32_t index : indices) {
    std::cout << ' ' << index;
  }
  std::cout << '\n';
}

void print_unit(Arena const& arena, std::uint32_t number) {
  Unit const& unit = arena.unit(number);
  std::cout << line("unit", number, unit.count, unit.host_fallback, unit.quarantined, unit.first_index, unit.end_index,
                    unit.arrival_ns);
  packet::MetaColumns const& meta = arena.meta();
  for (const std::uint32_t slot : unit.used_slots()) {
    packet::Layers const& layers = meta.layers[slot];
    const std::span<const std::uint8_t> frame(arena.slot(slot) + meta.offset[slot], meta.length[slot]);
    std::cout << line("packet", slot, meta.offset[slot], meta.length[slot], meta.verdict[slot], meta.port[slot],
                      meta.index[slot], meta.arrival_ns[slot], meta.rewritten[slot], meta.ingress[slot], meta.mtu[slot],
                      layers.l3, layers.l4, layers.payload, layers.flags, layers.payload_length, layers.l3_length,
                      testing::digest(frame));
  }
}

/// Counts where each index is; every one has to be in exactly one place.
void count(std::vector<std::uint32_t> const& indices, std::vector<int>& places) {
  for (const std::uint32_t index : indices) {
    ++places[index];
  }
}

bool each_once(std::string_view what, std::vector<int> const& places) {
  bool right = true;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i] != 1) {
      std::cout << what << ' ' << i << " is in " << places[i] << " places\n";
      right = false;
    }
  }
  return right;
}

/// Whether a word of the whole object is an address of whoever made it.
bool holds_address(int fd, std::uintptr_t begin, std::uintptr_t end) {
  struct stat found {};
  fstat(fd, &found);
  std::vector<std::uint64_t> words(static_cast<std::size_t>(found.st_size) / sizeof(std::uint64_t));
  if (pread(fd, words.data(), words.size() * sizeof(std::uint64_t), 0) != found.st_size) {
    std::cout << "cannot be read whole\n";
    return true;
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] >= begin && words[i] < end) {
      std::cout << "an address at byte " << i * sizeof(std::uint64_t) << '\n';
      return true;
    }
  }
  return false;
}

int walk(Arena const& arena, std::uintptr_t begin, std::uintptr_t end) {
  std::cout << line("arena", arena.shape().slots, arena.shape().unit_packets, arena.shape().queues, arena.units());
  std::vector<int> slots(arena.shape().slots);
  std::vector<int> units(arena.units());
  print_list("free slots", inside(arena.free_slots()));
  print_list("free units", inside(arena.free_units()));
  count(inside(arena.free_slots()), slots);
  count(inside(arena.free_units()), units);
  for (std::uint32_t queue = 0; queue < arena.shape().queues; ++queue) {
    const std::vector<std::uint32_t> numbers = inside(arena.queue(queue));
    std::cout << line("queue", queue, numbers.size(), arena.queue(queue).is_closed());
    count(numbers, units);
    for (const std::uint32_t number : numbers) {
      print_unit(arena, number);
      const auto used = arena.unit(number).used_slots();
      count({used.begin(), used.end()}, slots);
    }
  }
  return each_once("slot", slots) && each_once("unit", units) && !holds_address(arena.fd(), begin, end) ? 0 : 1;
}

int forward(Arena& arena) {
  UnitQueue in(arena, 0);
  UnitQueue out(arena, 1);
  while (Unit* unit = in.pop()) {
    const packet::Batch batch = arena.batch(*unit);
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      batch[i].set_verdict(packet::Verdict::kDrop);
    }
    out.push(unit);
  }
  out.close();
  return 0;
}

int run(std::vector<std::string_view> const& arguments) {
  const int fd = std::atoi(arguments.at(2).data());
  const bool walks = arguments.at(1) == "walk";
  const auto arena = Arena::map(fd, walks ? Arena::Access::kRead : Arena::Access::kReadWrite);
  if (!arena.ok()) {
    std::cout << arena.status().message() << '\n';
    return 2;
  }
  return walks ? walk(**arena, std::strtoull(arguments.at(3).data(), nullptr, 10),
                      std::strtoull(arguments.at(4).data(), nullptr, 10))
               : forward(**arena);
}

}  // namespace
}  // namespace catena::memory

int main(int argc, char** argv) { return catena::memory::run({argv, argv + argc}); }
