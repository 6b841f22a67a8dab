// SPDX-License-Identifier: Apache-2.0
#include "base/hostcopy/engine.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <array>

namespace catena::hostcopy {

// by the files of the engines
Status probe_cpu_engine();
Result<std::unique_ptr<Engine>> open_cpu_engine();
Status probe_stream_engine();
Result<std::unique_ptr<Engine>> open_stream_engine();

namespace {

/// A new engine is a file NAME_engine.cpp and a row here.
constexpr std::array kKinds{
    EngineKind{kCpuEngine, &probe_cpu_engine, &open_cpu_engine, "memcpy on the calling core"},
    EngineKind{"cpu-stream", &probe_stream_engine, &open_stream_engine,
               "streaming stores on the calling core, which leave its caches to others"},
};

}  // namespace

std::span<const EngineKind> engine_kinds() { return kKinds; }

Result<EngineKind> find_kind(std::string_view name, std::span<const EngineKind> kinds) {
  const auto kind = std::ranges::find(kinds, name, &EngineKind::name);
  if (kind != kinds.end()) {
    return *kind;
  }
  std::string names;
  for (EngineKind const& known : kinds) {
    names.append(names.empty() ? "" : ", ").append(known.name);
  }
  return absl::InvalidArgumentError(concat("copy engine '", name, "' is not known; allowed: ", names));
}

Result<std::unique_ptr<Engine>> open_engine(std::string_view name, std::span<const EngineKind> kinds) {
  CATENA_ASSIGN_OR_RETURN(const EngineKind kind, find_kind(name, kinds));
  return kind.open();
}

}  // namespace catena::hostcopy
