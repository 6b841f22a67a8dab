// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/commands.hpp"
#include "apps/catena/fail.hpp"
#include "apps/catena/service_client.hpp"
#include "apps/catena/style.hpp"
#include "base/core/scale.hpp"

#include <catena/core/text.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <thread>
#include <utility>

namespace catena::cli {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kFrame{1};
constexpr double kBitsPerByte = 8;

/// The chains at a moment.
struct Sight {
  Clock::time_point at;
  std::map<std::string, Json> chains;
};

Result<Sight> look(std::string const& socket) {
  CATENA_ASSIGN_OR_RETURN(const Json all, ask_service(socket, "GET", "/v1/chains"));
  Sight sight{Clock::now(), {}};
  for (Json const& chain : all.value("chains", Json::array())) {
    sight.chains[chain.value("name", "")] = chain;
  }
  return sight;
}

std::uint64_t count_of(Json const& object, const char* name) {
  return object.is_object() ? object.value(name, std::uint64_t{0}) : 0;
}

double number_of(Json const& object, const char* name) { return object.is_object() ? object.value(name, 0.0) : 0; }

/// How much more per second; 0 where the count began anew.
double rate(std::uint64_t now, std::uint64_t before, double seconds) {
  return now < before ? 0 : static_cast<double>(now - before) / seconds;
}

/// "no_route 17/s", those that happen just now; by name of all of them the rate.
Json drop_rates(Json const& now, Json const& before, double seconds) {
  Json rates = Json::object();
  for (auto const& [reason, count] : now.items()) {
    if (const double per_second = rate(count.get<std::uint64_t>(), count_of(before, reason.c_str()), seconds);
        per_second > 0) {
      rates[reason] = per_second;
    }
  }
  return rates;
}

Json part_of(Json const& chain, const char* name) {
  return chain.is_object() ? chain.value(name, Json::object()) : Json::object();
}

Json nf_of(Json const& chain, std::string const& name) {
  for (Json const& nf : chain.is_object() ? chain.value("nfs", Json::array()) : Json::array()) {
    if (nf.value("name", "") == name) {
      return nf;
    }
  }
  return Json::object();
}

/// One chain in a frame. `before`: null where it was not there.
Json frame_of(Json const& now, Json const& before, double seconds) {
  const Json rx = part_of(now, "rx");
  const Json tx = part_of(now, "tx");
  const Json rx_before = part_of(before, "rx");
  const Json tx_before = part_of(before, "tx");
  Json frame = {
      {"name", now.value("name", "")},
      {"state", now.value("state", "")},
      {"received_pps", rate(count_of(rx, "received_packets"), count_of(rx_before, "received_packets"), seconds)},
      {"received_bps",
       rate(count_of(rx, "received_bytes"), count_of(rx_before, "received_bytes"), seconds) * kBitsPerByte},
      {"sent_pps", rate(count_of(tx, "sent_packets"), count_of(tx_before, "sent_packets"), seconds)},
      {"rx_drops_per_second", drop_rates(part_of(rx, "drops"), part_of(rx_before, "drops"), seconds)},
      {"tx_drops_per_second", drop_rates(part_of(tx, "drops"), part_of(tx_before, "drops"), seconds)},
      {"nfs", Json::array()}};
  for (Json const& nf : now.value("nfs", Json::array())) {
    const Json was = nf_of(before, nf.value("name", ""));
    frame["nfs"].push_back(
        {{"name", nf.value("name", "")},
         {"on", nf.value("on", "")},
         {"pps", rate(count_of(nf, "in_packets"), count_of(was, "in_packets"), seconds)},
         {"alerts_per_second", rate(count_of(nf, "alerts"), count_of(was, "alerts"), seconds)},
         {"load", std::max(0.0, number_of(nf, "busy_seconds") - number_of(was, "busy_seconds")) / seconds},
         {"drops_per_second", drop_rates(part_of(nf, "drops"), part_of(was, "drops"), seconds)}});
  }
  return frame;
}

/// "12 %" of a core.
std::string load_text(double load) {
  constexpr double kPercent = 100;
  return fmt::format("{:.0f} %", kPercent * load);
}

std::string alerts_text(Json const& nf) {
  const double alerts = nf.value("alerts_per_second", 0.0);
  return alerts > 0 ? concat("  alerts ", rate_text(alerts, "/s")) : std::string();
}

std::string drops_text(Json const& rates) {
  std::string text;
  for (auto const& [reason, per_second] : rates.items()) {
    text += fmt::format("  {} {}", reason, rate_text(per_second.get<double>(), "pps"));
  }
  return text;
}

std::string text_of(Json const& chains) {
  std::string text =
      fmt::format("{:<28} {:<9} {:>11} {:>9} {:>11}  {}\n", "chain", "state", "received", "load", "sent", "drops");
  for (Json const& chain : chains) {
    text +=
        fmt::format("{:<28} {:<9} {:>11} {:>9} {:>11}{}{}\n", chain.value("name", ""), chain.value("state", ""),
                    rate_text(chain.value("received_pps", 0.0), "pps"),
                    rate_text(chain.value("received_bps", 0.0), "bps"), rate_text(chain.value("sent_pps", 0.0), "pps"),
                    drops_text(chain["rx_drops_per_second"]), drops_text(chain["tx_drops_per_second"]));
    for (Json const& nf : chain["nfs"]) {
      text += fmt::format("  {:<26} {:<9} {:>11} {:>9} {:>11}{}\n", nf.value("name", ""), nf.value("on", ""),
                          rate_text(nf.value("pps", 0.0), "pps"), load_text(nf.value("load", 0.0)), "",
                          alerts_text(nf) + drops_text(nf["drops_per_second"]));
    }
  }
  return text;
}

Json frame_between(Sight const& before, Sight const& now) {
  const double seconds = std::chrono::duration<double>(now.at - before.at).count();
  Json frame = Json::array();
  for (auto const& [name, chain] : now.chains) {
    const auto was = before.chains.find(name);
    // one that was not there yet counted from 0 on
    frame.push_back(frame_of(chain, was == before.chains.end() ? Json() : was->second, seconds));
  }
  return frame;
}

}  // namespace

int top(ServiceArguments const& arguments) {
  Result<Sight> before = look(arguments.socket);
  const bool clears = !arguments.once && !arguments.json && ::isatty(STDOUT_FILENO) == 1;
  while (before.ok()) {
    std::this_thread::sleep_for(kFrame);
    Result<Sight> now = look(arguments.socket);
    if (!now.ok()) {
      return fail(now.status(), arguments.json);
    }
    const Json frame = frame_between(*before, *now);
    if (clears) {
      write_control(std::cout, "\x1b[H\x1b[J");  // home, and clear what is below
    }
    constexpr auto kReplace = Json::error_handler_t::replace;
    std::cout << (arguments.json ? Json{{"chains", frame}}.dump(-1, ' ', true, kReplace) + "\n" : text_of(frame));
    if (!std::cout.flush() || arguments.once) {
      return kExitOk;  // main() says that the output cannot be written
    }
    before = std::move(now);
  }
  return fail(before.status(), arguments.json);
}

}  // namespace catena::cli
