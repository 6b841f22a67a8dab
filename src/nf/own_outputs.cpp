// SPDX-License-Identifier: Apache-2.0
#include "nf/own_outputs.hpp"

#include "base/core/file_descriptor.hpp"
#include "base/core/name_watch.hpp"
#include "base/core/open_file.hpp"
#include "base/core/replace_file.hpp"

#include <catena/core/escape.hpp>
#include <catena/core/text.hpp>

#include <absl/strings/ascii.h>

#include <fcntl.h>
#include <netdb.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace catena::nf {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOwnerOnly = 0600;
constexpr mode_t kForAll = 0666;  // but for the process's umask
constexpr std::size_t kMaxKeptName = 64;

Status system_error(std::string_view path, std::string_view what = "") {
  return absl::ErrnoToStatus(errno, concat(path, what.empty() ? "" : ": ", what));
}

class File final : public Output {
 public:
  File(std::string const& path, OpenedFile file) : path_(escaped(path)), name_(path, file), file_(std::move(file.fd)) {}
  Status write(std::span<const std::byte> bytes) override {
    if (FileDescriptor renewed = name_.renewed()) {
      file_ = std::move(renewed);
    }
    return write_all(file_.get(), bytes) ? absl::OkStatus() : system_error(path_);
  }
  Status close() override { return file_.close() ? absl::OkStatus() : system_error(path_); }

 private:
  std::string path_;
  NameWatch name_;
  FileDescriptor file_;
};

class Receiver final : public Output {
 public:
  Receiver(std::string name, FileDescriptor connected) : name_(std::move(name)), socket_(std::move(connected)) {}
  Status write(std::span<const std::byte> bytes) override {
    if (send(bytes)) {
      return absl::OkStatus();
    }
    if (errno != ECONNREFUSED) {
      return system_error(name_);
    }
    // the error of an earlier datagram, reported in place of sending this one (udp(7))
    return send(bytes) ? absl::DataLossError(concat(name_, ": ", std::strerror(ECONNREFUSED))) : system_error(name_);
  }
  Status close() override { return absl::OkStatus(); }

 private:
  bool send(std::span<const std::byte> bytes) {
    return ::send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
  }

  std::string name_;
  FileDescriptor socket_;
};

class Kept final : public Output {
 public:
  /// `lock`: a descriptor with a lock of the whole file behind it; the system lets go of it with the process.
  Kept(std::string path, FileDescriptor lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  /// A child that another thread has forked holds the descriptor, and with it the lock, until its exec().
  ~Kept() override { ::flock(lock_.get(), LOCK_UN); }
  Kept(Kept const&) = delete;
  Kept& operator=(Kept const&) = delete;

  Status write(std::span<const std::byte> bytes) override {
    if (bytes.size() > kMaxKeptBytes) {
      return absl::InvalidArgumentError(concat(escaped(path_), ": more than ", kMaxKeptBytes, " bytes are to be kept"));
    }
    return replace_file(path_, bytes);
  }
  Status close() override { return absl::OkStatus(); }

 private:
  std::string path_;
  FileDescriptor lock_;
};

/// What is in the file; nothing where there is none.
Result<std::optional<std::string>> read_kept(std::string const& path) {
  const Result<OpenedFile> file = open_named_file(path, O_RDONLY | O_NONBLOCK, kRegularFile);
  if (absl::IsNotFound(file.status())) {
    return std::nullopt;
  }
  CATENA_RETURN_IF_ERROR(file.status());
  std::string text;
  CATENA_RETURN_IF_ERROR(read_pieces(*file, path, kMaxKeptBytes, [&text](std::span<const std::byte> piece) {
    text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }));
  return text;
}

class OwnOutputs final : public Outputs {
 public:
  Result<std::unique_ptr<Output>> open_file(std::string const& path) override {
    return open_output_file(path, !acts_for_another_user());
  }
  Result<std::unique_ptr<Output>> connect(std::string const& receiver) override {
    return connect_to_receiver(receiver);
  }
  Result<KeptFile> open_kept(std::string const& folder, std::string const& name) override {
    return open_kept_file(folder, name);
  }
};

}  // namespace

Result<std::unique_ptr<Output>> open_output_file(std::string const& path, bool may_wait) {
  Result<OpenedFile> file = open_named_file(path, O_WRONLY | O_CREAT | O_APPEND | (may_wait ? 0 : O_NONBLOCK),
                                            may_wait ? kAnyStream : kRegularFile | kCharacterDevice, kForAll);
  // unavailable: a FIFO that nobody reads
  if (!may_wait && (absl::IsUnavailable(file.status()) || absl::IsInvalidArgument(file.status()))) {
    return absl::FailedPreconditionError(concat(
        escaped(path), ": is no regular file, and a service, or the process of an NF, would wait for its reader"));
  }
  CATENA_RETURN_IF_ERROR(file.status());
  return std::make_unique<File>(path, *std::move(file));
}

Result<std::unique_ptr<Output>> connect_to_receiver(std::string const& receiver) {
  const std::size_t colon = receiver.rfind(':');
  if (colon == std::string::npos) {
    return absl::InvalidArgumentError(concat(escaped(receiver), ": is no HOST:PORT"));
  }
  const std::string host = receiver.substr(0, colon);
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), receiver.c_str() + colon + 1, &hints, &found); error != 0) {
    return absl::InvalidArgumentError(concat(escaped(host), ": ", ::gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0 || ::connect(socket.get(), addresses->ai_addr, addresses->ai_addrlen) != 0) {
    return absl::ResourceExhaustedError(concat("no UDP socket to ", escaped(receiver), ": ", std::strerror(errno)));
  }
  return std::make_unique<Receiver>(receiver, std::move(socket));
}

bool is_kept_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxKeptName &&
         std::ranges::all_of(name, [](unsigned char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_'; });
}

Result<KeptFile> open_kept_file(std::string const& folder, std::string const& name) {
  if (!is_kept_name(name)) {
    return absl::InvalidArgumentError("the name of a kept file has only letters, digits, '-' and '_'");
  }
  std::error_code error;
  const bool made = fs::create_directories(folder, error);
  if (made && !error) {
    fs::permissions(folder, fs::perms::owner_all, error);
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(), concat(escaped(folder), ": the folder cannot be made"));
  }
  std::string path = (fs::path(folder) / name).string();
  // A file of its own: write() replaces the other one, and a lock belongs to the file behind the name.
  const std::string lock_path = path + ".lock";
  CATENA_ASSIGN_OR_RETURN(OpenedFile lock,
                          open_named_file(lock_path, O_RDWR | O_CREAT | O_NONBLOCK, kRegularFile, kOwnerOnly));
  if (::flock(lock.fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return errno == EWOULDBLOCK ? absl::FailedPreconditionError(concat(escaped(path), ": another run has it"))
                                : system_error(lock_path, "cannot be locked");
  }
  KeptFile kept;
  CATENA_ASSIGN_OR_RETURN(kept.text, read_kept(path));
  kept.output = std::make_unique<Kept>(std::move(path), std::move(lock.fd));
  return kept;
}

std::shared_ptr<Outputs> own_outputs() {
  static const auto kOwn = std::make_shared<OwnOutputs>();
  return kOwn;
}

}  // namespace catena::nf
