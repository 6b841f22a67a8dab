// SPDX-License-Identifier: Apache-2.0
#include "service/audit_log.hpp"

#include "service/answers.hpp"

#include <catena/core/text.hpp>

#include <fcntl.h>
#include <fmt/chrono.h>
#include <spdlog/spdlog.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <utility>

namespace catena::service {
namespace {

constexpr std::size_t kMaxErrorBytes = 512;
constexpr std::size_t kMaxNameBytes = 256;

using Json = nlohmann::ordered_json;

/// " (owner, process 4711)".
std::string client_text(AuditRecord const& record) {
  const std::string process = record.pid == 0 ? std::string() : concat("process ", record.pid);
  const std::string_view comma = record.role.empty() || process.empty() ? "" : ", ";
  const std::string text = concat(record.role, comma, process);
  return text.empty() ? text : concat(" (", text, ")");
}

/// The name for a text between quotes, which it cannot end.
std::string quotable(std::string const& name) {
  std::string text;
  for (const char each : std::string_view(name).substr(0, kMaxNameBytes)) {
    text += each == '\'' || each == '\\' ? concat("\\", std::string(1, each)) : std::string(1, each);
  }
  return text;
}

std::string line_of(AuditRecord const& record) {
  const auto now = std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto text_or_null = [](std::string const& text, std::size_t most) {
    return text.empty() ? Json() : Json(text.substr(0, most));
  };
  const Json line = {{"time", fmt::format("{:%FT%T}Z", now)},
                     {"uid", record.uid},
                     {"role", record.role.empty() ? Json() : Json(record.role)},
                     {"pid", record.pid == 0 ? Json() : Json(record.pid)},
                     {"operation", record.operation},
                     {"chain", text_or_null(record.chain, kMaxNameBytes)},
                     {"revision", text_or_null(record.revision, kMaxNameBytes)},
                     {"status", record.status},
                     {"error", text_or_null(record.error, kMaxErrorBytes)}};
  // names in bytes that are no UTF-8 must not end the process
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

Result<std::unique_ptr<AuditLog>> AuditLog::open(std::string const& file) {
  std::unique_ptr<AuditLog> log(new AuditLog);
  if (file.empty()) {
    return log;
  }
  constexpr mode_t kOwnersFile = 0600;
  CATENA_ASSIGN_OR_RETURN(OpenedFile opened, open_named_file(file, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK,
                                                             kRegularFile | kCharacterDevice, kOwnersFile));
  log->path_ = file;
  log->name_.emplace(file, opened);
  log->fd_ = std::move(opened.fd);
  return log;
}

/// With the mutex.
Status AuditLog::write(std::string_view line) {
  if (FileDescriptor renewed = name_->renewed()) {
    fd_ = std::move(renewed);
    is_cut_ = false;
  }
  const std::string text = is_cut_ ? concat("\n", line) : std::string(line);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(fd_.get(), text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      is_cut_ = is_cut_ || done > 0;
      return absl::ErrnoToStatus(errno, concat(path_, ": no line of the audit can be written"));
    }
    done += static_cast<std::size_t>(written);
  }
  is_cut_ = false;
  return absl::OkStatus();
}

/// Whether the last line of the chain has this refusal; else it has from now on. `refusal`: empty for any other line.
bool AuditLog::is_repeated(AuditRecord const& record, std::string refusal) {
  const std::lock_guard lock(mutex_);
  if (refusal.empty()) {
    refusals_.erase(record.chain);
    return false;
  }
  std::string& last = refusals_[record.chain];
  const bool is_same = last == refusal;
  last = std::move(refusal);
  return is_same;
}

void AuditLog::add(AuditRecord const& record) {
  is_repeated(record, {});
  append(record);
}

void AuditLog::append(AuditRecord const& record) {
  spdlog::info("audit: {} of '{}' by user {}{}: {}{}{}", record.operation, quotable(record.chain), record.uid,
               client_text(record), record.status,
               record.revision.empty() ? "" : concat(", revision ", record.revision),
               record.error.empty() ? "" : concat(", ", record.error.substr(0, kMaxErrorBytes)));
  const std::lock_guard lock(mutex_);
  if (path_.empty()) {
    return;
  }
  const Status written = write(line_of(record));
  lost_ += written.ok() ? 0 : 1;
  if (const bool was_failing = std::exchange(is_failing_, !written.ok()); was_failing == is_failing_) {
    return;
  }
  if (is_failing_) {
    spdlog::error("{}; requests are served all the same", std::string(written.message()));
  } else {
    spdlog::warn("{}: is written again; {} lines are missing since the service started", path_, lost_);
  }
}

void AuditLog::add_own(std::string_view operation, std::string const& chain, std::string const& revision,
                       Status const& status) {
  const unsigned code = status.ok() ? kHttpOk : http_status(status);
  const AuditRecord record{.operation = concat("own-", operation),
                           .chain = chain,
                           .revision = revision,
                           .uid = ::geteuid(),
                           .pid = ::getpid(),
                           .status = code,
                           .error = std::string(status.message())};
  if (!is_repeated(record, status.ok() ? std::string() : concat(operation, " ", code, " ", record.error))) {
    append(record);
  }
}

std::uint64_t AuditLog::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

}  // namespace catena::service
