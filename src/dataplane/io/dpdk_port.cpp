// SPDX-License-Identifier: Apache-2.0
#include "dataplane/io/ethdev_port.hpp"
#include "dataplane/io/sink.hpp"
#include "dataplane/io/source.hpp"

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_pause.h>
#include <catena/core/text.hpp>
#include <catena/packet/headers.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

namespace catena::dataplane {
namespace {

/// The sink gives a packet up after so many bursts in a row of which the driver took nothing (some 100 us).
constexpr std::uint32_t kMaxIdleBursts = 1000;
/// Shorter frames stop the queue of some NICs (i40e: 17 bytes), and no Ethernet carries them.
constexpr std::uint32_t kMinTxBytes = 17;
/// What a NIC still has to send when the run ends.
constexpr std::chrono::milliseconds kMaxTxDrain{100};

constexpr std::uint16_t kVlanType = 0x8100;
constexpr std::uint32_t kVlanBytes = 4;
constexpr std::uint32_t kMacBytes = 12;

/// Puts a VLAN tag back that the driver took out of the frame. (rte_vlan_insert refuses mbufs with external buffers.)
void restore_vlan_tag(rte_mbuf& mbuf) {
  if ((mbuf.ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) == 0 || mbuf.data_off < kVlanBytes || mbuf.data_len < kMacBytes) {
    return;
  }
  mbuf.data_off = static_cast<std::uint16_t>(mbuf.data_off - kVlanBytes);
  mbuf.data_len = static_cast<std::uint16_t>(mbuf.data_len + kVlanBytes);
  mbuf.pkt_len += kVlanBytes;
  auto* frame = rte_pktmbuf_mtod(&mbuf, std::uint8_t*);
  std::memmove(frame, frame + kVlanBytes, kMacBytes);
  packet::store_be16(frame + kMacBytes, kVlanType);
  packet::store_be16(frame + kMacBytes + 2, mbuf.vlan_tci);
}

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

class DpdkSource final : public Source {
 public:
  explicit DpdkSource(std::shared_ptr<EthdevPort> port) : port_(std::move(port)) {}

  Status receive(PacketPool& pool, Unit& unit, std::uint64_t next_index, bool& starved) override {
    std::array<rte_mbuf*, kUnitPackets> mbufs;
    // many drivers give no more than 32 at once: take what is there
    while (unit.count < kUnitPackets) {
      const std::uint16_t received =
          rte_eth_rx_burst(port_->id(), 0, mbufs.data(), static_cast<std::uint16_t>(kUnitPackets - unit.count));
      if (received == 0) {
        break;
      }
      std::uint32_t good = 0;
      for (std::uint32_t i = 0; i < received; ++i) {
        restore_vlan_tag(*mbufs[i]);
        if (mbufs[i]->nb_segs == 1 && mbufs[i]->data_len <= packet::kMaxFrameBytes) {
          mbufs[good++] = mbufs[i];
        } else {
          rte_pktmbuf_free(mbufs[i]);
          ++too_long_;
        }
      }
      pool.adopt(unit, std::span(mbufs).first(good), next_index + unit.count, now_ns());
      delivered_ += good;
    }
    starved = unit.count == 0 && pool.free_slots() == 0;
    return absl::OkStatus();
  }

  bool finished() const override { return false; }
  std::uint64_t seen() const override {
    std::uint64_t seen = delivered_;
    for (NamedCount const& drop : drops()) {
      seen += drop.count;
    }
    return seen;
  }
  std::vector<NamedCount> drops() const override {
    rte_eth_stats stats{};
    rte_eth_stats_get(port_->id(), &stats);
    return {{"too_long", too_long_},
            {"backlog_full", stats.imissed},
            {"no_slot", stats.rx_nombuf},
            {"rx_error", stats.ierrors}};
  }
  std::string describe() const override { return port_->describe(); }

 private:
  std::shared_ptr<EthdevPort> port_;
  std::uint64_t delivered_ = 0;
  std::uint64_t too_long_ = 0;
};

class DpdkSink final : public Sink {
 public:
  explicit DpdkSink(std::shared_ptr<EthdevPort> port) : port_(std::move(port)) {}

