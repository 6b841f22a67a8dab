// SPDX-License-Identifier: Apache-2.0
#include "pipeline/flow_signals.hpp"

#include "base/core/log_context.hpp"
#include "chain/flow_keys.hpp"

#include <catena/core/text.hpp>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <system_error>
#include <utility>

namespace catena::runtime {
namespace {

constexpr std::array<std::uint8_t, 8> kBegin{'C', 'T', 'F', 'S', 1, 0, 0, 0};  // with kind and hops
constexpr std::size_t kKindAt = 5;
constexpr std::size_t kHopsAt = 6;
constexpr std::size_t kAskerAt = 8;
constexpr std::size_t kSequenceAt = 16;
constexpr std::size_t kMacAt = 24;
constexpr std::size_t kMacBytes = kFlowSignalBytes - kMacAt;
/// Of one socket, before others have their turn: who sends many keeps nobody else from being heard.
constexpr int kDatagramsAtOnce = 64;

void put(std::uint64_t value, std::uint8_t* to) {
  for (int byte = 7; byte >= 0; --byte) {
    *to++ = static_cast<std::uint8_t>(value >> (8 * byte));
  }
}

std::uint64_t get(std::uint8_t const* from) {
  std::uint64_t value = 0;
  for (int byte = 0; byte < 8; ++byte) {
    value = value << 8U | *from++;
  }
  return value;
}

using Mac = std::array<std::uint8_t, EVP_MAX_MD_SIZE>;

/// None: the library cannot make one.
std::optional<Mac> mac_of(std::uint8_t const* signal, std::span<const std::uint8_t> key) {
  Mac mac{};
  unsigned int bytes = 0;
  const auto* const made =
      ::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()), signal, kMacAt, mac.data(), &bytes);
  return made != nullptr && bytes >= kMacBytes ? std::optional(mac) : std::nullopt;
}

std::uint64_t random_number() {
  std::random_device random;
  return std::uint64_t{random()} << 32U | random();
}

Status failed(chain::FlowSignalsConfig const& config, SocketAddress const& address) {
  return absl::ErrnoToStatus(errno, concat(config.position, ": 'signals': ", address.text));
}

}  // namespace

std::array<std::uint8_t, kFlowSignalBytes> seal(FlowSignal const& signal, std::span<const std::uint8_t> key) {
  std::array<std::uint8_t, kFlowSignalBytes> datagram{};
  std::ranges::copy(kBegin, datagram.begin());
  datagram[kKindAt] = static_cast<std::uint8_t>(signal.kind);
  datagram[kHopsAt] = signal.hops;
  put(signal.asker, &datagram[kAskerAt]);
  put(signal.sequence, &datagram[kSequenceAt]);
  if (const std::optional<Mac> mac = mac_of(datagram.data(), key)) {  // else nobody hears it
    std::copy_n(mac->begin(), kMacBytes, &datagram[kMacAt]);
  }
  return datagram;
}

std::optional<FlowSignal> open_signal(std::span<const std::uint8_t> datagram, std::span<const std::uint8_t> key) {
  if (datagram.size() != kFlowSignalBytes) {
    return std::nullopt;
  }
  const std::optional<Mac> mac = mac_of(datagram.data(), key);
  if (!mac || ::CRYPTO_memcmp(mac->data(), &datagram[kMacAt], kMacBytes) != 0) {
    return std::nullopt;
  }
  FlowSignal signal{static_cast<FlowSignal::Kind>(datagram[kKindAt]), get(&datagram[kAskerAt]),
                    get(&datagram[kSequenceAt]), datagram[kHopsAt]};
  std::array<std::uint8_t, kBegin.size()> begin = kBegin;
  begin[kKindAt] = datagram[kKindAt];
  begin[kHopsAt] = datagram[kHopsAt];
  const bool is_known = signal.kind >= FlowSignal::Kind::kAsk && signal.kind <= FlowSignal::Kind::kFastenUp &&
                        std::equal(begin.begin(), begin.end(), datagram.begin());
  return is_known ? std::optional(signal) : std::nullopt;
}

