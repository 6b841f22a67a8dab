// SPDX-License-Identifier: Apache-2.0
#include "base/sandbox/own_groups.hpp"

#include <catena/core/text.hpp>

#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

namespace catena::sandbox {
namespace {

namespace fs = std::filesystem;

/// The text before the next `end`, which is taken from `rest` with it.
std::string_view next(std::string_view& rest, char end) {
  const std::size_t length = std::min(rest.find(end), rest.size());
  const std::string_view part = rest.substr(0, length);
  rest.remove_prefix(std::min(length + 1, rest.size()));
  return part;
}

std::vector<std::string> split(std::string_view text, char end) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    parts.emplace_back(next(text, end));
  }
  return parts;
}

/// A field of mountinfo: the kernel writes blanks, line feeds and backslashes as a backslash and three octal digits.
std::string unescape(std::string_view field) {
  constexpr std::size_t kDigits = 3;
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string text;
  while (!field.empty()) {
    const std::string_view digits = field.substr(1, kDigits);
    if (field[0] == '\\' && digits.size() == kDigits && std::ranges::all_of(digits, is_octal)) {
      text += static_cast<char>(std::stoi(std::string(digits), nullptr, 8));
      field.remove_prefix(1 + kDigits);
    } else {
      text += field[0];
      field.remove_prefix(1);
    }
  }
  return text;
}

/// What of `path` is below `root`; nothing where it is not.
std::optional<std::string_view> below(std::string_view path, std::string_view root) {
  if (root == "/") {
    return path.substr(std::min<std::size_t>(1, path.size()));
  }
  if (!path.starts_with(root) || (path.size() > root.size() && path[root.size()] != '/')) {
    return std::nullopt;
  }
  path.remove_prefix(root.size());
  return path.substr(std::min<std::size_t>(1, path.size()));
}

std::string text_of(fs::path const& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

Status refused(fs::path const& path) {
  return absl::UnavailableError(concat(path.string(), ": ", std::strerror(errno)));
}

/// Whether the calling thread may make groups in `folder`, and put processes into them.
Status check_writable(fs::path const& folder, std::span<const char* const> files) {
  // as the effective user, who will make them, and not as the real one
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK, AT_EACCESS) != 0) {
    return refused(folder);
  }
  for (const char* file : files) {
    if (::faccessat(AT_FDCWD, (folder / file).c_str(), W_OK, AT_EACCESS) != 0) {
      return refused(folder / file);
    }
  }
  return absl::OkStatus();
}

/// Where systemd runs, groups are its own but for those that it has marked: elsewhere it takes back what others change.
bool is_delegated(fs::path const& folder) {
  std::error_code error;
  if (!fs::exists("/run/systemd/system", error)) {
    return true;
  }
  char value = 0;
  return std::ranges::any_of(std::array{"user.delegate", "trusted.delegate"}, [&](const char* name) {
    return ::getxattr(folder.c_str(), name, &value, sizeof value) == 1 && value == '1';
  });
}

Result<GroupPlaces> find_in_v2(fs::path own) {
  if (own.filename() == kCallersLeaf) {
    own = own.parent_path();
  }
  const std::vector<std::string> controllers = [&own] {
    std::istringstream words(text_of(own / "cgroup.controllers"));
    return std::vector<std::string>(std::istream_iterator<std::string>(words), {});
  }();
  if (std::ranges::find(controllers, "memory") == controllers.end()) {
    return absl::UnavailableError(concat(own.string(), " has no memory controller"));
  }
  if (!is_delegated(own)) {
    return absl::UnavailableError(concat("systemd has not delegated ", own.string()));
  }
  CATENA_RETURN_IF_ERROR(check_writable(own, std::array{"cgroup.procs", "cgroup.subtree_control"}));
  GroupPlaces places{.is_v2 = true, .memory = own, .pids = {}};
  if (std::ranges::find(controllers, "pids") != controllers.end()) {
    places.pids = own;
  }
  return places;
}

}  // namespace

std::vector<Membership> parse_memberships(std::string_view text) {
  std::vector<Membership> memberships;
  while (!text.empty()) {
    // NUMBER:CONTROLLER,...:PATH; the path may have colons, but no line feed
    std::string_view line = next(text, '\n');
    next(line, ':');
    const std::string_view controllers = next(line, ':');
    if (line.starts_with('/')) {
      memberships.push_back({split(controllers, ','), std::string(line)});
    }
  }
  return memberships;
}

std::vector<GroupMount> parse_group_mounts(std::string_view text) {
  std::vector<GroupMount> mounts;
  while (!text.empty()) {
    // ID PARENT DEVICE ROOT POINT OPTIONS OPTIONAL... - TYPE SOURCE SUPER_OPTIONS
    const std::vector<std::string> fields = split(next(text, '\n'), ' ');
    constexpr std::ptrdiff_t kOptional = 6;
    const auto end = std::ranges::find(fields, "-");
    if (end - fields.begin() < kOptional || fields.end() - end < 4) {
      continue;
    }
    if (end[1] == "cgroup2") {
      mounts.push_back({unescape(fields[4]), unescape(fields[3]), {}});
    } else if (end[1] == "cgroup") {
      mounts.push_back({unescape(fields[4]), unescape(fields[3]), split(end[3], ',')});
    }
  }
  return mounts;
}

std::optional<fs::path> folder_of(std::string_view controller, std::span<const Membership> memberships,
                                  std::span<const GroupMount> mounts) {
  const auto is_meant = [controller](auto const& of) {
    return controller.empty() ? of.controllers.empty()
                              : std::ranges::find(of.controllers, controller) != of.controllers.end();
  };
  const auto membership = std::ranges::find_if(memberships, is_meant);
  if (membership == memberships.end()) {
    return std::nullopt;
  }
  // Of several mounts that of the smallest part: a part that is mounted again may be written where the whole may not.
  // Of equal ones the last, which may be on top of the others.
  std::optional<fs::path> folder;
  std::size_t root_length = 0;
  for (GroupMount const& mount : mounts) {
    const auto path = below(membership->path, mount.root);
    if (is_meant(mount) && path && mount.root.size() >= root_length) {
      folder = path->empty() ? mount.point : mount.point / *path;
      root_length = mount.root.size();
    }
  }
  return folder;
}

Result<GroupPlaces> find_group_places() {
  const std::vector<Membership> memberships = parse_memberships(text_of("/proc/self/cgroup"));
  const std::vector<GroupMount> mounts = parse_group_mounts(text_of("/proc/self/mountinfo"));
  constexpr std::array kProcs{"cgroup.procs"};
  // a controller is in one hierarchy: where v1 has it, v2 does not
  if (const std::optional<fs::path> memory = folder_of("memory", memberships, mounts)) {
    CATENA_RETURN_IF_ERROR(check_writable(*memory, kProcs));
    GroupPlaces places{.is_v2 = false, .memory = *memory, .pids = folder_of("pids", memberships, mounts)};
    if (places.pids && !check_writable(*places.pids, kProcs).ok()) {
      places.pids.reset();
    }
    return places;
  }
  const std::optional<fs::path> own = folder_of("", memberships, mounts);
  return own ? find_in_v2(*own) : absl::UnavailableError("no hierarchy with memory limits is mounted");
}

}  // namespace catena::sandbox
