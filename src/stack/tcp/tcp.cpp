// SPDX-License-Identifier: Apache-2.0
#include "stack/tcp/tcp.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/headers.hpp>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <spdlog/spdlog.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include <lwip/etharp.h>
#include <lwip/ethip6.h>
#include <lwip/init.h>
#include <lwip/ip.h>
#include <lwip/nd6.h>
#include <lwip/netif.h>
#include <lwip/priv/tcp_priv.h>
#include <lwip/tcp.h>
#include <netif/ethernet.h>

#include "stack/tcp/sack.hpp"

namespace {

/// Secret of this process for initial sequence numbers; set before the first connection.
std::array<unsigned char, 32> isn_secret;

std::uint64_t microseconds() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

}  // namespace

extern "C" {

uint32_t catena_stack_random() {
  std::uint32_t random = 0;
  (void)::getrandom(&random, sizeof random, 0);
  return random;
}

void catena_stack_assertion_failed(const char* what, const char* file, int line) {
  spdlog::critical("lwIP: {}:{}: {}", file, line, what);
  __builtin_trap();
}

u32_t sys_now() { return static_cast<u32_t>(microseconds() / 1000); }

/// M + F(4-tuple, secret): a clock of 4 us and a keyed hash (RFC 6528, section 3).
u32_t catena_stack_isn(const ip_addr_t* local, u16_t local_port, const ip_addr_t* remote, u16_t remote_port) {
  std::array<unsigned char, 2 * sizeof(ip_addr_t) + 2 * sizeof(u16_t)> tuple{};
  unsigned char* at = tuple.data();
  const auto add = [&at](const void* value, std::size_t bytes) {
    std::memcpy(at, value, bytes);
    at += bytes;
  };
  add(local, sizeof *local);
  add(remote, sizeof *remote);
  add(&local_port, sizeof local_port);
  add(&remote_port, sizeof remote_port);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  HMAC(EVP_sha256(), isn_secret.data(), static_cast<int>(isn_secret.size()), tuple.data(), tuple.size(), digest.data(),
       &length);
  u32_t hash = 0;
  std::memcpy(&hash, digest.data(), sizeof hash);
  return hash + static_cast<u32_t>(microseconds() / 4);
}

err_t catena_stack_segment(tcp_pcb* pcb, tcp_hdr* header, u16_t option_bytes, u16_t first_bytes, u8_t* second,
                           pbuf* data) {
  // lwIP does not cut the first out-of-order segment at the end of the window, and ends the process when it is in order
  const u32_t end = header->seqno + data->tot_len + ((TCPH_FLAGS(header) & TCP_FIN) != 0 ? 1U : 0U);
  if (pcb->state >= ESTABLISHED && TCP_SEQ_GT(header->seqno, pcb->rcv_nxt) &&
      TCP_SEQ_GT(end, pcb->rcv_nxt + pcb->rcv_wnd)) {
    return ERR_VAL;
  }
  const auto* const options = reinterpret_cast<const u8_t*>(header) + TCP_HLEN;
  const u16_t first = std::min(first_bytes, option_bytes);
  catena::stack::take_sack(*pcb, header->ackno, options, first, second, static_cast<u16_t>(option_bytes - first));
  return ERR_OK;
}

}  // extern "C"

