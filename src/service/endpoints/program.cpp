// SPDX-License-Identifier: Apache-2.0
// /v1/version, /v1/reopen and /metrics.
#include "base/core/name_watch.hpp"
#include "service/answers.hpp"
#include "service/audit_log.hpp"
#include "service/chain_set.hpp"
#include "service/exposition.hpp"
#include "service/route.hpp"

namespace catena::service {

HttpResponse get_version(Exchange const& exchange) { return json_answer({{"version", exchange.version}}); }

HttpResponse reopen_outputs(Exchange const& /*exchange*/) {
  check_names_of_outputs();
  return json_answer({{"ok", true}});
}

HttpResponse get_metrics(Exchange const& exchange) {
  auto const& [chains, audit, version, request, client, name] = exchange;
  HttpResponse response{
      kHttpOk, exposition(chains.list(client), chains.shared_ports(client), {version, audit.lost(), chains.quotas()})};
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  return response;
}

}  // namespace catena::service
