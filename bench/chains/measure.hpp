// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/chains/busy.hpp"
#include "bench/chains/chains.hpp"
#include "bench/chains/launches.hpp"
#include "bench/chains/reference.hpp"
#include "bench/chains/sample_sink.hpp"
#include "bench/chains/timeline.hpp"
#include "runtime/session.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace catena::bench {

/// How a chain gets the packets of a replay; one that decrypts gets its own as it takes them.
enum class Arrival : std::uint8_t {
  kEvenly,     ///< at their rate, in units that need not be full
  kFullUnits,  ///< at their rate, a full unit at a time
  kOneUnit,    ///< a full unit once the one before has left
};

/// One run: copies of a chain side by side, for a time.
struct RunSpec {
  PaperChain const* chain = nullptr;
  ChainText text;  ///< without the file of associations, which each copy has its own of
  chain::SyncOptions sync;
  double seconds = 1;  ///< from the first packet out on; a quarter of it is warm-up
  std::uint32_t replicas = 1;
  std::uint32_t sample_every = 1024;
  std::uint64_t sample_runs = 4;
  /// What decrypting chains get, for each copy; else empty.
  std::vector<std::vector<Frame>> const* esp_frames = nullptr;
  std::uint32_t fillers = 1;  ///< threads of each copy that write ESP into packets
  bool trace = false;         ///< keeps a time line, which costs a little
  Arrival arrival = Arrival::kEvenly;
  std::optional<chain::SharingOptions> sharing = std::nullopt;  ///< by the costs of NFs that sync.profile has
  bool has_costs = false;  ///< sync.profile has the costs that count; else, without sharing, this user's profile has
  /// Where given, what takes the place of each copy's device; see chain::RunOptions.
  std::function<Result<std::unique_ptr<device::Device>>(device::DevicePreference const&, std::string*)> open_device =
      nullptr;
};

struct StageTime {
  std::string name;
  double busy_seconds = 0;
};

/// What is counted of a time is of its window: what follows the warm-up, until the source is stopped.
struct RunResult {
  Status status;               ///< the rest counts where this is OK
  double packets_per_s = 0;    ///< that left the chains in the window
  double seconds = 0;          ///< of the window
  double offered_per_s = 0;    ///< packets that were due, of all copies; 0: as many as they take
  double taken = 1;            ///< part of those that were due in the window that came in, or left, whichever is more off
  double cores = 0;            ///< on average busy with packets in the window, sources among them: what stages measure
  double process_cores = 0;    ///< by the system's clock: of all threads and of processes of NFs, waiting in loops too
  std::uint64_t received = 0;  ///< in the window, as sent
  std::uint64_t sent = 0;
  std::uint64_t dropped = 0;   ///< in the whole run
  double bytes_to_device = 0;  ///< a packet, all NFs together
  double bytes_to_host = 0;
  std::vector<NfBytes> nf_bytes;      ///< of NFs that move something, in chain order
  Histogram latency;                  ///< of packets that left in the window, from when they were due
  std::vector<StageTime> stages;      ///< in the window, of all copies together
  std::vector<Sample> samples;        ///< of copy 0
  std::vector<TimeRow> timeline;      ///< of copy 0, where it was asked for
  std::vector<BusyShare> busy;        ///< the same
  std::vector<LaunchTimes> launches;  ///< the same
  std::string device;
  std::vector<runtime::PartReport> parts;  ///< of copy 0, at the end
  std::uint64_t part_changes = 0;          ///< the same
  std::string costs_from;                  ///< the cost profile that plans were made by
  double planned_ns = 0;                   ///< a packet, as the plan reckons; 0 without a device
  std::uint32_t workers = 1;               ///< of each copy
  bool abandoned = false;                  ///< a device never answered: the process must not tear it down
};

/// Of a run's length.
inline constexpr double kWarmUpShare = 0.25;
/// A run that took so much less than its load, or more, since it had fallen behind before, says nothing about the load.
inline constexpr double kMostOff = 0.01;

/// Why the run does not count: it did not take its load as it came. Empty: it counts.
std::string why_void(RunResult const& run);

/// Unavailable if there was no device for NFs placed on one; DataLoss if packets are not accounted for, a kernel read
/// or wrote out of bounds, or the device failed.
Status check_report(runtime::Report const& report);

/// Errors, in `status`: as the chain's; Unavailable if there is no device for NFs placed on one; DataLoss if packets
/// are not accounted for, a kernel read or wrote out of bounds, or the device failed under way.
RunResult run_for(RunSpec const& spec, Workplace const& workplace);

}  // namespace catena::bench
