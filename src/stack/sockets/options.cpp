// SPDX-License-Identifier: Apache-2.0
#include "stack/sockets/options.hpp"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "stack/sockets/attachment.hpp"
#include "stack/sockets/real_calls.hpp"
#include "stack/sockets/transfer.hpp"

namespace catena::sockets {
namespace {

enum class Effect : std::uint8_t {
  kNone,   ///< the kernel's socket keeps the value; the stack does not act on it
  kActs,   ///< the same, and the library acts on it: read_options()
  kCork,   ///< TCP_CORK: servers set it twice per response, so without a system call
  kError,  ///< SO_ERROR
};

struct OptionRule {
  int level;
  int name;
  Effect effect;
};
// All options of a connection. Others are refused, so that no program trusts in an option without effect that changes
// bytes or who gets them (kernel TLS, TCP MD5, zero-copy sends, filters).
constexpr auto kOptions = std::to_array<OptionRule>({
    {SOL_SOCKET, SO_LINGER, Effect::kActs},  // 0 seconds: reset; other times do not delay close(2)
    {SOL_SOCKET, SO_RCVTIMEO, Effect::kActs},
    {SOL_SOCKET, SO_SNDTIMEO, Effect::kActs},
    {IPPROTO_TCP, TCP_CORK, Effect::kCork},
    {SOL_SOCKET, SO_ERROR, Effect::kError},
    {SOL_SOCKET, SO_TYPE, Effect::kNone},
    {SOL_SOCKET, SO_DOMAIN, Effect::kNone},
    {SOL_SOCKET, SO_PROTOCOL, Effect::kNone},
    {SOL_SOCKET, SO_ACCEPTCONN, Effect::kNone},
    {SOL_SOCKET, SO_REUSEADDR, Effect::kNone},
    {SOL_SOCKET, SO_REUSEPORT, Effect::kNone},
    {SOL_SOCKET, SO_KEEPALIVE, Effect::kNone},
    {SOL_SOCKET, SO_SNDBUF, Effect::kNone},
    {SOL_SOCKET, SO_RCVBUF, Effect::kNone},
    {SOL_SOCKET, SO_RCVLOWAT, Effect::kNone},
    {SOL_SOCKET, SO_SNDLOWAT, Effect::kNone},
    {SOL_SOCKET, SO_PRIORITY, Effect::kNone},
    {SOL_SOCKET, SO_OOBINLINE, Effect::kNone},
    {SOL_SOCKET, SO_DONTROUTE, Effect::kNone},
    {SOL_SOCKET, SO_INCOMING_CPU, Effect::kNone},
    {SOL_SOCKET, SO_MAX_PACING_RATE, Effect::kNone},
    {SOL_SOCKET, SO_BUSY_POLL, Effect::kNone},
    {IPPROTO_TCP, TCP_NODELAY, Effect::kNone},  // the stack sends at once, always
    {IPPROTO_TCP, TCP_QUICKACK, Effect::kNone},
    {IPPROTO_TCP, TCP_KEEPIDLE, Effect::kNone},
    {IPPROTO_TCP, TCP_KEEPINTVL, Effect::kNone},
    {IPPROTO_TCP, TCP_KEEPCNT, Effect::kNone},
    {IPPROTO_TCP, TCP_USER_TIMEOUT, Effect::kNone},
    {IPPROTO_TCP, TCP_DEFER_ACCEPT, Effect::kNone},
    {IPPROTO_TCP, TCP_LINGER2, Effect::kNone},
    {IPPROTO_TCP, TCP_SYNCNT, Effect::kNone},
    {IPPROTO_TCP, TCP_MAXSEG, Effect::kNone},
    {IPPROTO_TCP, TCP_WINDOW_CLAMP, Effect::kNone},
    {IPPROTO_TCP, TCP_NOTSENT_LOWAT, Effect::kNone},
    {IPPROTO_TCP, TCP_CONGESTION, Effect::kNone},
    {IPPROTO_TCP, TCP_INFO, Effect::kNone},
    {IPPROTO_IP, IP_TOS, Effect::kNone},
    {IPPROTO_IP, IP_TTL, Effect::kNone},
    {IPPROTO_IP, IP_MTU_DISCOVER, Effect::kNone},
    {IPPROTO_IPV6, IPV6_V6ONLY, Effect::kNone},
    {IPPROTO_IPV6, IPV6_TCLASS, Effect::kNone},
    {IPPROTO_IPV6, IPV6_UNICAST_HOPS, Effect::kNone},
});

OptionRule const* find_rule(int level, int name) {
  const auto found = std::find_if(kOptions.begin(), kOptions.end(),
                                  [&](OptionRule const& rule) { return rule.level == level && rule.name == name; });
  return found == kOptions.end() ? nullptr : &*found;
}

std::int64_t limit_ms(int number, int name) {
  timeval limit{};
  socklen_t bytes = sizeof limit;
  if (real().getsockopt(number, SOL_SOCKET, name, &limit, &bytes) != 0 || (limit.tv_sec == 0 && limit.tv_usec == 0)) {
    return -1;
  }
  return limit.tv_sec * 1000 + (limit.tv_usec + 999) / 1000;
}

int store(void* value, socklen_t* bytes, int number) {
  if (value == nullptr || bytes == nullptr) {
    return -EFAULT;
  }
  const socklen_t size = std::min<socklen_t>(*bytes, sizeof number);
  std::memcpy(value, &number, size);
  *bytes = size;
  return 0;
}

int real_set(int number, int level, int name, void const* value, socklen_t bytes) {
  return real().setsockopt(number, level, name, value, bytes) < 0 ? -errno : 0;
}

int real_get(int number, int level, int name, void* value, socklen_t* bytes) {
  return real().getsockopt(number, level, name, value, bytes) < 0 ? -errno : 0;
}

/// The requests that change or read the socket itself are the kernel's.
int real_control(Descriptor& descriptor, unsigned long request, void* argument) {
  const int result = real().ioctl(descriptor.number, request, argument);
  if (result < 0) {
    return -errno;
  }
  if (request == FIONBIO) {
    descriptor.is_nonblocking = *static_cast<int*>(argument) != 0;
  }
  return result;
}

}  // namespace

int kernel_option(int number, int level, int name) {
  const int kept = errno;
  int value = -1;
  socklen_t bytes = sizeof value;
  if (real().getsockopt(number, level, name, &value, &bytes) != 0) {
    errno = kept;
    return -1;
  }
  return value;
}

Options read_options(int number) {
  Options options;
  options.receive_ms = limit_ms(number, SO_RCVTIMEO);
  options.send_ms = limit_ms(number, SO_SNDTIMEO);
  linger on_close{};
  socklen_t bytes = sizeof on_close;
  options.closes_with_reset = real().getsockopt(number, SOL_SOCKET, SO_LINGER, &on_close, &bytes) == 0 &&
                              on_close.l_onoff != 0 && on_close.l_linger == 0;
  options.is_corked = kernel_option(number, IPPROTO_TCP, TCP_CORK) == 1;
  return options;
}

void copy_options(int from, int to) {
  for (OptionRule const& rule : kOptions) {
    timeval value{};  // the largest of them
    socklen_t bytes = sizeof value;
    if (rule.effect == Effect::kActs && real_get(from, rule.level, rule.name, &value, &bytes) == 0) {
      real_set(to, rule.level, rule.name, &value, bytes);
    }
  }
}

int set_option(Session& session, int level, int name, void const* value, socklen_t bytes) {
  OptionRule const* rule = find_rule(level, name);
  if (rule == nullptr) {
    return -ENOPROTOOPT;
  }
  if (rule->effect == Effect::kCork) {
    int is_corked = 0;
    if (value == nullptr || bytes < sizeof is_corked) {
      return -EINVAL;
    }
    std::memcpy(&is_corked, value, sizeof is_corked);
    session.options.is_corked = is_corked != 0;
    if (is_corked == 0 && session.held > 0) {
      Attachment::get().send_held();
    }
    return 0;
  }
  const int result = real_set(session.number, level, name, value, bytes);
  if (result == 0 && rule->effect == Effect::kActs) {
    const bool is_corked = session.options.is_corked;
    session.options = read_options(session.number);
    session.options.is_corked = is_corked;
  }
  return result;
}

int get_option(Session& session, int level, int name, void* value, socklen_t* bytes) {
  OptionRule const* rule = find_rule(level, name);
  if (rule == nullptr) {
    return -ENOPROTOOPT;
  }
  if (rule->effect == Effect::kError) {
    return store(value, bytes, take_error(session));
  }
  if (rule->effect == Effect::kCork) {
    return store(value, bytes, session.options.is_corked ? 1 : 0);
  }
  return real_get(session.number, level, name, value, bytes);
}

int set_option(Listener& listener, int level, int name, void const* value, socklen_t bytes) {
  const int result = real_set(listener.number, level, name, value, bytes);
  if (result == 0 && listener.is_listening) {
    listener.options = read_options(listener.number);
  }
  return result;
}

int get_option(Listener& listener, int level, int name, void* value, socklen_t* bytes) {
  if (level == SOL_SOCKET && name == SO_ACCEPTCONN) {
    return store(value, bytes, listener.is_listening ? 1 : 0);
  }
  return real_get(listener.number, level, name, value, bytes);
}

int control(Session& session, unsigned long request, void* argument) {
  if (request != FIONREAD && request != SIOCOUTQ && request != SIOCATMARK) {
    return real_control(session, request, argument);
  }
  if (argument == nullptr) {
    return -EFAULT;
  }
  const std::int64_t bytes = request == FIONREAD   ? readable_bytes(session)
                             : request == SIOCOUTQ ? unsent_bytes(session)
                                                   : 0;
  *static_cast<int*>(argument) = static_cast<int>(std::clamp<std::int64_t>(bytes, 0, INT_MAX));
  return 0;
}

int control(Listener& listener, unsigned long request, void* argument) {
  return real_control(listener, request, argument);
}

}  // namespace catena::sockets