namespace catena::stack {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBuckets = 16384;  ///< a power of two
constexpr std::size_t kEthernetBytes = 14;
constexpr std::uint16_t kTypeIpv4 = 0x0800;
constexpr std::uint16_t kTypeIpv6 = 0x86DD;
constexpr std::uint8_t kTcpProtocol = 6;
constexpr std::size_t kTcpChecksumAt = 16;  ///< in the TCP header
constexpr std::uint8_t kSyn = 0x02;
constexpr std::uint8_t kAck = 0x10;
constexpr std::uint16_t kLeastMss = 536;      ///< that each peer takes (RFC 9293, 3.7.1)
constexpr std::uint16_t kQueueReserve = 300;  ///< segments that lwIP may need beside those of write()

const std::uint8_t* octets(const std::byte* at) { return reinterpret_cast<const std::uint8_t*>(at); }
std::uint16_t load_be16(const std::byte* at) { return packet::load_be16(octets(at)); }
std::uint32_t load_be32(const std::byte* at) { return packet::load_be32(octets(at)); }

ip_addr_t to_lwip(packet::Address const& address) {
  ip_addr_t result{};
  if (address.is_v4()) {
    IP_ADDR4(&result, address.v4() >> 24U & 0xFF, address.v4() >> 16U & 0xFF, address.v4() >> 8U & 0xFF,
             address.v4() & 0xFF);
  } else {
    IP_ADDR6(&result, htonl(static_cast<std::uint32_t>(address.high() >> 32U)),
             htonl(static_cast<std::uint32_t>(address.high())), htonl(static_cast<std::uint32_t>(address.low() >> 32U)),
             htonl(static_cast<std::uint32_t>(address.low())));
  }
  return result;
}

packet::Address from_lwip(ip_addr_t const& address) {
  if (IP_IS_V4_VAL(address)) {
    return packet::Address::of_v4(lwip_ntohl(ip_2_ip4(&address)->addr));
  }
  const u32_t* const words = ip_2_ip6(&address)->addr;
  return packet::Address::of_words(std::uint64_t{lwip_ntohl(words[0])} << 32U | lwip_ntohl(words[1]),
                                   std::uint64_t{lwip_ntohl(words[2])} << 32U | lwip_ntohl(words[3]));
}

/// The TCP segment in a frame: where its header is, and the numbers by which its connection is found.
struct Segment {
  std::size_t tcp = 0;  ///< offset of the TCP header
  bool is_v4 = false;
  std::array<u32_t, 4> remote = {};  ///< network order; IPv4 has the first word alone
  std::uint16_t remote_port = 0;
  std::uint16_t local_port = 0;
};

/// `is_incoming`: the remote end is the source. nullopt: no whole TCP header behind Ethernet and IP.
std::optional<Segment> parse(std::span<const std::byte> frame, bool is_incoming) {
  Segment segment;
  if (frame.size() < kEthernetBytes + IP_HLEN + TCP_HLEN) {
    return std::nullopt;
  }
  const std::uint16_t type = load_be16(&frame[12]);
  const std::byte* const ip = &frame[kEthernetBytes];
  if (type == kTypeIpv4 && ip[9] == std::byte{kTcpProtocol}) {
    segment.is_v4 = true;
    segment.tcp = kEthernetBytes + std::size_t{4} * (std::to_integer<unsigned>(ip[0]) & 0xFU);
    std::memcpy(segment.remote.data(), ip + (is_incoming ? 12 : 16), 4);
  } else if (type == kTypeIpv6 && ip[6] == std::byte{kTcpProtocol}) {
    segment.tcp = kEthernetBytes + IP6_HLEN;
    if (frame.size() >= segment.tcp) {
      std::memcpy(segment.remote.data(), ip + (is_incoming ? 8 : 24), 16);
    }
  } else {
    return std::nullopt;
  }
  if (frame.size() < segment.tcp + TCP_HLEN) {
    return std::nullopt;
  }
  const std::uint16_t source = load_be16(&frame[segment.tcp]);
  const std::uint16_t destination = load_be16(&frame[segment.tcp + 2]);
  segment.remote_port = is_incoming ? source : destination;
  segment.local_port = is_incoming ? destination : source;
  return segment;
}

std::size_t bucket_of(std::span<const u32_t> remote, std::uint16_t port) {
  std::uint64_t hash = port;
  for (const u32_t word : remote) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 32U;
  }
  return hash & (kBuckets - 1);
}

std::size_t bucket_of(tcp_pcb const& pcb) {
  std::array<u32_t, 4> remote{};
  if (IP_IS_V4_VAL(pcb.remote_ip)) {
    remote[0] = ip_2_ip4(&pcb.remote_ip)->addr;
  } else {
    std::copy_n(ip_2_ip6(&pcb.remote_ip)->addr, 4, remote.begin());
  }
  return bucket_of(remote, pcb.remote_port);
}

