// SPDX-License-Identifier: Apache-2.0
#include "service/control.hpp"

#include "base/core/log_line.hpp"
#include "service/exposition.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include <exception>
#include <optional>
#include <string_view>
#include <utility>

namespace catena::service {
namespace {

using Json = nlohmann::ordered_json;

constexpr unsigned kOk = 200;
constexpr unsigned kCreated = 201;
constexpr unsigned kNotFound = 404;
constexpr unsigned kMethodNotAllowed = 405;
constexpr unsigned kFailed = 500;

unsigned http_status(Status const& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return kNotFound;
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
      return 409;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
      return 503;
    default:
      return kFailed;
  }
}

HttpResponse failed(Status const& status) { return error_response(http_status(status), status); }

HttpResponse ok(Json const& body, unsigned status = kOk) {
  return {status, body.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"};
}

HttpResponse other_method(std::string allowed) {
  HttpResponse response =
      error_response(kMethodNotAllowed, absl::InvalidArgumentError(concat("allowed here: ", allowed)));
  response.allow = std::move(allowed);
  return response;
}

HttpResponse no_such_resource(std::string const& path) {
  return error_response(
      kNotFound, absl::NotFoundError(concat(
                     "unknown path ", path,
                     "; known: /v1/chains, /v1/chains/NAME, /v1/chains/NAME/stop, /v1/chains/NAME/reset, /v1/ports, "
                     "/v1/version and /metrics")));
}

HttpResponse metrics_of(ChainSet const& chains, Caller const& caller, std::string const& version) {
  HttpResponse response{kOk, exposition(chains.list(caller), chains.shared_ports(caller), version)};
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  return response;
}

/// The report of `catena run --json`, with what the service knows.
Json json_of(ChainView const& chain) {
  Json json = {{"name", chain.applied.name},
               {"state", to_string(chain.state)},
               {"file", chain.applied.file},
               {"tenant", chain.applied.tenant},
               {"uid", chain.applied.caller.uid},
               {"options", to_json(chain.applied.options)},
               {"quarantine", chain.quarantine.empty() ? Json() : Json(chain.quarantine)},
               {"ok", chain.error.empty()},
               {"error", chain.error.empty() ? Json() : Json(chain.error)}};
  if (chain.report) {
    json.update(Json::parse(runtime::to_json(*chain.report)));
  }
  return json;
}

/// What is nested deeper than anything in a request is left out, and what has it is not what it must be: JSON is copied
/// level by level, and a stack has an end.
Json parse_request(std::string const& body) {
  constexpr int kMaxDepth = 2;
  return Json::parse(
      body, [](int depth, Json::parse_event_t /*event*/, Json const& /*parsed*/) { return depth <= kMaxDepth; }, false);
}

HttpResponse apply(ChainSet& chains, std::string const& name, HttpRequest const& asked, Caller const& caller) {
  const Json request = parse_request(asked.body);
  if (!request.is_object() || !request.contains("file") || !request["file"].is_string()) {
    return failed(absl::InvalidArgumentError(
        "the body must be JSON: {\"file\": \"/path/of/chain.yaml\"}, and \"options\" if needed"));
  }
  for (auto const& [key, value] : request.items()) {
    if (key != "file" && key != "options" && key != "dry_run") {
      return failed(absl::InvalidArgumentError(concat("unknown '", key, "'; allowed: file, options, dry_run")));
    }
  }
  const auto file = request["file"].get<std::string>();
  if (!file.starts_with('/') || file.find('\0') != std::string::npos) {
    return failed(absl::InvalidArgumentError(concat("'file' must be a whole path, from / on, and not '", file, "'")));
  }
  const Result<chain::OptionTexts> options = options_from(request.value("options", Json::object()));
  if (!options.ok()) {
    return failed(options.status());
  }
  if (request.contains("dry_run") && !request["dry_run"].is_boolean()) {
    return failed(absl::InvalidArgumentError("'dry_run' must be true or false"));
  }
  const bool is_dry_run = request.value("dry_run", false);
  const Result<ChainSet::AppliedChain> applied = is_dry_run ? chains.preview(name, file, *options, caller, asked.gone)
                                                            : chains.apply(name, file, *options, caller, asked.gone);
  if (!applied.ok()) {
    return failed(applied.status());
  }
  Json answer = {{"name", applied->name}};
  if (!is_dry_run) {
    const Result<ChainView> view = chains.get(applied->name, caller);
    if (!view.ok()) {
      return failed(view.status());
    }
    answer = json_of(*view);
  }
  answer["dry_run"] = is_dry_run;
  answer["applied"] = applied->is_new ? "started" : applied->is_changed ? "changed" : "replaced";
  answer["changes"] = applied->changes;
  answer["why_replaced"] = applied->replace_reason.empty() ? Json() : Json(applied->replace_reason);
  answer["why_packets_are_lost"] = applied->loss_reason.empty() ? Json() : Json(applied->loss_reason);
  return ok(answer, applied->is_new && !is_dry_run ? kCreated : kOk);
}

HttpResponse get(ChainSet const& chains, std::string const& name, Caller const& caller) {
  const Result<ChainView> view = chains.get(name, caller);
  return view.ok() ? ok(json_of(*view)) : failed(view.status());
}

HttpResponse list(ChainSet const& chains, Caller const& caller) {
  Json all = Json::array();
  for (ChainView const& chain : chains.list(caller)) {
    all.push_back(json_of(chain));
  }
  return ok({{"chains", std::move(all)}});
}

HttpResponse list_ports(ChainSet const& chains, Caller const& caller) {
  Json all = Json::array();
  for (io::SharedPort const& port : chains.shared_ports(caller)) {
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
  return ok({{"ports", std::move(all)}});
}

HttpResponse remove(ChainSet& chains, std::string const& name, Caller const& caller) {
  const Status status = chains.remove(name, caller);
  return status.ok() ? ok({{"ok", true}}) : failed(status);
}

HttpResponse stop(ChainSet& chains, std::string const& name, Caller const& caller) {
  const Status status = chains.stop(name, caller);
  return status.ok() ? get(chains, name, caller) : failed(status);
}

HttpResponse reset(ChainSet& chains, std::string const& name, Caller const& caller) {
  const Status status = chains.lift_quarantine(name, caller);
  return status.ok() ? get(chains, name, caller) : failed(status);
}

HttpResponse answer_chains(ChainSet& chains, HttpRequest const& request, Caller const& caller) {
  if (request.method == "GET") {
    return list(chains, caller);
  }
  return request.method == "POST" ? apply(chains, "", request, caller) : other_method("GET, POST");
}

/// `path`: what comes after /v1/chains/.
HttpResponse answer_chain(ChainSet& chains, std::string_view path, HttpRequest const& request, Caller const& caller) {
  const std::string name(path.substr(0, path.find('/')));
  if (name.size() != path.size()) {
    const std::string_view what = path.substr(name.size());
    if (what != "/stop" && what != "/reset") {
      return no_such_resource(request.path);
    }
    if (request.method != "POST") {
      return other_method("POST");
    }
    return what == "/stop" ? stop(chains, name, caller) : reset(chains, name, caller);
  }
  if (request.method == "GET") {
    return get(chains, name, caller);
  }
  if (request.method == "PUT") {
    return apply(chains, name, request, caller);
  }
  return request.method == "DELETE" ? remove(chains, name, caller) : other_method("GET, PUT, DELETE");
}

HttpResponse route(ChainSet& chains, std::string const& version, HttpRequest const& request, Caller const& caller) {
  constexpr std::string_view kChains = "/v1/chains";
  const std::string_view path = request.path;
  if (path == kChains) {
    return answer_chains(chains, request, caller);
  }
  if (path.starts_with(kChains) && path.size() > kChains.size() + 1 && path[kChains.size()] == '/') {
    return answer_chain(chains, path.substr(kChains.size() + 1), request, caller);
  }
  if (path == "/v1/version" || path == "/v1/ports" || path == "/metrics") {
    if (request.method != "GET") {
      return other_method("GET");
    }
    if (path == "/v1/ports") {
      return list_ports(chains, caller);
    }
    return path == "/metrics" ? metrics_of(chains, caller, version) : ok({{"version", version}});
  }
  return no_such_resource(request.path);
}

/// Logs what was refused, and keeps what libraries throw (out of memory) away from the server's C code.
HttpResponse guarded(HttpRequest const& request, auto const& work) {
  try {
    HttpResponse response = work();
    if (response.status >= 400) {
      const Json body = Json::parse(response.body, nullptr, false);
      spdlog::warn("{}: {} {}", log_line(concat(request.method, " ", request.path)), response.status,
                   log_line(body.value("error", "")));
    }
    return response;
  } catch (std::exception const& error) {
    spdlog::error("{}: {}", log_line(concat(request.method, " ", request.path)), error.what());
    return error_response(kFailed, absl::InternalError(error.what()));
  }
}

}  // namespace

HttpResponse answer_control(ChainSet& chains, std::string const& version, HttpRequest const& request) {
  return guarded(request, [&] {
    const Result<Caller> caller = caller_of(request.socket);
    if (!caller.ok()) {
      return failed(caller.status());
    }
    const Caller own = own_user();
    if (own.uid != 0 && !is_privileged(*caller)) {
      return failed(absl::PermissionDeniedError(concat("this service runs as user ", own.uid,
                                                       " and cannot take the rights of user ", caller->uid,
                                                       "; only a service started by root serves many users")));
    }
    return route(chains, version, request, *caller);
  });
}

HttpResponse answer_metrics(ChainSet const& chains, std::string const& version, HttpRequest const& request) {
  return guarded(request, [&] {
    if (request.path != "/metrics") {
      return error_response(kNotFound, absl::NotFoundError(concat("unknown path ", request.path, "; known: /metrics")));
    }
    return request.method == "GET" ? metrics_of(chains, own_user(), version) : other_method("GET");
  });
}

}  // namespace catena::service
