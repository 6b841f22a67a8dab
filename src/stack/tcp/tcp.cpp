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
#include <bit>
#include <cstring>
#include <list>
#include <optional>
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

#include "packet/address_bytes.hpp"
#include "stack/tcp/frame.hpp"
#include "stack/tcp/memory.hpp"
#include "stack/tcp/pcb_buckets.hpp"
#include "stack/tcp/pcb_record.hpp"
#include "stack/tcp/sack.hpp"
#include "stack/tcp/segment_check.hpp"

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

}  // extern "C"

namespace catena::stack {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint8_t kSyn = 0x02;
constexpr std::uint8_t kAck = 0x10;
constexpr std::uint16_t kLeastMss = 536;      ///< that each peer takes (RFC 9293, 3.7.1)
constexpr std::uint16_t kAcceptedMss = 88;    ///< a peer that asks for less would buy much work with few bytes
constexpr std::uint16_t kQueueReserve = 300;  ///< segments that lwIP may need beside those of write()
/// Zeros behind a received packet: lwIP reads the first bytes of an extension header or an option before it knows that
/// they are there.
constexpr std::size_t kSlack = 8;
constexpr std::size_t kMaxPacket = 0xFFFF;  ///< bytes that a pbuf counts

ip_addr_t to_lwip(packet::Address const& address) {
  ip_addr_t result{};
  if (address.is_v4()) {
    IP_ADDR4(&result, address.v4() >> 24U & 0xFF, address.v4() >> 16U & 0xFF, address.v4() >> 8U & 0xFF,
             address.v4() & 0xFF);
  } else {
    const auto words = std::bit_cast<std::array<u32_t, 4>>(packet::to_bytes(address));
    IP_ADDR6(&result, words[0], words[1], words[2], words[3]);
  }
  return result;
}

packet::Address from_lwip(ip_addr_t const& address) {
  if (IP_IS_V4_VAL(address)) {
    return packet::Address::of_v4(lwip_ntohl(ip_2_ip4(&address)->addr));
  }
  return packet::address_of(std::bit_cast<packet::AddressBytes>(ip_2_ip6(&address)->addr));
}

bool is_of(tcp_pcb const& pcb, Segment const& segment) {
  if (pcb.remote_port != segment.remote_port || pcb.local_port != segment.local_port ||
      IP_IS_V4_VAL(pcb.remote_ip) != segment.is_v4) {
    return false;
  }
  return segment.is_v4 ? ip_2_ip4(&pcb.remote_ip)->addr == segment.remote[0]
                       : std::equal(segment.remote.begin(), segment.remote.end(), ip_2_ip6(&pcb.remote_ip)->addr);
}

/// A Packet Too Big below the least MTU of IPv6, which a node ignores (RFC 8201, section 4). lwIP would take any.
bool is_false_packet_too_big(std::span<const std::byte> frame) {
  constexpr std::byte kPacketTooBig{2};
  constexpr std::uint32_t kLeastMtu = 1280;
  const std::optional<Transport> transport = find_transport(frame);
  return transport && transport->protocol == kIcmpv6Protocol && frame.size() >= transport->offset + 8 &&
         frame[transport->offset] == kPacketTooBig && load_be32(&frame[transport->offset + 4]) < kLeastMtu;
}

/// Sends a FIN after the last byte. `end`: tcp_close() or tcp_shutdown(), which must not free the PCB.
template <typename End>
err_t send_fin(tcp_pcb& pcb, End end) {
  err_t result = ERR_OK;
  {
    const Appending appending(pcb);
    result = end(&pcb);
  }
  tcp_output(&pcb);
  return result;
}

/// Before lwIP's timers: corrects the states that peers can bring about and lwIP does not expect.
void prepare_timers(tcp_pcb& pcb) {
  constexpr u8_t kMaxRetries = TCP_MAXRTX - 1;
  if ((pcb.flags & TF_CLOSEPEND) != 0) {  // no memory for a FIN: lwIP would append it to a lost segment
    tcp_clear_flags(&pcb, TF_CLOSEPEND);
    send_fin(pcb, [](tcp_pcb* open) { return tcp_shutdown(open, 0, 1); });
  }
  prepare_retransmission(pcb);
  // stall_limit ends a connection; lwIP would do so after 18 s, or never if the peer answers probes
  pcb.nrtx = std::min(pcb.nrtx, kMaxRetries);
  pcb.persist_probe = std::min(pcb.persist_probe, kMaxRetries);
  // The probe of a closed window was all there was, or the window is open: lwIP leaves the persist timer running, and
  // its assertions end the process.
  if (pcb.unsent == nullptr || pcb.unacked != nullptr || pcb.snd_wnd > 0xFFFF) {
    pcb.persist_backoff = 0;
  }
}

/// Connections by their numbers, which are used again.
class ConnectionTable {
 public:
  ConnectionId add(tcp_pcb& pcb) {
    if (free_.empty()) {
      free_.push_back(static_cast<ConnectionId>(all_.size()));
      all_.emplace_back();
    }
    const ConnectionId id = free_.back();
    free_.pop_back();
    all_[id] = {&pcb, pcb.mss};
    return id;
  }
  void remove(ConnectionId id) {
    all_[id].pcb = nullptr;
    free_.push_back(id);
  }
  std::uint32_t count() const { return static_cast<std::uint32_t>(all_.size() - free_.size()); }
  /// Numbers from 0 on that have been used.
  ConnectionId numbers() const { return static_cast<ConnectionId>(all_.size()); }
  /// Null: a number without a connection.
  tcp_pcb* pcb_of(ConnectionId id) const { return id < all_.size() ? all_[id].pcb : nullptr; }
  /// The MSS that was negotiated.
  std::uint16_t segment_bytes_of(ConnectionId id) const { return all_[id].segment_bytes; }

