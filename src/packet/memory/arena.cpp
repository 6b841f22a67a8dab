// SPDX-License-Identifier: Apache-2.0
#include "packet/memory/arena.hpp"

#include "base/ipc/shared_memory.hpp"

#include <catena/core/text.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <vector>

namespace catena::memory {
namespace {

/// A device pins whole pages, and the columns without their neighbours.
constexpr std::size_t kPageBytes = 4096;

/// Where the parts of an arena besides the slots begin, in bytes from its first one.
struct Layout {
  std::size_t offset, length, layers, verdict, port, index, arrival_ns, rewritten, ingress, mtu, output;
  std::size_t units, unit_bytes;
  std::size_t free_units, queues;
  std::size_t bytes;
};

/// Hands out room behind what was handed out before.
class Mapping {
 public:
  std::size_t take(std::size_t bytes, std::size_t align) {
    const std::size_t begin = (end_ + align - 1) / align * align;
    end_ = begin + bytes;
    return begin;
  }
  template <typename T>
  std::size_t column(std::uint32_t slots) {
    return take(slots * sizeof(T), kPageBytes);
  }
  std::size_t ring(std::uint32_t entries) {
    return take(sizeof(RingState) + std::size_t{entries} * sizeof(std::uint32_t), alignof(RingState));
  }

 private:
  std::size_t end_ = 0;
};

/// Entries of the rings that units are in.
std::uint32_t unit_entries(ArenaShape const& shape) { return std::bit_ceil(shape.units); }

/// `columns`: entries of those, one for each slot or, where they are another arena's, none.
Layout layout_of(ArenaShape const& shape, std::uint32_t columns) {
  Mapping mapping;
  Layout layout{};
  layout.offset = mapping.column<std::uint16_t>(columns);
  layout.length = mapping.column<std::uint16_t>(columns);
  layout.layers = mapping.column<packet::Layers>(columns);
  layout.verdict = mapping.column<std::uint8_t>(columns);
  layout.port = mapping.column<std::uint16_t>(columns);
  layout.index = mapping.column<std::uint64_t>(columns);
  layout.arrival_ns = mapping.column<std::uint64_t>(columns);
  layout.rewritten = mapping.column<std::uint8_t>(columns);
  layout.ingress = mapping.column<std::uint16_t>(columns);
  layout.mtu = mapping.column<std::uint16_t>(columns);
  layout.output = mapping.column<std::uint16_t>(columns);
  const std::size_t unit = sizeof(Unit) + shape.unit_packets * sizeof(std::uint32_t);
  layout.unit_bytes = (unit + alignof(Unit) - 1) / alignof(Unit) * alignof(Unit);
  layout.units = mapping.take(shape.units * layout.unit_bytes, kPageBytes);
  layout.free_units = mapping.ring(unit_entries(shape));
  layout.queues = mapping.take(0, alignof(RingState));
  for (std::uint32_t queue = 0; queue < shape.queues; ++queue) {
    mapping.ring(unit_entries(shape));
  }
  layout.bytes = mapping.take(0, kPageBytes);
  return layout;
}

Status check(ArenaShape const& shape) {
  if (shape.slots < kMinSlots || shape.slots > kMaxSlots || !std::has_single_bit(shape.slots)) {
    return absl::InvalidArgumentError(
        concat("a packet pool of ", shape.slots, " slots: write a power of two from ", kMinSlots, " to ", kMaxSlots));
  }
  if (const std::uint32_t most = std::min(kMaxUnitPackets, shape.slots / 2);
      shape.unit_packets == 0 || shape.unit_packets > most) {
    return absl::InvalidArgumentError(concat("units of ", shape.unit_packets, " packets: write 1 to ", most,
                                             " for a pool of ", shape.slots, " slots"));
  }
  if (shape.queues > kMaxQueues) {
    return absl::InvalidArgumentError(
        concat("a packet pool with ", shape.queues, " queues of units: at most ", kMaxQueues));
  }
  if (shape.units == 0 || shape.units > kMaxUnits) {
    return absl::InvalidArgumentError(concat("a packet pool with ", shape.units, " units: write 1 to ", kMaxUnits));
  }
  return absl::OkStatus();
}

Status refused(std::string const& why, std::size_t bytes, std::uint32_t slots) {
  return absl::ResourceExhaustedError(
      concat("packet pool: ", (bytes + (1U << 20) - 1) >> 20, " MiB for ", slots, " slots: ", why));
}

/// The call has just failed.
Status call_refused(std::string_view call, std::size_t bytes, std::uint32_t slots) {
  return refused(concat(call, ": ", std::strerror(errno)), bytes, slots);
}

}  // namespace

Result<std::unique_ptr<Arena>> Arena::create(ArenaShape const& shape) {
  CATENA_RETURN_IF_ERROR(check(shape));
  const std::size_t bytes = std::size_t{shape.slots} * packet::kSlotBytes;
  std::unique_ptr<Arena> arena(new Arena);
  arena->shape_ = shape;
  Result<FileDescriptor> memory = ipc::make_shared_memory("catena_packets", bytes, ipc::Pages::kNow);
  if (!memory.ok()) {
    return refused(std::string(memory.status().message()), bytes, shape.slots);
  }
  arena->fd_ = memory->release();
  CATENA_RETURN_IF_ERROR(arena->map_slots());
  CATENA_RETURN_IF_ERROR(arena->make_rest());
  arena->own_free_slots_ = std::make_unique<FreeSlots>(shape.slots, /*are_free=*/true);
  arena->free_slots_ = arena->own_free_slots_.get();
  return arena;
}

Result<std::unique_ptr<Arena>> Arena::create_over(ArenaShape const& shape, int fd) {
  CATENA_RETURN_IF_ERROR(check(shape));
  const std::size_t bytes = std::size_t{shape.slots} * packet::kSlotBytes;
  struct stat found {};
  if (fstat(fd, &found) != 0 || static_cast<std::size_t>(found.st_size) != bytes) {
    return absl::InvalidArgumentError(
        concat("file descriptor ", fd, " is not the packet memory of ", shape.slots, " slots"));
  }
  if (const int seals = fcntl(fd, F_GET_SEALS); seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return absl::InvalidArgumentError("the owner can still shrink the packet memory: seal it with F_SEAL_SHRINK");
  }
  std::unique_ptr<Arena> arena(new Arena);
  arena->shape_ = shape;
  arena->fd_ = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (arena->fd_ < 0) {
    return call_refused("dup", bytes, shape.slots);
  }
  CATENA_RETURN_IF_ERROR(arena->map_slots());
  CATENA_RETURN_IF_ERROR(arena->make_rest());
  arena->own_free_slots_ = std::make_unique<FreeSlots>(shape.slots, /*are_free=*/false);
  arena->free_slots_ = arena->own_free_slots_.get();
  return arena;
}

Result<std::unique_ptr<Arena>> Arena::create_beside(Arena const& first, ArenaShape const& shape) {
  CATENA_RETURN_IF_ERROR(check(shape));
  if (shape.slots != first.shape_.slots) {
    return absl::InvalidArgumentError(
        concat("packet memory of ", first.shape_.slots, " slots cannot serve as one of ", shape.slots));
  }
  std::unique_ptr<Arena> arena(new Arena);
  arena->shape_ = shape;
  arena->first_ = &first;
  arena->fd_ = first.fd_;
  arena->slots_ = first.slots_;
  CATENA_RETURN_IF_ERROR(arena->make_rest());
  arena->free_slots_ = first.free_slots_;
  return arena;
}

Status Arena::map_slots() {
  const std::size_t bytes = std::size_t{shape_.slots} * packet::kSlotBytes;
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_, 0);
  if (mapped == MAP_FAILED) {
    return call_refused("mmap", bytes, shape_.slots);
  }
  slots_ = static_cast<std::uint8_t*>(mapped);
  return absl::OkStatus();
}

