// SPDX-License-Identifier: Apache-2.0
// Names of devices in chain files and options. Apart from registry.cpp, so that the process of an NF, which opens no
// device itself, is not linked with the backends.
#include <catena/core/decimal.hpp>
#include <catena/core/text.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "gpu/device/backends.hpp"
#include "gpu/device/device.hpp"

namespace catena::device {
namespace {

#define CATENA_BACKEND_NAME(name) std::string_view(#name),
constexpr std::array kBackendNames{CATENA_BACKENDS(CATENA_BACKEND_NAME)};
#undef CATENA_BACKEND_NAME

}  // namespace

std::vector<std::string_view> backend_names() { return {kBackendNames.begin(), kBackendNames.end()}; }

std::vector<std::string> preference_names() {
  std::vector<std::string> names{"auto"};
  names.insert(names.end(), kBackendNames.begin(), kBackendNames.end());
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
  bool is_good = std::ranges::find(kBackendNames, preference.backend) != kBackendNames.end();
  if (colon != std::string_view::npos) {
    const std::string_view digits = text.substr(colon + 1);
    const std::optional<std::uint64_t> ordinal = parse_decimal(digits, std::numeric_limits<int>::max());
    is_good = is_good && ordinal.has_value();
    preference.ordinal = static_cast<int>(ordinal.value_or(0));
  }
  if (!is_good) {
    return absl::InvalidArgumentError(
        concat("device '", text, "' is not known; write ", fmt::format("{}", fmt::join(preference_names(), ", ")),
               ", or one of several by its number: ", kBackendNames.front(), ":1", leading_zeros_advice(text)));
  }
  return preference;
}

Result<std::vector<DevicePreference>> parse_preferences(std::span<const std::string> texts) {
  std::vector<DevicePreference> preferences;
  for (std::string const& text : texts) {
    CATENA_ASSIGN_OR_RETURN(const DevicePreference preference, parse_preference(text));
    if (texts.size() > 1 && preference.kind != DevicePreference::Kind::kOne) {
      return absl::InvalidArgumentError(
          concat("'", text, "' in a list of devices: write each by its name, ", kBackendNames.front(), ":0"));
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

}  // namespace catena::device
