// SPDX-License-Identifier: Apache-2.0
#include "io/tcp_run.hpp"

#include <catena/packet/headers.hpp>

#include <cstring>

namespace catena::io {
namespace {

constexpr std::size_t kIpAt = 14;
constexpr std::size_t kIpBytes = 20;
constexpr std::size_t kTcpAt = kIpAt + kIpBytes;
constexpr std::size_t kTcpMinBytes = 20;
constexpr std::size_t kLengthAt = kIpAt + 2;
constexpr std::size_t kIdAt = kIpAt + 4;
constexpr std::size_t kFragmentAt = kIpAt + 6;
constexpr std::size_t kProtocolAt = kIpAt + 9;
constexpr std::size_t kIpChecksumAt = kIpAt + 10;
constexpr std::size_t kAddressesAt = kIpAt + 12;
constexpr std::size_t kSequenceAt = kTcpAt + 4;
constexpr std::size_t kDataOffsetAt = kTcpAt + 12;
constexpr std::size_t kFlagsAt = kTcpAt + 13;
constexpr std::size_t kTcpChecksumAt = kTcpAt + 16;
constexpr std::uint8_t kAck = 0x10;
constexpr std::uint8_t kPush = 0x08;
constexpr std::uint16_t kDontFragment = 0x4000;
constexpr std::uint32_t kMaxIpBytes = 65535;

/// The bytes before the payload of a segment that may be one of several; 0: it may not.
std::uint32_t header_bytes_of(std::span<const std::uint8_t> frame) {
  if (frame.size() < kTcpAt + kTcpMinBytes || packet::load_be16(&frame[12]) != 0x0800 || frame[kIpAt] != 0x45 ||
      frame[kProtocolAt] != packet::kProtocolTcp || (packet::load_be16(&frame[kFragmentAt]) & ~kDontFragment) != 0 ||
      packet::load_be16(&frame[kLengthAt]) + kIpAt != frame.size()) {
    return 0;
  }
  // what a cut frame has of these is not told by the whole
  if ((frame[kDataOffsetAt] & 0x0FU) != 0 || (frame[kFlagsAt] & ~kPush) != kAck) {
    return 0;
  }
  const std::size_t bytes = kTcpAt + (frame[kDataOffsetAt] >> 4) * 4U;
  return bytes >= kTcpAt + kTcpMinBytes && bytes < frame.size() ? static_cast<std::uint32_t>(bytes) : 0;
}

std::uint64_t pseudo_header(const std::uint8_t* frame, std::uint32_t tcp_bytes) {
  return packet::checksum_add(frame + kAddressesAt, 8) + packet::kProtocolTcp + tcp_bytes;
}

/// Whether the kernel's checksums would be these. Of the two zeros of ones' complement it writes one of its choice.
bool has_right_checksums(std::span<const std::uint8_t> frame) {
  for (const std::size_t at : {kIpChecksumAt, kTcpChecksumAt}) {
    if (const std::uint16_t sum = packet::load_be16(&frame[at]); sum == 0 || sum == 0xFFFF) {
      return false;
    }
  }
  const auto tcp_bytes = static_cast<std::uint32_t>(frame.size() - kTcpAt);
  return packet::checksum_finish(packet::checksum_add(&frame[kIpAt], kIpBytes)) == 0 &&
         packet::checksum_finish(
             packet::checksum_add(&frame[kTcpAt], tcp_bytes, pseudo_header(frame.data(), tcp_bytes))) == 0;
}

bool same(const std::uint8_t* a, const std::uint8_t* b, std::size_t from, std::size_t to) {
  return std::memcmp(a + from, b + from, to - from) == 0;
}

}  // namespace

void TcpRun::begin(std::span<const std::uint8_t> frame) {
  first_ = frame;
  frames_ = 1;
  header_bytes_ = header_bytes_of(frame);
  segment_bytes_ = static_cast<std::uint32_t>(frame.size()) - header_bytes_;
  payload_bytes_ = segment_bytes_;
  is_checked_ = false;
  is_last_ = header_bytes_ == 0 || (frame[kFlagsAt] & kPush) != 0;
}

bool TcpRun::add(std::span<const std::uint8_t> frame) {
  if (is_last_ || frame.size() <= header_bytes_ || frame.size() > first_.size() ||
      header_bytes_of(frame) != header_bytes_) {
    return false;
  }
  const auto bytes = static_cast<std::uint32_t>(frame.size()) - header_bytes_;
  const std::uint8_t* a = first_.data();
  const std::uint8_t* b = frame.data();
  const bool is_next =
      packet::load_be32(b + kSequenceAt) == packet::load_be32(a + kSequenceAt) + payload_bytes_ &&
      packet::load_be16(b + kIdAt) == static_cast<std::uint16_t>(packet::load_be16(a + kIdAt) + frames_) &&
      header_bytes_ - kIpAt + payload_bytes_ + bytes <= kMaxIpBytes;
  const bool is_alike = same(a, b, 0, kLengthAt) && same(a, b, kFragmentAt, kIpChecksumAt) &&
                        same(a, b, kAddressesAt, kSequenceAt) && same(a, b, kSequenceAt + 4, kFlagsAt) &&
                        same(a, b, kFlagsAt + 1, kTcpChecksumAt) && same(a, b, kTcpChecksumAt + 2, header_bytes_);
  if (!is_next || !is_alike || !has_right_checksums(frame) || !(is_checked_ || has_right_checksums(first_))) {
    return false;
  }
  is_checked_ = true;
  ++frames_;
  payload_bytes_ += bytes;
  is_last_ = bytes < segment_bytes_ || (b[kFlagsAt] & kPush) != 0;
  last_flags_ = b[kFlagsAt];
  return true;
}

void TcpRun::write_header(std::uint8_t* header) const {
  std::memcpy(header, first_.data(), header_bytes_);
  const auto tcp_bytes = static_cast<std::uint32_t>(header_bytes_ - kTcpAt + payload_bytes_);
  packet::store_be16(header + kLengthAt, static_cast<std::uint16_t>(tcp_bytes + kIpBytes));
  packet::store_be16(header + kIpChecksumAt, 0);
  packet::store_be16(header + kIpChecksumAt, packet::checksum_finish(packet::checksum_add(header + kIpAt, kIpBytes)));
  header[kFlagsAt] = last_flags_;  // the kernel takes PSH out of all but the last
  packet::store_be16(header + kTcpChecksumAt,
                     static_cast<std::uint16_t>(~packet::checksum_finish(pseudo_header(header, tcp_bytes))));
}

}  // namespace catena::io