 private:
  struct Connection {
    tcp_pcb* pcb = nullptr;  ///< null: free
    std::uint16_t segment_bytes = 0;
  };
  std::vector<Connection> all_;
  std::vector<ConnectionId> free_;
};

class LwipTcp final : public Tcp {
 public:
  LwipTcp(TcpOptions const& options, FramePort& port, TcpEvents& events, PcbBuckets::Key const& key)
      : options_(options), port_(&port), events_(&events), buckets_(key), joined_(kMaxPacket) {}
  ~LwipTcp() override;

  Status start();
  void input(std::span<const std::byte> frame) override;
  void tick(Clock::time_point now) override;
  Status listen(std::uint16_t port, std::uint16_t backlog) override;
  void stop_listening(std::uint16_t port) override;
  std::size_t room(ConnectionId connection) const override;
  bool write(ConnectionId connection, std::span<const std::byte> bytes, bool more) override;
  void consumed(ConnectionId connection, std::size_t bytes) override;
  void close(ConnectionId connection) override;
  void close_sending(ConnectionId connection) override;
  void reset(ConnectionId connection) override;
  std::uint32_t connections() const override { return connections_.count(); }
  TcpCounters counters() const override;
  std::optional<packet::Address> gateway_v6() const { return options_.ipv6 ? options_.ipv6->gateway : std::nullopt; }
  /// lwIP's hook: a segment for a listener or a connection. False: it is dropped.
  bool takes(tcp_pcb& pcb, tcp_hdr const& header, HeaderOptions const& options, u16_t data_bytes);

  static bool exists;

