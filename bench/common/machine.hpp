// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace catena::bench {

/// Cores available to this process, at least 1; may be fewer than the machine has.
std::uint32_t usable_cores();
/// CPU seconds of all threads of this process and of its running descendant processes.
double processor_seconds();
/// Processor, available cores and OS kernel of this machine, for measurement records.
std::string describe_machine();
/// The commit of this program's source tree, with "-modified" appended if tracked files have changed since; "unknown"
/// if the tree or git is missing. $CATENA_COMMIT overrides it, for programs copied to a machine without them. `folder`
/// temporarily holds git's output.
std::string source_commit(std::filesystem::path const& folder);

}  // namespace catena::bench