bool is_of(tcp_pcb const& pcb, Segment const& segment) {
  if (pcb.remote_port != segment.remote_port || pcb.local_port != segment.local_port ||
      IP_IS_V4_VAL(pcb.remote_ip) != segment.is_v4) {
    return false;
  }
  return segment.is_v4 ? ip_2_ip4(&pcb.remote_ip)->addr == segment.remote[0]
                       : std::equal(segment.remote.begin(), segment.remote.end(), ip_2_ip6(&pcb.remote_ip)->addr);
}

/// lwIP finds a connection by walking its global lists. They are divided into buckets: while lwIP works for a
/// connection, its lists are those of the connection's bucket; for timers they are all together.
class PcbBuckets {
 public:
  PcbBuckets() : buckets_(kBuckets) {}

  /// Enters a bucket, or all; leaves at the end of its life. Within another one it does nothing: there lwIP has the
  /// lists that it needs, because an event of a connection asks for that connection's bucket.
  class Scope {
   public:
    Scope(PcbBuckets& buckets, std::size_t bucket)
        : buckets_(buckets.is_entered_ ? nullptr : &buckets), bucket_(bucket) {
      if (buckets_ != nullptr) {
        buckets_->is_entered_ = true;
        tcp_active_pcbs = buckets_->buckets_[bucket_].active;
        tcp_tw_pcbs = buckets_->buckets_[bucket_].waiting;
      }
    }
    ~Scope() {
      if (buckets_ != nullptr) {
        buckets_->buckets_[bucket_] = {std::exchange(tcp_active_pcbs, nullptr), std::exchange(tcp_tw_pcbs, nullptr)};
        buckets_->is_entered_ = false;
      }
    }
    Scope(Scope const&) = delete;
    Scope& operator=(Scope const&) = delete;

   private:
    PcbBuckets* buckets_;  ///< null: another scope is around this one
    std::size_t bucket_;
  };

  /// Calls `work` with all connections in lwIP's lists.
  template <typename Work>
  void with_all(Work const& work) {
    is_entered_ = true;
    for (Bucket& bucket : buckets_) {
      append(tcp_active_pcbs, std::exchange(bucket.active, nullptr));
      append(tcp_tw_pcbs, std::exchange(bucket.waiting, nullptr));
    }
    work();
    deal(std::exchange(tcp_active_pcbs, nullptr), &Bucket::active);
    deal(std::exchange(tcp_tw_pcbs, nullptr), &Bucket::waiting);
    is_entered_ = false;
  }

 private:
  struct Bucket {
    tcp_pcb* active = nullptr;
    tcp_pcb* waiting = nullptr;  ///< in TIME-WAIT
  };

  /// Puts `list` in front of `to`.
  static void append(tcp_pcb*& to, tcp_pcb* list) {
    if (list == nullptr) {
      return;
    }
    tcp_pcb* last = list;
    while (last->next != nullptr) {
      last = last->next;
    }
    last->next = to;
    to = list;
  }
  void deal(tcp_pcb* list, tcp_pcb* Bucket::*lists) {
    while (list != nullptr) {
      tcp_pcb* const pcb = std::exchange(list, list->next);
      tcp_pcb*& bucket = buckets_[bucket_of(*pcb)].*lists;
      pcb->next = bucket;
      bucket = pcb;
    }
  }

  std::vector<Bucket> buckets_;
  bool is_entered_ = false;
};

class LwipTcp final : public Tcp {
 public:
  LwipTcp(TcpOptions const& options, FramePort& port, TcpEvents& events)
      : options_(options), port_(&port), events_(&events) {}
  ~LwipTcp() override;

