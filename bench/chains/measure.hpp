// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/chains/busy.hpp"
#include "bench/chains/chains.hpp"
#include "bench/chains/launches.hpp"
#include "bench/chains/reference.hpp"
#include "bench/chains/sample_sink.hpp"
#include "bench/chains/timeline.hpp"
#include "pipeline/session.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace catena::bench {

/// Arrival pattern of a replay's packets. Decrypting chains have their own source, which supplies packets on demand.
enum class Arrival : std::uint8_t {
  kEvenly,     ///< at their rate, in possibly partial units
  kFullUnits,  ///< at their rate, a full unit at a time
  kOneUnit,    ///< a full unit after the previous one has left
};

/// One run: copies of a chain side by side, for a limited time.
struct RunSpec {
  PaperChain const* chain = nullptr;
  ChainText text;  ///< without the SA file; each copy has its own
  chain::SyncOptions sync;
  double seconds = 1;  ///< from the first sent packet; a quarter of it is warm-up
  std::uint32_t replicas = 1;
  std::uint32_t sample_every = 1024;
  std::uint64_t sample_runs = 4;
  /// Input of decrypting chains, per copy; else null.
  std::vector<std::vector<Frame>> const* esp_frames = nullptr;
  std::uint32_t fillers = 1;  ///< threads per copy that write ESP into packets
  bool trace = false;         ///< records a timeline, at a small cost
  Arrival arrival = Arrival::kEvenly;
  std::optional<chain::SharingOptions> sharing = std::nullopt;  ///< by the NF costs in sync.profile
  bool has_costs = false;  ///< use the costs in sync.profile; else, without sharing, this user's profile
  /// If set, replaces each copy's device; see runtime::RunOptions.
  std::function<Result<std::unique_ptr<device::Device>>(device::DevicePreference const&, std::string*)> open_device =
      nullptr;
};

struct StageTime {
  std::string name;
  double busy_seconds = 0;
};

/// Windowed values cover the window: from the end of the warm-up until the source is stopped.
struct RunResult {
  Status status;               ///< the other members are valid if this is OK
  double packets_per_s = 0;    ///< sent in the window
  double seconds = 0;          ///< length of the window
  double offered_per_s = 0;    ///< due packets of all copies; 0: as many as they accept
  double taken = 1;            ///< received or sent packets per due packet of the window, whichever is further from 1
  double cores = 0;            ///< average cores busy with packets in the window, sources included; measured by stages
  double process_cores = 0;    ///< by the system's clock: of all threads and NF processes, including busy-waiting
  std::uint64_t received = 0;  ///< in the window, like `sent`
  std::uint64_t sent = 0;
  std::uint64_t dropped = 0;   ///< in the whole run
  double bytes_to_device = 0;  ///< per packet, all NFs together
  double bytes_to_host = 0;
  std::vector<NfBytes> nf_bytes;      ///< of NFs that transfer bytes, in chain order
  Histogram latency;                  ///< of packets sent in the window, from their due time
  std::vector<StageTime> stages;      ///< in the window, all copies together
  std::vector<Sample> samples;        ///< of copy 0
  std::vector<TimeRow> timeline;      ///< of copy 0, if requested
  std::vector<BusyShare> busy;        ///< the same
  std::vector<LaunchTimes> launches;  ///< the same
  std::string device;
  std::vector<runtime::PartReport> parts;  ///< of copy 0, at the end
  std::uint64_t part_changes = 0;          ///< the same
  std::string costs_from;                  ///< the cost profile of the plans
  double planned_ns = 0;                   ///< estimate of the plan, per packet; 0 without a device
  std::uint32_t workers = 1;               ///< per copy
  bool abandoned = false;                  ///< a device never answered: the process must not tear it down
};

/// Of the run's duration.
inline constexpr double kWarmUpShare = 0.25;
/// Maximum deviation of RunResult::taken from 1. A run beyond it says nothing about its load: the chain accepted less,
/// or more after an earlier backlog.
inline constexpr double kMaxOff = 0.01;

/// Reason why the run is void: the chain did not keep up with its load. Empty if the run is valid.
std::string why_void(RunResult const& run);

/// Compares runs of the same cell: the higher, the better. Without an offered rate, packets per second. With one, any
/// run that keeps up with it is above all that do not, and the lower its median latency, the better.
double score_of(RunResult const& run);

/// Unavailable if NFs placed on a device ran without one; DataLoss if packets are unaccounted for, a kernel accessed
/// memory out of bounds, or the device failed.
Status check_report(runtime::Report const& report);

/// Errors, in `status`: as the chain's; Unavailable if NFs placed on a device ran without one; DataLoss if packets are
/// unaccounted for, a kernel accessed memory out of bounds, or the device failed during the run.
RunResult run_for(RunSpec const& spec, Workplace const& workplace);

}  // namespace catena::bench
