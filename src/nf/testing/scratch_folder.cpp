// SPDX-License-Identifier: Apache-2.0
#include "nf/testing/scratch_folder.hpp"

#include <catena/core/text.hpp>

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace catena::nf::testing {

namespace fs = std::filesystem;

ScratchFolder::ScratchFolder() : folder_((fs::temp_directory_path() / "catena-test-XXXXXX").string()) {
  if (::mkdtemp(folder_.data()) == nullptr) {
    throw std::runtime_error(concat("cannot make the folder ", folder_));
  }
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::string ScratchFolder::path(std::string_view name) const { return (fs::path(folder_) / name).string(); }

void ScratchFolder::write(std::string_view name, std::string_view text) const {
  std::ofstream(path(name), std::ios::binary) << text;
}

std::string ScratchFolder::read(std::string_view name) const {
  std::ifstream file(path(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace catena::nf::testing
