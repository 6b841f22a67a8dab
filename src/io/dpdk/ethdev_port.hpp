// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/counter.hpp>
#include "io/dpdk/mbuf_pool.hpp"
#include "io/port.hpp"
#include "memory/packet_pool.hpp"

#include <catena/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct rte_device;

namespace catena::io {

/// A DPDK port from probing its device to removing it again: configured and started, with queues each way. The queues
/// are its users, and the port lives as long as one of them.
class EthdevPort {
 public:
  /// A queue each way for each of `pools`, which outlive them: the driver keeps slots of them. Each queue is a Port,
  /// and they may be used by threads of their own. What the device counts for all of them on receiving stands with the
  /// first. With several queues the device spreads what arrives as can_divide() says; where it cannot, by whatever its
  /// driver does. Errors: see open_dpdk_port().
  static Result<std::vector<std::shared_ptr<Port>>> open(std::string const& device,
                                                         std::span<memory::PacketPool* const> pools);
  /// Whether the device has so many queues each way and gives all packets of a flow, of both its directions, to one of
  /// them. Errors: as open() where the device is not there.
  static Result<bool> can_divide(std::string const& device, std::uint32_t queues);
  ~EthdevPort();
  EthdevPort(EthdevPort const&) = delete;
  EthdevPort& operator=(EthdevPort const&) = delete;

 private:
  class Queue;
  /// What is behind a device string.
  struct Probed {
    std::string arguments;  ///< the device string, with defaults
    std::string name;
    std::string interface;  ///< of the kernel; empty: none
    std::uint16_t id;
    rte_device* device;
    bool is_open;
  };
  EthdevPort(Probed probed, std::span<memory::PacketPool* const> pools)
      : probed_(std::move(probed)), pools_(pools.begin(), pools.end()) {}
  static Result<Probed> probe(std::string const& device);
  Status set_up();
  Status map_pools();
  Status configure();
  Status set_up_queue(std::uint16_t number);
  Status check(int rc, std::string_view what) const;
  bool wait_for_link() const;
  PortCounters counters_of(std::size_t queue) const;
  std::string describe() const;

  Probed probed_;
  std::vector<memory::PacketPool*> pools_;
  std::vector<std::shared_ptr<MbufPool>> mbufs_;  ///< of each pool
  std::string driver_;
  unsigned int if_index_ = 0;  ///< of the interface; 0: none
  std::uint32_t max_tx_bytes_ = packet::kSlotBytes;
  std::deque<Counter> refused_;  ///< of each queue: offered frames that the driver did not take
  std::deque<Counter> taken_;    ///< of each queue: those that it did
  std::size_t mapped_ = 0;       ///< pools, from the first on
  bool owned_ = false;
  bool started_ = false;
};

/// A hash key for receive queues by which a flow and its replies have one hash: the exclusive or of the 16-bit words of
/// addresses and ports, turned in as many ways (Woo and Park, Scalable TCP Session Monitoring with Symmetric
/// Receive-side Scaling, 2012). So whoever chooses addresses and ports chooses the queue.
std::vector<std::uint8_t> symmetric_key(std::size_t bytes);

}  // namespace catena::io
