// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/counter.hpp>
#include "io/dpdk/mbuf_pool.hpp"
#include "io/port.hpp"
#include "packet/memory/packet_pool.hpp"

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

/// The full address of the PCI device of an EAL device string, as "0000:03:00.0" of "03:00.0,key=value"; empty: it
/// names no PCI device. Any thread.
std::string pci_address_of(std::string_view device);

/// A DPDK port from probing its device to removing it: configured and started, with rx and tx queues. The queues share
/// the port, which lives as long as one of them.
class EthdevPort {
 public:
  /// One rx and one tx queue for each of `pools`, which must outlive them, as the driver keeps some of their slots.
  /// Each pair is a Port and may have threads of its own. The device's rx counters for the whole port are in the first
  /// one. With several queues the device distributes arriving frames as specified by can_divide(); if it cannot, its
  /// driver decides. Errors: see open_dpdk_port().
  static Result<std::vector<std::shared_ptr<Port>>> open(std::string const& device,
                                                         std::span<memory::PacketPool* const> pools);
  /// Whether the device has `queues` queues in each direction and gives all packets of a flow, in both directions, to
  /// one of them. Errors: as open() if the device does not exist.
  static Result<bool> can_divide(std::string const& device, std::uint32_t queues);
  ~EthdevPort();
  EthdevPort(EthdevPort const&) = delete;
  EthdevPort& operator=(EthdevPort const&) = delete;

 private:
  class Queue;
  /// The device of a device string.
  struct Probed {
    std::string arguments;  ///< the device string, with defaults
    std::string name;
    std::string interface;  ///< of the kernel; empty: no interface
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
  unsigned int if_index_ = 0;  ///< of the interface; 0: no interface
  std::uint32_t max_tx_bytes_ = packet::kSlotBytes;
  std::deque<Counter> refused_;  ///< per queue: offered frames not taken by the driver
  std::deque<Counter> taken_;    ///< per queue: frames taken by the driver
  std::size_t mapped_ = 0;       ///< number of registered pools, from the first on
  bool owned_ = false;
  bool started_ = false;
};

/// An RSS key that gives a flow and its replies the same hash, which depends only on the XOR of the 16-bit words of
/// addresses and ports (Woo and Park, Scalable TCP Session Monitoring with Symmetric Receive-side Scaling, 2012). So a
/// sender can choose its queue by addresses and ports.
std::vector<std::uint8_t> symmetric_key(std::size_t bytes);

}  // namespace catena::io
