// SPDX-License-Identifier: Apache-2.0
// Any text as a routes file: routes or an error that says where.
#include "functions/lpm/route_file.hpp"

#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto routes =
      catena::lpm::parse_routes(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.txt");
  if (!routes.ok() && !std::string(routes.status().message()).starts_with("fuzz.txt:")) {
    __builtin_trap();
  }
  return 0;
}
