// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/commands.hpp"
#include "apps/catena/fail.hpp"
#include "apps/catena/service_client.hpp"
#include "apps/catena/style.hpp"
#include "apps/catena/whole_paths.hpp"
#include "service/apply_record.hpp"

#include <catena/core/text.hpp>

#include <absl/strings/str_replace.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <string_view>
#include <utility>
#include <vector>

namespace catena::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string line_of(Json const& chain) {
  const auto count = [&chain](const char* end, const char* what) {
    return chain.contains(end) ? chain[end].value(what, std::uint64_t{0}) : 0;
  };
  return fmt::format("{:<20} {:<9} {:<16} {:>6} {:>14} {:>14} {:>12}\n", chain.value("name", ""),
                     chain.value("state", ""), chain.value("tenant", ""), chain.value("uid", 0U),
                     count("rx", "received_packets"), count("tx", "sent_packets"),
                     chain.value("dropped_packets", std::uint64_t{0}));
}

std::string error_of(Json const& chain) {
  return chain.contains("error") && chain["error"].is_string() ? chain["error"].get<std::string>() : std::string();
}

std::string revision_table(Json const& revisions) {
  std::string text = fmt::format("{:<12} {:<20} {:>6} {}\n", "revision", "applied", "uid", "file");
  for (Json const& each : revisions) {
    text += fmt::format("{:<12} {:<20} {:>6} {}{}\n", each.value("revision", ""), each.value("applied", ""),
                        each.value("uid", 0U), each.value("file", ""), each.value("is_present", false) ? " *" : "");
  }
  return text;
}

std::string table(Json const& chains) {
  std::string text = fmt::format("{:<20} {:<9} {:<16} {:>6} {:>14} {:>14} {:>12}\n", "chain", "state", "tenant", "uid",
                                 "received", "sent", "dropped");
  for (Json const& chain : chains) {
    text += line_of(chain);
    if (const std::string error = error_of(chain); !error.empty()) {
      text += concat("  ", error, "\n");
    }
  }
  return text;
}

/// "no_route 3, malformed 1".
std::string drops_text(Json const& end) {
  std::string text;
  const Json drops = end.value("drops", Json::object());
  for (auto const& [reason, count] : drops.items()) {
    if (count.get<std::uint64_t>() != 0) {
      text += fmt::format("{}{} {}", text.empty() ? "  dropped: " : ", ", reason, count.get<std::uint64_t>());
    }
  }
  return text;
}

/// ", alerts 3"; empty for 0.
std::string count_text(Json const& nf, const char* what) {
  const auto count = nf.value(what, std::uint64_t{0});
  return count == 0 ? std::string() : fmt::format(", {} {}", what, count);
}

/// ", process 4711"; of several shards ", processes 4711, 4712"; empty without.
std::string processes_text(Json const& nf) {
  std::vector<std::string> pids;
  for (Json const& process : nf.value("processes", Json::array())) {
    pids.push_back(fmt::format("{}", process.value("pid", 0)));
  }
  return pids.empty() ? std::string()
                      : fmt::format(", {} {}", pids.size() == 1 ? "process" : "processes", fmt::join(pids, ", "));
}

std::string chain_text(Json const& chain) {
  std::string text =
      fmt::format("chain    {}\nstate    {}\nfile     {}\ntenant   {} (user {})\n", chain.value("name", ""),
                  chain.value("state", ""), chain.value("file", ""), chain.value("tenant", ""), chain.value("uid", 0U));
  if (const Json& number = chain.value("number", Json()); number.is_number()) {
    text += fmt::format("number   {}\n", number.get<std::uint64_t>());
  }
  if (const std::string error = error_of(chain); !error.empty()) {
    text += concat("error    ", error, "\n");
  }
  if (const Json& retry = chain.value("retry_s", Json()); retry.is_number()) {
    text += fmt::format("retry    in {} s\n", retry.get<std::uint64_t>());
  }
  if (const Json& quarantine = chain.value("quarantine", Json()); quarantine.is_string()) {
    text += concat("device   in quarantine: ", quarantine.get<std::string>(), "\n");
  }
  if (const Json& revision = chain.value("revision", Json()); revision.is_string()) {
    text += concat("revision ", revision.get<std::string>(), "\n");
  }
  if (const Json& fallback = chain.value("fallback", Json()); fallback.is_string()) {
    text += concat("         an earlier spec, as the file is refused: ", fallback.get<std::string>(), "\n");
  }
  if (const Json& confirm = chain.value("confirm_s", Json()); confirm.is_number()) {
    text += fmt::format("confirm  within {} s, or it returns to the spec before\n", confirm.get<std::uint64_t>());
  }
  if (!chain.contains("rx")) {
    return text;
  }
  text += fmt::format("rx       {} received {}{}\n", chain["rx"].value("port", ""),
                      chain["rx"].value("received_packets", std::uint64_t{0}), drops_text(chain["rx"]));
  for (Json const& nf : chain.value("nfs", Json::array())) {
    text += fmt::format("nf       {} ({}) on {}: in {}, passed {}{}{}, busy {:.1f} s{}{}\n", nf.value("name", ""),
                        nf.value("type", ""), nf.value("on", ""), nf.value("in_packets", std::uint64_t{0}),
                        nf.value("passed_packets", std::uint64_t{0}), count_text(nf, "alerts"),
                        count_text(nf, "replies"), nf.value("busy_seconds", 0.0), processes_text(nf), drops_text(nf));
  }
  if (const Json latency = chain.value("latency_us", Json()); latency.is_object()) {
    text += fmt::format("latency  {:.0f} us at most for half of the packets, {:.0f} us for 99 %\n",
                        latency.value("p50", 0.0), latency.value("p99", 0.0));
  }
  return text + fmt::format("tx       {} sent {}{}\n", chain["tx"].value("port", ""),
                            chain["tx"].value("sent_packets", std::uint64_t{0}), drops_text(chain["tx"]));
}

