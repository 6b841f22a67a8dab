// SPDX-License-Identifier: Apache-2.0
#include "static_check/static_check.hpp"

#include <catena/core/text.hpp>

#include "device/source.hpp"
#include "device/subprocess.hpp"
#include "program/program.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

namespace catena::static_check {
namespace {

/// The program that `make install` puts there, else that of the build.
std::filesystem::path checker() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path installed =
      program.parent_path().parent_path() / CATENA_LIBEXEC_FOLDER / "catena" / "catena-static-check";
  return std::filesystem::exists(installed, error) ? installed : std::filesystem::path(CATENA_STATIC_CHECK_PROGRAM);
}

Finding whole(std::string_view rule, std::string message) { return {"", 0, 0, std::string(rule), std::move(message)}; }

bool is_plain_name(std::string_view name) {
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == '/';
  });
}

/// What is wrong with the files before any of them is read.
std::optional<Finding> fault_of(std::span<const kernel::EmbeddedFile> files, Limits const& limits) {
  if (files.empty() || files.size() > limits.files) {
    return whole("size", concat("a kernel has 1 to ", limits.files, " files; this one has ", files.size()));
  }
  std::size_t bytes = 0;
  std::set<std::string_view> names;
  for (kernel::EmbeddedFile const& file : files) {
    const std::string_view name = file.name;
    bytes += std::string_view(file.text).size();
    const bool is_relative = device::check_source({.files = {{std::string(name), ""}}, .defines = {}}).ok();
    if (!is_relative || !is_plain_name(name) || name.starts_with("catena/") || !names.insert(name).second) {
      return whole("file-name", concat("'", name,
                                       "' is no name for a file of a kernel: it is relative, of letters, digits, '_', "
                                       "'-', '.' and '/', once, and does not begin with catena/"));
    }
  }
  if (bytes > limits.bytes) {
    return whole("size", concat("the files have ", bytes, " bytes; a kernel has at most ", limits.bytes));
  }
  return std::nullopt;
}

bool is_define(std::string_view define) {
  const std::size_t equals = define.find('=');
  return define.starts_with("CATENA_") && equals != std::string_view::npos && is_plain_name(define.substr(0, equals)) &&
         is_plain_name(define.substr(equals + 1));
}

/// The next field of a line; the rest without it.
std::string_view take(std::string_view& rest, char end) {
  const std::string_view field = rest.substr(0, rest.find(end));
  rest.remove_prefix(std::min(field.size() + 1, rest.size()));
  return field;
}

std::uint32_t number(std::string_view text) {
  std::uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// What the program wrote; nothing if it did not come to the last line.
std::optional<Report> parse(std::string_view lines) {
  Report report;
  while (!lines.empty()) {
    std::string_view line = take(lines, '\n');
    const std::string_view severity = take(line, '\t');
    if (severity == "end") {
      return report;
    }
    Finding finding;
    finding.file = take(line, '\t');
    finding.line = number(take(line, '\t'));
    finding.column = number(take(line, '\t'));
    finding.rule = take(line, '\t');
    finding.message = line;
    (severity == "caution" ? report.cautions : report.refused).push_back(std::move(finding));
  }
  return std::nullopt;
}

std::vector<std::string> arguments_of(std::filesystem::path const& folder, device::ProgramSource const& source,
                                      std::size_t own, std::span<const std::string> defines) {
  std::vector<std::string> arguments = {checker().string(), (folder / "findings").string(), (folder / "author").string(),
                                        (folder / "framework").string(), "--author"};
  for (std::size_t i = 0; i < source.files.size(); ++i) {
    if (i == own) {
      arguments.emplace_back("--framework");
    }
    arguments.push_back(source.files[i].name);
  }
  arguments.emplace_back("--define");
  arguments.insert(arguments.end(), defines.begin(), defines.end());
  return arguments;
}

Result<Report> run(std::span<const kernel::EmbeddedFile> files, std::span<const std::string> defines,
                   Limits const& limits) {
  CATENA_ASSIGN_OR_RETURN(const device::TemporaryFolder folder, device::TemporaryFolder::create());
  const device::ProgramSource source = program::with_sdk(files);
  device::ProgramSource author;
  device::ProgramSource framework;
  for (std::size_t i = 0; i < source.files.size(); ++i) {
    (i < files.size() ? author : framework).files.push_back(source.files[i]);
  }
  CATENA_RETURN_IF_ERROR(device::write_sources(author, folder.path() / "author"));
  CATENA_RETURN_IF_ERROR(device::write_sources(framework, folder.path() / "framework"));
  const Result<device::ProcessResult> ended =
      device::run_process(arguments_of(folder.path(), source, files.size(), defines), folder.path(), limits.time);
  if (!ended.ok() && ended.status().code() != absl::StatusCode::kDeadlineExceeded) {
    return ended.status();
  }
  if (ended.ok() && ended->exit_code == 0) {
    const Result<std::vector<std::byte>> lines = device::read_file(folder.path() / "findings");
    const std::string_view text = lines.ok() ? std::string_view(reinterpret_cast<const char*>(lines->data()), lines->size())
                                             : std::string_view();
    if (std::optional<Report> report = parse(text); report.has_value()) {
      return *std::move(report);
    }
  }
  Report refused;
  refused.refused.push_back(
      whole("no-end", concat("refused: the check of '", files.front().name,
                             "' did not come to an end (it took too much time or memory, or broke the compiler that it "
                             "is made with); write the kernel simpler: shorter expressions, fewer nested templates")));
  return refused;
}

}  // namespace

std::string Finding::text() const {
  return line == 0 ? concat(message, " [", rule, "]") : concat(file, ":", line, ":", column, ": ", message, " [", rule, "]");
}

Result<Report> check_kernel(std::span<const kernel::EmbeddedFile> files, std::span<const std::string> defines,
                            Limits const& limits) {
  Report report;
  if (std::optional<Finding> fault = fault_of(files, limits); fault.has_value()) {
    report.refused.push_back(*std::move(fault));
    return report;
  }
  for (std::string const& define : defines) {
    if (!is_define(define)) {
      return absl::InvalidArgumentError(concat("'", define, "' is no macro of a plan; write CATENA_NAME=NUMBER"));
    }
  }
  std::error_code error;
  if (!std::filesystem::exists(checker(), error)) {
    return absl::UnavailableError(concat("kernels cannot be checked: there is no ", checker().string(),
                                         "; install catena with it"));
  }
  CATENA_ASSIGN_OR_RETURN(report, run(files, defines, limits));
  const auto place = [](Finding const& finding) { return std::tuple(finding.file, finding.line, finding.column); };
  std::ranges::stable_sort(report.refused, {}, place);
  std::ranges::stable_sort(report.cautions, {}, place);
  return report;
}

}  // namespace catena::static_check