Status Arena::make_rest() {
  const ArenaShape& shape = shape_;
  const Layout layout = layout_of(shape, first_ == nullptr ? shape.slots : 0);
  void* mapped = mmap(nullptr, layout.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (mapped == MAP_FAILED) {
    return call_refused("mmap", layout.bytes, shape.slots);
  }
  bytes_ = layout.bytes;
  memory_ = static_cast<std::byte*>(mapped);
  const auto column = [this]<typename T>(T*& place, std::size_t at) { place = reinterpret_cast<T*>(memory_ + at); };
  column(meta_.offset, layout.offset);
  column(meta_.length, layout.length);
  column(meta_.layers, layout.layers);
  column(meta_.verdict, layout.verdict);
  column(meta_.port, layout.port);
  column(meta_.index, layout.index);
  column(meta_.arrival_ns, layout.arrival_ns);
  column(meta_.rewritten, layout.rewritten);
  column(meta_.ingress, layout.ingress);
  column(meta_.mtu, layout.mtu);
  column(meta_.output, layout.output);
  if (first_ != nullptr) {
    meta_ = first_->meta_;
  }
  first_unit_ = memory_ + layout.units;
  unit_bytes_ = layout.unit_bytes;

  const auto ring = [this](std::size_t at, std::uint32_t entries, std::uint32_t limit, IndexRing::Ends ends) {
    auto* state = reinterpret_cast<RingState*>(memory_ + at);
    return std::make_unique<IndexRing>(*state, std::span(reinterpret_cast<std::uint32_t*>(state + 1), entries), limit,
                                       ends);
  };
  free_units_ = ring(layout.free_units, unit_entries(shape), shape.units, IndexRing::Ends::kManyEach);
  Mapping mapping;
  mapping.take(layout.queues, 1);
  for (std::uint32_t queue = 0; queue < shape.queues; ++queue) {
    queues_.push_back(
        ring(mapping.ring(unit_entries(shape)), unit_entries(shape), shape.units, IndexRing::Ends::kOneEach));
  }
  // new memory is zero: only what is not has to be written
  for (std::uint32_t number = 0; number < units(); ++number) {
    new (&unit(number)) Unit;
    free_units_->push(std::span(&number, 1));
  }
  return absl::OkStatus();
}

Arena::~Arena() {
  if (memory_ != nullptr) {
    munmap(memory_, bytes_);
  }
  if (first_ != nullptr) {
    return;
  }
  if (slots_ != nullptr) {
    munmap(slots_, slot_bytes().size());
  }
  if (fd_ >= 0) {
    close(fd_);
  }
}

std::span<std::byte> Arena::slot_bytes() const {
  return std::as_writable_bytes(std::span(slots_, std::size_t{shape_.slots} * packet::kSlotBytes));
}

}  // namespace catena::memory
