// SPDX-License-Identifier: Apache-2.0
#include "service/control.hpp"

#include "service/answers.hpp"
#include "service/route.hpp"

#include <catena/core/text.hpp>

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace catena::service {
namespace {

using Json = nlohmann::ordered_json;

constexpr unsigned kHttpMethodNotAllowed = 405;

/// Of the routes that this returns true for.
using Filter = bool (*)(Route const& route);

bool is_any(Route const& /*route*/) { return true; }
bool is_for_network(Route const& route) { return route.is_for_network; }

/// The name of the chain if `path` is one of `pattern`, which may be empty without NAME.
std::optional<std::string> name_in(std::string_view path, std::string_view pattern) {
  constexpr std::string_view kName = "NAME";
  const std::size_t at = pattern.find(kName);
  if (at == std::string_view::npos) {
    return path == pattern ? std::optional(std::string()) : std::nullopt;
  }
  const std::string_view after = pattern.substr(at + kName.size());
  if (!path.starts_with(pattern.substr(0, at)) || path.size() < at + after.size() || !path.ends_with(after)) {
    return std::nullopt;
  }
  const std::string_view name = path.substr(at, path.size() - at - after.size());
  const bool is_name = name.find('/') == std::string_view::npos && (!name.empty() || !after.empty());
  return is_name ? std::optional(std::string(name)) : std::nullopt;
}

HttpResponse other_method(std::string const& allowed) {
  HttpResponse response =
      error_response(kHttpMethodNotAllowed, absl::InvalidArgumentError(concat("allowed here: ", allowed)));
  response.allow = concat(allowed, allowed.find("GET") == std::string::npos ? "" : ", HEAD");
  return response;
}

/// "a, b and c"
std::string known_paths(Filter filter) {
  std::vector<std::string_view> paths;
  for (Route const& route : routes()) {
    if (filter(route) && std::ranges::find(paths, route.path) == paths.end()) {
      paths.push_back(route.path);
    }
  }
  const std::string_view last = paths.back();
  paths.pop_back();
  return paths.empty() ? std::string(last) : concat(fmt::format("{}", fmt::join(paths, ", ")), " and ", last);
}

/// Whether the client may use the route, for the chain of this name.
Status check_access(Route const& route, ChainSet const& chains, std::string const& name, Client const& client,
                    Role role) {
  if (route.has_name() && !route.makes_chain) {
    CATENA_RETURN_IF_ERROR(chains.check_reach(name, client));
  }
  if (may_use(role, route.least, true)) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(route.refusal.empty() ? concat("user ", client.caller.uid, " is a ",
                                                                    info_of(role).name, " and may change no chain")
                                                           : std::string(route.refusal));
}

/// Keeps what libraries throw (out of memory) away from the server's C code.
HttpResponse protected_from(HttpRequest const& request, auto const& work) {
  try {
    return work();
  } catch (std::exception const& error) {
    spdlog::error("{}: {}", concat(request.method, " ", request.path), error.what());
    return error_response(kHttpFailed, absl::InternalError(error.what()));
  }
}

/// Logs what was refused.
HttpResponse guarded(HttpRequest const& request, auto const& work) {
  return protected_from(request, [&] {
    HttpResponse response = work();
    if (response.status >= kHttpFirstError) {
      const Json body = Json::parse(response.body, nullptr, false);
      spdlog::warn("{}: {} {}", concat(request.method, " ", request.path), response.status, body.value("error", ""));
    }
    return response;
  });
}

/// What clients may not do is audited, too.
void audit(AuditLog& log, Route const& route, std::string name, HttpRequest const& request, uid_t user, Role role,
           HttpResponse const& response) {
  if (route.operation.empty() || response.is_dry_run) {
    return;
  }
  const Json answer = Json::parse(response.body, nullptr, false);
  const auto text = [&answer](const char* key) {
    const auto found = answer.find(key);
    return found != answer.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const bool is_refused = response.status >= kHttpFirstError;
  log.add({std::string(route.operation), name.empty() ? text("name") : std::move(name), text("revision"), user,
           process_of(request.socket), response.status, is_refused ? text("error") : std::string(),
           info_of(role).name});
}

HttpResponse dispatch(Controlled const& service, HttpRequest const& request, Caller const& caller, Filter filter) {
  const Role role = service.roles.of(caller);
  // the head of what GET gives (RFC 9110, section 9.3.2); the server leaves out the body
  const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  std::string allowed;
  for (Route const& route : routes()) {
    std::optional<std::string> name = filter(route) ? name_in(request.path, route.path) : std::nullopt;
    if (!name) {
      continue;
    }
    if (method == route.method) {
      const Client client{caller, may_use(role, route.least, false), may_use(role, Role::kOperator, false)};
      const Status may = check_access(route, service.chains, *name, client, role);
      HttpResponse response =
          may.ok()
              ? protected_from(
                    request,
                    [&] {
                      return route.handler({service.chains, service.audit, service.version, request, client, *name});
                    })
              : error_answer(may);
      audit(service.audit, route, *std::move(name), request, caller.uid, role, response);
      return response;
    }
    allowed += concat(allowed.empty() ? "" : ", ", route.method);
  }
  return allowed.empty() ? error_response(kHttpNotFound, absl::NotFoundError(concat("unknown path ", request.path,
                                                                                    "; known: ", known_paths(filter))))
                         : other_method(allowed);
}

}  // namespace

HttpResponse answer_control(Controlled const& service, HttpRequest const& request) {
  return guarded(request, [&] {
    const Result<Caller> caller = caller_of(request.socket);
    if (!caller.ok()) {
      return error_answer(caller.status());
    }
    const Caller own = own_user();
    if (own.uid != 0 && !is_privileged(*caller)) {
      return error_answer(absl::PermissionDeniedError(concat("this service runs as user ", own.uid,
                                                             " and cannot take the rights of user ", caller->uid,
                                                             "; only a service started by root serves many users")));
    }
    return dispatch(service, request, *caller, is_any);
  });
}

HttpResponse answer_metrics(Controlled const& service, HttpRequest const& request) {
  return guarded(request, [&] { return dispatch(service, request, own_user(), is_for_network); });
}

}  // namespace catena::service