  Status start();
  void input(std::span<const std::byte> frame) override;
  void tick(Clock::time_point now) override;
  Status listen(std::uint16_t port, std::uint8_t backlog) override;
  void stop_listening(std::uint16_t port) override;
  std::size_t room(ConnectionId connection) const override;
  bool write(ConnectionId connection, std::span<const std::byte> bytes, bool more) override;
  void consumed(ConnectionId connection, std::size_t bytes) override;
  void close(ConnectionId connection) override;
  void close_sending(ConnectionId connection) override;
  void reset(ConnectionId connection) override;
  std::uint32_t connections() const override { return static_cast<std::uint32_t>(connections_.size() - free_.size()); }

  static bool exists;

 private:
  struct Connection {
    LwipTcp* tcp = nullptr;
    tcp_pcb* pcb = nullptr;           ///< null: free
    std::uint16_t segment_bytes = 0;  ///< the MSS that was negotiated
  };
  struct Listener {
    std::uint16_t port;
    tcp_pcb* pcb;
  };

  // lwIP's callbacks; `argument` is the LwipTcp of a netif or a listener, or a connection's number
  static err_t on_init(netif* interface);
  static err_t on_output(netif* interface, pbuf* frame);
  static err_t on_accept(void* argument, tcp_pcb* pcb, err_t error);
  static err_t on_receive(void* argument, tcp_pcb* pcb, pbuf* data, err_t error);
  static err_t on_sent(void* argument, tcp_pcb* pcb, u16_t bytes);
  static void on_error(void* argument, err_t error);

  static void* argument_of(ConnectionId connection) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(connection));
  }
  static ConnectionId connection_of(void* argument) {
    return static_cast<ConnectionId>(reinterpret_cast<std::uintptr_t>(argument));
  }
  tcp_pcb* pcb_of(ConnectionId connection) const { return connections_[connection].pcb; }
  /// Ends the number of a connection; lwIP calls nothing for its PCB any more.
  tcp_pcb* release(ConnectionId connection);
  void end_time_wait(Segment const& segment, std::uint32_t sequence);
  std::uint16_t segment_bytes_of(Segment const& segment) const;

  TcpOptions options_;
  FramePort* port_;
  TcpEvents* events_;
  netif interface_{};
  PcbBuckets buckets_;
  std::vector<Listener> listeners_;
  std::vector<Connection> connections_;
  std::vector<ConnectionId> free_;
  Clock::time_point next_tick_;
  std::uint32_t ticks_ = 0;
};

bool LwipTcp::exists = false;
/// That of the callbacks of connections, whose argument is a number.
LwipTcp* the_tcp = nullptr;

LwipTcp::~LwipTcp() {
  for (ConnectionId connection = 0; connection < connections_.size(); ++connection) {
    if (pcb_of(connection) != nullptr) {
      reset(connection);
    }
  }
  // those that close by themselves
  buckets_.with_all([] {
    while (tcp_active_pcbs != nullptr) {
      tcp_abort(tcp_active_pcbs);
    }
    while (tcp_tw_pcbs != nullptr) {
      tcp_abort(tcp_tw_pcbs);
    }
  });
  for (Listener const& listener : listeners_) {
    tcp_close(listener.pcb);
  }
  netif_remove(&interface_);
  the_tcp = nullptr;
  exists = false;
}

Status LwipTcp::start() {
  static const bool kInitialized = [] {
    lwip_init();
    start_sack();
    return true;
  }();
  (void)kInitialized;
  the_tcp = this;
  ip4_addr_t address{};
  ip4_addr_t mask{};
  ip4_addr_t gateway{};
  if (options_.ipv4) {
    address = *ip_2_ip4(std::array{to_lwip(options_.ipv4->address)}.data());
    mask.addr = lwip_htonl(options_.ipv4->prefix == 0 ? 0 : ~std::uint32_t{0} << (32U - options_.ipv4->prefix));
    if (options_.ipv4->gateway) {
      gateway = *ip_2_ip4(std::array{to_lwip(*options_.ipv4->gateway)}.data());
    }
  }
  if (netif_add(&interface_, &address, &mask, &gateway, this, &on_init, &netif_input) == nullptr) {
    return absl::ResourceExhaustedError("lwIP takes no interface");
  }
  netif_set_default(&interface_);
  netif_set_link_up(&interface_);
  netif_set_up(&interface_);
  netif_create_ip6_linklocal_address(&interface_, 1);
  netif_ip6_addr_set_state(&interface_, 0, IP6_ADDR_PREFERRED);
  if (options_.ipv6) {
    const ip_addr_t ipv6 = to_lwip(options_.ipv6->address);
    netif_ip6_addr_set(&interface_, 1, ip_2_ip6(&ipv6));
    netif_ip6_addr_set_state(&interface_, 1, IP6_ADDR_PREFERRED);
  }
  next_tick_ = Clock::now() + kTick;
  return absl::OkStatus();
}

