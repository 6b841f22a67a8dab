// SPDX-License-Identifier: Apache-2.0
#include "bench/data.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <system_error>
#include <vector>

namespace catena::bench {
namespace fs = std::filesystem;
namespace {

fs::path program_folder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

}  // namespace

fs::path source_tree() {
  const fs::path tree = program_folder().parent_path().parent_path().parent_path();
  std::error_code error;
  return fs::is_directory(tree / "bench" / "paper", error) ? tree : fs::path();
}

Result<fs::path> find_data(std::string const& given, std::string_view name, std::span<const std::string_view> files) {
  std::vector<fs::path> folders;
  if (!given.empty()) {
    folders.emplace_back(given);
  } else {
    folders.push_back(program_folder().parent_path() / "share" / "catena" / "bench" / name);
    if (const fs::path tree = source_tree(); !tree.empty()) {
      folders.push_back(tree / "bench" / name);
    }
  }
  std::string missing;
  for (fs::path const& folder : folders) {
    std::error_code error;
    const auto lacking = std::find_if(
        files.begin(), files.end(), [&](std::string_view file) { return !fs::is_regular_file(folder / file, error); });
    if (lacking == files.end()) {
      return fs::absolute(folder, error);
    }
    missing += concat(missing.empty() ? "" : ", ", (folder / *lacking).string());
  }
  return absl::NotFoundError(concat("the benchmark's data: there is no file ", missing, "; give the folder bench/",
                                    name, " of the source tree with --data"));
}

}  // namespace catena::bench
