// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/hostcopy/host_mover.hpp"
#include "chain/chain_file.hpp"
#include "chain/nf_costs.hpp"
#include "chain/planning.hpp"
#include "gpu/copy/shared_buffer.hpp"
#include "nf/instance.hpp"
#include "nf/registry.hpp"
#include "packet/memory/packet_pool.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace catena::profile {

/// One launch of an NF, in ns; as LaunchPoint.
struct LaunchSample {
  std::size_t nf = 0;         ///< its position in the chain
  std::uint32_t packets = 0;  ///< processed by it; 0: no times
  double kernel_ns = 0;
  double transfer_ns = 0;
  double round_trip_ns = 0;
  double cpu_ns = 0;
};

/// The time of an NF on the CPU.
struct CpuSample {
  std::uint32_t packets = 0;  ///< processed by it
  double ns = 0;              ///< for all of them
};

/// The NFs on the device, among the NFs allowed there.
enum class OnDevice : std::uint8_t {
  kAll,
  kEven,  ///< the first, third .. NF of the chain: no two adjacent ones
  kOdd,   ///< the second, fourth ..
};

/// A pass in which NFs on the CPU and on the device follow one another.
struct ApartSamples {
  std::vector<LaunchSample> launches;  ///< of each NF on the device
  std::vector<CpuSample> after_gpu;    ///< by position; empty for an NF that does not follow one on the device
};

/// The NFs of a chain on a device, and packets for them. One thread.
class ChainMeter {
 public:
  /// A longer launch counts as a lost device.
  static constexpr std::chrono::seconds kLimit{10};

  /// With `max_packets` packets of `packet_bytes` bytes. `device` and `registry` must outlive it. Errors: as
  /// measure_nfs(); ResourceExhausted: not enough memory.
  static Result<std::unique_ptr<ChainMeter>> create(device::Device& device, chain::ChainConfig const& config,
                                                    nf::Registry const& registry, chain::SyncOptions const& sync,
                                                    std::uint32_t packet_bytes, std::uint32_t max_packets,
                                                    OnDevice on_device = OnDevice::kAll);

  std::string const& traffic() const { return traffic_; }
  /// Positions of the NFs on the gpu.
  std::vector<std::size_t> const& measured() const { return measured_; }
  std::size_t size() const { return instances_.size(); }
  /// Omitted measurements.
  std::vector<std::string> const& notes() const { return notes_; }
  std::string const& name(std::size_t nf) const { return instances_[nf]->name(); }
  chain::NfKey const& key(std::size_t nf) const { return keys_[nf]; }

  /// Restores `packets` packets as they arrived, and sends them through all NFs. One sample per NF on the gpu. Errors:
  /// DataLoss and DeadlineExceeded as measure_nfs(); else as Launch.
  Result<std::vector<LaunchSample>> pass(std::uint32_t packets);
  /// The same on the CPU, one NF after another, each on one core with packets in no cache. One sample per NF.
  std::vector<CpuSample> pass_on_cpu(std::uint32_t packets);
  /// As pass(), with frames in no cache of this core when they come to an NF on the device.
  Result<ApartSamples> pass_apart(std::uint32_t packets);
  /// The kernel of an NF alone, over the packets of the last pass(). As Launch::time_kernel().
  Result<std::vector<double>> time_kernel(std::size_t nf, device::Partition* partition, std::uint32_t runs);

 private:
  ChainMeter(device::Device& device, OnDevice on_device) : device_(&device), on_device_(on_device) {}
  Status make_packets(std::uint32_t packet_bytes, std::uint32_t max_packets);
  Status make_nfs(chain::ChainConfig const& config, nf::Registry const& registry);
  void choose_sides(chain::NfConfig& entry, nf::Instance& instance);
  Status load(chain::ChainConfig const& config, chain::SyncOptions const& sync, std::uint32_t packet_bytes);
  void arrive(std::uint32_t packets);
  std::vector<packet::Batch> units(std::uint32_t packets) const;
  Result<LaunchSample> launch(std::size_t nf, std::span<const packet::Batch> units);

  CpuSample run_on_cpu(std::size_t nf, std::span<const packet::Batch> units);
  bool may_be_on_device(std::size_t nf) const;

  device::Device* device_;
  OnDevice on_device_;
  std::shared_ptr<memory::PacketPool> pool_;
  std::vector<std::uint32_t> slots_;   ///< of the packets, in the order of their arrival
  std::vector<std::uint8_t> arrived_;  ///< the frames as they arrived, `frame_bytes_` each
  std::uint32_t frame_bytes_ = 0;
  std::string traffic_;
  std::vector<std::unique_ptr<nf::Instance>> instances_;
  std::vector<chain::NfKey> keys_;
  std::vector<chain::NfConfig> entries_;  ///< as they are measured
  std::vector<std::size_t> measured_;     ///< positions of the NFs on the gpu
  std::vector<std::string> notes_;
  std::unique_ptr<copy::SharedBuffer> shared_;
  std::vector<std::unique_ptr<kernel::DeviceNf>> kernels_;  ///< null for NFs on the CPU
  std::vector<std::unique_ptr<nf::DeviceBatch>> batches_;   ///< the same
  hostcopy::HostMover mover_;                               ///< destroyed before its batches
};

}  // namespace catena::profile
