// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The control groups of this process, and the folders where it may create others.
namespace catena::sandbox {

/// A line of /proc/PID/cgroup: the group of a process in one hierarchy.
struct Membership {
  std::vector<std::string> controllers;  ///< of v1, or "name=..."; empty: the hierarchy of v2
  std::string path;                      ///< from the root of the hierarchy, as the process sees it
};

/// Parses /proc/PID/cgroup. Skips lines of another form.
std::vector<Membership> parse_memberships(std::string_view text);

/// A line of /proc/PID/mountinfo that mounts a hierarchy.
struct GroupMount {
  std::filesystem::path point;
  std::string root;                      ///< the group mounted here; see Membership::path
  std::vector<std::string> controllers;  ///< of v1, among other options; empty: the hierarchy of v2
};

/// Parses /proc/PID/mountinfo. Returns the mounts of control groups, in its order.
std::vector<GroupMount> parse_group_mounts(std::string_view text);

/// The folder of a process's group in the v1 hierarchy with `controller`, or in that of v2 if `controller` is empty.
/// Nullopt if this hierarchy does not exist, or if it or that part of it is not mounted.
std::optional<std::filesystem::path> folder_of(std::string_view controller, std::span<const Membership> memberships,
                                               std::span<const GroupMount> mounts);

/// The group of v2 for the processes of the caller's group, as a group that limits others must not have processes.
constexpr std::string_view kCallersLeaf = "catena-caller";

/// Folders where this process may create groups.
struct GroupPlaces {
  bool is_v2 = false;
  std::filesystem::path memory;
  std::optional<std::filesystem::path> pids;  ///< with v2: as `memory`
};

/// Finds them with the rights of the calling thread, without any change. Any thread. Unavailable, with the reason, if
/// groups cannot be created or would not limit memory.
Result<GroupPlaces> find_group_places();

}  // namespace catena::sandbox
