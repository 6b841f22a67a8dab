// SPDX-License-Identifier: Apache-2.0
// Any text as a chain file: an error or a chain, and every error says where.
#include "chain/chain_file.hpp"

#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto chain = catena::chain::parse_chain(text, "fuzz.yaml");
  if (!chain.ok() && !std::string(chain.status().message()).starts_with("fuzz.yaml")) {
    __builtin_trap();
  }
  return 0;
}
