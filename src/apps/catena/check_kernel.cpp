// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/check_kernel.hpp"

#include <catena/core/text.hpp>

#include "apps/catena/commands.hpp"
#include "apps/catena/fail.hpp"
#include "apps/catena/style.hpp"
#include "gpu/program/program.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace catena::cli {
namespace {

nlohmann::ordered_json to_json(std::vector<static_check::Finding> const& diagnostics) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (static_check::Finding const& finding : diagnostics) {
    const bool has_place = finding.line != 0;
    list.push_back({{"file", has_place ? nlohmann::ordered_json(finding.file) : nullptr},
                    {"line", has_place ? nlohmann::ordered_json(finding.line) : nullptr},
                    {"column", has_place ? nlohmann::ordered_json(finding.column) : nullptr},
                    {"rule", finding.rule},
                    {"message", finding.message}});
  }
  return list;
}

/// The name by which the kernel's files include `file`: below the folder of the first one, else the bare name.
std::string name_of(std::filesystem::path const& file, std::filesystem::path const& folder) {
  const std::filesystem::path below = file.lexically_relative(folder);
  return below.empty() || *below.begin() == ".." ? file.filename().string() : below.string();
}

Result<std::string> read(std::string const& file) {
  std::error_code error;
  std::ifstream in(file, std::ios::binary);
  if (!in || !std::filesystem::is_regular_file(file, error)) {
    return absl::NotFoundError(concat("cannot read '", file, "'; name the kernel's files, the kernel first"));
  }
  // one byte more than the check takes, so that it says so
  std::string text(static_check::Limits{}.bytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

/// Macros of a plan: those of `given`, and for the others values with which most kernels compile.
std::vector<std::string> with_defaults(std::vector<std::string> const& given) {
  device::ProgramSource plan;
  for (std::string const& define : given) {
    plan.defines.push_back(concat("CATENA_", define));
  }
  const auto is_given = [&given](std::string_view name) {
    return std::ranges::any_of(given, [&](std::string const& define) { return define.starts_with(concat(name, "=")); });
  };
  for (const std::string_view name : {"READS", "WRITES", "IN_COLUMNS", "OUT_COLUMNS"}) {
    if (!is_given(name)) {
      const bool is_column = name.ends_with("COLUMNS");
      program::define_fields(plan, concat("CATENA_", name), is_column ? packet::kNoFields : packet::kAllFields);
    }
  }
  constexpr std::pair<std::string_view, std::uint32_t> kNumbers[] = {
      {"SHARED", 0}, {"FRAMES", 2},    {"HEADROOM", 0},     {"TAILROOM", 0},
      {"LANES", 1},  {"AUX_BYTES", 0}, {"RESULT_BYTES", 4}, {"SPILL_FACTOR", 4}};
  for (auto const& [name, value] : kNumbers) {
    if (!is_given(name)) {
      program::define(plan, concat("CATENA_", name), value);
    }
  }
  return plan.defines;
}

Result<static_check::Report> checked(CheckKernelArguments const& arguments) {
  const std::filesystem::path folder = std::filesystem::path(arguments.files.front()).lexically_normal().parent_path();
  device::ProgramSource source = program::with_sdk({});
  std::vector<device::SourceFile> own;
  for (std::string const& file : arguments.files) {
    CATENA_ASSIGN_OR_RETURN(std::string text, read(file));
    own.push_back({name_of(std::filesystem::path(file).lexically_normal(), folder), std::move(text)});
  }
  source.files.insert(source.files.begin(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
  source.defines = with_defaults(arguments.defines);
  return static_check::check_kernel(source);
}

}  // namespace

nlohmann::ordered_json to_json(static_check::Report const& report) {
  return {{"ok", report.ok()}, {"refused", to_json(report.refused)}, {"cautions", to_json(report.cautions)}};
}

void print(static_check::Report const& report, std::string const& name) {
  for (static_check::Finding const& finding : report.refused) {
    std::cerr << finding.text() << '\n';
  }
  for (static_check::Finding const& finding : report.cautions) {
    std::cout << "warning: " << finding.text() << '\n';
  }
  if (report.ok()) {
    std::cout << name << ": reaches memory through IsoPtr alone\n";
  }
}

int check_kernel(CheckKernelArguments const& arguments) {
  const Result<static_check::Report> report = checked(arguments);
  if (!report.ok()) {
    return fail(report.status(), arguments.json);
  }
  if (arguments.json) {
    print_json(std::cout, to_json(*report));
  } else {
    print(*report, arguments.files.front());
  }
  return report->ok() ? kExitOk : kExitFailed;
}

}  // namespace catena::cli
