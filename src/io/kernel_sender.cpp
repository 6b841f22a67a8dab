// SPDX-License-Identifier: Apache-2.0
#include "io/kernel_sender.hpp"

#include "io/interface.hpp"

#include <linux/if_packet.h>
#include <poll.h>
#include <unistd.h>
#include <catena/packet/slot.hpp>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>

namespace catena::io {
namespace {

constexpr int kSendBytes = 8 << 20;
constexpr timespec kWait{0, 100'000};
constexpr std::uint16_t kTcpAt = 14 + 20;
constexpr std::uint16_t kTcpChecksumOffset = 16;

}  // namespace

Result<std::unique_ptr<KernelSender>> KernelSender::open(unsigned int interface, bool joins_segments) {
  std::unique_ptr<KernelSender> sender(new KernelSender(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), joins_segments));
  const int on = 1;
  if (sender->socket_ < 0 || setsockopt(sender->socket_, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) != 0) {
    return absl::ErrnoToStatus(errno, "no packet socket to send by");
  }
  CATENA_RETURN_IF_ERROR(bind_packet_socket(sender->socket_, interface, 0));
  setsockopt(sender->socket_, SOL_SOCKET, SO_SNDBUFFORCE, &kSendBytes, sizeof kSendBytes);
  return sender;
}

KernelSender::~KernelSender() {
  if (socket_ >= 0) {
    close(socket_);
  }
}

void KernelSender::prepare(std::uint8_t* memory, std::span<const SlotFrame> frames, bool joins) {
  runs_.clear();
  pieces_.clear();
  messages_.clear();
  // nothing of these moves while messages point at it
  headers_.resize(std::max(headers_.size(), frames.size()));
  pieces_.reserve(frames.size() * 3);
  for (SlotFrame const& place : frames) {
    std::uint8_t* data = memory + std::size_t{place.slot} * packet::kSlotBytes + place.offset;
    const std::span<const std::uint8_t> frame(data, place.length);
    if (joins && !runs_.empty() && messages_.back().msg_hdr.msg_iovlen < IOV_MAX && runs_.back().add(frame)) {
      const std::uint32_t header_bytes = runs_.back().header_bytes();
      pieces_.push_back({data + header_bytes, frame.size() - header_bytes});
      ++messages_.back().msg_hdr.msg_iovlen;
      continue;
    }
    Header& header = headers_[runs_.size()];
    header.kernel = {};
    runs_.emplace_back().begin(frame);
    mmsghdr message{};
    message.msg_hdr.msg_iov = pieces_.data() + pieces_.size();
    message.msg_hdr.msg_iovlen = 3;
    messages_.push_back(message);
    pieces_.push_back({&header.kernel, sizeof header.kernel});
    pieces_.push_back({header.frame.data(), 0});
    pieces_.push_back({data, frame.size()});
  }
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (runs_[i].frames() == 1) {
      continue;
    }
    const std::uint32_t header_bytes = runs_[i].header_bytes();
    runs_[i].write_header(headers_[i].frame.data());
    headers_[i].kernel = {packet::kVnetNeedsChecksum,
                          packet::kVnetGsoTcp4,
                          static_cast<std::uint16_t>(header_bytes),
                          static_cast<std::uint16_t>(runs_[i].segment_bytes()),
                          kTcpAt,
                          kTcpChecksumOffset};
    iovec* pieces = messages_[i].msg_hdr.msg_iov;
    pieces[1].iov_len = header_bytes;
    pieces[2].iov_base = static_cast<std::uint8_t*>(pieces[2].iov_base) + header_bytes;
    pieces[2].iov_len -= header_bytes;
  }
}

KernelSender::Sent KernelSender::send(std::uint8_t* memory, std::span<const SlotFrame> frames) {
  if (single_frames_ == 0) {
    prepare(memory, frames, joins_segments_.load(std::memory_order_relaxed));
  } else {
    prepare(memory, frames.first(std::min(single_frames_, frames.size())), false);
  }
  const int sent = sendmmsg(socket_, messages_.data(), static_cast<unsigned int>(messages_.size()), MSG_DONTWAIT);
  if (sent < 0) {
    const int error = errno;
    if (error == EAGAIN || error == EINTR) {
      pollfd writable{socket_, POLLOUT, 0};
      ppoll(&writable, 1, &kWait, nullptr);
      return {0, 0, 0};
    }
    if (error == ENOBUFS) {  // the queue of the interface is full, of which the socket knows nothing
      ppoll(nullptr, 0, &kWait, nullptr);
      return {0, 0, 0};
    }
    const std::size_t joined = runs_.front().frames();
    if (joined > 1 && (error == EMSGSIZE || error == EINVAL)) {
      single_frames_ = joined;
      return send(memory, frames);
    }
    const bool is_down = error == ENETDOWN || error == ENXIO || error == ENODEV;
    const std::size_t refused = is_down ? frames.size() : joined;
    single_frames_ -= std::min(single_frames_, refused);
    return {refused, refused, error};
  }
  std::size_t taken = 0;
  for (int i = 0; i < sent; ++i) {
    taken += runs_[static_cast<std::size_t>(i)].frames();
  }
  single_frames_ -= std::min(single_frames_, taken);
  return {taken, 0, 0};
}

}  // namespace catena::io
