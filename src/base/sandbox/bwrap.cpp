// SPDX-License-Identifier: Apache-2.0
#include "base/sandbox/bwrap.hpp"

#include <catena/core/text.hpp>

#include <unistd.h>

#include <array>
#include <fstream>
#include <system_error>

namespace catena::sandbox {
namespace {

namespace fs = std::filesystem;

using Arguments = std::vector<std::string>;

void add(Arguments& arguments, std::initializer_list<std::string> more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
}

/// `from` at `to`: a link as a link, whatever it points to, anything else read-only.
void show(Arguments& arguments, fs::path const& from, fs::path const& to) {
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(from, error))) {
    const fs::path points_to = fs::read_symlink(from, error);
    add(arguments, {"--symlink", points_to.string(), to.string()});
  } else if (fs::exists(from, error)) {
    add(arguments, {"--ro-bind", from.string(), to.string()});
  }
}

/// What a program linked against the host's libraries needs.
void show_host(Arguments& arguments) {
  for (const char* path : {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/ld.so.cache",
                           "/etc/ld.so.conf", "/etc/ld.so.conf.d"}) {
    show(arguments, path, path);
  }
}

void show_image(Arguments& arguments, Image const& image) {
  for (Image::Entry const& entry : image.entries) {
    switch (entry.kind) {
      case Image::Kind::kShown:
        add(arguments, {"--ro-bind", entry.from.string(), entry.to.string()});
        break;
      case Image::Kind::kLink:
        add(arguments, {"--symlink", entry.from.string(), entry.to.string()});
        break;
      case Image::Kind::kMade:
        add(arguments, {"--dir", entry.to.string()});
        break;
    }
  }
}

/// The first number in a file of /proc; -1 where there is none.
long setting(const char* path) {
  long value = -1;
  std::ifstream(path) >> value;
  return value;
}

/// A setting that keeps users from making namespaces.
struct Obstacle {
  const char* file;
  long value;  ///< by which it does
  const char* command;
};
constexpr std::array kObstacles = {
    Obstacle{"/proc/sys/user/max_user_namespaces", 0, "sysctl -w user.max_user_namespaces=10000"},
    Obstacle{"/proc/sys/kernel/unprivileged_userns_clone", 0, "sysctl -w kernel.unprivileged_userns_clone=1"},
    Obstacle{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1,
             "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"}};

std::string what_helps(SandboxOptions const& options) {
  if (::access(options.bwrap.c_str(), X_OK) != 0) {
    return concat("; ", options.bwrap, " is missing; as root: apt-get install bubblewrap");
  }
  for (Obstacle const& obstacle : kObstacles) {
    if (setting(obstacle.file) == obstacle.value) {
      return concat("; ", obstacle.file, " is ", obstacle.value, "; as root: ", obstacle.command);
    }
  }
  return "";
}

}  // namespace

BwrapFds BwrapFds::after(std::size_t program_fds) {
  const int first = STDERR_FILENO + 1 + static_cast<int>(program_fds);
  return {first, first + 1, first + 2, first + 3};
}

std::vector<std::string> bwrap_arguments(SandboxOptions const& options, BwrapFds const& fds) {
  // --unshare-all alone goes on without a user or cgroup namespace where there can be none
  Arguments arguments = {"--unshare-all", "--unshare-user",    "--unshare-cgroup", "--disable-userns",
                         "--new-session", "--die-with-parent", "--clearenv",       "--cap-drop",
                         "ALL",           "--hostname",        "sandbox"};
  for (auto const& [name, value] : options.environment) {
    add(arguments, {"--setenv", name, value});
  }
  if (options.root) {
    show_image(arguments, *options.root);
  } else {
    show_host(arguments);
  }
  add(arguments, {"--proc", "/proc", "--dev", "/dev"});
  for (fs::path const& device : options.devices) {
    add(arguments, {"--dev-bind", device.string(), device.string()});
  }
  if (options.scratch_bytes > 0) {
    add(arguments, {"--size", concat(options.scratch_bytes), "--tmpfs", "/tmp"});
  } else {
    add(arguments, {"--dir", "/tmp"});
  }
  int next_copied = fds.copied;
  for (ReadOnlyBind const& bind : options.readable) {
    if (bind.fd >= 0) {
      add(arguments, {"--ro-bind-data", concat(next_copied++), bind.shown_at().string()});
    } else {
      add(arguments, {"--ro-bind", bind.source.string(), bind.shown_at().string()});
    }
  }
  // both are in memory, without a bound of their own
  add(arguments, {"--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"});
  add(arguments, {"--seccomp", concat(fds.filter), "--json-status-fd", concat(fds.status)});
  return arguments;
}

Status explain_failure(SandboxOptions const& options, std::string_view what_it_said) {
  return absl::UnavailableError(concat(
      "cannot start '", options.program,
      "' in a sandbox: ", what_it_said.empty() ? "bubblewrap gave no reason" : what_it_said, what_helps(options)));
}

}  // namespace catena::sandbox
