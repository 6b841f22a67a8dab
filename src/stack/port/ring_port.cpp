// SPDX-License-Identifier: Apache-2.0
#include "stack/port/ring_port.hpp"

#include <catena/core/text.hpp>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/ipc/mapping.hpp"
#include "base/ipc/ring.hpp"
#include "base/ipc/unix_address.hpp"
#include "stack/port/vnet.hpp"

namespace catena::stack {
namespace {

using packet::VnetHeader;

/// A message is a FrameHead and the frame, in words.
struct alignas(4) Word {
  std::array<std::byte, 4> bytes;
};
using Messages = ipc::RingMessages<Word>;
struct FrameHead {
  VnetHeader vnet;
  std::uint32_t bytes = 0;  ///< of the frame
};
constexpr std::uint32_t words_of(std::size_t bytes) {
  return static_cast<std::uint32_t>((bytes + sizeof(Word) - 1) / sizeof(Word));
}
constexpr ipc::RingShape kShape{.max_entries = words_of(sizeof(FrameHead) + kMaxFrame), .depth = 256};
constexpr std::uint32_t kGreeting = 0x52494E31;  ///< "RIN1": the layout below
constexpr std::uint32_t kCheckEvery = 64;        ///< polls without a frame, for a peer that has left

/// One direction: its state, then the messages.
struct Direction {
  ipc::RingHead head;
  alignas(64) std::atomic<std::uint32_t> taken;  ///< messages that the reader is done with
};
/// Pages for the messages of each direction.
std::size_t direction_bytes() {
  constexpr std::size_t kPage = 4096;
  return (sizeof(Direction) + Messages::bytes(kShape) + kPage - 1) / kPage * kPage;
}

Status socket_error(std::string_view action) {
  return absl::UnavailableError(concat(action, ": ", std::strerror(errno)));
}

}  // namespace

struct RingPort::Link {
  Link(FileDescriptor peer, ipc::Mapping mapping, bool is_first)
      : socket(std::move(peer)),
        memory(std::move(mapping)),
        outgoing(direction(is_first ? 0 : 1)),
        incoming(direction(is_first ? 1 : 0)),
        writer(outgoing.head, messages(is_first ? 0 : 1), socket.get()),
        reader(incoming.head, messages(is_first ? 1 : 0), socket.get()) {}
  Direction& direction(std::size_t number) const {
    return *reinterpret_cast<Direction*>(memory.bytes().data() + number * direction_bytes());
  }
  Messages messages(std::size_t number) const {
    const std::size_t at = number * direction_bytes() + sizeof(Direction);
    return {memory.bytes().subspan(at, Messages::bytes(kShape)), kShape};
  }

  FileDescriptor socket;
  ipc::Mapping memory;
  Direction& outgoing;
  Direction& incoming;
  ipc::RingWriter<Word> writer;
  ipc::RingReader<Word> reader;
  std::uint32_t pushed = 0;
  std::uint32_t taken = 0;
  std::uint32_t idle_polls = 0;
};

RingPort::RingPort(std::string path)
    : path_(std::move(path)), epoll_(::epoll_create1(EPOLL_CLOEXEC)), buffer_(sizeof(Word) * kShape.max_entries) {}

RingPort::~RingPort() {
  if (listener_) {
    ::unlink(path_.c_str());
  }
}

Result<std::unique_ptr<RingPort>> RingPort::open(std::string const& path) {
  CATENA_ASSIGN_OR_RETURN(const sockaddr_un address, ipc::unix_address(path));
  std::unique_ptr<RingPort> port(new RingPort(path));
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket || !port->epoll_) {
    return socket_error("socket");
  }
  if (::connect(socket.get(), ipc::raw(address), sizeof address) == 0) {
    CATENA_ASSIGN_OR_RETURN(ipc::Mapping memory, ipc::Mapping::create("catena-ring-port", 2 * direction_bytes()));
    CATENA_RETURN_IF_ERROR(ipc::send_frame(socket.get(), kGreeting, {}, memory.fd()));
    CATENA_RETURN_IF_ERROR(port->link(std::move(socket), memory.take_fd(), true));
    return port;
  }
  if (errno == ECONNREFUSED) {
    ::unlink(path.c_str());  // its process has ended
  }
  port->listener_ = FileDescriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int listener = port->listener_.get();
  if (listener < 0 || ::fchmod(listener, S_IRUSR | S_IWUSR) != 0 ||
      ::bind(listener, ipc::raw(address), sizeof address) != 0 || ::listen(listener, 1) != 0) {
    const Status failure = socket_error(concat("socket ", path));
    port->listener_ = FileDescriptor();  // what is there is another's
    return failure;
  }
  port->watch(listener, true);
  return port;
}

