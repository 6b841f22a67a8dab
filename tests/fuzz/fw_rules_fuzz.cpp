// SPDX-License-Identifier: Apache-2.0
// Any text as a firewall rules file: rules or an error that says where.
#include "functions/classify/rule_parser.hpp"

#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file =
      catena::classify::parse_rules(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.rules");
  if (!file.ok() && !std::string(file.status().message()).starts_with("fuzz.rules:")) {
    __builtin_trap();
  }
  if (file.ok() && file->rules.empty()) {
    __builtin_trap();
  }
  return 0;
}
