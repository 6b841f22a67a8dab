// SPDX-License-Identifier: Apache-2.0
#include "pipeline/upstream_chains.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>

namespace catena::runtime {

bool SignalSchedule::is_due(bool is_paused, Clock::time_point now) {
  if (is_paused == is_paused_ && now - signalled_ < interval(now)) {
    return false;
  }
  changed_ = is_paused == is_paused_ ? changed_ : now;
  is_paused_ = is_paused;
  signalled_ = now;
  return true;
}

Status UpstreamChains::listen(SocketAddress const& address) {
  socket_ = FileDescriptor(::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  SocketAddress own{.text = {}, .storage = {}, .size = sizeof(sockaddr_storage)};
  if (!socket_ || ::bind(socket_.get(), address.raw(), address.size) != 0 ||
      ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&own.storage), &own.size) != 0) {
    return absl::ErrnoToStatus(errno, address.text);
  }
  // the port has its place in both
  port_ = ntohs(reinterpret_cast<sockaddr_in const&>(own.storage).sin_port);
  return absl::OkStatus();
}

void UpstreamChains::reply(std::uint8_t hops, Clock::time_point now) {
  std::erase_if(requesters_, [now](Requester const& each) { return now - each.session.heard() > kFlowForget; });
  SocketAddress from;
  for (int i = 0; i < kDatagramsAtOnce; ++i) {
    const std::optional<FlowSignal> request = transport_->receive(socket_.get(), from);
    if (!request) {
      break;
    }
    if (Requester* const requester = accept(*request, from, now)) {
      ++received_;
      send_state(*requester, hops);
    } else {
      ++stale_;
    }
  }
  requesters_now_ = requesters_.size();
}

/// The requester, at the address of this request as it may have moved; null: the request has no effect.
UpstreamChains::Requester* UpstreamChains::accept(FlowSignal const& request, SocketAddress const& from,
                                                  Clock::time_point now) {
  if (request.kind != FlowSignal::Kind::kAsk) {
    return nullptr;
  }
  const auto known =
      std::ranges::find(requesters_, request.asker, [](Requester const& each) { return each.session.number(); });
  if (known != requesters_.end()) {
    if (!known->session.accept(request, now)) {
      return nullptr;
    }
    known->address = from;
    return &*known;
  }
  return requesters_.size() < kMaxFlowAskers ? &requesters_.emplace_back(Requester{from, {request, now}}) : nullptr;
}

void UpstreamChains::signal(bool is_paused, std::uint8_t hops, Clock::time_point now) {
  if (schedule_.is_due(is_paused, now)) {
    for (Requester& requester : requesters_) {
      send_state(requester, hops);
    }
  }
}

void UpstreamChains::send_state(Requester& to, std::uint8_t hops) {
  const auto kind = schedule_.is_paused() ? FlowSignal::Kind::kSlowDown : FlowSignal::Kind::kFastenUp;
  if (transport_->send(socket_.get(), &to.address, to.session.next(kind, hops))) {
    ++sent_;
  }
}

}  // namespace catena::runtime
