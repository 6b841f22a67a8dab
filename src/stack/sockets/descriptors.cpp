// SPDX-License-Identifier: Apache-2.0
#include "stack/sockets/descriptors.hpp"

#include <atomic>

#include "stack/sockets/epoll.hpp"

namespace catena::sockets {
namespace {

// 8 MiB of addresses; only pages with descriptors in use have memory
std::atomic<Descriptor*> table[kMaxDescriptors];
std::atomic<int> end_of_table{0};

Descriptor* find_kind(int number, Kind kind) {
  Descriptor* descriptor = find(number);
  return descriptor != nullptr && descriptor->kind == kind ? descriptor : nullptr;
}

}  // namespace

Descriptor* find(int number) {
  return number < 0 || number >= kMaxDescriptors ? nullptr : table[number].load(std::memory_order_acquire);
}

Session* find_session(int number) { return static_cast<Session*>(find_kind(number, Kind::kSession)); }
Listener* find_listener(int number) { return static_cast<Listener*>(find_kind(number, Kind::kListener)); }
EpollSet* find_epoll(int number) { return static_cast<EpollSet*>(find_kind(number, Kind::kEpoll)); }

bool add(Descriptor* descriptor) {
  const int number = descriptor->number;
  if (number < 0 || number >= kMaxDescriptors) {
    return false;
  }
  table[number].store(descriptor, std::memory_order_release);
  int end = end_of_table.load();
  while (end <= number && !end_of_table.compare_exchange_weak(end, number + 1)) {
  }
  return true;
}

void remove(Descriptor* descriptor) {
  table[descriptor->number].store(nullptr, std::memory_order_release);
  drop_watches(*descriptor);
  switch (descriptor->kind) {
    case Kind::kListener:
      delete static_cast<Listener*>(descriptor);
      break;
    case Kind::kSession:
      delete static_cast<Session*>(descriptor);
      break;
    case Kind::kEpoll:
      delete static_cast<EpollSet*>(descriptor);
      break;
  }
}

Descriptor* next_from(int from) {
  const int end = end_of_table.load();
  for (int number = from < 0 ? 0 : from; number < end; ++number) {
    if (Descriptor* descriptor = find(number)) {
      return descriptor;
    }
  }
  return nullptr;
}

}  // namespace catena::sockets