err_t LwipTcp::on_init(netif* interface) {
  auto const& options = static_cast<LwipTcp*>(interface->state)->options_;
  interface->name[0] = 'c';
  interface->name[1] = 'a';
  interface->output = &etharp_output;
  interface->output_ip6 = &ethip6_output;
  interface->linkoutput = &on_output;
  interface->mtu = options.mtu;
  interface->hwaddr_len = static_cast<u8_t>(options.mac.size());
  std::memcpy(interface->hwaddr, options.mac.data(), options.mac.size());
  interface->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET;
  return ERR_OK;
}

void LwipTcp::input(std::span<const std::byte> frame) {
  if (frame.size() < kEthernetBytes || frame.size() - kEthernetBytes > 0xFFFF) {
    return;
  }
  const std::optional<Segment> segment = parse(frame, true);
  const PcbBuckets::Scope scope(buckets_, segment ? bucket_of(segment->remote, segment->remote_port) : 0);
  if (segment) {
    const auto flags = std::to_integer<std::uint8_t>(frame[segment->tcp + 13]);
    if ((flags & (kSyn | kAck)) == kSyn) {
      end_time_wait(*segment, load_be32(&frame[segment->tcp + 4]));
    }
  }
  // A pbuf counts its bytes by 16 bits, and a frame of the kernel's may have 14 more: IP packets go in without
  // Ethernet.
  const std::uint16_t type = load_be16(&frame[12]);
  const bool is_ip = type == kTypeIpv4 || type == kTypeIpv6;
  const std::span<const std::byte> bytes = is_ip ? frame.subspan(kEthernetBytes) : frame;
  if (bytes.size() > 0xFFFF) {
    return;
  }
  pbuf* const buffer = pbuf_alloc(PBUF_RAW, static_cast<u16_t>(bytes.size()), PBUF_RAM);
  if (buffer == nullptr) {
    return;
  }
  pbuf_take(buffer, bytes.data(), static_cast<u16_t>(bytes.size()));
  const err_t taken = is_ip ? ip_input(buffer, &interface_) : ethernet_input(buffer, &interface_);
  if (taken != ERR_OK) {
    pbuf_free(buffer);
  }
}

/// A SYN above the numbers of a connection in TIME-WAIT opens a new one (RFC 9293, 3.6.1); lwIP would answer it with
/// ACKs for two minutes.
void LwipTcp::end_time_wait(Segment const& segment, std::uint32_t sequence) {
  for (tcp_pcb* pcb = tcp_tw_pcbs; pcb != nullptr; pcb = pcb->next) {
    if (is_of(*pcb, segment)) {
      if (TCP_SEQ_GT(sequence, pcb->rcv_nxt)) {
        tcp_pcb_remove(&tcp_tw_pcbs, pcb);
        tcp_free(pcb);
      }
      return;
    }
  }
}

void LwipTcp::tick(Clock::time_point now) {
  constexpr std::uint32_t kTicksPerSecond = 100;
  // after a pause of the process the timers catch up by a second at most
  next_tick_ = std::max(next_tick_, now - std::chrono::seconds(1));
  for (; now >= next_tick_; next_tick_ += kTick) {
    buckets_.with_all([] {
      for (tcp_pcb* pcb = tcp_active_pcbs; pcb != nullptr; pcb = pcb->next) {
        limit_timeout(*pcb);
      }
      tcp_tmr();
    });
    if (++ticks_ % kTicksPerSecond == 0) {
      etharp_tmr();
      nd6_tmr();
    }
  }
}

