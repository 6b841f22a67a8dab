// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"
#include "chain/check.hpp"
#include "chain/run_options.hpp"
#include "gpu/device/device.hpp"
#include "io/sink.hpp"
#include "io/source.hpp"
#include "packet/memory/packet_pool.hpp"
#include "plan/sharing/partition_plan.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace catena::runtime {

/// The caller's settings for NFs with `isolation: process`.
struct NfProcesses {
  std::string program;                    ///< see nf_process::find_nf_program()
  std::optional<std::uint32_t> uid = {};  ///< their user; nullopt: as nf_process::ProcessOptions
  std::optional<std::uint32_t> gid = {};
  /// As nf_process::ProcessOptions, for the NF of this name.
  std::function<Result<FileDescriptor>(std::string const& nf, std::string const& preference, std::string* why)>
      connect_device = {};
  /// For chain::check(): has a process create the NF, on the CPU, with the settings of the chain, and ends it.
  chain::TryOut try_out = {};
  std::stop_token give_up = {};  ///< as nf_process::ProcessOptions
};

/// SM partitions of the NFs of a chain, in their order, assigned by another process. Any thread.
struct GivenParts {
  std::function<std::vector<share::Part>()> now;               ///< without SMs: not assigned yet, and the NF takes all
  std::function<void(std::vector<share::Part> const&)> taken;  ///< the NFs use these from now on
};

/// Partitions of a device beyond the NFs of one chain.
struct SharedPartitions {
  /// Shares the device with the NFs of other chains, in the chain's mode; null: the chain's own NFs alone.
  std::shared_ptr<share::PartitionPlans> plans = nullptr;
  std::optional<GivenParts> given = std::nullopt;  ///< replaces a division
};

/// The settings of a run, with the caller's objects and functions for it.
struct RunOptions : chain::RunOptions {
  /// If set, these create the source and the sink in place of rx and tx, which are not opened then; for measurement
  /// programs. Session::create() sets opens_rx and opens_tx by them.
  std::function<Result<std::unique_ptr<io::Source>>()> make_source = {};
  std::function<Result<std::unique_ptr<io::Sink>>()> make_sink = {};
  /// Ports shared with other chains; null: the chain has the shared ports of its file alone.
  std::shared_ptr<io::SharedPortRegistry> switches = nullptr;
  /// If packet memory belongs to another process: replaces memory::PacketPool::create(), with this number of queues.
  std::function<Result<std::shared_ptr<memory::PacketPool>>(std::uint32_t queues)> make_pool = {};
  SharedPartitions partitions = {};  ///< for chains with `sharing`
  /// Settings for NFs in their own process. The program is empty if they cannot have one.
  NfProcesses processes = {};
  /// If set, replaces device::open(): for devices owned by other processes, and for tests. Any thread.
  std::function<Result<std::unique_ptr<device::Device>>(device::DevicePreference const&, std::string* why)>
      open_device = {};
  /// A lost device can be opened again: the chain retries until it succeeds, and then returns to the device.
  bool device_returns = false;
};

}  // namespace catena::runtime
