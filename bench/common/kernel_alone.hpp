// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/launch.hpp"
#include "nf/instance.hpp"

#include <catena/nf/testing/packet_store.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace catena::bench {

/// An NF's kernel by itself: its packets are on the device, and no copy is made while it runs. Belongs to one thread.
class KernelAlone {
 public:
  /// Brings `frames`, all of which are one launch, to the device and runs the kernel once. `device` must outlive it.
  /// Errors: as kernel::DeviceNf::create() and Launch.
  static Result<std::unique_ptr<KernelAlone>> create(device::Device& device, nf::Descriptor const& descriptor,
                                                     std::unique_ptr<nf::Nf> nf,
                                                     std::span<const std::vector<std::uint8_t>> frames);

  /// Those that the kernel has to work on.
  std::size_t packets() const { return slots_.size(); }
  /// Runs the kernel `launches` times, one after the other, and waits. It works on what its last run left: the same
  /// work for every NF, but that a packet that was decrypted before has no good ICV. Errors: as Launch.
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
  copy::HostMover mover_;  ///< ends before what it moves into
};

}  // namespace catena::bench
