// SPDX-License-Identifier: Apache-2.0
// /v1/version and /metrics.
#include "service/answers.hpp"
#include "service/chain_set.hpp"
#include "service/exposition.hpp"
#include "service/route.hpp"

namespace catena::service {

HttpResponse get_version(Exchange const& exchange) { return json_answer({{"version", exchange.version}}); }

HttpResponse get_metrics(Exchange const& exchange) {
  auto const& [chains, version, request, caller, name] = exchange;
  HttpResponse response{kHttpOk, exposition(chains.list(caller), chains.shared_ports(caller), version)};
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  return response;
}

}  // namespace catena::service
