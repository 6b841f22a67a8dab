// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/counter.hpp>
#include "io/dpdk/mbuf_pool.hpp"
#include "io/port.hpp"
#include "memory/packet_pool.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

struct rte_device;

namespace catena::io {

/// A DPDK port from probing its device to removing it again: configured, started, one queue each way.
class EthdevPort final : public Port {
 public:
  /// See open_dpdk_port(). `pool` must outlive the port: the driver keeps slots of it.
  static Result<std::shared_ptr<EthdevPort>> open(std::string const& device, memory::PacketPool& pool);
  ~EthdevPort() override;

  std::size_t receive(std::span<SlotFrame> frames) override;
  std::size_t send(std::span<const SlotFrame> frames) override;
  PortCounters counters() const override;
  std::uint32_t max_tx_bytes() const override { return max_tx_bytes_; }
  std::string const& interface() const override { return interface_; }
  Status check_interface() override;
  std::string describe() const override;

 private:
  EthdevPort(std::string arguments, std::string name, std::uint16_t id, rte_device* device, memory::PacketPool& pool)
      : arguments_(std::move(arguments)), name_(std::move(name)), id_(id), device_(device), pool_(&pool) {}
  Status set_up();
  Status map_pool();
  Status set_up_queues();
  SlotFrame take(rte_mbuf& mbuf) const;
  Status check(int rc, std::string_view what) const;
  bool wait_for_link() const;

  std::string arguments_;  ///< the device string
  std::string name_;
  std::uint16_t id_;
  rte_device* device_;
  memory::PacketPool* pool_;
  std::shared_ptr<MbufPool> mbufs_;
  std::string driver_;
  std::string interface_;
  unsigned int if_index_ = 0;  ///< of the interface; 0: none
  std::uint32_t max_tx_bytes_ = packet::kSlotBytes;
  Counter refused_;  ///< offered frames that the driver did not take
  bool owned_ = false;
  bool mapped_ = false;
  bool started_ = false;
};

}  // namespace catena::io
