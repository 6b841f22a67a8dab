// SPDX-License-Identifier: Apache-2.0
#include <catena/core/testing/test_data.hpp>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace catena {

std::string source_path(std::string_view name) { return (std::filesystem::path(CATENA_SOURCE_DIR) / name).string(); }

std::string shared_data() {
  if (const char* given = std::getenv("CATENA_TEST_DATA"); given != nullptr) {
    return given;
  }
  const std::filesystem::path beside = std::filesystem::path(CATENA_SOURCE_DIR).parent_path() / "shared" / "data";
  std::error_code error;
  return std::filesystem::is_directory(beside, error) ? beside.string() : source_path("tests/data/oracles");
}

}  // namespace catena
