// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace catena::bench {

/// Cores that this process may use, at least 1: those that it was given, which may be fewer than the machine has.
std::uint32_t usable_cores();
/// Processor seconds of all threads of this process and of the processes that it started, and they, and that still run.
double processor_seconds();
/// Processor, cores that this process may use and kernel of this machine, for the record of a measurement.
std::string describe_machine();
/// The commit of the source tree that this program was built from, marked "-modified" where tracked files have changed
/// since; "unknown" where the tree or git is not there. $CATENA_COMMIT says it where programs were carried to a machine
/// without them. `folder` takes git's output for the time being.
std::string source_commit(std::filesystem::path const& folder);

}  // namespace catena::bench
