// SPDX-License-Identifier: Apache-2.0
#include "stack/port/segmenter.hpp"

#include <algorithm>

#include "stack/tcp/frame.hpp"

namespace catena::stack {
namespace {

constexpr std::size_t kIpv4Bytes = 20;
constexpr std::size_t kIpv6Bytes = 40;

void store_be16(std::byte* at, std::size_t value) {
  at[0] = static_cast<std::byte>(value >> 8U);
  at[1] = static_cast<std::byte>(value);
}
void store_be32(std::byte* at, std::uint32_t value) {
  store_be16(at, value >> 16U);
  store_be16(at + 2, value & 0xFFFFU);
}

/// Lengths, numbers and flags of segment `number` of a frame, whose data begins `offset` bytes into that of the frame.
void write_headers(std::span<std::byte> segment, bool is_v4, std::size_t tcp, std::size_t number, std::size_t offset,
                   bool is_last) {
  constexpr std::byte kFinAndPush{0x09};
  constexpr std::byte kWindowReduced{0x80};
  std::byte* const ip = &segment[kEthernetBytes];
  if (is_v4) {
    const std::size_t header = tcp - kEthernetBytes;
    store_be16(ip + 2, segment.size() - kEthernetBytes);
    store_be16(ip + 4, load_be16(ip + 4) + number);
    store_be16(ip + 10, 0);
    store_be16(ip + 10, packet::checksum_finish(packet::checksum_add(octets(ip), std::max(header, kIpv4Bytes))));
  } else {
    store_be16(ip + 4, segment.size() - kEthernetBytes - kIpv6Bytes);
  }
  std::byte* const header = &segment[tcp];
  store_be32(header + 4, load_be32(header + 4) + static_cast<std::uint32_t>(offset));
  if (!is_last) {
    header[13] &= ~kFinAndPush;
  }
  if (number > 0) {
    header[13] &= ~kWindowReduced;
  }
}

}  // namespace

Segmenter::Segmenter(OutgoingFrame const& frame)
    : frame_(&frame),
      header_bytes_(frame.segment_bytes == 0 ? 0 : frame.header_bytes),
      segment_bytes_(frame.segment_bytes == 0 ? frame.bytes : frame.segment_bytes),
      data_bytes_(frame.bytes - header_bytes_),
      at_(header_bytes_) {}

std::size_t Segmenter::left() const { return (data_bytes_ - done_ + segment_bytes_ - 1) / segment_bytes_; }

void Segmenter::copy(std::span<std::byte> to) {
  while (!to.empty()) {
    const std::span<const std::byte> rest = frame_->parts[part_].subspan(at_);
    const std::size_t bytes = std::min(rest.size(), to.size());
    std::ranges::copy(rest.first(bytes), to.begin());
    to = to.subspan(bytes);
    at_ += bytes;
    if (at_ == frame_->parts[part_].size()) {
      ++part_;
      at_ = 0;
    }
  }
}

std::size_t Segmenter::write_next(std::span<std::byte> to) {
  const std::size_t data = std::min(segment_bytes_, data_bytes_ - done_);
  const std::span<std::byte> segment = to.first(header_bytes_ + data);
  std::ranges::copy(frame_->parts[0].first(header_bytes_), segment.begin());
  copy(segment.subspan(header_bytes_));
  const std::size_t tcp = frame_->checksum_start;
  const bool is_v4 = load_be16(&segment[12]) == kTypeIpv4;
  if (header_bytes_ > 0) {
    write_headers(segment, is_v4, tcp, done_ / segment_bytes_, done_, done_ + data == data_bytes_);
  }
  done_ += data;
  if (tcp != 0) {
    const std::size_t length = segment.size() - tcp;
    store_be16(&segment[tcp + kTcpChecksumAt], 0);
    const std::uint64_t sum = pseudo_header_sum(segment, is_v4, length);
    store_be16(&segment[tcp + kTcpChecksumAt],
               packet::checksum_finish(packet::checksum_add(octets(&segment[tcp]), length, sum)));
  }
  return segment.size();
}

}  // namespace catena::stack
