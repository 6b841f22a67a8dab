// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/run_options.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace catena::chain {

/// The options of a run as typed, one member per option of `catena run`; empty: not given.
struct OptionTexts {
  bool operator==(OptionTexts const&) const = default;

  std::string rx;
  std::string tx;
  std::string device;
  std::string record;
  std::string eve;
  std::string trace;
  std::string sync;                 ///< empty: adaptive
  std::string pushdown;             ///< "on" or "off"; empty: on
  std::string methods;              ///< empty: all
  std::string profile;              ///< file; empty: the profile of the device, else the built-in one
  std::string share;                ///< empty: every NF uses the whole device
  std::string parts;                ///< empty: as SharingOptions
  std::string cores;                ///< empty: any
  std::uint32_t compute_units = 0;  ///< as SharingOptions
  std::uint32_t workers = 0;        ///< 0: see default_workers()
  bool new_keys = false;
};

/// A `--device` option: one device, or several separated by commas. As device::parse_preferences().
Result<std::vector<device::DevicePreference>> parse_devices(std::string_view text);

/// `--share`, `--parts` and `--compute-units`; empty texts and 0 were not given. Nullopt without --share.
/// InvalidArgument lists the allowed values.
Result<std::optional<SharingOptions>> sharing_options_of(std::string const& share, std::string const& parts,
                                                         std::uint32_t compute_units);

/// The options of a run of a chain; chooses its shards if the file leaves their number open. Reads the cost profile
/// named in the options. InvalidArgument lists the allowed values; as load_profile().
Result<RunOptions> run_options_of(OptionTexts const& texts, ChainConfig& config);

}  // namespace catena::chain
