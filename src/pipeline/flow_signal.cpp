// SPDX-License-Identifier: Apache-2.0
#include "pipeline/flow_signal.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace catena::runtime {
namespace {

constexpr std::array<std::uint8_t, 8> kBegin{'C', 'T', 'F', 'S', 1, 0, 0, 0};  // with kind and hops
constexpr std::size_t kKindAt = 5;
constexpr std::size_t kHopsAt = 6;
constexpr std::size_t kAskerAt = 8;
constexpr std::size_t kSequenceAt = 16;
constexpr std::size_t kMacAt = 24;
constexpr std::size_t kMacBytes = kFlowSignalBytes - kMacAt;

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

std::optional<FlowSignal> FlowSignalTransport::receive(int socket, SocketAddress& from) {
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

bool FlowSignalTransport::send(int socket, SocketAddress const* to, FlowSignal const& signal) {
  const auto datagram = seal(signal, key_);
  const ssize_t bytes = ::sendto(socket, datagram.data(), datagram.size(), MSG_NOSIGNAL,
                                 to == nullptr ? nullptr : to->raw(), to == nullptr ? 0 : to->size);
  const bool is_sent = bytes == static_cast<ssize_t>(datagram.size());
  if (!is_sent) {
    ++unsent_;
  }
  return is_sent;
}

bool FlowSignalTransport::has_key(std::span<const std::uint8_t> key) const { return std::ranges::equal(key, key_); }

void FlowSignalTransport::erase_key() { ::OPENSSL_cleanse(key_.data(), key_.size()); }

}  // namespace catena::runtime
