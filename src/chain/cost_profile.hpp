// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/nf_costs.hpp"
#include "device/device.hpp"
#include "plan/cost_model.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What moving packets costs, by which device, and the files in which that is kept.
namespace catena::chain {

/// Costs and where they come from. Texts are printable ASCII: other bytes of a device's name are '?'.
struct CostProfile {
  plan::CostModel costs;
  std::string backend;  ///< "cuda"
  std::string device;   ///< DeviceInfo::name
  std::string driver;
  std::string measured;                        ///< UTC, "2026-11-21T18:30:10Z"; empty: built in
  std::vector<MeasuredNf> nfs;                 ///< those that were measured, the newest last; at most kMaxMeasuredNfs
  std::vector<MeasuredOnCpu> nfs_on_cpu = {};  ///< on a core of this machine; as `nfs`
  std::vector<MeasuredEnds> ends = {};         ///< the same

  /// That of an H200, for machines that were not measured.
  static CostProfile built_in();
  /// A profile of `device`, measured now.
  static CostProfile of(device::DeviceInfo const& device, plan::CostModel const& costs);

  bool is_of(device::DeviceInfo const& info) const;
  /// The cost of what chain::find() finds among the NFs of this profile.
  std::optional<share::NfCost> find(NfKey const& nf, std::uint32_t packet_bytes) const;
};

/// The time as profiles have it.
std::string now_as_text();

/// "the profile measured 2026-11-21", or "the built-in profile of an NVIDIA H200: run `catena profile` to measure this
/// machine".
std::string describe(CostProfile const& profile);

/// One JSON object: format, version, measured, device, methods, host, device_copy_ns_per_byte and, where NFs were
/// measured, nfs. A method that is not available is null.
std::string to_json(CostProfile const& profile);

/// The other way round; `name` names the text in messages. InvalidArgument: it is not JSON, not of this format and
/// version, a key other than nfs is missing, a text is not printable or the time none, or a coefficient is not a number
/// from 0 to 1e12; nfs as nfs_from_json().
Result<CostProfile> parse_profile(std::string_view text, std::string_view name);

/// NotFound: no such file. InvalidArgument: not a regular file, longer than 256 KiB, or as parse_profile().
/// PermissionDenied: it may not be. Unavailable: it cannot be read. Messages name the file and what to do.
Result<CostProfile> load_profile(std::filesystem::path const& file);

/// Writes a profile, with the folders above it; one with NFs only its owner may read. The file appears whole, by
/// rename, or stays what it was. InvalidArgument: `file` is there and no regular file. Unavailable: it cannot be
/// written.
Status save_profile(CostProfile const& profile, std::filesystem::path const& file);

/// The device that device::open(preference) would open, without opening it. None: there is none.
std::optional<device::DeviceInfo> device_for(device::DevicePreference const& preference);

/// The folder of this user's profiles, one file for each device, driver and backend. It is no cache: what is in it
/// takes a quiet machine to make again. Several processes may use it at once. Thread rule: immutable, any thread.
class ProfileStore {
 public:
  /// $CATENA_DATA_DIR/profiles, else $XDG_DATA_HOME/catena/profiles, else $HOME/.local/share/catena/profiles (XDG Base
  /// Directory Specification 0.8: user-specific data files). Without any of them the store is always empty.
  static ProfileStore from_environment();
  explicit ProfileStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Where the profile of a device is kept; empty where there is no folder.
  std::filesystem::path file_of(device::DeviceInfo const& info) const;
  /// Whether there is any profile.
  bool empty() const;
  /// The profile of a device; the built-in one where there is none, and also, with a warning in the log, where the file
  /// cannot be used.
  CostProfile find(device::DeviceInfo const& info) const;
  /// The same for device_for(preference): for plans. The built-in one where no device is.
  CostProfile find(device::DevicePreference const& preference) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace catena::chain
