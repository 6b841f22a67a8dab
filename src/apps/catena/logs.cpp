// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/commands.hpp"
#include "apps/catena/fail.hpp"
#include "apps/catena/service_client.hpp"
#include "service/route.hpp"

#include <catena/core/text.hpp>

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>
#include <thread>

namespace catena::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::milliseconds kPeriod{500};

std::string line_text(Json const& line) {
  Json const& stage = line["stage"];
  return concat(line.value("time", ""), " ", line.value("level", ""), " ",
                stage.is_string() ? concat("[", stage.get<std::string>(), "] ") : "", line.value("message", ""), "\n");
}

int reopen(ServiceArguments const& arguments) {
  const Result<Json> answer = ask_service(arguments.socket, "POST", "/v1/reopen", "");
  return answer.ok() ? kExitOk : fail(answer.status(), arguments.json);
}

}  // namespace

int logs(ServiceArguments const& arguments) {
  if (arguments.reopen) {
    return reopen(arguments);
  }
  if (arguments.name.empty()) {
    return fail(absl::InvalidArgumentError("catena logs needs the name of a chain, or --reopen"), arguments.json);
  }
  const std::string path = service::resource_path("/v1/chains/NAME/log", arguments.name);
  std::uint64_t last = 0;
  while (true) {
    const Result<Json> answer = ask_service(arguments.socket, "GET", path, "");
    if (!answer.ok()) {
      return fail(answer.status(), arguments.json);
    }
    for (Json const& line : (*answer)["lines"]) {
      if (const auto number = line.value("number", std::uint64_t{0}); number > last) {
        last = number;
        std::cout << (arguments.json ? line.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n"
                                     : line_text(line));
      }
    }
    if (!std::cout.flush() || !arguments.follow) {
      return kExitOk;  // main() reports an output that cannot be written
    }
    std::this_thread::sleep_for(kPeriod);
  }
}

}  // namespace catena::cli
