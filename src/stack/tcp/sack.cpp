// SPDX-License-Identifier: Apache-2.0
#include "stack/tcp/sack.hpp"

#include <catena/packet/headers.hpp>

#include <lwip/priv/tcp_priv.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>

namespace catena::stack {
namespace {

// bits of tcp_seg::flags that lwIP does not use
constexpr u8_t kSacked = 0x40;
constexpr u8_t kResent = 0x80;

constexpr u32_t kLossBytes = 3 * TCP_MSS;  ///< sacked above a segment that is lost (RFC 6675, DupThresh)
constexpr s16_t kMinTimeoutTicks = 200 / TCP_SLOW_INTERVAL;
constexpr int kMinProbeTicks = 2;  ///< of TCP_SLOW_INTERVAL, after the last segment or ACK
constexpr std::size_t kMaxBlocks = 4;
constexpr std::size_t kMaxOptionBytes = 40;

struct Block {
  u32_t left;
  u32_t right;  ///< the number behind the block
};
struct Blocks {
  std::array<Block, kMaxBlocks> blocks;
  std::size_t count = 0;
};

u8_t recovery_slot = 0;

/// Kept in the PCB: the number up to which the episode of loss goes, whether there is one, and whether the flight has
/// been probed.
struct Recovery {
  u32_t point = 0;
  bool is_on = false;
  bool is_probed = false;
};
constexpr unsigned kIsOnBit = 32;
constexpr unsigned kIsProbedBit = 33;
Recovery recovery_of(tcp_pcb const& pcb) {
  const auto packed = reinterpret_cast<std::uintptr_t>(tcp_ext_arg_get(&pcb, recovery_slot));
  return {static_cast<u32_t>(packed), (packed >> kIsOnBit & 1U) != 0, (packed >> kIsProbedBit & 1U) != 0};
}
void keep(tcp_pcb& pcb, Recovery const& recovery) {
  const auto packed = static_cast<std::uintptr_t>(recovery.point) |
                      std::uintptr_t{recovery.is_on ? 1U : 0U} << kIsOnBit |
                      std::uintptr_t{recovery.is_probed ? 1U : 0U} << kIsProbedBit;
  tcp_ext_arg_set(&pcb, recovery_slot, reinterpret_cast<void*>(packed));
}

/// The blocks of option 5 that lie within what was sent and not acknowledged (RFC 2018, section 3). Blocks below, of
/// duplicates (RFC 2883), are left out.
Blocks parse(std::span<const u8_t> options, u32_t acknowledged, u32_t next) {
  constexpr u8_t kEnd = 0;
  constexpr u8_t kNothing = 1;
  constexpr u8_t kSack = 5;
  Blocks result;
  for (std::size_t at = 0; at < options.size() && options[at] != kEnd;) {
    if (options[at] == kNothing) {
      ++at;
      continue;
    }
    if (at + 1 >= options.size() || options[at + 1] < 2 || at + options[at + 1] > options.size()) {
      break;
    }
    const std::size_t length = options[at + 1];
    if (options[at] == kSack) {
      for (std::size_t block = at + 2; block + 8 <= at + length && result.count < kMaxBlocks; block += 8) {
        const Block found{packet::load_be32(&options[block]), packet::load_be32(&options[block + 4])};
        if (TCP_SEQ_LT(found.left, found.right) && TCP_SEQ_GT(found.left, acknowledged) &&
            TCP_SEQ_LEQ(found.right, next)) {
          result.blocks[result.count++] = found;
        }
      }
    }
    at += length;
  }
  return result;
}

u32_t first_of(tcp_seg const& segment) { return lwip_ntohl(segment.tcphdr->seqno); }

/// Bytes of the blocks above `number`. Blocks of one header do not overlap; a liar's do, and harm his own connection.
u32_t sacked_above(Blocks const& blocks, u32_t number) {
  u32_t bytes = 0;
  for (std::size_t i = 0; i < blocks.count; ++i) {
    Block const& block = blocks.blocks[i];
    if (TCP_SEQ_GT(block.right, number)) {
      bytes += block.right - (TCP_SEQ_GT(block.left, number) ? block.left : number);
    }
  }
  return bytes;
}

bool is_covered(Blocks const& blocks, u32_t first, u32_t end) {
  return std::any_of(
      blocks.blocks.begin(), blocks.blocks.begin() + static_cast<std::ptrdiff_t>(blocks.count),
      [&](Block const& block) { return TCP_SEQ_LEQ(block.left, first) && TCP_SEQ_GEQ(block.right, end); });
}

void begin_recovery(tcp_pcb& pcb) {
  constexpr u32_t kPercent = 70;  // CUBIC's reduction (RFC 9438, 4.6)
  keep(pcb, {pcb.snd_nxt, true, false});
  const u32_t window = std::min<u32_t>(pcb.cwnd, pcb.snd_wnd);
  // a window below one piece (Tcp::kMaxWrite) would never let it leave
  pcb.ssthresh = std::max<u32_t>(window / 100 * kPercent, std::max<u32_t>(2 * TCP_MSS, pcb.mss));
  pcb.cwnd = pcb.ssthresh;
}

/// Into a list in the order of numbers.
void insert(tcp_seg*& segments, tcp_seg& segment) {
  tcp_seg** at = &segments;
  while (*at != nullptr && TCP_SEQ_LT(first_of(**at), first_of(segment))) {
    at = &(*at)->next;
  }
  segment.next = std::exchange(*at, &segment);
}

/// Moves the lost segments from what is unacknowledged to what is unsent. Whether there are any.
bool queue_lost(tcp_pcb& pcb, Blocks const& blocks) {
  bool has_lost = false;
  for (tcp_seg** at = &pcb.unacked; *at != nullptr;) {
    tcp_seg* const segment = *at;
    // with another reference to it a port may still be reading it
    const bool is_lost = (segment->flags & (kSacked | kResent)) == 0 && segment->p->ref == 1 &&
                         sacked_above(blocks, first_of(*segment)) >= kLossBytes;
    if (!is_lost) {
      at = &segment->next;
      continue;
    }
    *at = segment->next;
    segment->flags |= kResent;
    insert(pcb.unsent, *segment);
    has_lost = true;
  }
  return has_lost;
}

tcp_seg& last_of(tcp_seg& segments) {
  tcp_seg* last = &segments;
  while (last->next != nullptr) {
    last = last->next;
  }
  return *last;
}

/// A time-out of lwIP puts all that is unacknowledged before all that is unsent. Where that begins with lost segments,
/// of lower numbers, the window would be too small for the others, and no ACK would ever come.
void sort_for_timeout(tcp_pcb& pcb) {
  if (pcb.unacked == nullptr) {
    return;
  }
  while (pcb.unsent != nullptr && TCP_SEQ_LT(first_of(*pcb.unsent), first_of(last_of(*pcb.unacked)))) {
    tcp_seg* const lost = std::exchange(pcb.unsent, pcb.unsent->next);
    insert(pcb.unacked, *lost);
  }
}

/// Not where little is in flight: the peer may delay its ACK.
bool is_to_be_probed(tcp_pcb const& pcb) {
  const int probe_ticks = std::max(kMinProbeTicks, 2 * (pcb.sa >> 3));  // lwIP keeps eight round trips in `sa`
  const Recovery recovery = recovery_of(pcb);
  return pcb.unacked != nullptr && pcb.state >= ESTABLISHED && pcb.rtime >= probe_ticks && !recovery.is_on &&
         !recovery.is_probed && (pcb.flags & TF_RTO) == 0 && pcb.snd_nxt - pcb.lastack > TCP_MSS;
}

void probe(tcp_pcb& pcb) {
  keep(pcb, {.is_probed = true});
  tcp_seg** at = &pcb.unacked;
  while ((*at)->next != nullptr) {
    at = &(*at)->next;
  }
  tcp_seg* const last = *at;
  if (last->p->ref != 1) {
    return;  // a port may still be reading it
  }
  *at = nullptr;
  insert(pcb.unsent, *last);
  pcb.rttest = 0;
  tcp_output(&pcb);
}

}  // namespace

void start_sack() { recovery_slot = tcp_ext_arg_alloc_id(); }

void take_sack(tcp_pcb& pcb, u32_t acknowledged, const u8_t* options, u16_t option_bytes, const u8_t* rest,
               u16_t rest_bytes) {
  if (pcb.state < ESTABLISHED) {
    return;
  }
  if ((pcb.flags & TF_RTO) != 0) {  // everything is sent again, and judged anew
    for (tcp_seg* const first : {pcb.unsent, pcb.unacked}) {
      for (tcp_seg* segment = first; segment != nullptr; segment = segment->next) {
        segment->flags &= static_cast<u8_t>(~(kSacked | kResent));
      }
    }
    keep(pcb, {});
    return;
  }
  Recovery recovery = recovery_of(pcb);
  recovery.is_on = recovery.is_on && TCP_SEQ_LT(acknowledged, recovery.point);
  recovery.is_probed = recovery.is_probed && acknowledged == pcb.lastack;
  keep(pcb, recovery);
  if (pcb.unacked == nullptr || option_bytes + rest_bytes == 0) {
    return;
  }
  std::array<u8_t, kMaxOptionBytes> bytes{};
  const std::size_t first = std::min<std::size_t>(option_bytes, bytes.size());
  const std::size_t second = rest == nullptr ? 0 : std::min<std::size_t>(rest_bytes, bytes.size() - first);
  std::copy_n(options, first, bytes.begin());
  std::copy_n(rest, second, bytes.begin() + static_cast<std::ptrdiff_t>(first));
  const Blocks blocks = parse(std::span(bytes).first(first + second), acknowledged, pcb.snd_nxt);
  if (blocks.count == 0) {
    return;
  }
  for (tcp_seg* segment = pcb.unacked; segment != nullptr; segment = segment->next) {
    const u32_t begin = first_of(*segment);
    if (is_covered(blocks, begin, begin + TCP_TCPLEN(segment))) {
      segment->flags |= kSacked;
    }
  }
  if (queue_lost(pcb, blocks)) {
    if (!recovery.is_on) {
      begin_recovery(pcb);
    }
    pcb.rttest = 0;  // a segment that is sent twice tells no round trip (RFC 6298, section 3)
    pcb.rtime = 0;
  }
  if (recovery_of(pcb).is_on) {
    // lwIP's own recovery by duplicate ACKs stays out
    tcp_set_flags(&pcb, TF_INFR);
    pcb.dupacks = 0;
  }
}

void prepare_retransmission(tcp_pcb& pcb) {
  pcb.rto = std::max(pcb.rto, kMinTimeoutTicks);
  if (pcb.rtime + 1 >= pcb.rto) {
    sort_for_timeout(pcb);
  } else if (is_to_be_probed(pcb)) {
    probe(pcb);
  }
}

Appending::Appending(tcp_pcb& pcb) : pcb_(&pcb), input_(tcp_input_pcb) {
  if (pcb.unsent == nullptr) {
    return;
  }
  tcp_seg const& last = last_of(*pcb.unsent);
  if (first_of(last) + last.len == pcb.snd_lbb || (TCPH_FLAGS(last.tcphdr) & TCP_FIN) != 0) {
    return;
  }
  lost_ = std::exchange(pcb.unsent, nullptr);
  is_lent_ = pcb.unacked == nullptr;
  if (is_lent_) {
    pcb.unacked = lost_;
  }
  tcp_input_pcb = &pcb;
}

Appending::~Appending() {
  if (lost_ == nullptr) {
    return;
  }
  if (is_lent_) {
    pcb_->unacked = nullptr;
  }
  last_of(*lost_).next = std::exchange(pcb_->unsent, lost_);
  tcp_input_pcb = input_;
}

}  // namespace catena::stack
