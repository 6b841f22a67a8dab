// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <string>

namespace catena {

/// The model of this machine's processor as the kernel names it; "unknown" where it does not.
inline std::string processor_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (const std::size_t colon = line.find(": "); colon != std::string::npos && line.starts_with("model name")) {
      return line.substr(colon + 2);
    }
  }
  return "unknown";
}

}  // namespace catena
