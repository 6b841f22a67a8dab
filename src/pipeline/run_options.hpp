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

/// Settings for NFs with `isolation: process`.
struct NfProcesses {
  std::string program;                    ///< path of catena-nf, see find_nf_program(); empty: no NF can have a process
  std::optional<std::uint32_t> uid = {};  ///< user of the processes; nullopt: the default of nf_process::ProcessOptions
  std::optional<std::uint32_t> gid = {};
  std::uint64_t chain = 0;  ///< number of the chain, in the arguments of its processes; 0: without
  /// Connects the process of NF `nf` to a device server; as ProcessOptions::connect_device.
  std::function<Result<FileDescriptor>(std::string const& nf, std::string const& preference, std::string* why)>
      connect_device = {};
  /// For chain::check(): creates the NF on the CPU in a temporary process.
  chain::TryOut try_out = {};
  std::stop_token give_up = {};  ///< aborts the start of processes
};

/// SM partitions assigned by another process, one per NF of the chain in chain order. Any thread.
struct GivenParts {
  /// Returns the current partitions. A partition without SMs is not assigned yet: the NF uses all SMs.
  std::function<std::vector<share::Part>()> now;
  /// Called when the NFs have changed to these partitions.
  std::function<void(std::vector<share::Part> const&)> taken;
};

/// SM partitions of a device shared by several chains.
struct SharedPartitions {
  /// Partition plans common to all chains; null: this chain divides the device among its own NFs.
  std::shared_ptr<share::PartitionPlans> plans = nullptr;
  std::optional<GivenParts> given = std::nullopt;  ///< if set, used in place of a partition plan
};

/// Settings of a session: chain::RunOptions has the values; this adds objects and functions of the caller.
struct RunOptions : chain::RunOptions {
  /// If set, creates the source in place of `rx`, or the sink in place of `tx`; the chain file's port is not opened.
  /// For measurement programs. Session::create() sets opens_rx and opens_tx accordingly.
  std::function<Result<std::unique_ptr<io::Source>>()> make_source = {};
  std::function<Result<std::unique_ptr<io::Sink>>()> make_sink = {};
  /// Ports shared with other chains; null: no other chain uses the shared ports of this file.
  std::shared_ptr<io::SharedPortRegistry> switches = nullptr;
  /// If set, replaces memory::PacketPool::create(): packet memory belongs to another process then.
  std::function<Result<std::shared_ptr<memory::PacketPool>>(std::uint32_t queues)> make_pool = {};
  SharedPartitions partitions = {};  ///< if chain::RunOptions::sharing is set
  NfProcesses processes = {};
  /// If set, replaces device::open(), for device servers and tests. Any thread.
  std::function<Result<std::unique_ptr<device::Device>>(device::DevicePreference const&, std::string* why)>
      open_device = {};
  /// Whether to reopen a lost device: the chain retries until this succeeds, and then uses the device again.
  bool device_returns = false;
};

}  // namespace catena::runtime
