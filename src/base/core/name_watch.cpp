// SPDX-License-Identifier: Apache-2.0
#include "base/core/name_watch.hpp"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <atomic>
#include <utility>

namespace catena {
namespace {

constexpr std::chrono::seconds kCheck{1};
constexpr mode_t kPermissions = 0777;

std::atomic<unsigned> wishes{0};

}  // namespace

void check_names_of_outputs() { wishes.fetch_add(1, std::memory_order_relaxed); }

NameWatch::NameWatch(std::string path, OpenedFile const& file)
    : path_(std::move(path)),
      is_regular_(file.is_regular()),
      wishes_(wishes.load(std::memory_order_relaxed)),
      checked_(Clock::now()) {
  note(file.status);
}

void NameWatch::note(struct stat const& status) {
  device_ = status.st_dev;
  inode_ = status.st_ino;
  mode_ = status.st_mode & kPermissions;
}

bool NameWatch::is_due() {
  const unsigned wanted = wishes.load(std::memory_order_relaxed);
  const Clock::time_point now = Clock::now();
  if (wanted == wishes_ && now - checked_ < kCheck) {
    return false;
  }
  wishes_ = wanted;
  checked_ = now;
  return true;
}

FileDescriptor NameWatch::renewed() {
  struct stat named {};
  if (!is_regular_ || !is_due() ||
      (::stat(path_.c_str(), &named) == 0 && named.st_dev == device_ && named.st_ino == inode_)) {
    return {};
  }
  Result<OpenedFile> file = open_named_file(path_, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK, kRegularFile, mode_);
  if (!file.ok()) {
    if (!std::exchange(is_reported_, true)) {
      spdlog::warn("{}; lines still go to the file that had the name", std::string(file.status().message()));
    }
    return {};
  }
  is_reported_ = false;
  note(file->status);
  return std::move(file->fd);
}

}  // namespace catena
