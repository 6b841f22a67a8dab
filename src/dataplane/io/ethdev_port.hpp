// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dataplane/packet_pool.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

struct rte_device;

namespace catena::dataplane {

/// A DPDK port from probing its device to removing it again: configured, started, one queue each way. The queues are
/// used through rte_eth_rx_burst and rte_eth_tx_burst with id(), each by one thread at a time.
class EthdevPort {
 public:
  /// See open_dpdk_port(). `pool` must outlive the port: the driver keeps slots of it.
  static Result<std::shared_ptr<EthdevPort>> open(std::string const& device, PacketPool& pool);
  ~EthdevPort();
  EthdevPort(EthdevPort const&) = delete;
  EthdevPort& operator=(EthdevPort const&) = delete;

  std::uint16_t id() const { return id_; }
  /// Longest frame that the port sends, a VLAN tag not counted.
  std::uint32_t max_tx_bytes() const { return max_tx_bytes_; }
  /// The interface of the kernel that packets come from and go to; empty where the port is none.
  std::string const& interface() const { return interface_; }
  /// Unavailable, with its name, if the interface was removed: the socket does not say. A call of the kernel.
  Status interface_status() const;
  /// "dpdk net_tap0 (net_tap, link up)"
  std::string describe() const;

 private:
  EthdevPort(std::string arguments, std::string name, std::uint16_t id, rte_device* device, PacketPool& pool)
      : arguments_(std::move(arguments)), name_(std::move(name)), id_(id), device_(device), pool_(&pool) {}
  Status set_up();
  Status map_pool();
  Status set_up_queues();
  Status check(int rc, std::string_view what) const;
  bool wait_for_link() const;

  std::string arguments_;  ///< the device string
  std::string name_;
  std::uint16_t id_;
  rte_device* device_;
  PacketPool* pool_;
  std::string driver_;
  std::string interface_;
  unsigned int if_index_ = 0;  ///< of the interface; 0: none
  std::uint32_t max_tx_bytes_ = packet::kSlotBytes;
  bool owned_ = false;
  bool mapped_ = false;
  bool started_ = false;
};

}  // namespace catena::dataplane
