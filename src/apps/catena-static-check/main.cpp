// SPDX-License-Identifier: Apache-2.0
// Checks one kernel, with input and output as described in gpu/check/checker_protocol.hpp. The compiler that it is made
// of can be led to crash, to take all memory or to go on for ever by the source it reads; so it is a program of its
// own, with limits that it sets before it reads anything. Its starter may have limited it more. Exit status: 0 if the
// check came to an end.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "apps/catena-static-check/diagnostics.hpp"
#include "apps/catena-static-check/frontend.hpp"
#include "apps/catena-static-check/source.hpp"
#include "apps/catena-static-check/tokens.hpp"
#include "gpu/check/checker_protocol.hpp"

namespace {

using catena::checker::Diagnostics;
using catena::checker::Dialect;
using catena::checker::Job;
namespace protocol = catena::static_check;

constexpr rlim_t kMaxSeconds = 30;

bool limit(int resource, rlim_t most) {
  const auto which = static_cast<__rlimit_resource>(resource);
  rlimit limits{};
  if (getrlimit(which, &limits) != 0) {
    return false;
  }
  limits.rlim_max = std::min(limits.rlim_max, most);
  limits.rlim_cur = limits.rlim_max;
  return setrlimit(which, &limits) == 0;
}

std::optional<std::string> read_input() {
  std::string input;
  std::array<char, 16384> part{};
  for (;;) {
    const ssize_t bytes = read(protocol::kCheckerInput, part.data(), part.size());
    if (bytes <= 0) {
      return bytes == 0 ? std::optional(std::move(input)) : std::nullopt;
    }
    input.append(part.data(), static_cast<std::size_t>(bytes));
  }
}

/// The bytes before the next `end`, which is removed too.
std::string_view take_field(std::string_view& rest, char end) {
  const std::string_view field = rest.substr(0, rest.find(end));
  rest.remove_prefix(std::min(field.size() + 1, rest.size()));
  return field;
}

/// As many of the next bytes as `length` says.
std::optional<std::string> take_bytes(std::string_view& rest, std::string_view length) {
  std::size_t bytes = 0;
  const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), bytes);
  if (error != std::errc() || bytes > rest.size()) {
    return std::nullopt;
  }
  std::string taken(rest.substr(0, bytes));
  rest.remove_prefix(bytes);
  return taken;
}

std::optional<Job> job_of(std::string_view rest) {
  Job job;
  while (!rest.empty()) {
    const std::string_view kind = take_field(rest, ' ');
    const std::string_view name_bytes = take_field(rest, ' ');
    const std::string_view text_bytes = take_field(rest, '\n');
    std::optional<std::string> name = take_bytes(rest, name_bytes);
    std::optional<std::string> text = take_bytes(rest, text_bytes);
    if (!name.has_value() || !text.has_value()) {
      return std::nullopt;
    }
    if (kind == protocol::kDefineEntry) {
      job.defines.push_back(*std::move(name));
    } else {
      (kind == protocol::kAuthorEntry ? job.author : job.framework).push_back({*std::move(name), *std::move(text)});
    }
  }
  return job.author.empty() ? std::nullopt : std::optional(std::move(job));
}

bool write_output(std::string_view lines) {
  while (!lines.empty()) {
    const ssize_t bytes = write(protocol::kCheckerOutput, lines.data(), lines.size());
    if (bytes <= 0) {
      return false;
    }
    lines.remove_prefix(static_cast<std::size_t>(bytes));
  }
  return true;
}

}  // namespace

int main() {
  if (!limit(RLIMIT_AS, protocol::kCheckerMemory) || !limit(RLIMIT_CPU, kMaxSeconds) || !limit(RLIMIT_CORE, 0) ||
      !limit(RLIMIT_FSIZE, 0)) {
    return 2;
  }
  const std::optional<std::string> input = read_input();
  const std::optional<Job> job = input.has_value() ? job_of(*input) : std::nullopt;
  if (!job.has_value()) {
    return 2;
  }
  Diagnostics diagnostics;
  if (catena::checker::check_tokens(*job, diagnostics)) {
    for (const Dialect dialect : {Dialect::kCuda, Dialect::kOpenCl}) {
      catena::checker::check_dialect(*job, dialect, diagnostics);
    }
  }
  return write_output(diagnostics.lines()) ? 0 : 2;
}