 private:
  struct Listener {
    std::uint16_t port;
    std::uint16_t backlog;
    tcp_pcb* pcb;
    PcbRecord::List half_open;
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
  tcp_pcb* pcb_of(ConnectionId connection) const { return connections_.pcb_of(connection); }
  /// Ends the number of a connection; lwIP calls nothing for its PCB any more.
  tcp_pcb* release(ConnectionId connection);
  void end_time_wait(Segment const& segment, std::uint32_t sequence);
  std::uint16_t segment_bytes_of(Segment const& segment) const;
  bool takes_syn(tcp_pcb const& listener, tcp_hdr const& header, HeaderOptions const& options);
  std::size_t half_open() const;
  void send_challenge(tcp_pcb& pcb);
  /// Ends a connection; `resets`: and tells its peer. Not that which lwIP works for.
  void drop(PcbRecord const& record, bool resets);
  /// Resets one connection of lwIP's list whose peer has stalled; false: there is none.
  bool end_stalled();

  TcpOptions options_;
  FramePort* port_;
  TcpEvents* events_;
  netif interface_{};
  PcbBuckets buckets_;
  PcbRecord::List open_;     ///< accepted and not closed
  PcbRecord::List closing_;  ///< after close()
  std::list<Listener> listeners_;
  ConnectionTable connections_;
  std::vector<std::byte> joined_;  ///< received bytes of several pbufs
  struct {
    Clock::time_point next;
    std::uint32_t count = 0;
  } ticks_;
  TcpCounters counters_;
};

bool LwipTcp::exists = false;
/// That of the callbacks of connections, whose argument is a number.
LwipTcp* the_tcp = nullptr;

/// Whether lwIP has freed a PCB since.
class PcbWatch {
 public:
  explicit PcbWatch(tcp_pcb const& pcb) : record_(record_of(pcb)) { record_->is_gone = &is_gone_; }
  ~PcbWatch() {
    if (!is_gone_) {
      record_->is_gone = nullptr;
    }
  }
  PcbWatch(PcbWatch const&) = delete;
  PcbWatch& operator=(PcbWatch const&) = delete;
  /// For lwIP: ERR_ABRT if the PCB is gone.
  err_t result() const { return is_gone_ ? ERR_ABRT : ERR_OK; }

