// SPDX-License-Identifier: Apache-2.0
// /v1/ports: the ports shared by chains.
#include "service/answers.hpp"
#include "service/chain_set.hpp"
#include "service/route.hpp"

#include <nlohmann/json.hpp>

#include <utility>

namespace catena::service {

HttpResponse list_ports(Exchange const& exchange) {
  using Json = nlohmann::ordered_json;
  Json all = Json::array();
  for (io::SharedPort const& port : exchange.chains.shared_ports(exchange.client)) {
    Json members = Json::array();
    for (io::PortMember const& member : port.members) {
      Json matches = Json::array();
      for (io::TrafficMatch const& match : member.matches) {
        matches.push_back(io::to_string(match));
      }
      members.push_back({{"chain", member.chain}, {"match", std::move(matches)}});
    }
    Json drops = Json::object();
    for (io::NamedCount const& drop : io::drops_of(port)) {
      drops[drop.name] = drop.count;
    }
    all.push_back({{"name", port.name},
                   {"port", port.describe},
                   {"chains", std::move(members)},
                   {"frames", port.received},
                   {"drops", std::move(drops)}});
  }
  return json_answer({{"ports", std::move(all)}});
}

}  // namespace catena::service
