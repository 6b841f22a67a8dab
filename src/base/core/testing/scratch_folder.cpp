// SPDX-License-Identifier: Apache-2.0
#include <catena/core/testing/scratch_folder.hpp>

#include <catena/core/text.hpp>

#include <stdlib.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

namespace catena {

ScratchFolder::ScratchFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "catena-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw std::runtime_error(concat(pattern, ": ", std::generic_category().message(errno)));
  }
  folder_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;  // what is left is in the temporary folder
  std::filesystem::remove_all(folder_, ignored);
}

std::string ScratchFolder::path(std::string_view name) const { return (folder_ / name).string(); }

void ScratchFolder::write(std::string_view name, std::string_view text) const {
  std::ofstream(path(name), std::ios::binary) << text;
}

std::string ScratchFolder::read(std::string_view name) const {
  std::ifstream file(path(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace catena
