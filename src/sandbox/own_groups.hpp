// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// In which control groups this process is, and where it may make others.
namespace catena::sandbox {

/// A line of /proc/PID/cgroup: the group of a process in one hierarchy.
struct Membership {
  std::vector<std::string> controllers;  ///< of v1, or "name=..."; none: the hierarchy of v2
  std::string path;                      ///< from the root of the hierarchy, as the process sees it
};

/// What /proc/PID/cgroup says. Lines that are not of that form are left out.
std::vector<Membership> parse_memberships(std::string_view text);

/// A line of /proc/PID/mountinfo that mounts a hierarchy.
struct GroupMount {
  std::filesystem::path point;
  std::string root;                      ///< which group is there; see Membership::path
  std::vector<std::string> controllers;  ///< of v1, among other options; none: the hierarchy of v2
};

/// What /proc/PID/mountinfo says of control groups, in its order.
std::vector<GroupMount> parse_group_mounts(std::string_view text);

/// The folder of a process's group in the hierarchy of v1 that has `controller`; in that of v2 where it is empty.
/// Nothing where there is no such hierarchy, or it is not mounted, or not that part of it.
std::optional<std::filesystem::path> folder_of(std::string_view controller, std::span<const Membership> memberships,
                                               std::span<const GroupMount> mounts);

/// The group of v2 to which processes of the caller's group go, as a group that limits others has none itself.
constexpr std::string_view kCallersLeaf = "catena-caller";

/// Folders below which this process may make groups.
struct GroupPlaces {
  bool is_v2 = false;
  std::filesystem::path memory;
  std::optional<std::filesystem::path> pids;  ///< with v2: as `memory`
};

/// Finds them with the rights of the calling thread, and changes nothing. Any thread. Unavailable where groups cannot
/// be made, or would limit no memory; the text says why.
Result<GroupPlaces> find_group_places();

}  // namespace catena::sandbox