/// "  takes of the quotas: chains 1 of 32, workers 2 of 4096"; empty without amounts.
std::string quotas_text(Json const& chain) {
  std::string text;
  const Json amounts = chain.value("quotas", Json::object());
  const Json limits = chain.value("quota_limits", Json());
  for (auto const& [quota, amount] : amounts.items()) {
    if (amount.get<std::uint64_t>() != 0) {
      const std::string limit = limits.is_object() ? concat(" of ", limits.value(quota, std::uint64_t{0})) : "";
      text += fmt::format("{}{} {}{}", text.empty() ? "  takes of the quotas: " : ", ", quota,
                          amount.get<std::uint64_t>(), limit);
    }
  }
  return text.empty() ? text : text + "\n";
}

/// What became of a chain that was applied, or would become of it.
std::string applied_text(Json const& chain) {
  const bool is_dry_run = chain.value("dry_run", false);
  const std::string applied = chain.value("applied", "");
  const std::vector<std::string> changes = chain.value("changes", std::vector<std::string>());
  std::string text = concat(chain.value("name", ""), ": ");
  if (applied == "started") {
    text += is_dry_run ? "would be started" : chain.value("state", "");
  } else if (applied == "replaced") {
    text += concat(is_dry_run ? "would be replaced: " : chain.value("state", "") + ", replaced: ",
                   chain.value("why_replaced", ""));
  } else if (changes.empty()) {
    text += is_dry_run ? "nothing would change" : chain.value("state", "") + ", nothing has changed";
  } else {
    text += is_dry_run ? "would keep running, with these changes" : chain.value("state", "") + ", with these changes";
  }
  text += "\n";
  for (std::string const& change : changes) {
    text += concat("  ", change, "\n");
  }
  for (std::string const& warning : chain.value("warnings", std::vector<std::string>())) {
    text += concat("  WARNING ", warning, "\n");
  }
  const std::vector<std::string> losses = chain.value("losses", std::vector<std::string>());
  for (std::string const& loss : losses) {
    text += concat(is_dry_run ? "  would lose " : "  lost ", loss, "\n");
  }
  return concat(text, is_dry_run && !losses.empty() ? "  needs --accept-loss\n" : "", quotas_text(chain));
}

/// Whether there are any.
bool put_consents(Consents const& consents, Json& options) {
  if (!consents.new_keys.empty()) {
    options["new_keys"] = consents.new_keys;
  }
  if (consents.accepts_loss) {
    options["accept_loss"] = true;
  }
  return !options.empty();
}

/// Asks, and prints the answer: as it is with `json`, else as `show` has it.
int ask_and_print(ServiceArguments const& arguments, std::string const& method, std::string const& path,
                  std::string const& body, auto const& show) {
  const Result<Json> answer = ask_service(arguments.socket, method, path, body);
  if (!answer.ok()) {
    return fail(answer.status(), arguments.json);
  }
  if (arguments.json) {
    print_json(std::cout, *answer);
  } else {
    std::cout << show(*answer);
  }
  return kExitOk;
}

}  // namespace

int apply(RunArguments const& run, ServiceArguments const& arguments) {
  Json request = {{"file", whole_path(run.chain_file)}};
  Json options = service::to_json(with_whole_paths(run.options));
  put_consents(run, options);
  if (!options.empty()) {
    request["options"] = std::move(options);
  }
  if (arguments.dry_run) {
    request["dry_run"] = true;
  }
  if (arguments.confirm_s != 0) {
    request["confirm_s"] = arguments.confirm_s;
  }
  const std::string body = request.dump(-1, ' ', false, Json::error_handler_t::replace);
  return ask_and_print(arguments, "POST", "/v1/chains", body, applied_text);
}

int control(service::RouteCommand const& command, ServiceArguments const& arguments) {
  service::Route const* route = nullptr;
  for (service::Route const& each : service::routes()) {
    const bool is_of_command = each.command.is_of_nf == command.is_of_nf && each.command.word == command.word;
    if (is_of_command && (route == nullptr || each.has_name() != arguments.name.empty())) {
      route = &each;
    }
  }
  const std::string_view done = route->command.done;
  Json request = Json::object();
  if (Json options = Json::object(); put_consents(arguments.consents, options)) {
    request["options"] = std::move(options);
  }
  if (!arguments.revision.empty()) {
    request["revision"] = arguments.revision;
  }
  return ask_and_print(
      arguments, std::string(route->method), service::resource_path(route->path, arguments.name),
      request.empty() ? "" : request.dump(-1, ' ', false, Json::error_handler_t::replace), [&](Json const& answer) {
        if (!done.empty()) {
          return concat(absl::StrReplaceAll(std::string(done),
                                            {{"{name}", arguments.name}, {"{state}", answer.value("state", "")}}),
                        "\n");
        }
        return answer.contains("chains")      ? table(answer["chains"])
               : answer.contains("revisions") ? revision_table(answer["revisions"])
               : answer.contains("applied")   ? applied_text(answer)
                                              : chain_text(answer);
      });
}

}  // namespace catena::cli