  Status send(PacketPool& pool, Unit& unit) override {
    std::array<rte_mbuf*, kUnitPackets> live;
    std::uint32_t live_count = 0;
    std::uint32_t kept = 0;  // packets from here to i are not sent and still hold their slots
    const packet::Batch batch = pool.batch(unit);
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      if (!can_send(batch[i])) {
        continue;
      }
      pool.release_slots(unit, kept, i - kept);
      kept = i + 1;
      live[live_count++] = prepare(*unit.mbufs[i], batch[i]);
    }
    pool.release_slots(unit, kept, unit.count - kept);
    transmit(std::span(live).first(live_count));
    return absl::OkStatus();
  }

  Status finish() override {
    const auto deadline = std::chrono::steady_clock::now() + kMaxTxDrain;
    while (std::chrono::steady_clock::now() < deadline) {
      const rte_eth_stats stats = statistics();
      if (stats.opackets + stats.oerrors >= accepted_) {
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return absl::OkStatus();
  }

  std::uint64_t sent() const override { return accepted_ - errors(); }
  std::vector<NamedCount> drops() const override {
    return {{"tx_full", tx_full_}, {"too_short", too_short_}, {"too_long", too_long_}, {"tx_error", errors()}};
  }
  std::string describe() const override { return port_->describe(); }

 private:
  /// False for a packet that an NF dropped and for one that the port cannot carry, which is counted.
  bool can_send(packet::Packet const& packet) {
    if (packet.verdict() == packet::Verdict::kDrop) {
      return false;
    }
    if (packet.length() < kMinTxBytes) {
      ++too_short_;
      return false;
    }
    const bool tagged = packet::load_be16(packet.frame() + kMacBytes) == kVlanType;
    if (packet.length() > port_->max_tx_bytes() + (tagged ? kVlanBytes : 0)) {
      ++too_long_;
      return false;
    }
    return true;
  }

  /// Makes the mbuf describe the frame as it stands in its slot now.
  static rte_mbuf* prepare(rte_mbuf& mbuf, packet::Packet const& packet) {
    mbuf.data_off = packet.offset();
    mbuf.data_len = packet.length();
    mbuf.pkt_len = packet.length();
    mbuf.ol_flags &= RTE_MBUF_F_EXTERNAL;  // nothing of what a receiving driver noted
    return &mbuf;
  }

  void transmit(std::span<rte_mbuf*> mbufs) {
    std::size_t taken = 0;
    std::uint32_t idle_bursts = 0;
    while (taken < mbufs.size() && idle_bursts < kMaxIdleBursts) {
      const auto offered = static_cast<std::uint16_t>(mbufs.size() - taken);
      const std::uint16_t step = rte_eth_tx_burst(port_->id(), 0, mbufs.data() + taken, offered);
      refused_ += offered - step;
      taken += step;
      if (step != 0) {
        idle_bursts = 0;
      } else {
        ++idle_bursts;
        rte_pause();
      }
    }
    accepted_ += taken;
    tx_full_ += mbufs.size() - taken;
    rte_pktmbuf_free_bulk(mbufs.data() + taken, static_cast<unsigned int>(mbufs.size() - taken));
  }

  rte_eth_stats statistics() const {
    rte_eth_stats stats{};
    rte_eth_stats_get(port_->id(), &stats);
    return stats;
  }

  /// Packets that the driver took and did not send. Some drivers count here what they did not take, too.
  std::uint64_t errors() const {
    const std::uint64_t reported = statistics().oerrors;
    return std::min(accepted_, reported - std::min(reported, refused_));
  }

  std::shared_ptr<EthdevPort> port_;
  std::uint64_t accepted_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t tx_full_ = 0;
  std::uint64_t too_short_ = 0;
  std::uint64_t too_long_ = 0;
};

}  // namespace

Result<DpdkPort> open_dpdk_port(std::string const& device, PacketPool& pool) {
  CATENA_ASSIGN_OR_RETURN(const std::shared_ptr<EthdevPort> port, EthdevPort::open(device, pool));
  return DpdkPort{std::make_unique<DpdkSource>(port), std::make_unique<DpdkSink>(port)};
}

}  // namespace catena::dataplane
