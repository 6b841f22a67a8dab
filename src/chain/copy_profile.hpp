// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chain/cost_profile.hpp"

/// The costs of copies within host memory by copy engines, per machine, and the file of these costs.
namespace catena::chain {

/// One engine at one size, with as many copies in flight as it takes.
struct CopyPoint {
  std::uint32_t bytes = 0;
  double cpu_ns = 0;  ///< of the asking thread for each copy, with polls
  double gbps = 0;
};

/// The engine of a measurement.
struct CopyEngine {
  std::string name;  ///< of its kind
  std::string
      device;  ///< the copying one, with its driver; empty: the processor, or a part of the machine without a name

  /// The engine of this name on this machine; searches for devices if it is one of a backend of devices.
  static CopyEngine of(std::string_view name);
  bool operator==(CopyEngine const&) const = default;
};

struct MeasuredCopies {
  CopyEngine engine;
  std::string measured;           ///< as CostProfile::measured
  std::vector<CopyPoint> points;  ///< by size, ascending
};

/// Copies on one machine. Texts are printable ASCII, as in CostProfile.
struct CopyProfile {
  std::string processor;
  std::vector<MeasuredCopies> engines;  ///< the newest last; at most kMaxMeasuredEngines

  /// An empty profile of this machine.
  static CopyProfile of_this_machine();
  /// Null: not measured.
  MeasuredCopies const* find(CopyEngine const& engine) const;
};
inline constexpr std::size_t kMaxMeasuredEngines = 64;
/// Appends `copies`, in place of an entry of the same engine.
void keep(CopyProfile& profile, MeasuredCopies copies);

/// The least size of both at which, and at all greater sizes of both, the engine takes less time of the CPU than the
/// CPU's own copies. nullopt: no such size.
std::optional<std::uint32_t> least_paying_bytes(std::span<const CopyPoint> engine, std::span<const CopyPoint> cpu);

/// One JSON object: format, version, processor and engines.
std::string to_json(CopyProfile const& profile);
/// The inverse; `name` names the text in messages. InvalidArgument: not JSON, another format or version, a missing key,
/// an unprintable text, an invalid time, a number out of its range, sizes that do not ascend, too many entries, or two
/// of the same engine.
Result<CopyProfile> parse_copy_profile(std::string_view text, std::string_view name);
/// Errors: as read_profile_file() and parse_copy_profile().
Result<CopyProfile> load_copy_profile(std::filesystem::path const& file);
/// Errors: as write_profile_file().
Status save_copy_profile(CopyProfile const& profile, std::filesystem::path const& file);

/// From which size on an engine copies, and why.
struct CopyThreshold {
  static constexpr std::uint32_t kDefault = 1024;  ///< that of the HAVS paper
  static constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t bytes = kDefault;
  std::string why;  ///< "by the profile measured 2026-11-29"
};
/// By the profile of this machine in `store`: least_paying_bytes() against `cpu`, or kNever without such a size. The
/// default if the store has no profile of this machine with `engine` and `cpu`, or, with a warning in the log that
/// names the file, if the file cannot be used.
CopyThreshold choose_threshold(ProfileStore const& store, CopyEngine const& engine, CopyEngine const& cpu);

}  // namespace catena::chain
