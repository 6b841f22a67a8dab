// SPDX-License-Identifier: Apache-2.0
#include "chain/cost_profile.hpp"

#include "base/core/process_work.hpp"
#include "chain/nf_costs_json.hpp"
#include "chain/profile_file.hpp"

#include "gpu/device/backend.hpp"
#include "gpu/device/hash.hpp"

#include <catena/core/text.hpp>

#include <fmt/chrono.h>
#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <optional>

#include <sys/types.h>

namespace catena::chain {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "catena cost profile";
constexpr int kVersion = 1;
constexpr mode_t kReadableByAll = 0644;
constexpr mode_t kReadableByOwner = 0600;  // hashes of files that may hold keys

constexpr std::array kDirections{Direction::kToDevice, Direction::kToHost};

struct Coefficient {
  const char* key;
  double plan::MethodCost::*value;
};
constexpr std::array<Coefficient, 4> kOfMethod{{{"per_transfer_ns", &plan::MethodCost::per_transfer_ns},
                                                {"per_packet_ns", &plan::MethodCost::per_packet_ns},
                                                {"per_packet_fields_ns", &plan::MethodCost::per_packet_fields_ns},
                                                {"per_byte_ns", &plan::MethodCost::per_byte_ns}}};
struct HostCoefficient {
  const char* key;
  double plan::CostModel::*value;
};
constexpr std::array<HostCoefficient, 3> kOfHost{{{"copy_ns_per_byte", &plan::CostModel::host_copy_ns_per_byte},
                                                  {"touch_ns", &plan::CostModel::host_touch_ns},
                                                  {"column_ns", &plan::CostModel::host_column_ns}}};
constexpr const char* kDeviceCopy = "device_copy_ns_per_byte";
constexpr const char* kNfs = "nfs";
constexpr const char* kNfsOnCpu = "nfs_on_cpu";
constexpr const char* kEnds = "ends";

void read_methods(Json const& json, ProfileReader& reader, plan::CostModel& costs) {
  Json const& methods = reader.object(json, "", "methods");
  for (const TransferMethod method : kTransferMethods) {
    const std::string_view name = to_string(method);
    const std::string path = concat("methods.", name, ".");
    Json const* entry = reader.member(methods, "methods.", name);
    if (entry != nullptr && entry->is_null() && method != TransferMethod::kStaged) {
      costs.available &= static_cast<plan::MethodSet>(~plan::method_bit(method));
      continue;
    }
    Json const& of_method = reader.object(methods, "methods.", name);
    for (const Direction direction : kDirections) {
      const std::string_view side = to_string(direction);
      Json const& of_direction = reader.object(of_method, path, side);
      plan::MethodCost& cost = costs.methods[static_cast<std::size_t>(method)][static_cast<std::size_t>(direction)];
      for (Coefficient const& coefficient : kOfMethod) {
        cost.*coefficient.value = reader.number(of_direction, concat(path, side, "."), coefficient.key);
      }
    }
  }
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

CostProfile CostProfile::built_in() { return {plan::CostModel::h200(), "cuda", "NVIDIA H200", "", "", {}}; }

CostProfile CostProfile::of(device::DeviceInfo const& device, plan::CostModel const& costs) {
  return {costs, std::string(device.backend), printable(device.name), printable(device.driver), now_as_text(), {}};
}

bool CostProfile::is_of(device::DeviceInfo const& info) const {
  return backend == info.backend && device == printable(info.name) && driver == printable(info.driver);
}

std::optional<share::NfCost> CostProfile::find(NfKey const& nf, std::uint32_t packet_bytes) const {
  MeasuredNf const* const found = chain::find(nfs, nf, packet_bytes);
  return found == nullptr ? std::nullopt : std::optional(found->cost);
}

std::string now_as_text() {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  return fmt::format("{:%FT%TZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
}

std::string describe(CostProfile const& profile, std::string_view backend) {
  if (profile.measured.empty()) {
    return concat("the built-in profile of an NVIDIA H200: run `catena profile", backend.empty() ? "" : " --device ",
                  backend, "` to measure this machine");
  }
  constexpr std::size_t kDate = 10;
  return concat("the profile measured ", profile.measured.substr(0, kDate));
}

std::string to_json(CostProfile const& profile) {
  Json json;
  json["format"] = kFormat;
  json["version"] = kVersion;
  json["measured"] = profile.measured;
  json["device"] = {{"backend", profile.backend}, {"name", profile.device}, {"driver", profile.driver}};
  for (const TransferMethod method : kTransferMethods) {
    Json& entry = json["methods"][std::string(to_string(method))];
    if (method != TransferMethod::kStaged && (profile.costs.available & plan::method_bit(method)) == 0) {
      continue;  // null
    }
    for (const Direction direction : kDirections) {
      for (Coefficient const& coefficient : kOfMethod) {
        entry[std::string(to_string(direction))][coefficient.key] =
            profile.costs.of(method, direction).*coefficient.value;
      }
    }
  }
  for (HostCoefficient const& coefficient : kOfHost) {
    json["host"][coefficient.key] = profile.costs.*coefficient.value;
  }
  json[kDeviceCopy] = profile.costs.device_copy_ns_per_byte;
  if (!profile.nfs.empty()) {
    json[kNfs] = nfs_to_json(profile.nfs);
  }
  if (!profile.nfs_on_cpu.empty()) {
    json[kNfsOnCpu] = nfs_on_cpu_to_json(profile.nfs_on_cpu);
  }
  if (!profile.ends.empty()) {
    json[kEnds] = ends_to_json(profile.ends);
  }
  return json.dump(2);
}

Result<CostProfile> parse_profile(std::string_view text, std::string_view name) {
  ProfileReader reader(name, kMeasureAgain);
  CATENA_ASSIGN_OR_RETURN(const Json json, reader.parse(text, kFormat, kVersion));
  CostProfile profile;
  profile.measured = reader.text(json, "", "measured");
  if (!is_time(profile.measured)) {
    reader.complain("", "measured", "is not a time like 2026-11-21T18:30:10Z");
  }
  Json const& device = reader.object(json, "", "device");
  profile.backend = reader.text(device, "device.", "backend");
  profile.device = reader.text(device, "device.", "name");
  profile.driver = reader.text(device, "device.", "driver");
  read_methods(json, reader, profile.costs);
  Json const& host = reader.object(json, "", "host");
  for (HostCoefficient const& coefficient : kOfHost) {
    profile.costs.*coefficient.value = reader.number(host, "host.", coefficient.key);
  }
  profile.costs.device_copy_ns_per_byte = reader.number(json, "", kDeviceCopy);
  if (const auto nfs = json.find(kNfs); nfs != json.end()) {
    profile.nfs = nfs_from_json(*nfs, reader);
  }
  if (const auto nfs = json.find(kNfsOnCpu); nfs != json.end()) {
    profile.nfs_on_cpu = nfs_on_cpu_from_json(*nfs, reader);
  }
  if (const auto ends = json.find(kEnds); ends != json.end()) {
    profile.ends = ends_from_json(*ends, reader);
  }
  CATENA_RETURN_IF_ERROR(reader.status());
  return profile;
}

Result<CostProfile> load_profile(fs::path const& file) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, read_profile_file(file, kMeasureAgain));
  return parse_profile(text, file.string());
}

Status save_profile(CostProfile const& profile, fs::path const& file) {
  const mode_t mode = profile.nfs.empty() && profile.nfs_on_cpu.empty() ? kReadableByAll : kReadableByOwner;
  return write_profile_file(file, to_json(profile) + '\n', mode);
}

std::optional<device::DeviceInfo> device_for(device::DevicePreference const& preference) {
  using Kind = device::DevicePreference::Kind;
  if (preference.kind == Kind::kNone) {
    return std::nullopt;
  }
  for (device::Probe const& probe : device::probe()) {  // in the order of open()
    const bool is_meant = preference.kind == Kind::kOne && probe.backend == preference.backend;
    const std::optional<int> ordinal = is_meant                         ? std::optional(preference.ordinal)
                                       : preference.kind == Kind::kAuto ? device::first_accelerator(probe.devices)
                                                                        : std::nullopt;
    if (ordinal && static_cast<std::size_t>(*ordinal) < probe.devices.size()) {
      return probe.devices[static_cast<std::size_t>(*ordinal)];
    }
  }
  return std::nullopt;
}

ProfileStore ProfileStore::from_environment() {
  if (const std::string own = environment("CATENA_DATA_DIR"); !own.empty()) {
    return ProfileStore(fs::path(own) / "profiles");
  }
  if (const std::string xdg = environment("XDG_DATA_HOME"); !xdg.empty()) {
    return ProfileStore(fs::path(xdg) / "catena" / "profiles");
  }
  if (const std::string home = environment("HOME"); !home.empty()) {
    return ProfileStore(fs::path(home) / ".local" / "share" / "catena" / "profiles");
  }
  return ProfileStore(fs::path());
}

fs::path ProfileStore::file_of(device::DeviceInfo const& info) const {
  return file_named(info.backend, info.name, info.driver);
}

fs::path ProfileStore::file_of_copies(std::string_view processor) const { return file_named("copies", processor, ""); }

fs::path ProfileStore::file_named(std::string_view kind, std::string_view name, std::string_view driver) const {
  if (folder_.empty()) {
    return {};
  }
  // the name is for people and of harmless characters; the hash tells devices and drivers apart
  constexpr std::size_t kMaxNameBytes = 48;
  std::string shown;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 && is_printable(c)) {
      shown += c;
    } else if (!shown.empty() && shown.back() != '-') {
      shown += '-';
    }
  }
  device::Hash128 hash;
  hash.add_field(kind).add_field(name).add_field(driver);
  constexpr std::size_t kDigits = 16;
  return folder_ / concat(kind, "-", shown.substr(0, kMaxNameBytes), "-", hash.hex().substr(0, kDigits), ".json");
}

bool ProfileStore::empty() const {
  std::error_code error;
  return folder_.empty() || fs::directory_iterator(folder_, error) == fs::directory_iterator();
}

CostProfile ProfileStore::find(device::DeviceInfo const& info) const {
  const fs::path file = file_of(info);
  if (file.empty()) {
    return CostProfile::built_in();
  }
  Result<CostProfile> profile = do_process_work([&file] { return load_profile(file); });
  if (profile.ok() && !profile->is_of(info)) {
    profile = absl::InvalidArgumentError(concat(file.string(), ": of another device, '", profile->device, "' with '",
                                                profile->driver, "'", kMeasureAgain));
  }
  if (profile.ok()) {
    return *std::move(profile);
  }
  if (!absl::IsNotFound(profile.status())) {
    spdlog::warn("cost profile not used, the built-in one is: {}", std::string(profile.status().message()));
  }
  return CostProfile::built_in();
}

CostProfile ProfileStore::find(device::DevicePreference const& preference) const {
  if (empty()) {
    return CostProfile::built_in();
  }
  const std::optional<device::DeviceInfo> info = device_for(preference);
  return info ? find(*info) : CostProfile::built_in();
}

}  // namespace catena::chain
