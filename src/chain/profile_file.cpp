// SPDX-License-Identifier: Apache-2.0
#include "chain/profile_file.hpp"

#include <catena/core/text.hpp>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <span>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/file_descriptor.hpp"
#include "base/core/open_file.hpp"
#include "base/core/replace_file.hpp"

namespace catena::chain {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFileBytes = std::size_t{256} << 10;

Status cannot_write(fs::path const& file) {
  return absl::UnavailableError(concat(file.string(), ": the profile cannot be written: ", std::strerror(errno)));
}

}  // namespace

Result<std::string> read_profile_file(fs::path const& file, std::string_view remedy) {
  const Result<OpenedFile> opened = open_named_file(file.string(), O_RDONLY | O_NONBLOCK, kRegularFile);
  if (absl::IsInvalidArgument(opened.status())) {
    return absl::InvalidArgumentError(concat(file.string(), ": not a regular file", remedy));
  }
  if (!opened.ok()) {
    const bool is_said = absl::IsNotFound(opened.status()) || absl::IsPermissionDenied(opened.status());
    return is_said ? opened.status() : absl::UnavailableError(opened.status().message());
  }
  std::string text;
  const Status read = read_pieces(*opened, file.string(), kMaxFileBytes, [&text](std::span<const std::byte> piece) {
    text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  if (absl::IsInvalidArgument(read)) {
    return absl::InvalidArgumentError(
        concat(file.string(), ": more than ", kMaxFileBytes, " bytes are no profile", remedy));
  }
  if (!read.ok()) {
    return absl::UnavailableError(read.message());
  }
  return text;
}

Status write_profile_file(fs::path const& file, std::string_view text, mode_t mode) {
  std::error_code error;
  if (const fs::file_status status = fs::status(file, error); fs::exists(status) && !fs::is_regular_file(status)) {
    return absl::InvalidArgumentError(concat(file.string(), ": exists and is not a regular file"));
  }
  if (file.has_parent_path()) {
    fs::create_directories(file.parent_path(), error);
  }
  std::string temporary = concat(file.string(), ".XXXXXX");
  const FileDescriptor opened(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!opened) {
    return cannot_write(file);
  }
  const bool is_written = write_all(opened.get(), std::as_bytes(std::span(text))) &&
                          ::fchmod(opened.get(), mode) == 0 && ::fsync(opened.get()) == 0 &&
                          ::rename(temporary.c_str(), file.c_str()) == 0;
  if (!is_written) {
    Status status = cannot_write(file);
    ::unlink(temporary.c_str());
    return status;
  }
  return absl::OkStatus();
}

}  // namespace catena::chain
