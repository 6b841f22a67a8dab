// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "core/file_descriptor.hpp"
#include "sandbox/own_groups.hpp"

namespace catena::sandbox {

/// What the processes of a group may have together.
struct GroupLimits {
  std::uint64_t memory_bytes = 0;  ///< all that the kernel charges to them: pages of shared memory that they touch
                                   ///< first and of files in memory, what the kernel needs for them; without swap
  std::uint32_t tasks = 0;         ///< threads; without effect where pids of the caller are not limited by groups
};

/// A control group of this process's making, in cgroup v2 or in one or two hierarchies of v1, for a sandbox: see
/// SandboxOptions::cgroups. It is empty. One thread at a time, but for has_killed().
class ControlGroup {
 public:
  /// A group below the caller's own, with its limits. What services that are dead have left there is removed. With v2,
  /// all processes of the caller's group go to the group kCallersLeaf below it, the first time: a group that limits
  /// others has no processes. The thread needs the rights for that.
  ///
  /// Errors: as find_group_places(), and nothing was changed; FailedPrecondition where a group cannot be made or
  /// limited after all, with what the system says. Then there is none.
  static Result<std::unique_ptr<ControlGroup>> create(GroupLimits const& limits);

  /// Removes it. Its processes have to have ended; the kernel may take a moment to see that, for which it is waited.
  /// The thread needs the rights of create(). What cannot be removed is left to create() of a later service.
  ~ControlGroup();
  ControlGroup(ControlGroup const&) = delete;
  ControlGroup& operator=(ControlGroup const&) = delete;

  std::vector<std::filesystem::path> const& folders() const { return folders_; }
  std::uint64_t memory_bytes() const { return memory_bytes_; }

  /// Raises the limit, for memory that is shared with its processes from now on. Any rights. Unavailable with what the
  /// system says.
  Status allow_more(std::uint64_t bytes);

  /// Whether the kernel has ended one of its processes because they had reached the limit of memory.
  bool has_killed() const;

 private:
  explicit ControlGroup(bool is_v2) : is_v2_(is_v2) {}
  Status make(GroupPlaces const& places, GroupLimits const& limits);
  Status limit_memory(std::filesystem::path const& folder, std::uint64_t bytes);

  bool is_v2_;
  std::vector<std::filesystem::path> folders_;  ///< those that were made
  std::uint64_t memory_bytes_ = 0;
  FileDescriptor memory_;   ///< where its limit is written to
  FileDescriptor swapped_;  ///< v1: the limit of memory and swap together, where swap is counted
  FileDescriptor events_;   ///< how often it ran out of memory
  FileDescriptor peak_;     ///< v1: the most that it had
};

}  // namespace catena::sandbox
