// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>
#include <catena/core/text.hpp>

#include <cerrno>
#include <cstring>
#include <utility>

namespace catena::monitor {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) {
      ::close(number_);
    }
  }
  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

class FileOutput final : public Output {
 public:
  explicit FileOutput(std::string path) : path_(std::move(path)) {}

  void write(std::span<const std::uint8_t> bytes, std::uint64_t records) override {
    if (!open() || !write_all(bytes)) {
      lose(records);
    }
  }

  Status finish() override {
    if (open() && ::close(file_.release()) != 0) {
      error_ = errno;
    }
    if (error_ == 0) {
      return absl::OkStatus();
    }
    return absl::DataLossError(
        concat(path_, ": ", std::strerror(error_), "; ", lost_records(), " flow records are missing"));
  }

 private:
  bool open() {
    if (!tried_) {
      tried_ = true;
      file_ = Descriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
      error_ = file_.number() < 0 ? errno : 0;
    }
    return error_ == 0;
  }
  bool write_all(std::span<const std::uint8_t> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(file_.number(), bytes.data(), bytes.size());
      if (written > 0) {
        bytes = bytes.subspan(static_cast<std::size_t>(written));
      } else if (written == 0 || errno != EINTR) {
        error_ = written == 0 ? EIO : errno;
        return false;
      }
    }
    return true;
  }

  std::string path_;
  Descriptor file_;
  bool tried_ = false;
  int error_ = 0;
};

class UdpOutput final : public Output {
 public:
  explicit UdpOutput(Descriptor connected) : socket_(std::move(connected)) {}

  void write(std::span<const std::uint8_t> bytes, std::uint64_t records) override {
    if (::send(socket_.number(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
      lose(records);
    }
  }
  Status finish() override { return absl::OkStatus(); }

 private:
  Descriptor socket_;
};

}  // namespace

std::unique_ptr<Output> file_output(std::string path) { return std::make_unique<FileOutput>(std::move(path)); }

Result<std::unique_ptr<Output>> udp_output(std::string const& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); error != 0) {
    return absl::InvalidArgumentError(concat(host, ": ", ::gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket.number() < 0 || ::connect(socket.number(), addresses->ai_addr, addresses->ai_addrlen) != 0) {
    return absl::ResourceExhaustedError(concat("no UDP socket to ", host, ":", port, ": ", std::strerror(errno)));
  }
  return std::make_unique<UdpOutput>(std::move(socket));
}

}  // namespace catena::monitor
