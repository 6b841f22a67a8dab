// SPDX-License-Identifier: Apache-2.0
#include "pipeline/isolation/channel.hpp"

#include "packet/memory/arena.hpp"

#include <catena/core/text.hpp>

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

namespace catena::nf_process {
namespace {

using device::remote::Fd;
using device::remote::Mapping;

/// In front of the entries of a message.
struct alignas(PacketEntry) MessageHead {
  std::atomic<std::uint32_t> packets;
};

/// Of one NF.
struct alignas(64) NfHead {
  SharedCounts counts;
  alignas(64) std::atomic<std::uint64_t> given_part;
  std::atomic<std::uint64_t> taken_part;
};

struct Heads {
  RingHead rings[2];
  NfHead nfs[kMaxNfs];
  LineRingHead lines;
};

std::size_t message_bytes(ChannelShape const& shape) {
  return sizeof(MessageHead) + std::size_t{shape.unit_packets} * sizeof(PacketEntry);
}

std::size_t ring_bytes(ChannelShape const& shape) { return message_bytes(shape) * shape.depth; }

std::size_t channel_bytes(ChannelShape const& shape) {
  return sizeof(Heads) + 2 * ring_bytes(shape) + (shape.has_lines ? kLineRingBytes : 0);
}

std::byte* message(std::span<std::byte> messages, ChannelShape const& shape, std::uint32_t number) {
  return messages.data() + message_bytes(shape) * (number & (shape.depth - 1));
}

}  // namespace

ChannelShape ChannelShape::of(std::uint32_t unit_packets, bool has_lines) {
  constexpr std::uint32_t kPackets = 16'384;
  constexpr std::uint32_t kLeast = 16;
  constexpr std::uint32_t kMost = 1024;
  return {unit_packets, std::bit_ceil(std::clamp(kPackets / unit_packets, kLeast, kMost)), has_lines};
}

std::uint32_t ChannelShape::slots() const { return std::max(memory::kMinSlots, std::bit_ceil(depth * unit_packets)); }

Result<std::pair<Fd, Fd>> make_notifier() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return absl::ResourceExhaustedError(concat("socketpair: ", std::strerror(errno)));
  }
  return std::pair(Fd(ends[0]), Fd(ends[1]));
}

void clear(int notifier) {
  std::array<std::byte, 4096> rings;
  static_cast<void>(::recv(notifier, rings.data(), rings.size(), MSG_DONTWAIT));
}

std::span<PacketEntry> RingWriter::next() const {
  std::byte* const at = message(messages_, shape_, pushed_) + sizeof(MessageHead);
  return {reinterpret_cast<PacketEntry*>(at), shape_.unit_packets};
}

void RingWriter::push(std::uint32_t packets) {
  reinterpret_cast<MessageHead*>(message(messages_, shape_, pushed_))
      ->packets.store(packets, std::memory_order_relaxed);
  ++pushed_;
  head_->pushed.store(pushed_, std::memory_order_release);
}

void RingWriter::wake() {
  // the reader arms first and looks for messages then, this writes messages first and looks then
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (head_->armed.load(std::memory_order_relaxed) != 0) {
    head_->armed.store(0, std::memory_order_relaxed);
    static_cast<void>(::send(notifier_, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL));  // where it is full, it rings already
  }
}

void RingWriter::close(bool hands_over) {
  head_->closed.store(hands_over ? kHandsOver : 1, std::memory_order_release);
  wake();
}

Result<std::optional<std::span<const PacketEntry>>> RingReader::poll() {
  const std::uint32_t waiting = head_->pushed.load(std::memory_order_acquire) - taken_;
  if (waiting == 0) {
    arm();
    return std::nullopt;
  }
  idle_polls_ = 0;
  if (waiting > shape_.depth) {
    return absl::DataLossError(concat("it claims ", waiting, " messages at once; the ring holds ", shape_.depth));
  }
  std::byte* const at = message(messages_, shape_, taken_);
  const std::uint32_t packets = reinterpret_cast<MessageHead*>(at)->packets.load(std::memory_order_relaxed);
  if (packets > shape_.unit_packets) {
    return absl::DataLossError(concat("it claims a unit of ", packets, " packets; one has ", shape_.unit_packets));
  }
  return std::span<const PacketEntry>(reinterpret_cast<PacketEntry const*>(at + sizeof(MessageHead)), packets);
}

/// Who polls looks again before it sleeps, so that a message which came meanwhile is seen.
void RingReader::arm() {
  constexpr std::uint32_t kCheckEvery = 64;  // polls, after which wake-ups without a message are cleared
  const bool is_checked = ++idle_polls_ % kCheckEvery == 0;
  if (is_armed_ && !is_checked && head_->armed.load(std::memory_order_relaxed) != 0) {
    return;
  }
  if (is_armed_) {
    clear(notifier_);
  }
  is_armed_ = true;
  head_->armed.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

Result<Channel> Channel::create(ChannelShape shape) {
  CATENA_ASSIGN_OR_RETURN(Mapping memory, Mapping::create(channel_bytes(shape)));
  return Channel(std::move(memory), shape);
}

Result<Channel> Channel::map(Fd fd, ChannelShape shape) {
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

RingHead& Channel::head(std::size_t ring) const { return memory_.as<Heads>().rings[ring]; }

std::span<std::byte> Channel::messages(std::size_t ring) const {
  return memory_.bytes().subspan(sizeof(Heads) + ring * ring_bytes(shape_), ring_bytes(shape_));
}

}  // namespace catena::nf_process