Status LwipTcp::listen(std::uint16_t port, std::uint8_t backlog) {
  if (std::ranges::find(listeners_, port, &Listener::port) != listeners_.end()) {
    return absl::AlreadyExistsError(concat("port ", port, " is listened at already"));
  }
  tcp_pcb* const pcb = tcp_new_ip_type(IPADDR_TYPE_ANY);
  if (pcb == nullptr || tcp_bind(pcb, IP_ANY_TYPE, port) != ERR_OK) {
    return absl::ResourceExhaustedError("no memory to listen");
  }
  err_t error = ERR_OK;
  tcp_pcb* const listener = tcp_listen_with_backlog_and_err(pcb, backlog, &error);
  if (listener == nullptr) {
    tcp_abort(pcb);
    return absl::ResourceExhaustedError(concat("port ", port, ": lwIP error ", static_cast<int>(error)));
  }
  tcp_arg(listener, this);
  tcp_accept(listener, &on_accept);
  listeners_.push_back({port, listener});
  return absl::OkStatus();
}

void LwipTcp::stop_listening(std::uint16_t port) {
  const auto listener = std::ranges::find(listeners_, port, &Listener::port);
  if (listener != listeners_.end()) {
    // lwIP takes the listener out of all connections that came by it: their handshakes may not be over
    buckets_.with_all([&listener] { tcp_close(listener->pcb); });
    listeners_.erase(listener);
  }
}

err_t LwipTcp::on_accept(void* argument, tcp_pcb* pcb, err_t error) {
  auto& self = *static_cast<LwipTcp*>(argument);
  if (error != ERR_OK || pcb == nullptr) {
    return ERR_VAL;
  }
  if (self.connections() == self.options_.max_connections) {
    tcp_abort(pcb);
    return ERR_ABRT;
  }
  if (self.free_.empty()) {
    self.free_.push_back(static_cast<ConnectionId>(self.connections_.size()));
    self.connections_.emplace_back();
  }
  const ConnectionId id = self.free_.back();
  self.free_.pop_back();
  self.connections_[id] = {&self, pcb, pcb->mss};
  tcp_arg(pcb, argument_of(id));
  tcp_recv(pcb, &on_receive);
  tcp_sent(pcb, &on_sent);
  tcp_err(pcb, &on_error);
  tcp_nagle_disable(pcb);
  pcb->rcv_wnd = self.options_.receive_window;
  pcb->rcv_ann_wnd = self.options_.receive_window;
  pcb->rcv_ann_right_edge = pcb->rcv_nxt + pcb->rcv_ann_wnd;  // the SYN's answer could say 64 KiB at most
  if (self.options_.cuts_segments) {
    // lwIP makes one segment of up to 44, and the port cuts it; the first window was computed by the real MSS
    pcb->mss = static_cast<u16_t>(44 * std::min<unsigned>(pcb->mss, TCP_MSS));
  }
  if (!self.events_->accepted(id, {from_lwip(pcb->local_ip), pcb->local_port},
                              {from_lwip(pcb->remote_ip), pcb->remote_port})) {
    if (self.connections_[id].pcb == pcb) {
      self.release(id);
      tcp_abort(pcb);
    }
    return ERR_ABRT;
  }
  return self.connections_[id].pcb == pcb ? ERR_OK : ERR_ABRT;
}

err_t LwipTcp::on_receive(void* argument, tcp_pcb* pcb, pbuf* data, err_t /*error*/) {
  LwipTcp& self = *the_tcp;
  const ConnectionId id = connection_of(argument);
  if (data == nullptr) {
    self.events_->peer_closed(id);
    return self.connections_[id].pcb == pcb ? ERR_OK : ERR_ABRT;
  }
  // all pieces or none: what was taken in part could not be offered again
  std::vector<std::byte> joined;
  std::span<const std::byte> bytes(static_cast<const std::byte*>(data->payload), data->len);
  if (data->next != nullptr) {
    joined.resize(data->tot_len);
    pbuf_copy_partial(data, joined.data(), data->tot_len, 0);
    bytes = joined;
  }
  if (!self.events_->received(id, bytes)) {
    return self.connections_[id].pcb == pcb ? ERR_MEM : ERR_ABRT;
  }
  pbuf_free(data);
  return self.connections_[id].pcb == pcb ? ERR_OK : ERR_ABRT;
}

