// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/core/file_descriptor.hpp"
#include "base/sandbox/own_groups.hpp"

namespace catena::sandbox {

/// Limits of all processes of a group together.
struct GroupLimits {
  std::uint64_t memory_bytes = 0;  ///< all memory charged to them by the kernel: pages of shared memory that they touch
                                   ///< first and of files in memory, the kernel's own memory for them; without swap
  std::uint32_t tasks = 0;         ///< threads; ignored if the pids controller is unavailable to the caller
};

/// A control group created by this process for a sandbox, in cgroup v2 or in one or two hierarchies of v1: see
/// SandboxOptions::cgroups. It is empty. One thread at a time, except has_killed().
class ControlGroup {
 public:
  /// Creates a group below the caller's own, with its limits, and removes groups left by dead services. With v2, the
  /// first call moves all processes of the caller's group to the group kCallersLeaf below it, as a group that limits
  /// others must not have processes. The thread needs the rights for that.
  ///
  /// Errors: as find_group_places(), without any change; FailedPrecondition if a group cannot be created or limited,
  /// with the system's reason. No group is left then.
  static Result<std::unique_ptr<ControlGroup>> create(GroupLimits const& limits);

  /// Removes it. Its processes must have ended. Waits for a moment until the kernel has noticed that. The thread needs
  /// the rights of create(). If removal fails, create() of a later service does it.
  ~ControlGroup();
  ControlGroup(ControlGroup const&) = delete;
  ControlGroup& operator=(ControlGroup const&) = delete;

  std::vector<std::filesystem::path> const& folders() const { return folders_; }
  std::uint64_t memory_bytes() const { return memory_bytes_; }

  /// Raises the limit by `bytes`, for memory to be shared with its processes. Needs no rights. Unavailable with the
  /// system's reason.
  Status allow_more(std::uint64_t bytes);

  /// Whether the kernel has killed one of its processes for reaching the memory limit.
  bool has_killed() const;

 private:
  explicit ControlGroup(bool is_v2) : is_v2_(is_v2) {}
  Status make(GroupPlaces const& places, GroupLimits const& limits);
  Status limit_memory(std::filesystem::path const& folder, std::uint64_t bytes);

  bool is_v2_;
  std::vector<std::filesystem::path> folders_;  ///< created by this object
  std::uint64_t memory_bytes_ = 0;
  FileDescriptor memory_;   ///< file of the memory limit
  FileDescriptor swapped_;  ///< v1: file of the limit for memory and swap together, if swap is counted
  FileDescriptor events_;   ///< file of the out-of-memory counts
  FileDescriptor peak_;     ///< v1: file of the peak usage
};

}  // namespace catena::sandbox
