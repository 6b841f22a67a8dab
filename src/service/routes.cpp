// SPDX-License-Identifier: Apache-2.0
#include "service/route.hpp"

#include <array>

namespace catena::service {

HttpResponse list_chains(Exchange const& exchange);
HttpResponse apply_chain(Exchange const& exchange);
HttpResponse get_chain(Exchange const& exchange);
HttpResponse get_config(Exchange const& exchange);
HttpResponse start_chain(Exchange const& exchange);
HttpResponse stop_chain(Exchange const& exchange);
HttpResponse restart_chain(Exchange const& exchange);
HttpResponse reload_chain(Exchange const& exchange);
HttpResponse cancel_chain(Exchange const& exchange);
HttpResponse confirm_chain(Exchange const& exchange);
HttpResponse roll_back_chain(Exchange const& exchange);
HttpResponse list_revisions(Exchange const& exchange);
HttpResponse get_log(Exchange const& exchange);
HttpResponse remove_chain(Exchange const& exchange);
HttpResponse reset_chain(Exchange const& exchange);
HttpResponse list_ports(Exchange const& exchange);
HttpResponse get_version(Exchange const& exchange);
HttpResponse reopen_outputs(Exchange const& exchange);
HttpResponse get_metrics(Exchange const& exchange);

namespace {

constexpr std::array kRoutes{
    Route{.method = "GET",
          .path = "/v1/chains",
          .least = Role::kReader,
          .handler = list_chains,
          .operation = {},
          .help = R"(`{"chains": [...]}`, the chains visible to the caller)",
          .command = {.word = "get", .help = "List the chains of the service, or show one"}},
    Route{.method = "POST",
          .path = "/v1/chains",
          .least = Role::kOwner,
          .handler = apply_chain,
          .operation = "apply",
          .help =
              R"(applies `{"file": "/whole/path.yaml", "options": {...}}`; the chain, with status 201 if it is new, )"
              "else 200",
          .makes_chain = true},
    Route{.method = "GET",
          .path = "/v1/chains/NAME",
          .least = Role::kReader,
          .handler = get_chain,
          .operation = {},
          .help = "the chain",
          .command = {.word = "get"}},
    Route{.method = "PUT",
          .path = "/v1/chains/NAME",
          .least = Role::kOwner,
          .handler = apply_chain,
          .operation = "apply",
          .help = "as `POST /v1/chains`, for a file whose chain has this name",
          .makes_chain = true},
    Route{.method = "GET",
          .path = "/v1/chains/NAME/config",
          .least = Role::kOwner,
          .handler = get_config,
          .operation = {},
          .help = R"(`{"name": ..., "config": "..."}`: the chain file of its last run, with options over it and with )"
                  "all defaults; 409 if it did not run since the service started"},
    Route{.method = "POST",
          .path = "/v1/chains/NAME/start",
          .least = Role::kOperator,
          .handler = start_chain,
          .operation = "start",
          .help = "as an apply of its file with its options; after a rollback, of the earlier spec",
          .command = {.word = "start", .help = "Start a chain of the service", .takes_consents = true}},
    Route{.method = "POST",
          .path = "/v1/chains/NAME/restart",
          .least = Role::kOperator,
          .handler = restart_chain,
          .operation = "restart",
          .help = "as a stop and a start, if the spec has no error",
          .command = {.word = "restart", .help = "Stop and start a chain of the service", .takes_consents = true}},
    Route{.method = "POST",
          .path = "/v1/chains/NAME/reload",
          .least = Role::kOwner,
          .handler = reload_chain,
          .operation = "reload",
          .help = "as an apply of its file with its options",
          .command = {.word = "reload",
                      .help = "Apply the file of a chain of the service again",
                      .takes_consents = true}},
    Route{.method = "DELETE",
          .path = "/v1/chains/NAME/operation",
          .least = Role::kOperator,
          .handler = cancel_chain,
          .operation = "cancel",
          .help = "the chain, when its start or change has ended; 409 without one",
          .command = {.word = "cancel",
                      .help = "End a start or a change of a chain of the service",
                      .done = "{name}: {state}"}},
    Route{.method = "GET",
          .path = "/v1/chains/NAME/revisions",
          .least = Role::kReader,
          .handler = list_revisions,
          .operation = {},
          .help = R"(`{"revisions": [...]}`, its last specs, the newest first)",
          .command = {.word = "history", .help = "List the last specs of a chain of the service"}},
    Route{.method = "GET",
          .path = "/v1/chains/NAME/log",
          .least = Role::kOperator,
          .handler = get_log,
          .operation = {},
          .help = R"(`{"lines": [...]}`, its last 128 lines of the log, the oldest first)"},
    Route{.method = "POST",
          .path = "/v1/chains/NAME/rollback",
          .least = Role::kOwner,
          .handler = roll_back_chain,
          .operation = "rollback",
          .help =
              R"(as an apply of the spec `{"revision": ...}`, without it of the one before the present one; 400 if )"
              "a file has changed since",
          .command = {.word = "rollback",
                      .help = "Apply an earlier spec of a chain of the service",
                      .takes_consents = true,
                      .takes_revision = true}},
    Route{.method = "POST",
          .path = "/v1/chains/NAME/confirm",
          .least = Role::kOwner,
          .handler = confirm_chain,
          .operation = "confirm",
          .help = "the chain, which keeps the spec of `apply --confirm`; 409 without one",
          .command = {.word = "confirm", .help = "Keep the spec of apply --confirm", .done = "{name}: confirmed"}},
    Route{.method = "POST",
          .path = "/v1/chains/NAME/stop",
          .least = Role::kOperator,
          .handler = stop_chain,
          .operation = "stop",
          .help = "the chain, when it has ended",
          .command = {.word = "stop",
                      .help = "Stop a chain of the service, which stays known",
                      .done = "{name}: {state}"}},
    Route{
        .method = "DELETE",
        .path = "/v1/chains/NAME",
        .least = Role::kOwner,
        .handler = remove_chain,
        .operation = "delete",
        .help = R"(`{"ok": true}`, when it has ended)",
        .command = {.word = "delete", .help = "Stop a chain of the service and forget it", .done = "{name}: deleted"}},
    Route{.method = "POST",
          .path = "/v1/chains/NAME/reset",
          .least = Role::kRoot,
          .handler = reset_chain,
          .operation = "reset",
          .help = "the chain, allowed to use the device again after its kernel crashed it; 409 if it is not in "
                  "quarantine",
          .refusal = "only root may lift a quarantine: the kernel has crashed a shared device",
          .command = {.is_of_nf = true,
                      .word = "reset",
                      .help = "Let a chain use the device again after its kernel took it down",
                      .done = "{name}: out of quarantine"}},
    Route{.method = "GET",
          .path = "/v1/ports",
          .least = Role::kReader,
          .handler = list_ports,
          .operation = {},
          .help = R"(`{"ports": [...]}`: shared ports, each with its running chains, their matches, and the frames )"
                  "without a chain; empty for an owner"},
    Route{.method = "POST",
          .path = "/v1/reopen",
          .least = Role::kRoot,
          .handler = reopen_outputs,
          .operation = "reopen",
          .help = R"(`{"ok": true}`: outputs follow their names, as after SIGUSR1)",
          .refusal = "only root may reopen the outputs of all chains"},
    Route{.method = "GET",
          .path = "/v1/version",
          .least = Role::kReader,
          .handler = get_version,
          .operation = {},
          .help = R"(`{"version": ...}`)"},
    Route{.method = "GET",
          .path = "/metrics",
          .least = Role::kReader,
          .handler = get_metrics,
          .operation = {},
          .help = "text, see above",
          .is_for_network = true},
};

}  // namespace

std::span<const Route> routes() { return kRoutes; }

}  // namespace catena::service
