// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/launch/launch.hpp"
#include "nf/instance.hpp"

#include <catena/nf/testing/packet_store.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace catena::bench {

/// An NF's kernel alone: its packets are on the device, and no copy runs beside it. Thread rule: one thread.
class KernelAlone {
 public:
  /// Copies `frames`, as one launch, to the device and runs the kernel once. `device` must outlive this. Errors: as
  /// kernel::DeviceNf::create() and Launch.
  static Result<std::unique_ptr<KernelAlone>> create(device::Device& device, nf::Descriptor const& descriptor,
                                                     std::unique_ptr<nf::Nf> nf,
                                                     std::span<const std::vector<std::uint8_t>> frames);

  /// Number of packets that the kernel processes.
  std::size_t packets() const { return slots_.size(); }
  /// Runs the kernel `launches` times in sequence and waits. Each run processes the output of the previous one. The
  /// work is the same for every NF, except that an already decrypted packet has no valid ICV. Errors: as Launch.
  Status run(std::uint32_t launches);

 private:
  KernelAlone(nf::Descriptor const& descriptor, std::unique_ptr<nf::Nf> nf,
              std::span<const std::vector<std::uint8_t>> frames);
  Status start(device::Device& device);

  nf::Instance instance_;
  nf::testing::PacketStore store_;
  std::vector<std::uint32_t> slots_;
  std::vector<std::byte> aux_;
  std::unique_ptr<kernel::DeviceNf> device_nf_;
  std::unique_ptr<kernel::Launch> launch_;
  hostcopy::HostMover mover_;  ///< last member: must end before its destinations
};

}  // namespace catena::bench
