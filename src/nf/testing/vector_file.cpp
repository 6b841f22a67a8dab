// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/testing/vector_file.hpp>

#include <fstream>

namespace catena::nf::testing {

std::vector<Vector> read_vectors(std::string const& path, std::string_view first) {
  std::ifstream file(path);
  std::vector<Vector> vectors;
  for (std::string line; std::getline(file, line);) {
    line.erase(line.find_last_not_of("\r\n ") + 1);
    const std::size_t equals = line.find(" = ");
    if (line.empty() || line[0] == '#' || equals == std::string::npos) {
      continue;
    }
    const std::string key = line.substr(0, equals);
    if (key == first) {
      vectors.emplace_back();
    }
    if (!vectors.empty() && key != "Len" && key != "COUNT") {
      std::vector<std::uint8_t>& bytes = vectors.back()[key];
      bytes.clear();
      for (std::size_t i = equals + 3; i + 1 < line.size(); i += 2) {
        bytes.push_back(static_cast<std::uint8_t>(std::stoul(line.substr(i, 2), nullptr, 16)));
      }
    }
  }
  return vectors;
}

}  // namespace catena::nf::testing
