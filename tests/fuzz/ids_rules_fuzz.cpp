// SPDX-License-Identifier: Apache-2.0
// Any text as an IDS rule file: rules, refusals and errors, never a crash; errors say where.
#include "rule_parser.hpp"

#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const catena::nids::RuleFile file = catena::nids::parse_rules(text, "fuzz.rules", {});
  for (std::string const& error : file.errors) {
    if (!error.starts_with("fuzz.rules:")) {
      __builtin_trap();
    }
  }
  return 0;
}
