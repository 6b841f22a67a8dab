// SPDX-License-Identifier: Apache-2.0
// catena-static-check OUTPUT AUTHOR_FOLDER FRAMEWORK_FOLDER --author NAME... --framework NAME... --define NAME=VALUE...
//
// Checks one kernel and writes what it finds to OUTPUT, a line each: see Findings::lines(). The compiler that it is
// made of can be led to crash, to take all memory or to go on for ever by the source it reads; so it is a program of
// its own, with limits that it sets before it reads anything. Exit status: 0 if the check came to an end.
#include <sys/resource.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/catena-static-check/diagnostics.hpp"
#include "apps/catena-static-check/frontend.hpp"
#include "apps/catena-static-check/source.hpp"
#include "apps/catena-static-check/tokens.hpp"

namespace {

using catena::checker::Diagnostics;
using catena::checker::Dialect;
using catena::checker::File;
using catena::checker::Job;

constexpr rlim_t kMaxMemory = rlim_t{3} << 30;
constexpr rlim_t kMaxSeconds = 30;
constexpr rlim_t kMaxOutput = rlim_t{1} << 20;

bool limit(int resource, rlim_t most) {
  const rlimit limits{most, most};
  return setrlimit(static_cast<__rlimit_resource>(resource), &limits) == 0;
}

std::optional<File> read(std::string const& folder, std::string_view name) {
  std::ifstream in(folder + "/" + std::string(name), std::ios::binary);
  if (!in) {
    return std::nullopt;
  }
  return File{std::string(name), {std::istreambuf_iterator<char>(in), {}}};
}

std::optional<Job> job_of(std::vector<std::string> const& words) {
  Job job;
  std::string_view kind;
  for (std::size_t i = 4; i < words.size(); ++i) {
    if (words[i] == "--author" || words[i] == "--framework" || words[i] == "--define") {
      kind = words[i];
    } else if (kind == "--define") {
      job.defines.push_back(words[i]);
    } else {
      std::optional<File> file = read(kind == "--author" ? words[2] : words[3], words[i]);
      if (!file.has_value()) {
        return std::nullopt;
      }
      (kind == "--author" ? job.author : job.framework).push_back(std::move(*file));
    }
  }
  return job.author.empty() ? std::nullopt : std::optional(std::move(job));
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  if (words.size() < 5 || !limit(RLIMIT_AS, kMaxMemory) || !limit(RLIMIT_CPU, kMaxSeconds) || !limit(RLIMIT_CORE, 0) ||
      !limit(RLIMIT_FSIZE, kMaxOutput)) {
    return 2;
  }
  const std::optional<Job> job = job_of(words);
  if (!job.has_value()) {
    return 2;
  }
  Diagnostics diagnostics;
  if (catena::checker::check_tokens(*job, diagnostics)) {
    for (const Dialect dialect : {Dialect::kCuda, Dialect::kOpenCl}) {
      catena::checker::check_dialect(*job, dialect, diagnostics);
    }
  }
  std::ofstream out(words[1], std::ios::binary);
  out << diagnostics.lines();
  return out.flush() ? 0 : 2;
}