void RingPort::watch(int fd, bool is_on) const {
  epoll_event event{};
  event.events = EPOLLIN;
  (void)::epoll_ctl(epoll_.get(), is_on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, fd, &event);
}

Status RingPort::link(FileDescriptor socket, FileDescriptor memory, bool is_first) {
  CATENA_ASSIGN_OR_RETURN(ipc::Mapping mapping, ipc::Mapping::map(std::move(memory), 2 * direction_bytes()));
  watch(socket.get(), true);
  if (listener_) {
    watch(listener_.get(), false);  // one peer at a time
  }
  link_ = std::make_unique<Link>(std::move(socket), std::move(mapping), is_first);
  return absl::OkStatus();
}

void RingPort::unlink() {
  link_.reset();
  if (listener_) {
    watch(listener_.get(), true);
  }
}

void RingPort::meet() {
  if (!guest_) {
    guest_ = FileDescriptor(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!guest_) {
      return;
    }
    watch(guest_.get(), true);
    greeting_ = {};
  }
  Result<std::optional<ipc::Frame>> greeting = greeting_.poll(guest_.get(), 0);
  if (greeting.ok() && !*greeting) {
    return;
  }
  watch(guest_.get(), false);
  FileDescriptor guest = std::move(guest_);
  guest_ = FileDescriptor();
  if (greeting.ok() && (*greeting)->call == kGreeting && (*greeting)->fd) {
    (void)link(std::move(guest), std::move((*greeting)->fd), false);  // memory that cannot be mapped: no peer
  }
}

bool RingPort::send(OutgoingFrame const& frame) {
  const bool has_room = link_ != nullptr && frame.bytes <= kMaxFrame &&
                        link_->pushed - link_->outgoing.taken.load(std::memory_order_acquire) < kShape.depth;
  ++(has_room ? counters_.sent : counters_.no_room);
  if (!has_room) {
    return false;
  }
  const FrameHead head{.vnet = vnet_header(frame), .bytes = frame.bytes};
  std::byte* to = link_->writer.next().data()->bytes.data();
  std::memcpy(to, &head, sizeof head);
  to += sizeof head;
  for (std::span<const std::byte> const& part : frame.parts) {
    to = std::ranges::copy(part, to).out;
  }
  link_->writer.push(words_of(sizeof head + frame.bytes));
  ++link_->pushed;
  link_->writer.wake();
  return true;
}

std::optional<std::span<const std::byte>> RingPort::receive() {
  for (;;) {
    if (link_ == nullptr) {
      if (!listener_ || (meet(), link_ == nullptr)) {
        return std::nullopt;
      }
    }
    auto message = link_->reader.poll();
    if (message.ok() && !*message) {
      message = link_->reader.poll();  // once more, now that a frame would wake us
    }
    if (!message.ok()) {
      unlink();
      continue;
    }
    if (!*message) {
      if (++link_->idle_polls % kCheckEvery == 0 && ipc::is_other_end_closed(link_->socket.get())) {
        unlink();
        continue;
      }
      return std::nullopt;
    }
    // the peer may change its memory: one copy is checked and used
    const std::span<const std::byte> bytes = std::as_bytes(**message);
    std::ranges::copy(bytes, buffer_.begin());
    link_->reader.take();
    link_->incoming.taken.store(++link_->taken, std::memory_order_release);
    ++counters_.received;
    FrameHead head{};
    std::memcpy(&head, buffer_.data(), std::min(bytes.size(), sizeof head));
    if (sizeof head + std::size_t{head.bytes} <= bytes.size()) {
      const std::span<const std::byte> frame = std::span(buffer_).subspan(sizeof head, head.bytes);
      if (is_intact(head.vnet, frame)) {
        return frame;
      }
    }
    ++counters_.bad_checksum;
  }
}

}  // namespace catena::stack
