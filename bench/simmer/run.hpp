// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/chains/busy.hpp"
#include "bench/chains/chains.hpp"
#include "bench/chains/reference.hpp"
#include "chain/flow.hpp"
#include "gpu/device/device.hpp"
#include "gpu/device/remote/server_pool.hpp"
#include "pipeline/run_options.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace catena::bench {

/// How the NFs of a chain share a GPU.
enum class GpuSharedAs : std::uint8_t {
  kProcess,      ///< each in its own process with its own device server: the GPU time-slices their contexts
  kPartitioned,  ///< one process, each with its own compute units
  kOneContext,   ///< one process, each on the whole GPU
};
std::string_view to_string(GpuSharedAs shared_as);

/// The chains of the paper: a sequence of NFs. With two flows, half of the packets start at the second NF.
struct SimmerChain {
  const char* name;
  std::vector<PaperNf> nfs;
  bool has_two_flows = false;
  std::string title() const;
};
std::vector<SimmerChain> const& simmer_chains();
/// Chains of one NF.
std::vector<SimmerChain> const& single_nfs();
/// From both lists. Precondition: the chain exists.
SimmerChain const& simmer_chain(std::string_view name);

/// Configuration of a run.
struct SimmerSpec {
  SimmerChain const* chain = nullptr;
  GpuSharedAs shared_as = GpuSharedAs::kProcess;
  chain::FlowMode mode = chain::FlowMode::kPool;
  double qt = 2.8;
  std::uint32_t wire_bytes = 128;
  std::uint64_t packets_per_s = 0;  ///< 0: as fast as the chain accepts them
  std::string tuning;
  std::uint32_t compute_units = 0;  ///< shared by NFs without partitions; 0: all
  double seconds = 1;               ///< from the first sent packet; a quarter of it is warm-up
  bool trace = false;
};
/// `sa_files`: one per NF.
std::string simmer_text(SimmerSpec const& spec, std::string const& device, std::vector<std::string> const& sa_files);

/// Counts of the measured interval.
struct NfWindow {
  std::string name;
  double packets_per_s = 0;
  double drops_per_s = 0;
  double launches_per_s = 0;
};
struct SimmerRun {
  double packets_per_s = 0;
  double received_per_s = 0;
  double process_cores = 0;  ///< of all processes, including busy-waiting
  std::vector<NfWindow> nfs;
  std::vector<BusyShare> busy;       ///< host stages
  std::optional<double> kernel_us;   ///< per packet, of the first NF; if traced
  std::vector<double> memory_mb;     ///< resident; sampled throughout the measured interval
  std::vector<double> slots_in_use;  ///< the same
  std::uint64_t dropped_inside = 0;  ///< in the whole run
};

/// Runs chains on one device. Device servers persist between runs.
class SimmerRunner {
 public:
  /// `workplace` outlives this. Errors: as device::open(); Unavailable without a device; NotFound if the device server
  /// program is missing.
  static Result<std::unique_ptr<SimmerRunner>> create(device::DevicePreference const& preference,
                                                      Workplace const& workplace);
  /// Errors: as the chain's; Unimplemented if the device has no partitions; DataLoss if packets are unaccounted for, or
  /// an NF's kernel, device or process failed.
  Result<SimmerRun> run(SimmerSpec const& spec);
  device::DeviceInfo const& device() const { return real_->info(); }
  bool abandoned() const { return abandoned_; }

 private:
  SimmerRunner(device::DevicePreference preference, Workplace const& workplace)
      : preference_(std::move(preference)), workplace_(&workplace) {}
  Status give(std::span<const std::uint32_t> units, share::Mode mode, chain::ChainConfig const& config,
              runtime::RunOptions& options);
  Status share(SimmerSpec const& spec, chain::ChainConfig const& config, runtime::RunOptions& options);

  device::DevicePreference preference_;
  Workplace const* workplace_;
  std::unique_ptr<device::Device> real_;
  std::unique_ptr<device::remote::ServerPool> servers_;
  /// Keeps servers alive; destroyed before the pool.
  std::map<std::string, std::shared_ptr<device::remote::ServerPool::Group>> groups_;
  bool abandoned_ = false;
};

}  // namespace catena::bench
