// SPDX-License-Identifier: Apache-2.0
#include "io/capture.hpp"

#include "base/core/file_format.hpp"
#include "io/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <catena/core/text.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace catena::io {
namespace {

constexpr std::size_t kReadBufferBytes = 256 << 10;
constexpr std::int64_t kNsPerSecond = 1'000'000'000;
constexpr std::int64_t kMaxSeconds = 9'000'000'000;  // pcapng can say more than a stamp can hold

}  // namespace

Result<Capture> open_capture(FileDescriptor const& file, std::string const& path) {
  FileDescriptor again(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
  std::FILE* stream = again && ::lseek(again.get(), 0, SEEK_SET) == 0 ? ::fdopen(again.get(), "rb") : nullptr;
  if (stream == nullptr) {
    return absl::ResourceExhaustedError(concat(path, ": cannot be read: ", std::strerror(errno)));
  }
  again.release();
  return open_capture(stream, path);
}

Result<Capture> open_capture(std::FILE* file, std::string const& path) {
  Capture capture;
  capture.buffer = std::make_unique<char[]>(kReadBufferBytes);
  std::setvbuf(file, capture.buffer.get(), _IOFBF, kReadBufferBytes);
  char error[PCAP_ERRBUF_SIZE] = "";
  capture.pcap.reset(pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, error));
  if (!capture.pcap) {
    std::array<char, 8> bytes{};  // none where the file cannot be read again, as a pipe
    const std::size_t count = std::fseek(file, 0, SEEK_SET) == 0 ? std::fread(bytes.data(), 1, bytes.size(), file) : 0;
    std::fclose(file);
    Compression const* compression = compression_of({bytes.data(), count});
    return absl::InvalidArgumentError(concat(
        path, ": not a pcap or pcapng capture: ",
        compression == nullptr
            ? std::string(error)
            : concat("it is compressed by ", compression->name, "; decompress it: ", compression->tool, " FILE")));
  }
  const int link_type = pcap_datalink(capture.pcap.get());
  if (link_type != DLT_EN10MB) {
    const char* name = pcap_datalink_val_to_name(link_type);
    return absl::InvalidArgumentError(concat(path, ": captured with link type ", name != nullptr ? name : "unknown",
                                             " (", link_type, "): give a capture of Ethernet frames (EN10MB)"));
  }
  return capture;
}

std::uint64_t stamp_ns(pcap_pkthdr const& header) {
  // The capture was opened for nanoseconds: tv_usec holds them. Some writers put more than a second there, or less than
  // nothing, so that the sum counts.
  const std::int64_t seconds = std::clamp<std::int64_t>(header.ts.tv_sec, 0, kMaxSeconds);
  const std::int64_t stamp = seconds * kNsPerSecond + header.ts.tv_usec;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, stamp));
}

bool is_stream(std::string const& path) {
  struct stat status {};
  return path == kStandardStream ||
         (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode));
}

}  // namespace catena::io
