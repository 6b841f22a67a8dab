// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/whole_paths.hpp"

#include "io/output_file.hpp"

#include <catena/core/text.hpp>

#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

namespace catena::cli {

std::string whole_path(std::string const& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  return error ? path : whole.lexically_normal().string();
}

chain::GivenOptions with_whole_paths(chain::GivenOptions options) {
  for (auto& [name, text] : options) {
    const std::optional<std::string_view> file = chain::file_of(*chain::find_option(name), text);
    if (file && *file != io::kStandardStream) {
      text = concat(text.substr(0, text.size() - file->size()), whole_path(std::string(*file)));
    }
  }
  return options;
}

}  // namespace catena::cli
