// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/kernel_sender.hpp"
#include "io/port.hpp"
#include "packet/memory/packet_pool.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

struct tpacket2_hdr;

namespace catena::io {

/// A kernel interface through packet sockets: an rx ring filled by the kernel, and a KernelSender. Receives only frames
/// from outside, not frames sent by this machine.
class KernelPort final : public Port {
 public:
  /// `device`: in DPDK's format, with iface= (see interface_device()). `pool` must outlive the port. PermissionDenied
  /// or NotFound as prepare_interface(); else the kernel's reason.
  static Result<std::shared_ptr<Port>> open(std::string const& device, memory::PacketPool& pool);
  ~KernelPort() override;

  std::size_t receive(std::span<SlotFrame> frames) override;
  std::size_t send(std::span<const SlotFrame> frames) override;
  int readable_when_received() const override { return socket_; }
  PortCounters counters() const override;
  std::uint32_t max_tx_bytes() const override { return max_tx_bytes_.load(std::memory_order_relaxed); }
  std::string const& interface() const override { return interface_; }
  Status check_interface() override;
  std::string describe() const override;

 private:
  KernelPort(std::string name, std::string interface, memory::PacketPool& pool)
      : name_(std::move(name)), interface_(std::move(interface)), pool_(&pool) {}
  Status set_up();
  void ask_mtu();
  tpacket2_hdr& frame(std::size_t number) const;
  std::atomic_ref<std::uint32_t> status_of(std::size_t number) const;
  void note_state(bool is_up);
  void note_refusal(int error);
  SlotFrame take(tpacket2_hdr const& arrived, std::uint32_t slot) const;

  std::string name_;
  std::string interface_;
  memory::PacketPool* pool_;
  unsigned int index_ = 0;
  std::atomic<std::uint32_t> max_tx_bytes_{0};
  int socket_ = -1;
  std::uint8_t* ring_ = nullptr;
  std::size_t next_frame_ = 0;
  std::unique_ptr<KernelSender> sender_;
  mutable std::atomic<std::uint64_t> missed_{0};  ///< accumulated here, as the kernel resets its count when read
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<std::uint64_t> failed_{0};
  std::atomic<bool> is_up_{true};
  std::vector<std::uint32_t> slots_;  ///< for the frames taken by receive()
  std::vector<std::uint32_t> sent_slots_;
  std::vector<int> refusals_;  ///< logged errors of the kernel
};

}  // namespace catena::io
