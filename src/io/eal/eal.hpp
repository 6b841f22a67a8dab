// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <span>
#include <string>

#include "base/core/process_needs.hpp"

/// DPDK's environment (EAL): one per process, never stopped. Thread rule: any thread.
namespace catena::eal {

/// Starts the EAL, or does nothing if it runs. It needs neither hugepages nor privileges: `--no-huge --no-pci
/// --no-shconf --no-telemetry`, only errors in its log, AVX-512 allowed, one lcore on the first CPU of the caller's
/// affinity mask, and kMemoryMb of ordinary memory, whose pages are allocated on first use. The caller's affinity mask
/// does not change.
///
/// `extra_args` are added; one that names an option replaces Catena's own for it (`-l`, `-c` and `--lcores` are one
/// option; `--in-memory`, `--huge-dir`, `--socket-mem` and `-a` remove `--no-huge` or `--no-pci`).
///
/// Errors:
///   FailedPrecondition  it already runs and was started without one of `extra_args`, or by other code of the process
///   Unavailable         the EAL refused to start; DPDK cannot try twice, so each later call returns the same
Status start(std::span<const std::string> extra_args = {});

/// Memory limit of an EAL without hugepages: enough for two full Internet route tables.
inline constexpr int kMemoryMb = 2048;

/// The needs of a process in a sandbox for starting it without PCI devices: it counts processors, and checks whether
/// modules for PCI devices are loaded.
ProcessNeeds needs();

}  // namespace catena::eal
