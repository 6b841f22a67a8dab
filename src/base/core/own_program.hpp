// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/core/text.hpp>

#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>
#include <system_error>

namespace catena {

/// Path of a program of this installation: beside this process's program, in the folder of its name of a build, or in
/// the libexec folder of an installation. NotFound with the searched places.
inline Result<std::string> find_own_program(std::string const& name) {
  std::error_code error;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  const std::array<std::filesystem::path, 4> places{own / name, own / ".." / name / name,
                                                    own / ".." / "src" / "apps" / name / name,
                                                    own / ".." / "libexec" / "catena" / name};
  for (std::filesystem::path const& place : places) {
    if (::access(place.c_str(), X_OK) == 0) {
      return place.lexically_normal().string();
    }
  }
  return absl::NotFoundError(concat("the program ", name, " is neither in ", own.string(), " nor in ",
                                    places.back().parent_path().lexically_normal().string()));
}

}  // namespace catena
