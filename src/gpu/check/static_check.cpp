// SPDX-License-Identifier: Apache-2.0
#include "gpu/check/static_check.hpp"

#include <catena/core/text.hpp>
#include <catena/kernel/spec.hpp>
#include <catena/packet/fields.hpp>
#include <catena/packet/slot.hpp>

#include "gpu/check/checker_process.hpp"
#include "gpu/check/checker_protocol.hpp"
#include "gpu/device/source.hpp"
#include "gpu/program/program.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

namespace catena::static_check {
namespace {

/// The program that checks: beside the program that runs, where `make install` puts it, or that of the build.
std::filesystem::path checker() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path beside =
      program.parent_path().parent_path() / CATENA_LIBEXEC_FOLDER / "catena" / "catena-static-check";
  const std::filesystem::path same_folder = program.parent_path() / "catena-static-check";
  for (std::filesystem::path const& place :
       {same_folder, beside, std::filesystem::path(CATENA_INSTALLED_STATIC_CHECK)}) {
    if (std::filesystem::exists(place, error)) {
      return place;
    }
  }
  return CATENA_BUILT_STATIC_CHECK;
}

Finding whole(std::string_view rule, std::string message) { return {"", 0, 0, std::string(rule), std::move(message)}; }

bool is_plain_name(std::string_view name) {
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == '/';
  });
}

/// What is wrong with the files before any of them is read.
std::optional<Finding> fault_of(std::span<const device::SourceFile> files, Limits const& limits) {
  if (files.empty() || files.size() > limits.files) {
    return whole("size", concat("a kernel has 1 to ", limits.files, " files; this one has ", files.size()));
  }
  std::size_t bytes = 0;
  std::set<std::string_view> names;
  for (device::SourceFile const& file : files) {
    const std::string_view name = file.name;
    bytes += file.text.size();
    const bool is_relative = device::check_source({.files = {{file.name, ""}}, .defines = {}}).ok();
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

/// A macro of plans, and the numbers that it may be. What a kernel may touch is reckoned with them.
struct PlanMacro {
  std::string_view name;
  std::uint64_t most;
  std::uint64_t least = 0;
  std::uint64_t multiple_of = 1;
};
constexpr std::uint64_t kMaxLanes = 1024;
constexpr std::uint64_t kMaxSpillFactor = 4096;
constexpr std::array kPlanMacros{
    PlanMacro{"CATENA_SHARED", 1},
    PlanMacro{"CATENA_READS", packet::kAllFields},
    PlanMacro{"CATENA_WRITES", packet::kAllFields},
    PlanMacro{"CATENA_IN_COLUMNS", packet::kAllFields},
    PlanMacro{"CATENA_OUT_COLUMNS", packet::kAllFields},
    PlanMacro{"CATENA_FRAMES", 2},
    PlanMacro{"CATENA_HEADROOM", packet::kSlotBytes, 0, 16},
    PlanMacro{"CATENA_TAILROOM", packet::kSlotBytes},
    PlanMacro{"CATENA_LANES", kMaxLanes, 1},
    PlanMacro{"CATENA_AUX_BYTES", kernel::kMaxAuxBytes, 0, 4},
    PlanMacro{"CATENA_RESULT_BYTES", kernel::kMaxResultBytes, 0, 4},
    PlanMacro{"CATENA_SPILL_FACTOR", kMaxSpillFactor},
    PlanMacro{"CATENA_ANY_GROUPS", 1},
};

/// "4U", "7UL"; nothing for anything else, -4 among it.
std::optional<std::uint64_t> plan_number(std::string_view text) {
  const std::string_view digits = text.substr(0, text.find_first_not_of("0123456789"));
  const std::string_view suffix = text.substr(digits.size());
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool is_octal = digits.size() > 1 && digits.starts_with('0');
  return error == std::errc() && !is_octal && (suffix.empty() || suffix == "U" || suffix == "UL") ? std::optional(value)
                                                                                                  : std::nullopt;
}

/// What is wrong with the macros; empty: nothing.
std::string fault_of_macros(std::span<const std::string> defines) {
  std::set<std::string_view> names;
  for (std::string_view const define : defines) {
    const std::string_view name = define.substr(0, define.find('='));
    const auto* const macro = std::ranges::find(kPlanMacros, name, &PlanMacro::name);
    if (macro == kPlanMacros.end()) {
      return concat("'", define, "' is no macro of a plan; write CATENA_NAME=NUMBER");
    }
    if (!names.insert(name).second) {
      return concat("'", name, "' has two values; write it once");
    }
    const std::optional<std::uint64_t> value = plan_number(define.substr(std::min(name.size() + 1, define.size())));
    if (!value || *value < macro->least || *value > macro->most || *value % macro->multiple_of != 0) {
      return concat("'", define, "': a plan has a number from ", macro->least, " to ", macro->most,
                    macro->multiple_of == 1 ? "" : concat(", a multiple of ", macro->multiple_of));
    }
  }
  return {};
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

void add_entry(std::string& input, std::string_view kind, std::string_view name, std::string_view text) {
  input += concat(kind, " ", name.size(), " ", text.size(), "\n", name, text);
}

/// The program's input; see checker_protocol.hpp.
std::string input_of(device::ProgramSource const& source, std::size_t own) {
  std::string input;
  for (std::size_t i = 0; i < source.files.size(); ++i) {
    add_entry(input, i < own ? kAuthorEntry : kFrameworkEntry, source.files[i].name, source.files[i].text);
  }
  for (std::string const& define : source.defines) {
    add_entry(input, kDefineEntry, define, "");
  }
  return input;
}

/// `own`: how many of the files are the author's.
Result<Report> run(device::ProgramSource const& source, std::size_t own, Limits const& limits) {
  const Result<std::string> lines = run_checker(checker(), input_of(source, own), limits.time);
  if (!lines.ok()) {
    return Status(lines.status().code(), concat("kernels cannot be checked: ", std::string(lines.status().message())));
  }
  if (std::optional<Report> report = parse(*lines); report.has_value()) {
    return *std::move(report);
  }
  Report refused;
  refused.refused.push_back(
      whole("no-end", concat("the check of '", source.files.front().name,
                             "' did not finish (it took too much time or memory, or broke its compiler); write the "
                             "kernel simpler: shorter expressions, fewer nested templates")));
  return refused;
}

}  // namespace

std::string Finding::text() const {
  return line == 0 ? concat(message, " [", rule, "]")
                   : concat(file, ":", line, ":", column, ": ", message, " [", rule, "]");
}

Result<Report> check_kernel(device::ProgramSource const& source, Limits const& limits) {
  const std::size_t framework = program::with_sdk({}).files.size();
  const std::size_t own = source.files.size() - std::min(framework, source.files.size());
  Report report;
  if (std::optional<Finding> fault = fault_of(std::span(source.files).first(own), limits); fault.has_value()) {
    report.refused.push_back(*std::move(fault));
    return report;
  }
  if (const std::string fault = fault_of_macros(source.defines); !fault.empty()) {
    return absl::InvalidArgumentError(fault);
  }
  std::error_code error;
  if (!std::filesystem::exists(checker(), error)) {
    return absl::UnavailableError(
        concat("kernels cannot be checked: no ", checker().string(), "; install catena with it"));
  }
  CATENA_ASSIGN_OR_RETURN(report, run(source, own, limits));
  const auto place = [](Finding const& finding) { return std::tuple(finding.file, finding.line, finding.column); };
  std::ranges::stable_sort(report.refused, {}, place);
  std::ranges::stable_sort(report.cautions, {}, place);
  return report;
}

}  // namespace catena::static_check
