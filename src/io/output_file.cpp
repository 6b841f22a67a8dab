// SPDX-License-Identifier: Apache-2.0
#include "io/output_file.hpp"

#include "base/core/open_file.hpp"

#include <absl/strings/numbers.h>
#include <fcntl.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>
#include <catena/core/escape.hpp>
#include <catena/core/text.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

namespace catena::io {
namespace {

/// How often is looked whether a FIFO has a reader: an open() that waits for one could not be given up.
constexpr std::chrono::milliseconds kReaderCheck{20};

constexpr mode_t kOutputMode = 0644;

/// Waits for the reader of a FIFO, and says so. Cancelled: that was given up.
Result<OpenedFile> open_to_write(std::string const& path, OutputBegin begin, std::stop_token const& give_up) {
  const int flags = O_WRONLY | O_NONBLOCK | (begin == OutputBegin::kAppended ? O_APPEND : 0);
  Result<OpenedFile> file = open_named_file(path, flags | O_CREAT, kAnyStream, kOutputMode);
  if (absl::IsUnavailable(file.status())) {
    spdlog::info("waiting for a reader of {}", path);
  }
  while (absl::IsUnavailable(file.status())) {
    if (give_up.stop_requested()) {
      return absl::CancelledError(concat(escaped(path), ": cannot be created: it has no reader"));
    }
    std::this_thread::sleep_for(kReaderCheck);
    file = open_named_file(path, flags, kAnyStream);
  }
  if (file.ok()) {
    ::fcntl(file->fd.get(), F_SETFL, ::fcntl(file->fd.get(), F_GETFL) & ~O_NONBLOCK);
  }
  return file;
}

bool has_content(std::filesystem::path const& file) {
  std::error_code error;
  return std::filesystem::is_regular_file(file, error) && std::filesystem::file_size(file, error) > 0 && !error;
}

constexpr std::uint32_t kMaxPart = 1'000'000'000;

/// The number after those of all parts of `path`.
Result<std::uint32_t> next_part(std::string const& path) {
  const std::filesystem::path whole(path);
  const std::string prefix = whole.filename().string() + ".";
  std::uint32_t last = 0;
  std::error_code error;
  const std::filesystem::path folder = whole.has_parent_path() ? whole.parent_path() : ".";
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::uint32_t number = 0;
    // a number in another form, or one that no run reaches, is somebody else's
    if (name.starts_with(prefix) && absl::SimpleAtoi(name.substr(prefix.size()), &number) && number < kMaxPart &&
        name == concat(prefix, number)) {
      last = std::max(last, number);
    }
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(),
                               concat(escaped(path), " exists, and its folder cannot be read for its parts"));
  }
  return last + 1;
}

Result<OpenedFile> duplicate_standard_output() {
  OpenedFile file{FileDescriptor(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0))};
  return file.fd && ::fstat(file.fd.get(), &file.status) == 0
             ? Result<OpenedFile>(std::move(file))
             : absl::ErrnoToStatus(errno, "standard output: cannot be created");
}

}  // namespace

bool names_standard_output(std::string const& path) {
  struct stat named {};
  struct stat standard {};
  return path == kStandardStream || (::stat(path.c_str(), &named) == 0 && ::fstat(STDOUT_FILENO, &standard) == 0 &&
                                     named.st_dev == standard.st_dev && named.st_ino == standard.st_ino &&
                                     (!S_ISCHR(standard.st_mode) || ::isatty(STDOUT_FILENO) == 1));
}

std::string socket_error(std::string const& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)
             ? concat(escaped(path), " is a socket, which cannot be opened by its name; use a FIFO (mkfifo) or a pipe")
             : std::string();
}

Result<OutputFile> OutputFile::open(std::string const& path, OutputBegin begin, std::stop_token const& give_up) {
  const bool standard = names_standard_output(path);
  if (const std::string error = standard ? std::string() : socket_error(path); !error.empty()) {
    return absl::InvalidArgumentError(error);
  }
  if (standard && acts_for_another_user()) {
    return absl::PermissionDeniedError(concat(escaped(path), ": standard output is the service's own"));
  }
  if (!standard && begin == OutputBegin::kNextPart && has_content(path)) {
    return open_part(path);
  }
  CATENA_ASSIGN_OR_RETURN(OpenedFile file,
                          standard ? duplicate_standard_output() : open_to_write(path, begin, give_up));
  const mode_t mode = file.status.st_mode;
  const bool is_stream = ::isatty(file.fd.get()) == 1 || S_ISFIFO(mode) || S_ISSOCK(mode);
  const bool is_emptied = !standard && begin != OutputBegin::kAppended && file.is_regular();
  const std::optional<NameWatch> name =
      !standard && begin == OutputBegin::kAppended ? std::optional<NameWatch>(std::in_place, path, file) : std::nullopt;
  OutputFile output(standard ? "standard output" : escaped(path), std::move(file.fd), is_stream, is_emptied);
  output.name_ = name;
  return output;
}

Result<OutputFile> OutputFile::open_part(std::string const& path) {
  CATENA_ASSIGN_OR_RETURN(const std::uint32_t first, next_part(path));
  constexpr std::uint32_t kTries = 16;  // another program may take a name meanwhile
  std::string part;
  Result<OpenedFile> file = absl::UnknownError("");
  for (std::uint32_t tries = 0; tries == 0 || (tries < kTries && absl::IsAlreadyExists(file.status())); ++tries) {
    part = concat(path, ".", first + tries);
    // a new file: nobody else writes it, and no link leads to another one
    file = open_named_file(part, O_WRONLY | O_CREAT | O_EXCL, kRegularFile, kOutputMode);
  }
  CATENA_RETURN_IF_ERROR(file.status());
  spdlog::info("{} exists, so this run writes {}", path, part);
  OutputFile output(escaped(part), std::move(file->fd), false, false);
  output.unstarted_.path = part;
  return output;
}

OutputFile::Unstarted::~Unstarted() {
  if (!path.empty()) {
    ::unlink(path.c_str());
  }
}

Status OutputFile::start() {
  unstarted_.path.clear();
  if (is_emptied_ && ::ftruncate(file_.get(), 0) != 0) {
    fail("ftruncate");
  }
  return failure_;
}

Status OutputFile::write(const void* bytes, std::size_t count) {
  if (FileDescriptor renewed = name_ ? name_->renewed() : FileDescriptor()) {
    file_ = std::move(renewed);
  }
  const auto* next = static_cast<const char*>(bytes);
  while (count > 0 && failure_.ok()) {
    const ssize_t step = ::write(file_.get(), next, count);
    if (step >= 0) {
      next += step;
      count -= static_cast<std::size_t>(step);
    } else if (errno == EAGAIN) {  // a standard output that somebody made so
      pollfd room{file_.get(), POLLOUT, 0};
      ::poll(&room, 1, -1);
    } else if (errno != EINTR) {
      fail("write");
    }
  }
  return failure_;
}

Status OutputFile::close() {
  if (file_ && !file_.close()) {
    fail("close");
  }
  return failure_;
}

void OutputFile::fail(const char* call) {
  if (failure_.ok()) {
    failure_ = absl::DataLossError(
        concat(path_, ": cannot be written, the file is incomplete: ", call, ": ", std::strerror(errno)));
  }
}

}  // namespace catena::io
