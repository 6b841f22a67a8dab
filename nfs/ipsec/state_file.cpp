// SPDX-License-Identifier: Apache-2.0
#include "state_file.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/config.hpp>

#include <absl/strings/numbers.h>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

namespace catena::ipsec {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHeader =
    "# Sequence numbers of an IPsec association. Do not edit it, copy it, or bring an older one back: packets would "
    "be\n"
    "# encrypted with a key stream that others were encrypted with before.\n";
constexpr mode_t kOwnerOnly = 0600;

std::string_view name_of(Direction direction) { return direction == Direction::kEncrypt ? "encrypt" : "decrypt"; }

Status system_error(std::string_view path, std::string_view what) {
  return absl::ErrnoToStatus(errno, concat(path, ": ", what));
}

Status write_and_sync(int file, std::string_view text, std::string const& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return system_error(path, "cannot be written");
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return ::fsync(file) == 0 ? absl::OkStatus() : system_error(path, "cannot be brought to the disk");
}

/// A new name is on the disk when its folder is.
Status sync_folder(std::string const& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) {
    return system_error(folder, "cannot be opened");
  }
  Status status = ::fsync(descriptor) == 0 ? absl::OkStatus() : system_error(folder, "cannot be brought to the disk");
  ::close(descriptor);
  return status;
}

Result<std::uint64_t> read_number(nf::Config& config, std::string_view key, bool hexadecimal) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, config.string(key));
  std::uint64_t value = 0;
  if (!(hexadecimal ? absl::SimpleHexAtoi(text, &value) : absl::SimpleAtoi(text, &value))) {
    return config.error(key, concat("'", key, "' is '", text, "', which is no number of 64 bits; the file is damaged"));
  }
  return value;
}

Result<SavedState> load(std::string const& path, Direction direction) {
  CATENA_ASSIGN_OR_RETURN(nf::Config file, nf::Config::load(path));
  CATENA_RETURN_IF_ERROR(file.one_of("version", {"1"}).status());
  CATENA_RETURN_IF_ERROR(file.one_of("direction", {std::string(name_of(direction))}).status());
  CATENA_RETURN_IF_ERROR(file.string("spi").status());
  SavedState state;
  CATENA_ASSIGN_OR_RETURN(state.next, read_number(file, "next", false));
  if (direction == Direction::kDecrypt) {
    CATENA_ASSIGN_OR_RETURN(state.seen, read_number(file, "seen", true));
  }
  CATENA_RETURN_IF_ERROR(file.finish());
  if (state.next == 0) {
    return file.error("next", "'next' is 0, which is no sequence number; the file is damaged");
  }
  return state;
}

}  // namespace

StateFile::StateFile(StateFile&& other) noexcept
    : folder_(std::move(other.folder_)),
      path_(std::move(other.path_)),
      direction_(other.direction_),
      loaded_(other.loaded_),
      is_new_(other.is_new_),
      lock_(std::exchange(other.lock_, -1)) {}

StateFile::~StateFile() {
  if (lock_ >= 0) {
    ::close(lock_);
  }
}

std::string StateFile::path_of(std::string const& folder, std::string const& name) {
  return (fs::path(folder) / name).string();
}

Result<StateFile> StateFile::open(std::string const& folder, std::string const& name, Direction direction) {
  std::error_code error;
  const bool made = fs::create_directories(folder, error);
  if (made && !error) {
    fs::permissions(folder, fs::perms::owner_all, error);
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(), concat(folder, ": the folder for sequence numbers cannot be made"));
  }
  StateFile file;
  file.folder_ = folder;
  file.path_ = path_of(folder, name);
  file.direction_ = direction;
  // A file of its own: save() replaces the other one, and a lock belongs to the file behind the name.
  const std::string lock_path = file.path_ + ".lock";
  file.lock_ = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kOwnerOnly);
  if (file.lock_ < 0) {
    return system_error(lock_path, "cannot be opened");
  }
  if (::flock(file.lock_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return absl::FailedPreconditionError(
          concat(file.path_,
                 ": another run uses these keys in the same direction; end it first, or give one of both "
                 "associations other keys"));
    }
    return system_error(lock_path, "cannot be locked");
  }
  if (fs::exists(file.path_, error)) {
    file.is_new_ = false;
    CATENA_ASSIGN_OR_RETURN(file.loaded_, load(file.path_, direction));
  } else if (error) {
    return absl::ErrnoToStatus(error.value(), concat(file.path_, ": cannot be looked for"));
  }
  return file;
}

Status StateFile::save(SavedState const& state, std::uint32_t spi) const {
  const std::string temporary = path_ + ".new";
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kOwnerOnly);
  if (file < 0) {
    return system_error(temporary, "cannot be created");
  }
  std::string text =
      concat(kHeader, "version: 1\ndirection: ", name_of(direction_), "\nspi: ", spi, "\nnext: ", state.next, "\n");
  if (direction_ == Direction::kDecrypt) {
    text += fmt::format("seen: \"0x{:016x}\"\n", state.seen);
  }
  Status status = write_and_sync(file, text, temporary);
  if (::close(file) != 0 && status.ok()) {
    status = system_error(temporary, "cannot be closed");
  }
  CATENA_RETURN_IF_ERROR(status);
  if (::rename(temporary.c_str(), path_.c_str()) != 0) {
    return system_error(path_, "cannot be replaced");
  }
  return sync_folder(folder_);
}

}  // namespace catena::ipsec