Result<std::unique_ptr<FlowSignals>> FlowSignals::create(chain::FlowSignalsConfig const& config,
                                                         std::shared_ptr<SourcePauses> pauses) {
  CATENA_ASSIGN_OR_RETURN(std::vector<std::uint8_t> key, chain::read_signal_key(config));
  std::unique_ptr<FlowSignals> signals(new FlowSignals(config, std::move(key), std::move(pauses)));
  constexpr int kKind = SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  if (config.listen) {
    signals->listener_ = FileDescriptor(::socket(config.listen->family(), kKind, 0));
    SocketAddress own{.text = {}, .storage = {}, .size = sizeof(sockaddr_storage)};
    if (!signals->listener_ || ::bind(signals->listener_.get(), config.listen->raw(), config.listen->size) != 0 ||
        ::getsockname(signals->listener_.get(), reinterpret_cast<sockaddr*>(&own.storage), &own.size) != 0) {
      return failed(config, *config.listen);
    }
    // the port has its place in both
    signals->port_ = ntohs(reinterpret_cast<sockaddr_in const&>(own.storage).sin_port);
  }
  for (SocketAddress const& address : config.downstream) {
    Downstream& downstream = signals->downstream_.emplace_back();
    downstream.address = address;
    downstream.socket = FileDescriptor(::socket(address.family(), kKind, 0));
    downstream.number = random_number();
    downstream.heard = Clock::now();
    if (!downstream.socket || ::connect(downstream.socket.get(), address.raw(), address.size) != 0) {
      return failed(config, address);
    }
  }
  try {
    signals->thread_ = std::thread(in_log_context([own = signals.get()] { own->serve(); }));
  } catch (std::system_error const& error) {
    return absl::ResourceExhaustedError(concat("no thread for the signals of 'flow': ", error.what()));
  }
  return signals;
}

void FlowSignals::end() {
  is_ending_ = true;
  end_.ring();
  if (thread_.joinable()) {
    thread_.join();
  }
  listener_.close();
  downstream_.clear();
  is_tx_congested_ = false;
  ::OPENSSL_cleanse(key_.data(), key_.size());
}

bool FlowSignals::serves(chain::FlowSignalsConfig const& config) const {
  const Result<std::vector<std::uint8_t>> key = chain::read_signal_key(config);
  return config.listen == config_.listen && config.downstream == config_.downstream && key.ok() && *key == key_;
}

FlowSignals::Counts FlowSignals::counts() const {
  return {sent_, received_, stale_, forged_, timeouts_, unsent_, askers_now_, silent_now_};
}

void FlowSignals::serve() {
  std::vector<pollfd> watched{{end_.descriptor(), POLLIN, 0}, {pauses_->changed().descriptor(), POLLIN, 0}};
  if (listener_) {
    watched.push_back({listener_.get(), POLLIN, 0});
  }
  for (Downstream const& downstream : downstream_) {
    watched.push_back({downstream.socket.get(), POLLIN, 0});
  }
  while (!is_ending_) {
    ::poll(watched.data(), watched.size(), static_cast<int>(repeat_time(Clock::now()).count()));
    pauses_->changed().quiet();
    const Clock::time_point now = Clock::now();
    if (listener_) {
      answer_askers(now);
      tell_askers(now);
    }
    for (Downstream& downstream : downstream_) {
      hear(downstream, now);
      ask(downstream, now);
    }
    settle(now);
  }
}

/// The next datagram that is what it should be; none: there is no more, or too many came.
std::optional<FlowSignal> FlowSignals::receive(int socket, SocketAddress& from) {
  for (int i = 0; i < kDatagramsAtOnce; ++i) {
    std::array<std::uint8_t, kFlowSignalBytes + 1> datagram{};  // one more than may come is too many
    from.size = sizeof from.storage;
    const ssize_t bytes =
        ::recvfrom(socket, datagram.data(), datagram.size(), 0, reinterpret_cast<sockaddr*>(&from.storage), &from.size);
    if (bytes < 0 && errno == ECONNREFUSED) {
      continue;  // what an earlier one of ours met
    }
    if (bytes < 0) {
      return std::nullopt;
    }
    const std::optional<FlowSignal> signal =
        open_signal(std::span(datagram).first(static_cast<std::size_t>(bytes)), key_);
    if (signal) {
      return signal;
    }
    ++forged_;
  }
  return std::nullopt;
}

void FlowSignals::send(int socket, SocketAddress const* to, FlowSignal const& signal, Counter& sent) {
  const auto datagram = seal(signal, key_);
  const ssize_t bytes = ::sendto(socket, datagram.data(), datagram.size(), MSG_NOSIGNAL,
                                 to == nullptr ? nullptr : to->raw(), to == nullptr ? 0 : to->size);
  ++(bytes == static_cast<ssize_t>(datagram.size()) ? sent : unsent_);
}

