// SPDX-License-Identifier: Apache-2.0
#include "bench/common/data.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <system_error>

namespace catena::bench {
namespace fs = std::filesystem;
namespace {

fs::path program_folder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

}  // namespace

fs::path source_tree() {
  const fs::path tree = program_folder().parent_path().parent_path();
  std::error_code error;
  return fs::is_directory(tree / "bench" / "chains", error) ? tree : fs::path();
}

Result<fs::path> find_data(std::string const& given, std::string_view name, std::span<const std::string_view> files) {
  const fs::path usual = source_tree() / "bench" / name / "data";
  const fs::path folder = given.empty() ? usual : fs::path(given);
  std::error_code error;
  const auto lacking = std::find_if(files.begin(), files.end(),
                                    [&](std::string_view file) { return !fs::is_regular_file(folder / file, error); });
  if (lacking != files.end()) {
    return absl::NotFoundError(concat("the benchmark's data: there is no file ", (folder / *lacking).string(),
                                      "; give the folder bench/", name, "/data of the source tree with --data"));
  }
  return fs::absolute(folder, error);
}

}  // namespace catena::bench
