// SPDX-License-Identifier: Apache-2.0
// Which devices there are and which one is meant.
#include <catena/core/text.hpp>

#include <algorithm>
#include <array>

#include "base/core/process_work.hpp"
#include "gpu/device/backend.hpp"
#include "gpu/device/backends.hpp"
#include "gpu/device/device.hpp"

namespace catena::device {

// by the folders of the backends
#define CATENA_DECLARE_BACKEND(name)                        \
  Probe probe_##name();                                     \
  Result<std::unique_ptr<Device>> open_##name(int ordinal); \
  ProcessNeeds needs_##name();
CATENA_BACKENDS(CATENA_DECLARE_BACKEND)
#undef CATENA_DECLARE_BACKEND

namespace {

#define CATENA_BACKEND(name) Backend{#name, &probe_##name, &open_##name, &needs_##name},
constexpr std::array kBackends{CATENA_BACKENDS(CATENA_BACKEND)};
#undef CATENA_BACKEND

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
    return absl::UnavailableError(concat(
        "only ", found.devices.front().name,
        ", this machine's CPU: slower than the CPU implementations; `device: ", backend.name, "` uses it for tests"));
  }
  return backend.open(*ordinal);
}

}  // namespace

std::span<const Backend> backends() { return kBackends; }

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