void FlowSignals::answer_askers(Clock::time_point now) {
  std::erase_if(askers_, [now](Asker const& asker) { return now - asker.heard > kFlowForget; });
  SocketAddress from;
  for (int i = 0; i < kDatagramsAtOnce; ++i) {
    const std::optional<FlowSignal> signal = receive(listener_.get(), from);
    if (!signal) {
      break;
    }
    auto asker = std::ranges::find(askers_, signal->asker, &Asker::number);
    const bool is_new = asker == askers_.end();
    const bool is_stale = signal->kind != FlowSignal::Kind::kAsk || (is_new && askers_.size() == kMaxFlowAskers) ||
                          (!is_new && signal->sequence <= asker->heard_sequence);
    if (is_stale) {
      ++stale_;
      continue;
    }
    if (is_new) {
      asker = askers_.insert(askers_.end(), Asker{.address = {}, .number = signal->asker});
    }
    ++received_;
    asker->address = from;  // it may have moved
    asker->heard_sequence = signal->sequence;
    asker->heard = now;
    tell(*asker);
  }
  askers_now_ = askers_.size();
}

void FlowSignals::tell(Asker& asker) {
  const auto kind = told_paused_ ? FlowSignal::Kind::kSlowDown : FlowSignal::Kind::kFastenUp;
  send(listener_.get(), &asker.address, {kind, asker.number, ++asker.sequence, hops_}, sent_);
}

std::chrono::milliseconds FlowSignals::repeat_time(Clock::time_point now) const {
  return now - changed_ < kFlowRepeat ? kFlowRepeatAtFirst : kFlowRepeat;
}

void FlowSignals::tell_askers(Clock::time_point now) {
  const bool is_paused = pauses_->any();
  if (is_paused == told_paused_ && now - told_ < repeat_time(now)) {
    return;
  }
  changed_ = is_paused == told_paused_ ? changed_ : now;
  told_paused_ = is_paused;
  told_ = now;
  for (Asker& asker : askers_) {
    tell(asker);
  }
}

void FlowSignals::hear(Downstream& downstream, Clock::time_point now) {
  SocketAddress from;
  for (int i = 0; i < kDatagramsAtOnce; ++i) {
    const std::optional<FlowSignal> signal = receive(downstream.socket.get(), from);
    if (!signal) {
      return;
    }
    if (signal->kind == FlowSignal::Kind::kAsk || signal->asker != downstream.number ||
        signal->sequence <= downstream.heard_sequence) {
      ++stale_;
      continue;
    }
    ++received_;
    downstream.heard_sequence = signal->sequence;
    downstream.heard = now;
    downstream.is_congested = signal->kind == FlowSignal::Kind::kSlowDown && signal->hops < kMaxFlowHops;
    downstream.hops = signal->hops;
    if (std::exchange(downstream.is_silent, false)) {
      spdlog::info("flow: {} answers", downstream.address.text);
    }
  }
}

void FlowSignals::ask(Downstream& downstream, Clock::time_point now) {
  if (now - downstream.heard > kFlowForget) {
    // it may be another process by now, which counts from the beginning; what was recorded of the one before is not
    // for the new number
    downstream.number = random_number();
    downstream.sequence = 0;
    downstream.heard_sequence = 0;
    downstream.heard = now;
    if (!std::exchange(downstream.is_silent, true)) {
      spdlog::warn("flow: {} does not answer: nothing waits for it", downstream.address.text);
    }
  }
  if (now - downstream.asked >= kFlowAsk) {
    downstream.asked = now;
    send(downstream.socket.get(), nullptr, {FlowSignal::Kind::kAsk, downstream.number, ++downstream.sequence}, asked_);
  }
}

void FlowSignals::settle(Clock::time_point now) {
  bool is_any = false;
  std::uint64_t silent = 0;
  std::uint8_t hops = kMaxFlowHops;
  for (Downstream& downstream : downstream_) {
    if (downstream.is_congested && now - downstream.heard > kFlowHold) {
      downstream.is_congested = false;
      ++timeouts_;
    }
    is_any = is_any || downstream.is_congested;
    hops = downstream.is_congested ? std::min(hops, downstream.hops) : hops;
    silent += downstream.is_silent ? 1 : 0;
  }
  // what keeps this one waiting may be what keeps the next one, or its own doing: it cannot tell, and says the former
  hops_ = is_any ? static_cast<std::uint8_t>(hops + 1) : std::uint8_t{0};
  is_tx_congested_.store(is_any, std::memory_order_relaxed);
  silent_now_ = silent;
}

}  // namespace catena::runtime
