// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/chains/busy.hpp"
#include "bench/chains/sample_sink.hpp"
#include "bench/common/chart.hpp"
#include "bench/common/spread.hpp"
#include "profile/nf_fit.hpp"
#include "runtime/report.hpp"
#include "share/scheduler.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace catena::bench {

inline constexpr std::array<share::Mode, 4> kShareModes{share::Mode::kScheduled, share::Mode::kFair,
                                                        share::Mode::kUncoordinated, share::Mode::kTemporal};

/// What was measured of one way to share: one value a repeat.
struct ModeRuns {
  share::Mode mode = share::Mode::kScheduled;
  std::vector<double> packets_per_s;
  std::vector<double> p50_us;  ///< from rx to tx
  std::vector<double> p95_us;
  std::vector<std::pair<double, double>> cdf_us;  ///< latency in us and percent of the packets, of all repeats together
  std::vector<runtime::PartReport> parts;         ///< in the last run
  std::uint64_t part_changes = 0;                 ///< in all runs together
};

/// A chain with packets of one size on a part of the GPU: every mode, in turn within each repeat.
struct GnetCell {
  std::string chain;
  std::uint32_t wire_bytes = 64;  ///< of a frame with FCS
  std::uint32_t units = 0;        ///< compute units that the NFs share
  double offered_per_s = 0;       ///< packets; 0: as fast as the chain takes them
  std::vector<ModeRuns> modes;
  std::vector<BusyShare> busy;    ///< of the first mode, in a run of its own; the largest first
  std::vector<TimeRow> timeline;  ///< of that run
  SampleCheck outputs;            ///< of all runs, against the CPU
  std::string error;              ///< why it could not be measured
};

/// What an NF costs, beside what was measured of it.
struct GnetNf {
  std::string name;
  std::uint32_t wire_bytes = 64;
  profile::NfTimes times;
  profile::NfModel model;
  std::string why_not;  ///< why it was not measured; else empty
};

struct GnetResults {
  std::string command;
  std::string commit;   ///< of the source tree, or "unknown"
  std::string machine;  ///< processor, cores, kernel
  std::string device;
  std::string parts;  ///< what parts are made of
  double seconds = 0;
  std::uint32_t repeats = 0;
  std::uint32_t all_units = 0;
  std::uint32_t unit_step = 1;
  std::string tuning;
  std::vector<GnetNf> nfs;
  std::vector<GnetCell> cells;    ///< as fast as they go
  std::vector<GnetCell> latency;  ///< at a rate that every mode takes
  std::vector<GnetCell> growing;  ///< chains of one to four NFs, scheduled, as fast as they go
  bool abandoned = false;         ///< a device never answered: the process must not tear it down

  std::uint64_t samples_compared() const;
  std::uint64_t samples_different() const;
  std::uint64_t failed_cells() const;
  /// Lists of cells, by their names in results.json.
  std::array<std::pair<const char*, std::vector<GnetCell>*>, 3> lists() {
    return {{{"cells", &cells}, {"latency", &latency}, {"growing", &growing}}};
  }
  std::array<std::pair<const char*, std::vector<GnetCell> const*>, 3> lists() const {
    return {{{"cells", &cells}, {"latency", &latency}, {"growing", &growing}}};
  }
};

/// Whether each of its modes has runs, and no error has ended them.
bool is_measured(GnetCell const& cell);
/// That of a mode; null: it is none of the cell's.
ModeRuns const* find(GnetCell const& cell, share::Mode mode);
/// By how many percent `value` of `mode` is above that of `other`, repeat by repeat.
Spread above_percent(GnetCell const& cell, share::Mode mode, share::Mode other, std::vector<double> ModeRuns::*value);

/// Everything as one JSON object.
std::string to_json(GnetResults const& results);

}  // namespace catena::bench
