// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/planner.hpp"
#include "plan/sharing/scheduler.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Keys of `spec` about the run of a chain; the others are about its packets. run_keys.cpp has their rows.
namespace catena::chain {

/// A file named by a key.
struct FileName {
  std::string path;      ///< "-": standard output; empty: not named
  std::string position;  ///< file:line:column of the name, or the option
};

/// `outputs`: files for lines and times of the run.
struct OutputsConfig {
  FileName record;  ///< for the decisions of NFs
  FileName eve;     ///< for alerts, as EVE JSON lines
  FileName trace;   ///< for the timeline of launches
};

/// `transfers`: between host and device.
struct TransfersConfig {
  plan::Mode mode = plan::Mode::kAdaptive;
  bool pushdown = true;
  plan::MethodSet methods = plan::kAllMethods;  ///< allowed in plans; kStaged always is
  FileName profile;                             ///< of costs; not named: the profile of the device
};

/// `sharing`: of the device among the NFs.
struct SharingConfig {
  std::string position;               ///< file:line:column of the mapping, or the last option; empty: not set
  std::optional<share::Mode> mode;    ///< nullopt: every NF uses the whole device
  std::optional<share::Parts> parts;  ///< nullopt: green contexts if the device has them, else blocks
  std::uint32_t compute_units = 0;    ///< shared by them; 0: all
};

struct RunConfig {
  OutputsConfig outputs;
  TransfersConfig transfers;
  SharingConfig sharing;
  std::uint32_t workers = 0;         ///< threads; 0: see default_workers()
  std::vector<std::uint32_t> cores;  ///< worker i stays on cores[i % size]; empty: anywhere
  /// Processes for the devices: the word of the key.
  std::string device_servers = "none";
};

}  // namespace catena::chain
