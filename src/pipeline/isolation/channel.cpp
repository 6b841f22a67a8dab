// SPDX-License-Identifier: Apache-2.0
#include "pipeline/isolation/channel.hpp"

#include "packet/memory/arena.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace catena::nf_process {
namespace {

using ipc::Mapping;

/// Of one NF.
struct alignas(64) NfHead {
  SharedCounts counts;
  alignas(64) std::atomic<std::uint64_t> given_part;
  std::atomic<std::uint64_t> taken_part;
};

struct Heads {
  ipc::RingHead rings[2];
  NfHead nfs[kMaxNfs];
  LineRingHead lines;
};

std::size_t ring_bytes(ChannelShape const& shape) {
  return ipc::RingMessages<PacketEntry>::bytes({shape.unit_packets, shape.depth});
}

std::size_t channel_bytes(ChannelShape const& shape) {
  return sizeof(Heads) + 2 * ring_bytes(shape) + (shape.has_lines ? kLineRingBytes : 0);
}

}  // namespace

ChannelShape ChannelShape::of(std::uint32_t unit_packets, bool has_lines) {
  constexpr std::uint32_t kPackets = 16'384;
  constexpr std::uint32_t kLeast = 16;
  constexpr std::uint32_t kMost = 1024;
  return {unit_packets, std::bit_ceil(std::clamp(kPackets / unit_packets, kLeast, kMost)), has_lines};
}

std::uint32_t ChannelShape::slots() const { return std::max(memory::kMinSlots, std::bit_ceil(depth * unit_packets)); }

Result<Channel> Channel::create(ChannelShape shape) {
  CATENA_ASSIGN_OR_RETURN(Mapping memory, Mapping::create("catena_nf", channel_bytes(shape)));
  return Channel(std::move(memory), shape);
}

Result<Channel> Channel::map(FileDescriptor fd, ChannelShape shape) {
  CATENA_ASSIGN_OR_RETURN(Mapping memory, Mapping::map(std::move(fd), channel_bytes(shape)));
  return Channel(std::move(memory), shape);
}

SharedCounts& Channel::counts(std::size_t nf) const { return memory_.as<Heads>().nfs[nf].counts; }

void Channel::give_part(std::size_t nf, GpuPart part) const {
  memory_.as<Heads>().nfs[nf].given_part.store(std::bit_cast<std::uint64_t>(part), std::memory_order_relaxed);
}

GpuPart Channel::given_part(std::size_t nf) const {
  return std::bit_cast<GpuPart>(memory_.as<Heads>().nfs[nf].given_part.load(std::memory_order_relaxed));
}

void Channel::take_part(std::size_t nf, GpuPart part) const {
  memory_.as<Heads>().nfs[nf].taken_part.store(std::bit_cast<std::uint64_t>(part), std::memory_order_relaxed);
}

GpuPart Channel::taken_part(std::size_t nf) const {
  return std::bit_cast<GpuPart>(memory_.as<Heads>().nfs[nf].taken_part.load(std::memory_order_relaxed));
}

LineRingHead& Channel::line_head() const { return memory_.as<Heads>().lines; }

std::span<std::byte> Channel::line_ring() const {
  return memory_.bytes().subspan(sizeof(Heads) + 2 * ring_bytes(shape_), kLineRingBytes);
}

ipc::RingHead& Channel::head(std::size_t ring) const { return memory_.as<Heads>().rings[ring]; }

ipc::RingMessages<PacketEntry> Channel::messages(std::size_t ring) const {
  return {memory_.bytes().subspan(sizeof(Heads) + ring * ring_bytes(shape_), ring_bytes(shape_)),
          {shape_.unit_packets, shape_.depth}};
}

}  // namespace catena::nf_process