 private:
  PcbRecord* record_;
  bool is_gone_ = false;
};

LwipTcp::~LwipTcp() {
  for (ConnectionId connection = 0; connection < connections_.numbers(); ++connection) {
    if (pcb_of(connection) != nullptr) {
      reset(connection);
    }
  }
  while (!closing_.empty()) {
    drop(closing_.front(), true);
  }
  while (!listeners_.empty()) {
    stop_listening(listeners_.front().port);
  }
  netif_remove(&interface_);
  the_tcp = nullptr;
  exists = false;
}

Status LwipTcp::start() {
  static const bool kInitialized = [] {
    lwip_init();
    start_sack();
    start_records();
    return true;
  }();
  (void)kInitialized;
  the_tcp = this;
  lwip_memory().limit = options_.max_memory;
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
  ticks_.next = Clock::now() + kTick;
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
  if (frame.size() < kEthernetBytes || is_false_packet_too_big(frame)) {
    return;
  }
  // A pbuf counts its bytes by 16 bits, and a frame of the kernel's may have 14 more: IP packets go in without
  // Ethernet.
  const std::uint16_t type = load_be16(&frame[12]);
  const bool is_ip = type == kTypeIpv4 || type == kTypeIpv6;
  const std::span<const std::byte> bytes = is_ip ? frame.subspan(kEthernetBytes) : frame;
  if (bytes.empty() || bytes.size() > kMaxPacket) {
    return;
  }
  const std::optional<Segment> segment = find_segment(frame, true);
  const PcbBuckets::Scope scope(buckets_, segment ? buckets_.bucket_of(*segment) : 0);
  if (segment) {
    const auto flags = std::to_integer<std::uint8_t>(frame[segment->tcp + 13]);
    if ((flags & (kSyn | kAck)) == kSyn) {
      end_time_wait(*segment, load_be32(&frame[segment->tcp + 4]));
    }
  }
  const std::size_t slack = std::min(kSlack, kMaxPacket - bytes.size());
  pbuf* const buffer = pbuf_alloc(PBUF_RAW, static_cast<u16_t>(bytes.size() + slack), PBUF_RAM);
  if (buffer == nullptr) {
    return;
  }
  auto* const packet = static_cast<std::byte*>(buffer->payload);
  std::ranges::copy(bytes, packet);
  std::fill_n(packet + bytes.size(), slack, std::byte{0});
  buffer->len = static_cast<u16_t>(bytes.size());
  buffer->tot_len = buffer->len;
  const err_t taken = is_ip ? ip_input(buffer, &interface_) : ethernet_input(buffer, &interface_);
  if (taken != ERR_OK) {
    pbuf_free(buffer);
  }
}

bool LwipTcp::takes(tcp_pcb& pcb, tcp_hdr const& header, HeaderOptions const& options, u16_t data_bytes) {
  if (pcb.state == LISTEN) {
    return takes_syn(pcb, header, options);
  }
  SegmentVerdict verdict = check_segment(pcb, header, data_bytes);
  if (verdict == SegmentVerdict::kProcess && data_bytes > 0 && TCP_SEQ_GT(header.seqno, pcb.rcv_nxt) &&
      lwip_memory().bytes > options_.max_memory / 2) {
    verdict = SegmentVerdict::kAcknowledge;  // no memory for data out of order
  }
  if (verdict == SegmentVerdict::kProcess) {
    const u16_t second = options.second == nullptr ? u16_t{0} : options.second_bytes;
    take_sack(pcb, header.ackno, options.first, options.first_bytes, options.second, second);
    hide(options);
    return true;
  }
  ++counters_.segments_dropped;
  if (verdict == SegmentVerdict::kChallenge) {
    send_challenge(pcb);
  } else if (verdict == SegmentVerdict::kAcknowledge) {
    tcp_send_empty_ack(&pcb);
  }
  return false;
}

bool LwipTcp::takes_syn(tcp_pcb const& listener, tcp_hdr const& header, HeaderOptions const& options) {
  const auto flags = TCPH_FLAGS(&header);
  if ((flags & (TCP_RST | TCP_ACK)) != 0 || (flags & TCP_SYN) == 0) {
    return true;  // lwIP resets or ignores it
  }
  if ((flags & TCP_FIN) != 0) {
    return false;
  }
  cut_malformed(options);
  auto const own = std::ranges::find(listeners_, &listener, [](Listener const& l) -> tcp_pcb const* { return l.pcb; });
  const bool is_own_full = own->half_open.size() >= std::max<std::size_t>(own->backlog, 1);
  if (is_own_full || half_open() >= std::max<std::size_t>(options_.max_half_open, 1)) {
    const auto fullest = std::ranges::max_element(listeners_, {}, [](Listener const& l) { return l.half_open.size(); });
    drop((is_own_full ? own : fullest)->half_open.front(), false);
    ++counters_.half_open_dropped;
  }
  return true;
}

std::size_t LwipTcp::half_open() const {
  std::size_t count = 0;
  for (Listener const& listener : listeners_) {
    count += listener.half_open.size();
  }
  return count;
}

void LwipTcp::send_challenge(tcp_pcb& pcb) {
  constexpr u32_t kInterval = 500 / TCP_SLOW_INTERVAL;
  // The limit is that of the connection: one for all would tell others about it (CVE-2016-5696).
  PcbRecord& record = *record_of(pcb);
  if (record.challenge_ticks != 0 && tcp_ticks - record.challenge_ticks < kInterval) {
    ++counters_.challenge_acks_withheld;
    return;
  }
  record.challenge_ticks = std::max<u32_t>(tcp_ticks, 1);
  ++counters_.challenge_acks;
  tcp_send_empty_ack(&pcb);
}

void LwipTcp::drop(PcbRecord const& record, bool resets) {
  tcp_pcb* const pcb = record.pcb;
  const PcbBuckets::Scope scope(buckets_, buckets_.bucket_of(*pcb));
  tcp_abandon(pcb, resets ? 1 : 0);
}

TcpCounters LwipTcp::counters() const {
  TcpCounters counters = counters_;
  counters.half_open = static_cast<std::uint32_t>(half_open());
  counters.closing = static_cast<std::uint32_t>(closing_.size());
  counters.memory_blocks = lwip_memory().blocks;
  counters.memory_bytes = lwip_memory().bytes;
  return counters;
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
  ticks_.next = std::max(ticks_.next, now - std::chrono::seconds(1));
  for (; now >= ticks_.next; ticks_.next += kTick) {
    ++ticks_.count;
    if (ticks_.count % kTicksPerSecond <= 1) {
      buckets_.arm_waiting();  // for two ticks: lwIP looks at TIME-WAIT in each second one
    }
    if (ticks_.count % kTicksPerSecond == 0) {
      etharp_tmr();
      nd6_tmr();
    }
    buckets_.with_armed([this] {
      while (end_stalled()) {
      }
      for (tcp_pcb* pcb = tcp_active_pcbs; pcb != nullptr; pcb = pcb->next) {
        prepare_timers(*pcb);
      }
      tcp_tmr();
    });
  }
}

bool LwipTcp::end_stalled() {
  const auto limit = static_cast<u32_t>(options_.stall_limit / std::chrono::milliseconds(TCP_SLOW_INTERVAL));
  for (tcp_pcb* pcb = tcp_active_pcbs; pcb != nullptr; pcb = pcb->next) {
    if (is_stalled(*record_of(*pcb), limit)) {
      ++counters_.stalled;
      tcp_abort(pcb);
      return true;
    }
  }
  return false;
}

Status LwipTcp::listen(std::uint16_t port, std::uint16_t backlog) {
  if (std::ranges::find(listeners_, port, &Listener::port) != listeners_.end()) {
    return absl::AlreadyExistsError(concat("port ", port, " is listened at already"));
  }
  tcp_pcb* const pcb = tcp_new_ip_type(IPADDR_TYPE_ANY);
  if (pcb == nullptr || tcp_bind(pcb, IP_ANY_TYPE, port) != ERR_OK) {
    return absl::ResourceExhaustedError("no memory to listen");
  }
  err_t error = ERR_OK;
  tcp_pcb* const listener = tcp_listen_with_backlog_and_err(pcb, 0, &error);
  if (listener == nullptr) {
    tcp_abort(pcb);
    return absl::ResourceExhaustedError(concat("port ", port, ": lwIP error ", static_cast<int>(error)));
  }
  tcp_arg(listener, this);
  tcp_accept(listener, &on_accept);
  record_connections(*listener, listeners_.emplace_back(Listener{port, backlog, listener, {}}).half_open);
  return absl::OkStatus();
}

void LwipTcp::stop_listening(std::uint16_t port) {
  const auto listener = std::ranges::find(listeners_, port, &Listener::port);
  if (listener != listeners_.end()) {
    while (!listener->half_open.empty()) {
      drop(listener->half_open.front(), false);
    }
    tcp_close(listener->pcb);
    listeners_.erase(listener);
  }
}

err_t LwipTcp::on_accept(void* argument, tcp_pcb* pcb, err_t error) {
  auto& self = *static_cast<LwipTcp*>(argument);
  if (error != ERR_OK || pcb == nullptr) {
    return ERR_VAL;
  }
  move_to(*record_of(*pcb), self.open_);
  if (self.connections() == self.options_.max_connections) {
    tcp_abort(pcb);
    return ERR_ABRT;
  }
  pcb->mss = std::max(pcb->mss, kAcceptedMss);
  const ConnectionId id = self.connections_.add(*pcb);
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
    if (self.pcb_of(id) == pcb) {
      self.release(id);
      tcp_abort(pcb);
    }
    return ERR_ABRT;
  }
  return self.pcb_of(id) == pcb ? ERR_OK : ERR_ABRT;
}

err_t LwipTcp::on_receive(void* argument, tcp_pcb* pcb, pbuf* data, err_t /*error*/) {
  LwipTcp& self = *the_tcp;
  const ConnectionId id = connection_of(argument);
  const PcbWatch watch(*pcb);
  if (data == nullptr) {
    self.events_->peer_closed(id);
    return watch.result();
  }
  // all pieces or none: what was taken in part could not be offered again
  std::span<const std::byte> bytes(static_cast<const std::byte*>(data->payload), data->len);
  if (data->next != nullptr) {
    pbuf_copy_partial(data, self.joined_.data(), data->tot_len, 0);
    bytes = std::span(self.joined_).first(data->tot_len);
  }
  // the application may have ended the connection, and refused: lwIP then offers nothing again
  if (!self.events_->received(id, bytes) && self.pcb_of(id) == pcb) {
    return ERR_MEM;
  }
  pbuf_free(data);
  return watch.result();
}

err_t LwipTcp::on_sent(void* argument, tcp_pcb* pcb, u16_t bytes) {
  const PcbWatch watch(*pcb);
  the_tcp->events_->acknowledged(connection_of(argument), bytes);
  return watch.result();
}

void LwipTcp::on_error(void* argument, err_t /*error*/) {
  const ConnectionId id = connection_of(argument);
  the_tcp->connections_.remove(id);  // lwIP has freed its PCB
  the_tcp->events_->reset(id);
}

tcp_pcb* LwipTcp::release(ConnectionId connection) {
  tcp_pcb* const pcb = pcb_of(connection);
  connections_.remove(connection);
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
  const PcbBuckets::Scope scope(buckets_, buckets_.bucket_of(*pcb));
  {
    const Appending appending(*pcb);
    if (tcp_write(pcb, bytes.data(), static_cast<u16_t>(bytes.size()), more ? TCP_WRITE_FLAG_MORE : 0) != ERR_OK) {
      return false;
    }
  }
  if (!more) {
    tcp_output(pcb);
  }
  return true;
}

void LwipTcp::consumed(ConnectionId connection, std::size_t bytes) {
  tcp_pcb* const pcb = pcb_of(connection);
  const PcbBuckets::Scope scope(buckets_, buckets_.bucket_of(*pcb));
  // lwIP opens the window in steps of a segment. With those of sent ones, which have up to 64 KiB, it would stay shut
  // for an application that has consumed less of its buffer
  const u16_t sent_segment = std::exchange(pcb->mss, connections_.segment_bytes_of(connection));
  while (bytes > 0) {
    const std::size_t part = std::min<std::size_t>(bytes, 0xFFFF);
    tcp_recved(pcb, static_cast<u16_t>(part));
    bytes -= part;
  }
  pcb->mss = sent_segment;
}

void LwipTcp::close(ConnectionId connection) {
  const PcbBuckets::Scope scope(buckets_, buckets_.bucket_of(*pcb_of(connection)));
  tcp_pcb* const pcb = release(connection);
  move_to(*record_of(*pcb), closing_);
  if (closing_.size() > std::max<std::size_t>(options_.max_closing, 1)) {
    drop(closing_.front(), true);
    ++counters_.closing_dropped;
  }
  // bytes that were received and not credited would make a RST of the FIN
  pcb->rcv_wnd = TCP_WND_MAX(pcb);
  // bytes that it has refused make lwIP reset it and free the PCB
  const err_t result = pcb->refused_data != nullptr ? tcp_close(pcb) : send_fin(*pcb, tcp_close);
  if (result != ERR_OK) {
    tcp_abort(pcb);
  }
}

void LwipTcp::close_sending(ConnectionId connection) {
  tcp_pcb* const pcb = pcb_of(connection);
  const PcbBuckets::Scope scope(buckets_, buckets_.bucket_of(*pcb));
  send_fin(*pcb, [](tcp_pcb* open) { return tcp_shutdown(open, 0, 1); });
}

void LwipTcp::reset(ConnectionId connection) {
  const PcbBuckets::Scope scope(buckets_, buckets_.bucket_of(*pcb_of(connection)));
  tcp_abort(release(connection));
}

std::uint16_t LwipTcp::segment_bytes_of(Segment const& segment) const {
  for (tcp_pcb* pcb = tcp_active_pcbs; pcb != nullptr; pcb = pcb->next) {
    if (is_of(*pcb, segment)) {
      const ConnectionId id = connection_of(pcb->callback_arg);
      // a connection that is closed has its number no more; 536 bytes pass everywhere (RFC 9293, 3.7.1)
      return pcb_of(id) == pcb ? connections_.segment_bytes_of(id) : kLeastMss;
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
  if (const std::optional<Segment> segment = find_segment(head, false)) {
    const std::size_t header = segment->tcp + 4 * (std::to_integer<std::size_t>(head[segment->tcp + 12]) >> 4U);
    const std::uint32_t data = frame->tot_len - static_cast<std::uint32_t>(header);
    outgoing.checksum_start = static_cast<std::uint16_t>(segment->tcp);
    outgoing.header_bytes = static_cast<std::uint16_t>(header);
    const std::uint64_t added = pseudo_header_sum(head, segment->is_v4, frame->tot_len - segment->tcp);
    const auto sum = static_cast<std::uint16_t>(~packet::checksum_finish(added));
    head[segment->tcp + kTcpChecksumAt] = static_cast<std::byte>(sum >> 8U);
    head[segment->tcp + kTcpChecksumAt + 1] = static_cast<std::byte>(sum);
    if (self.options_.cuts_segments && data > kAcceptedMss) {
      const std::uint16_t limit = self.segment_bytes_of(*segment);
      outgoing.segment_bytes = data > limit ? limit : 0;
    }
  }
  return self.port_->send(outgoing) ? ERR_OK : ERR_MEM;
}

}  // namespace

}  // namespace catena::stack

extern "C" const ip6_addr_t* catena_stack_gateway(netif* interface) {
  static ip_addr_t gateway;
  const std::optional<catena::packet::Address> address = catena::stack::the_tcp->gateway_v6();
  if (!address) {
    return nullptr;
  }
  gateway = catena::stack::to_lwip(*address);
  ip6_addr_assign_zone(ip_2_ip6(&gateway), IP6_UNICAST, interface);
  return ip_2_ip6(&gateway);
}

extern "C" err_t catena_stack_segment(tcp_pcb* pcb, tcp_hdr* header, u16_t option_bytes, u16_t first_bytes,
                                      u8_t* second, pbuf* data) {
  const u16_t first = std::min(first_bytes, option_bytes);
  const catena::stack::HeaderOptions options{reinterpret_cast<u8_t*>(header) + TCP_HLEN, first, second,
                                             static_cast<u16_t>(option_bytes - first)};
  return catena::stack::the_tcp->takes(*pcb, *header, options, data->tot_len) ? ERR_OK : ERR_VAL;
}

namespace catena::stack {

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
  PcbBuckets::Key key{};
  if (::getrandom(isn_secret.data(), isn_secret.size(), 0) != static_cast<ssize_t>(isn_secret.size()) ||
      ::getrandom(key.data(), sizeof key, 0) != static_cast<ssize_t>(sizeof key)) {
    return absl::UnavailableError("no random numbers for sequence numbers");  // else they could be guessed
  }
  LwipTcp::exists = true;
  auto tcp = std::make_unique<LwipTcp>(options, port, events, key);
  CATENA_RETURN_IF_ERROR(tcp->start());
  return tcp;
}

}  // namespace catena::stack
