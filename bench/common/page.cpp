// SPDX-License-Identifier: Apache-2.0
#include "bench/common/page.hpp"

#include <catena/core/text.hpp>

#include <filesystem>
#include <fstream>

namespace catena::bench {
namespace {

Status write_file(std::filesystem::path const& path, std::string const& text) {
  std::ofstream out(path, std::ios::binary);
  out << text << std::flush;
  return out ? absl::OkStatus() : absl::PermissionDeniedError(concat("cannot write ", path.string()));
}

}  // namespace

Status write_output(std::string const& folder, std::string const& json, PageText const& page) {
  const std::filesystem::path output = folder;
  std::error_code ignored;  // without the folder the files cannot be written either
  std::filesystem::create_directories(output, ignored);
  nlohmann::ordered_json results = nlohmann::ordered_json::parse(json);
  results["figures"] = page.figures;
  constexpr int kIndent = 1;
  CATENA_RETURN_IF_ERROR(write_file(output / "results.json", results.dump(kIndent) + "\n"));
  return write_file(output / "README.md", page.markdown);
}

}  // namespace catena::bench
