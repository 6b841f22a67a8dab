// SPDX-License-Identifier: Apache-2.0
// Which devices there are and which one is meant.
#include <catena/core/text.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/core/process_work.hpp"
#include "gpu/device/backend.hpp"
#include "gpu/device/device.hpp"

namespace catena::device {

// by the folders of the backends
Probe probe_cuda();
Result<std::unique_ptr<Device>> open_cuda(int ordinal);
Probe probe_opencl();
Result<std::unique_ptr<Device>> open_opencl(int ordinal);

namespace {

/// In the order in which `auto` tries them. A new backend is a folder beside this file and a row here.
constexpr std::array kBackends{
    Backend{"cuda", &probe_cuda, &open_cuda},
    Backend{"opencl", &probe_opencl, &open_opencl},
};

Backend const* find_backend(std::string_view name) {
  const auto* found =
      std::find_if(kBackends.begin(), kBackends.end(), [name](Backend const& backend) { return backend.name == name; });
  return found == kBackends.end() ? nullptr : found;
}

/// The first device of `backend` that is worth taking: not this machine's own cores.
Result<std::unique_ptr<Device>> open_accelerator(Backend const& backend) {
  const Probe found = backend.probe();
  CATENA_RETURN_IF_ERROR(found.status);
  const std::optional<int> ordinal = first_accelerator(found.devices);
  if (!ordinal) {
    return absl::UnavailableError(concat("only ", found.devices.front().name,
                                         ", which is this machine's CPU: the CPU implementations are faster; `",
                                         backend.name, "` takes it, for tests"));
  }
  return backend.open(*ordinal);
}

}  // namespace

std::span<const Backend> backends() { return kBackends; }

std::vector<std::string_view> backend_names() {
  std::vector<std::string_view> names;
  for (Backend const& backend : kBackends) {
    names.push_back(backend.name);
  }
  return names;
}

std::vector<std::string> preference_names() {
  std::vector<std::string> names{"auto"};
  for (Backend const& backend : kBackends) {
    names.emplace_back(backend.name);
  }
  names.emplace_back("none");
  return names;
}

Result<DevicePreference> parse_preference(std::string_view text) {
  if (text == "auto") {
    return DevicePreference{};
  }
  if (text == "none") {
    return DevicePreference::none();
  }
  const std::size_t colon = text.find(':');
  DevicePreference preference = DevicePreference::of(text.substr(0, colon));
  bool is_good = find_backend(preference.backend) != nullptr;
  if (colon != std::string_view::npos) {
    const std::string_view digits = text.substr(colon + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), preference.ordinal);
    is_good = is_good && error == std::errc() && end == digits.data() + digits.size() && preference.ordinal >= 0;
  }
  if (!is_good) {
    return absl::InvalidArgumentError(concat("device '", text, "' is not known; write ",
                                             fmt::format("{}", fmt::join(preference_names(), ", ")),
                                             ", or one of several by its number: ", kBackends.front().name, ":1"));
  }
  return preference;
}

Result<std::vector<DevicePreference>> parse_preferences(std::span<const std::string> texts) {
  std::vector<DevicePreference> preferences;
  for (std::string const& text : texts) {
    CATENA_ASSIGN_OR_RETURN(const DevicePreference preference, parse_preference(text));
    if (texts.size() > 1 && preference.kind != DevicePreference::Kind::kOne) {
      return absl::InvalidArgumentError(
          concat("'", text, "' in a list of devices: write each by its name, ", kBackends.front().name, ":0"));
    }
    if (std::find(preferences.begin(), preferences.end(), preference) != preferences.end()) {
      return absl::InvalidArgumentError(concat("device '", text, "' is listed twice"));
    }
    preferences.push_back(preference);
  }
  return preferences;
}

std::string to_string(DevicePreference const& preference) {
  switch (preference.kind) {
    case DevicePreference::Kind::kAuto:
      return "auto";
    case DevicePreference::Kind::kNone:
      return "none";
    case DevicePreference::Kind::kOne:
      break;
  }
  return preference.ordinal == 0 ? preference.backend : concat(preference.backend, ":", preference.ordinal);
}

std::string identity(DeviceInfo const& info) { return concat(info.backend, ":", info.ordinal, " ", info.name); }

std::optional<int> first_accelerator(std::span<const DeviceInfo> devices) {
  const auto found =
      std::find_if(devices.begin(), devices.end(), [](DeviceInfo const& device) { return !device.is_cpu; });
  return found == devices.end() ? std::nullopt : std::optional<int>(static_cast<int>(found - devices.begin()));
}

std::vector<Probe> probe() {
  return do_process_work([] {
    std::vector<Probe> found;
    for (Backend const& backend : kBackends) {
      found.push_back(backend.probe());
    }
    return found;
  });
}

namespace {

Result<std::unique_ptr<Device>> open_here(DevicePreference const& preference, std::string* why) {
  if (preference.kind == DevicePreference::Kind::kNone) {
    return nullptr;
  }
  if (preference.kind == DevicePreference::Kind::kOne) {
    Backend const* backend = find_backend(preference.backend);
    if (backend == nullptr) {
      return absl::InvalidArgumentError(concat("unknown backend '", preference.backend, "'"));
    }
    return backend->open(preference.ordinal);
  }
  std::string tried;
  std::unique_ptr<Device> device;
  for (Backend const& backend : kBackends) {
    Result<std::unique_ptr<Device>> opened = open_accelerator(backend);
    if (opened.ok()) {
      device = *std::move(opened);
      break;
    }
    tried += concat(tried.empty() ? "" : "\n", backend.name, ": ", std::string(opened.status().message()));
  }
  if (why != nullptr) {
    *why = tried;
  }
  return device;
}

}  // namespace

Result<std::unique_ptr<Device>> open(DevicePreference const& preference, std::string* why) {
  return do_process_work([&] { return open_here(preference, why); });
}

}  // namespace catena::device
