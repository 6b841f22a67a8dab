// SPDX-License-Identifier: Apache-2.0
#include "chain/error_list.hpp"

#include <absl/strings/str_split.h>
#include <nlohmann/json.hpp>

#include <regex>
#include <string>
#include <vector>

namespace catena::chain {

nlohmann::ordered_json errors_of(Status const& status) {
  static const std::regex kPositioned(R"(^(.+?):(\d+):(?:(\d+):)? (.*)$)");
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (std::string const& line : std::vector<std::string>(absl::StrSplit(status.message(), '\n', absl::SkipEmpty()))) {
    std::smatch part;
    if (std::regex_match(line, part, kPositioned)) {
      list.push_back({{"file", part[1].str()},
                      {"line", std::stol(part[2].str())},
                      {"column", part[3].matched ? nlohmann::ordered_json(std::stol(part[3].str())) : nullptr},
                      {"message", part[4].str()}});
    } else {
      list.push_back({{"file", nullptr}, {"line", nullptr}, {"column", nullptr}, {"message", line}});
    }
  }
  return list;
}

}  // namespace catena::chain
