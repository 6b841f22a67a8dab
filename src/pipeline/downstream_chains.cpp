// SPDX-License-Identifier: Apache-2.0
#include "pipeline/downstream_chains.hpp"

#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <utility>

namespace catena::runtime {
namespace {

std::uint64_t random_number() {
  std::random_device random;
  return std::uint64_t{random()} << 32U | random();
}

}  // namespace

DownstreamChain::DownstreamChain(std::string name, Clock::time_point now)
    : name_(std::move(name)), session_(random_number(), now) {}

bool DownstreamChain::accept(FlowSignal const& signal, Clock::time_point now) {
  if (signal.kind == FlowSignal::Kind::kAsk || !session_.accept(signal, now)) {
    return false;
  }
  is_congested_ = signal.kind == FlowSignal::Kind::kSlowDown && signal.hops < kMaxFlowHops;
  hops_ = signal.hops;
  if (std::exchange(is_silent_, false)) {
    spdlog::info("flow: {} answers", name_);
  }
  return true;
}

std::optional<FlowSignal> DownstreamChain::request(Clock::time_point now) {
  if (now - session_.heard() > kFlowForget) {
    session_ = FlowSignalSession(random_number(), now);
    if (!std::exchange(is_silent_, true)) {
      spdlog::warn("flow: {} does not answer: nothing waits for it", name_);
    }
  }
  if (now - requested_ < kFlowAsk) {
    return std::nullopt;
  }
  requested_ = now;
  return session_.next(FlowSignal::Kind::kAsk);
}

bool DownstreamChain::expire(Clock::time_point now) {
  return now - session_.heard() > kFlowHold && std::exchange(is_congested_, false);
}

Status DownstreamChains::add(SocketAddress const& address) {
  FileDescriptor socket(::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket || ::connect(socket.get(), address.raw(), address.size) != 0) {
    return absl::ErrnoToStatus(errno, address.text);
  }
  peers_.push_back({std::move(socket), DownstreamChain(address.text, Clock::now())});
  return absl::OkStatus();
}

std::vector<int> DownstreamChains::sockets() const {
  std::vector<int> sockets;
  for (Peer const& peer : peers_) {
    sockets.push_back(peer.socket.get());
  }
  return sockets;
}

void DownstreamChains::exchange(Clock::time_point now) {
  for (Peer& peer : peers_) {
    receive(peer, now);
    if (const std::optional<FlowSignal> request = peer.chain.request(now)) {
      transport_->send(peer.socket.get(), nullptr, *request);
    }
  }
  update(now);
}

void DownstreamChains::receive(Peer& from, Clock::time_point now) {
  SocketAddress address;
  for (int i = 0; i < kDatagramsAtOnce; ++i) {
    const std::optional<FlowSignal> signal = transport_->receive(from.socket.get(), address);
    if (!signal) {
      return;
    }
    ++(from.chain.accept(*signal, now) ? received_ : stale_);
  }
}

void DownstreamChains::update(Clock::time_point now) {
  bool is_any = false;
  std::uint64_t silent = 0;
  std::uint8_t hops = kMaxFlowHops;
  for (Peer& peer : peers_) {
    if (peer.chain.expire(now)) {
      ++timeouts_;
    }
    is_any = is_any || peer.chain.is_congested();
    hops = peer.chain.is_congested() ? std::min(hops, peer.chain.hops()) : hops;
    silent += peer.chain.is_silent() ? 1 : 0;
  }
  // what keeps this one waiting may be what keeps the next one, or its own doing: it cannot tell, and says the former
  hops_ = is_any ? static_cast<std::uint8_t>(hops + 1) : std::uint8_t{0};
  is_any_congested_.store(is_any, std::memory_order_relaxed);
  silent_now_ = silent;
}

void DownstreamChains::close() {
  peers_.clear();
  is_any_congested_ = false;
}

}  // namespace catena::runtime
