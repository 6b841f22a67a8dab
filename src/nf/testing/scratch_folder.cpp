// SPDX-License-Identifier: Apache-2.0
#include "nf/testing/scratch_folder.hpp"

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace catena::nf::testing {

ScratchFolder::ScratchFolder()
    : folder_([] {
        Result<device::TemporaryFolder> made = device::TemporaryFolder::create();
        if (!made.ok()) {
          throw std::runtime_error(made.status().ToString());
        }
        return *std::move(made);
      }()) {}

std::string ScratchFolder::path(std::string_view name) const { return (folder_.path() / name).string(); }

void ScratchFolder::write(std::string_view name, std::string_view text) const {
  std::ofstream(path(name), std::ios::binary) << text;
}

std::string ScratchFolder::read(std::string_view name) const {
  std::ifstream file(path(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace catena::nf::testing
