// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/chains/launches.hpp"
#include "bench/chains/sample_sink.hpp"
#include "bench/common/chart.hpp"
#include "bench/common/spread.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace catena::bench {

/// What a cell is measured for.
enum class Part {
  kAnchor,      ///< C4 at two sizes at the head of each run: by them runs on several machines can be compared
  kSource,      ///< rx and tx alone
  kThroughput,  ///< C1 to C5 as fast as they can
  kDecrypt,     ///< C1, C3 and C4 on ESP
  kUnits,       ///< unit sizes
  kLatency,     ///< at an offered rate
  kStages,      ///< parts of a launch of one NF, its packets in host memory or on the device, one launch at a time
  kBatch,       ///< parts of C3's launches at an offered rate
  kConflicts,   ///< what a firewall's packets take to the device while other NFs move theirs
};
/// Of cells whose runs are traced, and of one copy of the chain.
bool is_traced(Part part);
std::string_view to_string(Part part);
/// All that can be asked for, in their order on the page.
inline constexpr std::array<Part, 8> kParts{Part::kSource,  Part::kThroughput, Part::kDecrypt, Part::kUnits,
                                            Part::kLatency, Part::kStages,     Part::kBatch,   Part::kConflicts};
/// The part of that name; kSource where there is none.
Part part_of(std::string_view name);

/// One time that the benchmark ran, of those that made a set of results.
struct RunOrigin {
  std::string machine;  ///< processor, cores, kernel
  std::string device;
  double copy_gb_per_s = 0;  ///< see copy_bytes_per_s()
  std::string command;
};

/// One repeat of a cell.
struct Repeat {
  double packets_per_s = 0;
  double bytes_to_device = 0;  ///< a packet
  double bytes_to_host = 0;
  double p50_us = 0;
  double p95_us = 0;
  double p99_us = 0;
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
  std::uint64_t dropped = 0;
  std::uint32_t workers = 1;
  std::vector<std::pair<std::string, double>> stage_seconds;  ///< busy, in chain order
  std::vector<NfBytes> nf_bytes;                              ///< of NFs that move something, in chain order
  std::vector<LaunchTimes> launches;                          ///< where is_traced()
};

/// One measurement and its repeats.
struct Cell {
  Part part = Part::kThroughput;
  std::string chain;
  std::string mode;                ///< see kModes; "-" for a source
  std::uint32_t wire_bytes = 64;   ///< of an arriving frame with its FCS; where the chain decrypts, of what is inside
  std::uint32_t unit_packets = 0;  ///< 0: the default
  double offered_gbps = 0;         ///< 0: as fast as the chain takes
  std::size_t run = 0;             ///< which of Results::runs measured it
  std::uint32_t replicas = 1;
  double planned_ns = 0;  ///< a packet, as the plan reckons
  std::vector<Repeat> repeats;
  SampleCheck samples;                            ///< of all repeats
  std::vector<std::pair<double, double>> cdf_us;  ///< latency in microseconds and percent, of the last repeat
  std::vector<TimeRow> timeline;                  ///< see timeline_rows(); of a run of its own
  std::string error;                              ///< why it could not be measured
};

/// Over a cell's repeats.
Spread packets_per_s(Cell const& cell);
/// Bits of frames with FCS, without preamble and gap. For a chain that decrypts, of what is inside.
Spread gbps(Cell const& cell);
Spread over(Cell const& cell, std::function<double(Repeat const&)> const& value);
/// The NF's, or null.
NfBytes const* bytes_of(Repeat const& repeat, std::string_view nf);
LaunchTimes const* launches_of(Repeat const& repeat, std::string_view nf);

struct Results {
  std::vector<RunOrigin> runs;
  std::string commit;  ///< of the source tree, or "unknown"
  std::string device;
  std::string costs_from;  ///< the cost profile that plans were made by
  double seconds = 0;
  std::string tuning;
  std::uint32_t sample_every = 0;
  std::vector<Cell> cells;
  std::vector<std::string> notes;  ///< what was left out, and why
  bool abandoned = false;          ///< a device never answered: the process must not tear it down

  std::uint64_t samples_compared() const;
  std::uint64_t samples_different() const;
  std::uint64_t failed_cells() const;
};

/// The cell of that kind, or null.
Cell const* find(Results const& results, Part part, std::string_view chain, std::string_view mode,
                 std::uint32_t wire_bytes, std::uint32_t unit_packets = 0, double offered_gbps = 0);

/// Whether anything was measured of the part, and of the chain where one is named.
bool is_measured(Results const& results, Part part, std::string_view chain = {});

/// Everything but the time lines, as one JSON object.
std::string to_json(Results const& results);

}  // namespace catena::bench
