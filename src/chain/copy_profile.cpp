// SPDX-License-Identifier: Apache-2.0
#include "chain/copy_profile.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/core/processor.hpp"
#include "chain/profile_file.hpp"
#include "chain/profile_reader.hpp"

namespace catena::chain {
namespace {

constexpr std::string_view kCopyFormat = "catena copy profile";
constexpr int kCopyVersion = 1;
constexpr std::string_view kMeasureCopiesAgain = "; `catena profile --copies` measures again";
constexpr mode_t kCopyFileMode = 0644;
constexpr std::size_t kMaxCopyPoints = 64;

template <typename Entry, typename Read>
std::vector<Entry> read_list(Json const& from, std::string const& path, const char* key, std::size_t most,
                             ProfileReader& reader, Read const& read) {
  std::vector<Entry> all;
  Json const* list = reader.member(from, path, key);
  if (list == nullptr || !list->is_array() || list->size() > most) {
    reader.complain(path, key, concat("is no list of at most ", most, " entries"));
    return all;
  }
  for (Json const& entry : *list) {
    const std::string own = concat(path, key, "[", all.size(), "]");
    if (!entry.is_object()) {
      reader.complain(own, "", "is no object");
      return all;
    }
    all.push_back(read(entry, own + "."));
  }
  return all;
}

MeasuredCopies read_engine(Json const& json, std::string const& path, ProfileReader& reader) {
  MeasuredCopies copies;
  copies.engine = {reader.text(json, path, "name"), reader.text(json, path, "device")};
  copies.measured = reader.text(json, path, "measured");
  if (!is_time(copies.measured)) {
    reader.complain(path, "measured", "is not a time like 2026-11-21T18:30:10Z");
  }
  copies.points = read_list<CopyPoint>(
      json, path, "sizes", kMaxCopyPoints, reader, [&reader](Json const& from, std::string const& at) {
        constexpr std::uint32_t kMaxBytes = std::uint32_t{1} << 30U;
        return CopyPoint{reader.whole(from, at, "bytes", 1, kMaxBytes), reader.number(from, at, "cpu_ns"),
                         reader.number(from, at, "gbps")};
      });
  if (std::ranges::adjacent_find(copies.points, std::ranges::greater_equal(), &CopyPoint::bytes) !=
      copies.points.end()) {
    reader.complain(path, "sizes", "do not ascend");
  }
  return copies;
}

}  // namespace

CopyEngine CopyEngine::of(std::string_view name) {
  for (device::Backend const& backend : device::backends()) {
    if (backend.name == name) {
      const device::Probe found = backend.probe();
      return {std::string(name), found.devices.empty() ? std::string()
                                                       : printable(concat(found.devices.front().name, " (",
                                                                          found.devices.front().driver, ")"))};
    }
  }
  return {std::string(name), {}};
}

CopyProfile CopyProfile::of_this_machine() { return {printable(processor_model()), {}}; }

MeasuredCopies const* CopyProfile::find(CopyEngine const& engine) const {
  const auto found = std::ranges::find(engines, engine, &MeasuredCopies::engine);
  return found == engines.end() ? nullptr : &*found;
}

void keep(CopyProfile& profile, MeasuredCopies copies) {
  std::erase_if(profile.engines, [&copies](MeasuredCopies const& other) { return other.engine == copies.engine; });
  profile.engines.push_back(std::move(copies));
  if (profile.engines.size() > kMaxMeasuredEngines) {
    profile.engines.erase(profile.engines.begin());
  }
}

std::optional<std::uint32_t> least_paying_bytes(std::span<const CopyPoint> engine, std::span<const CopyPoint> cpu) {
  std::optional<std::uint32_t> least;
  for (CopyPoint const& point : engine) {
    const auto same = std::ranges::find(cpu, point.bytes, &CopyPoint::bytes);
    if (same != cpu.end()) {
      least = point.cpu_ns < same->cpu_ns ? least.value_or(point.bytes) : std::optional<std::uint32_t>();
    }
  }
  return least;
}

std::string to_json(CopyProfile const& profile) {
  Json json{
      {"format", kCopyFormat}, {"version", kCopyVersion}, {"processor", profile.processor}, {"engines", Json::array()}};
  for (MeasuredCopies const& copies : profile.engines) {
    Json sizes = Json::array();
    for (CopyPoint const& point : copies.points) {
      sizes.push_back({{"bytes", point.bytes}, {"cpu_ns", point.cpu_ns}, {"gbps", point.gbps}});
    }
    json["engines"].push_back({{"name", copies.engine.name},
                               {"device", copies.engine.device},
                               {"measured", copies.measured},
                               {"sizes", std::move(sizes)}});
  }
  return json.dump(2);
}

Result<CopyProfile> parse_copy_profile(std::string_view text, std::string_view name) {
  ProfileReader reader(name, kMeasureCopiesAgain);
  CATENA_ASSIGN_OR_RETURN(const Json json, reader.parse(text, kCopyFormat, kCopyVersion));
  CopyProfile profile;
  profile.processor = reader.text(json, "", "processor");
  profile.engines = read_list<MeasuredCopies>(
      json, "", "engines", kMaxMeasuredEngines, reader,
      [&reader](Json const& from, std::string const& path) { return read_engine(from, path, reader); });
  for (MeasuredCopies const& copies : profile.engines) {
    if (profile.find(copies.engine) != &copies) {
      reader.complain("", "engines", "has two entries of the same engine");
    }
  }
  CATENA_RETURN_IF_ERROR(reader.status());
  return profile;
}

Result<CopyProfile> load_copy_profile(std::filesystem::path const& file) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, read_profile_file(file, kMeasureCopiesAgain));
  return parse_copy_profile(text, file.string());
}

Status save_copy_profile(CopyProfile const& profile, std::filesystem::path const& file) {
  return write_profile_file(file, to_json(profile) + '\n', kCopyFileMode);
}

CopyThreshold choose_threshold(ProfileStore const& store, CopyEngine const& engine, CopyEngine const& cpu) {
  const CopyProfile here = CopyProfile::of_this_machine();
  const std::filesystem::path file = store.file_of_copies(here.processor);
  Result<CopyProfile> profile = file.empty() ? absl::NotFoundError("no folder") : load_copy_profile(file);
  if (profile.ok() && profile->processor != here.processor) {
    profile = absl::InvalidArgumentError(
        concat(file.string(), ": of another machine, with '", profile->processor, "'", kMeasureCopiesAgain));
  }
  if (!profile.ok() && !absl::IsNotFound(profile.status())) {
    spdlog::warn("profile of copies not used, the default threshold is: {}", std::string(profile.status().message()));
  }
  MeasuredCopies const* const own = profile.ok() ? profile->find(engine) : nullptr;
  MeasuredCopies const* const memcpy = profile.ok() ? profile->find(cpu) : nullptr;
  if (own == nullptr || memcpy == nullptr) {
    return {CopyThreshold::kDefault,
            concat("the default: `catena profile --copies --engine ", engine.name, "` measures this machine")};
  }
  constexpr std::size_t kDate = 10;
  const std::optional<std::uint32_t> least = least_paying_bytes(own->points, memcpy->points);
  return {least.value_or(CopyThreshold::kNever), concat("by the profile measured ", own->measured.substr(0, kDate))};
}

}  // namespace catena::chain
