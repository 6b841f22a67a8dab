// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/nf_costs.hpp"
#include "gpu/device/device.hpp"
#include "plan/cost_model.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The costs of moving packets, per device, and the files of these costs.
namespace catena::chain {

/// Costs and their origin. Texts are printable ASCII: other bytes of a device's name are '?'.
struct CostProfile {
  plan::CostModel costs;
  std::string backend;  ///< "cuda"
  std::string device;   ///< DeviceInfo::name
  std::string driver;
  std::string measured;                        ///< UTC, "2026-11-21T18:30:10Z"; empty: built in
  std::vector<MeasuredNf> nfs;                 ///< measured NFs, the newest last; at most kMaxMeasuredNfs
  std::vector<MeasuredOnCpu> nfs_on_cpu = {};  ///< on a core of this machine; as `nfs`
  std::vector<MeasuredEnds> ends = {};         ///< the same

  /// The profile of an H200, for machines without a measurement.
  static CostProfile built_in();
  /// A profile of `device`, measured now.
  static CostProfile of(device::DeviceInfo const& device, plan::CostModel const& costs);

  bool is_of(device::DeviceInfo const& info) const;
  /// The cost of the NF found by chain::find() in this profile.
  std::optional<share::NfCost> find(NfKey const& nf, std::uint32_t packet_bytes) const;
};

/// The current time in the format of profiles.
std::string now_as_text();

/// "the profile measured 2026-11-21", or "the built-in profile of an NVIDIA H200: run `catena profile --device opencl`
/// to measure this machine". `backend`: of the device to measure; empty where any will do.
std::string describe(CostProfile const& profile, std::string_view backend = {});

/// One JSON object: format, version, measured, device, methods, host, device_copy_ns_per_byte and, if NFs were
/// measured, nfs. An unavailable method is null.
std::string to_json(CostProfile const& profile);

/// The inverse of to_json(); `name` names the text in messages. InvalidArgument: not JSON, another format or version, a
/// missing key other than nfs, an unprintable text, an invalid time, or a coefficient outside 0 to 1e12; nfs as
/// nfs_from_json().
Result<CostProfile> parse_profile(std::string_view text, std::string_view name);

/// Errors: as read_profile_file() and parse_profile(). Messages name the file and the remedy.
Result<CostProfile> load_profile(std::filesystem::path const& file);

/// Writes a profile. A profile with NFs is readable by its owner only. Errors: as write_profile_file().
Status save_profile(CostProfile const& profile, std::filesystem::path const& file);

/// The device that device::open(preference) would open, without opening it; nullopt if no such device exists.
std::optional<device::DeviceInfo> device_for(device::DevicePreference const& preference);

/// The folder of this user's profiles, one file per device, driver and backend, and one per machine for copies. It is
/// not a cache: measuring a profile again takes a quiet machine. Several processes may use it at once. Thread rule:
/// immutable, any thread.
class ProfileStore {
 public:
  /// $CATENA_DATA_DIR/profiles, else $XDG_DATA_HOME/catena/profiles, else $HOME/.local/share/catena/profiles (XDG Base
  /// Directory Specification 0.8: user-specific data files). Without any of them the store is always empty.
  static ProfileStore from_environment();
  explicit ProfileStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// The file for the profile of a device; empty without a folder.
  std::filesystem::path file_of(device::DeviceInfo const& info) const;
  /// The file for the CopyProfile of a machine with this processor; empty without a folder.
  std::filesystem::path file_of_copies(std::string_view processor) const;
  /// Whether the store has no profile.
  bool empty() const;
  /// The profile of a device; the built-in one if the store has no file for it or, with a warning in the log, if the
  /// file cannot be used.
  CostProfile find(device::DeviceInfo const& info) const;
  /// The same for device_for(preference), for plans; the built-in one without a device.
  CostProfile find(device::DevicePreference const& preference) const;

 private:
  std::filesystem::path file_named(std::string_view kind, std::string_view name, std::string_view driver) const;

  std::filesystem::path folder_;
};

}  // namespace catena::chain
