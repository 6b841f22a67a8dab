// SPDX-License-Identifier: Apache-2.0
#include "tcp_windows.hpp"

namespace catena::nat {

void TcpWindows::start(Segment const& first) {
  *this = {};
  Half& inside = half(Side::kInside);
  Half& outside = half(Side::kOutside);
  const bool has_ack = (first.flags & nf::kTcpAck) != 0;
  const bool is_syn = (first.flags & nf::kTcpSyn) != 0;
  inside_scales_ = first.scale.has_value();
  is_guessed_ = !is_syn || has_ack;
  if (is_syn) {
    // that of a SYN with ACK answers a SYN with the option
    scales_[0] = std::min(first.scale.value_or(0), kMaxScale);
    scales_[1] = has_ack && inside_scales_ ? kMaxScale : std::uint8_t{0};
  } else {
    scales_.fill(kMaxScale);
  }
  const std::uint32_t window = std::uint32_t{first.window} << (is_syn ? 0 : scales_[0]);
  inside = {.end = first.end,
            .limit = is_syn ? first.end : first.end + kMaxWindow,
            .window = std::max(window, 1U),
            .acknowledged = first.acknowledged};
  outside.acknowledged = first.sequence;
  if (has_ack) {
    outside.end = first.acknowledged;
    outside.limit = first.acknowledged + window;
    outside.window = 65535U << scales_[1];
  }
}

/// The first segment of a side, or its SYN.
void TcpWindows::begin(Side from, Segment const& segment) {
  Half& sender = half(from);
  const auto index = static_cast<std::size_t>(from);
  sender.end = segment.end;
  if ((segment.flags & nf::kTcpSyn) != 0) {
    if (inside_scales_ && segment.scale) {
      scales_[index] = std::min(*segment.scale, kMaxScale);
    } else {
      scales_.fill(0);
    }
    sender.window = std::max<std::uint32_t>(segment.window, 1);
    sender.limit = segment.end;
  } else {
    sender.window = std::max(std::uint32_t{segment.window} << scales_[index], 1U);
    sender.limit = segment.end + sender.window;
  }
  half(other(from)).acknowledged = segment.sequence;
}

bool TcpWindows::accept(Side from, Segment const& segment) { return accept_as<false>(from, segment); }

void TcpWindows::save(nf::StateWriter& state) const {
  for (Half const& half : halves_) {
    for (const std::uint32_t number : {half.end, half.limit, half.window, half.acknowledged}) {
      state.put(number);
    }
  }
  state.put(scales_[0]);
  state.put(scales_[1]);
  state.put(inside_scales_);
  state.put(is_guessed_);
}

void TcpWindows::load(nf::StateReader& state) {
  for (Half& half : halves_) {
    for (std::uint32_t* const number : {&half.end, &half.limit, &half.window, &half.acknowledged}) {
      *number = state.get<std::uint32_t>();
    }
  }
  for (std::uint8_t& scale : scales_) {
    scale = std::min(state.get<std::uint8_t>(), kMaxScale);
  }
  inside_scales_ = state.get<bool>();
  is_guessed_ = state.get<bool>();
}

}  // namespace catena::nat