err_t LwipTcp::on_sent(void* argument, tcp_pcb* pcb, u16_t bytes) {
  LwipTcp& self = *the_tcp;
  const ConnectionId id = connection_of(argument);
  self.events_->acknowledged(id, bytes);
  return self.connections_[id].pcb == pcb ? ERR_OK : ERR_ABRT;
}

void LwipTcp::on_error(void* argument, err_t /*error*/) {
  const ConnectionId id = connection_of(argument);
  the_tcp->connections_[id].pcb = nullptr;  // lwIP has freed it
  the_tcp->free_.push_back(id);
  the_tcp->events_->reset(id);
}

tcp_pcb* LwipTcp::release(ConnectionId connection) {
  tcp_pcb* const pcb = std::exchange(connections_[connection].pcb, nullptr);
  free_.push_back(connection);
  tcp_arg(pcb, nullptr);
  tcp_recv(pcb, nullptr);
  tcp_sent(pcb, nullptr);
  tcp_err(pcb, nullptr);
  return pcb;
}

std::size_t LwipTcp::room(ConnectionId connection) const {
  tcp_pcb const& pcb = *pcb_of(connection);
  return pcb.snd_queuelen + kQueueReserve >= TCP_SND_QUEUELEN ? 0 : std::size_t{tcp_sndbuf(&pcb)};
}

bool LwipTcp::write(ConnectionId connection, std::span<const std::byte> bytes, bool more) {
  tcp_pcb* const pcb = pcb_of(connection);
  const PcbBuckets::Scope scope(buckets_, bucket_of(*pcb));
  if (tcp_write(pcb, bytes.data(), static_cast<u16_t>(bytes.size()), more ? TCP_WRITE_FLAG_MORE : 0) != ERR_OK) {
    return false;
  }
  if (!more) {
    tcp_output(pcb);
  }
  return true;
}

void LwipTcp::consumed(ConnectionId connection, std::size_t bytes) {
  tcp_pcb* const pcb = pcb_of(connection);
  const PcbBuckets::Scope scope(buckets_, bucket_of(*pcb));
  // lwIP opens the window in steps of a segment. With those of sent ones, which have up to 64 KiB, it would stay shut
  // for an application that has consumed less of its buffer
  const u16_t sent_segment = std::exchange(pcb->mss, connections_[connection].segment_bytes);
  while (bytes > 0) {
    const std::size_t part = std::min<std::size_t>(bytes, 0xFFFF);
    tcp_recved(pcb, static_cast<u16_t>(part));
    bytes -= part;
  }
  pcb->mss = sent_segment;
}

void LwipTcp::close(ConnectionId connection) {
  const PcbBuckets::Scope scope(buckets_, bucket_of(*pcb_of(connection)));
  tcp_pcb* const pcb = release(connection);
  // bytes that were received and not credited would make a RST of the FIN
  pcb->rcv_wnd = TCP_WND_MAX(pcb);
  if (tcp_close(pcb) != ERR_OK) {
    tcp_abort(pcb);
  }
}

void LwipTcp::close_sending(ConnectionId connection) {
  tcp_pcb* const pcb = pcb_of(connection);
  const PcbBuckets::Scope scope(buckets_, bucket_of(*pcb));
  tcp_shutdown(pcb, 0, 1);
}

void LwipTcp::reset(ConnectionId connection) {
  const PcbBuckets::Scope scope(buckets_, bucket_of(*pcb_of(connection)));
  tcp_abort(release(connection));
}

