// SPDX-License-Identifier: Apache-2.0
// Any text as a file of security associations: associations or an error that says where.
#include "sa.hpp"

#include <catena/nf/config.hpp>

#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto direction : {catena::ipsec::Direction::kEncrypt, catena::ipsec::Direction::kDecrypt}) {
    auto file = catena::nf::Config::parse(text, "fuzz.yaml");
    if (!file.ok()) {
      continue;
    }
    const auto associations = catena::ipsec::read_associations(*file, direction);
    if (!associations.ok() && !std::string(associations.status().message()).starts_with("fuzz.yaml")) {
      __builtin_trap();
    }
  }
  return 0;
}
