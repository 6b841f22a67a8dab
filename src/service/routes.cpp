// SPDX-License-Identifier: Apache-2.0
#include "service/route.hpp"

#include <array>

namespace catena::service {

HttpResponse list_chains(Exchange const& exchange);
HttpResponse apply_chain(Exchange const& exchange);
HttpResponse get_chain(Exchange const& exchange);
HttpResponse get_config(Exchange const& exchange);
HttpResponse stop_chain(Exchange const& exchange);
HttpResponse remove_chain(Exchange const& exchange);
HttpResponse reset_chain(Exchange const& exchange);
HttpResponse list_ports(Exchange const& exchange);
HttpResponse get_version(Exchange const& exchange);
HttpResponse get_metrics(Exchange const& exchange);

namespace {

constexpr std::array kRoutes{
    Route{.method = "GET",
          .path = "/v1/chains",
          .access = Access::kUser,
          .handler = list_chains,
          .help = R"(`{"chains": [...]}`, the chains visible to the caller)",
          .command = {.word = "get", .help = "List the chains of the service, or show one"}},
    Route{.method = "POST",
          .path = "/v1/chains",
          .access = Access::kUser,
          .handler = apply_chain,
          .help =
              R"(applies `{"file": "/whole/path.yaml", "options": {...}}`; the chain, with status 201 if it is new, )"
              "else 200"},
    Route{.method = "GET",
          .path = "/v1/chains/NAME",
          .access = Access::kOwner,
          .handler = get_chain,
          .help = "the chain",
          .command = {.word = "get"}},
    Route{.method = "PUT",
          .path = "/v1/chains/NAME",
          .access = Access::kUser,
          .handler = apply_chain,
          .help = "as `POST /v1/chains`, for a file whose chain has this name"},
    Route{.method = "GET",
          .path = "/v1/chains/NAME/config",
          .access = Access::kOwner,
          .handler = get_config,
          .help = R"(`{"name": ..., "config": "..."}`: the chain file of its last run, with options over it and with )"
                  "all defaults; 409 if it did not run since the service started"},
    Route{.method = "POST",
          .path = "/v1/chains/NAME/stop",
          .access = Access::kOwner,
          .handler = stop_chain,
          .help = "the chain, when it has ended",
          .command = {.word = "stop",
                      .help = "Stop a chain of the service, which stays known",
                      .done = "{name}: {state}"}},
    Route{
        .method = "DELETE",
        .path = "/v1/chains/NAME",
        .access = Access::kOwner,
        .handler = remove_chain,
        .help = R"(`{"ok": true}`, when it has ended)",
        .command = {.word = "delete", .help = "Stop a chain of the service and forget it", .done = "{name}: deleted"}},
    Route{.method = "POST",
          .path = "/v1/chains/NAME/reset",
          .access = Access::kRoot,
          .handler = reset_chain,
          .help = "the chain, allowed to use the device again after its kernel crashed it; 409 if it is not in "
                  "quarantine",
          .refusal = "only root may lift a quarantine: the kernel has crashed a shared device",
          .command = {.is_of_nf = true,
                      .word = "reset",
                      .help = "Let a chain use the device again after its kernel took it down",
                      .done = "{name}: out of quarantine"}},
    Route{.method = "GET",
          .path = "/v1/ports",
          .access = Access::kUser,
          .handler = list_ports,
          .help = R"(`{"ports": [...]}`: shared ports, each with its running chains, their matches, and the frames )"
                  "without a chain; empty for users other than root and the service's own"},
    Route{.method = "GET",
          .path = "/v1/version",
          .access = Access::kUser,
          .handler = get_version,
          .help = R"(`{"version": ...}`)"},
    Route{.method = "GET",
          .path = "/metrics",
          .access = Access::kNetwork,
          .handler = get_metrics,
          .help = "text, see above"},
};

}  // namespace

std::span<const Route> routes() { return kRoutes; }

}  // namespace catena::service