std::uint16_t LwipTcp::segment_bytes_of(Segment const& segment) const {
  for (tcp_pcb* pcb = tcp_active_pcbs; pcb != nullptr; pcb = pcb->next) {
    if (is_of(*pcb, segment)) {
      const ConnectionId id = connection_of(pcb->callback_arg);
      // a connection that is closed has its number no more; 536 bytes pass everywhere (RFC 9293, 3.7.1)
      return id < connections_.size() && connections_[id].pcb == pcb ? connections_[id].segment_bytes : kLeastMss;
    }
  }
  return kLeastMss;
}

err_t LwipTcp::on_output(netif* interface, pbuf* frame) {
  auto& self = *static_cast<LwipTcp*>(interface->state);
  constexpr std::size_t kMaxParts = 64;
  std::array<std::span<const std::byte>, kMaxParts> parts;
  std::size_t count = 0;
  for (pbuf* part = frame; part != nullptr; part = part->next) {
    if (count == kMaxParts) {
      return ERR_BUF;
    }
    parts[count++] = {static_cast<const std::byte*>(part->payload), part->len};
  }
  OutgoingFrame outgoing{.parts = std::span(parts).first(count), .bytes = frame->tot_len};
  const std::span<std::byte> head(static_cast<std::byte*>(frame->payload), frame->len);
  if (const std::optional<Segment> segment = parse(head, false)) {
    const std::size_t header = segment->tcp + 4 * (std::to_integer<std::size_t>(head[segment->tcp + 12]) >> 4U);
    const std::uint32_t data = frame->tot_len - static_cast<std::uint32_t>(header);
    outgoing.checksum_start = static_cast<std::uint16_t>(segment->tcp);
    outgoing.header_bytes = static_cast<std::uint16_t>(header);
    // one's complement sum of the pseudo header
    const std::size_t addresses = kEthernetBytes + (segment->is_v4 ? 12 : 8);
    const std::uint64_t added = packet::checksum_add(octets(&head[addresses]), segment->is_v4 ? 8 : 32,
                                                     kTcpProtocol + frame->tot_len - segment->tcp);
    const auto sum = static_cast<std::uint16_t>(~packet::checksum_finish(added));
    head[segment->tcp + kTcpChecksumAt] = static_cast<std::byte>(sum >> 8U);
    head[segment->tcp + kTcpChecksumAt + 1] = static_cast<std::byte>(sum);
    if (self.options_.cuts_segments && data > kLeastMss) {
      const std::uint16_t limit = self.segment_bytes_of(*segment);
      outgoing.segment_bytes = data > limit ? limit : 0;
    }
  }
  return self.port_->send(outgoing) ? ERR_OK : ERR_MEM;
}

}  // namespace

Result<std::unique_ptr<Tcp>> Tcp::create(TcpOptions const& options, FramePort& port, TcpEvents& events) {
  if (LwipTcp::exists) {
    return absl::FailedPreconditionError("this process has a TCP stack");
  }
  const auto is_wrong = [](std::optional<TcpOptions::Network> const& network, bool is_v4) {
    return network && (network->address.is_v4() != is_v4 || network->prefix > (is_v4 ? 32 : 128) ||
                       (network->gateway && network->gateway->is_v4() != is_v4));
  };
  if ((!options.ipv4 && !options.ipv6) || is_wrong(options.ipv4, true) || is_wrong(options.ipv6, false)) {
    return absl::InvalidArgumentError("a TCP stack needs an address, and a prefix and a gateway of its family");
  }
  if (options.receive_window < 64 * 1024 || options.receive_window > TCP_WND) {
    return absl::InvalidArgumentError("receive_window: 64 KiB to 1 MiB");
  }
  if (::getrandom(isn_secret.data(), isn_secret.size(), 0) != static_cast<ssize_t>(isn_secret.size())) {
    return absl::UnavailableError("no random numbers for sequence numbers");  // else they could be guessed
  }
  LwipTcp::exists = true;
  auto tcp = std::make_unique<LwipTcp>(options, port, events);
  CATENA_RETURN_IF_ERROR(tcp->start());
  return tcp;
}

}  // namespace catena::stack
