// SPDX-License-Identifier: Apache-2.0
#include "service/key_files.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace catena::service {
namespace {

/// Keys of NFs that name files with keys, as NamedFile::who.
constexpr std::array<std::string_view, 1> kKeyFiles{"'sa'"};

bool is_readable_by_others(std::string const& path) {
  using std::filesystem::perms;
  std::error_code error;
  const perms mode = std::filesystem::status(path, error).permissions();
  return !error && (mode & (perms::group_read | perms::others_read)) != perms::none;
}

}  // namespace

std::vector<std::string> key_file_warnings(std::span<const chain::NamedFile> files) {
  std::vector<std::string> warnings;
  for (chain::NamedFile const& file : files) {
    if (std::ranges::find(kKeyFiles, file.who) != kKeyFiles.end() && is_readable_by_others(file.path)) {
      warnings.push_back(concat(file.position, ": ", file.path, " has keys and is readable by users other than its ",
                                "owner; use `chmod 600 ", file.path, "`"));
    }
  }
  return warnings;
}

}  // namespace catena::service
