// SPDX-License-Identifier: Apache-2.0
// /v1/chains: all chains, or one by its name.
#include "service/answers.hpp"
#include "service/apply_record.hpp"
#include "service/chain_set.hpp"
#include "service/route.hpp"

#include <catena/core/text.hpp>

#include <nlohmann/json.hpp>

#include <string>
#include <utility>

namespace catena::service {
namespace {

using Json = nlohmann::ordered_json;

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

}  // namespace

HttpResponse list_chains(Exchange const& exchange) {
  Json all = Json::array();
  for (ChainView const& chain : exchange.chains.list(exchange.caller)) {
    all.push_back(json_of(chain));
  }
  return json_answer({{"chains", std::move(all)}});
}

HttpResponse apply_chain(Exchange const& exchange) {
  auto& [chains, version, asked, caller, name] = exchange;
  const Json request = parse_request(asked.body);
  if (!request.is_object() || !request.contains("file") || !request["file"].is_string()) {
    return error_answer(absl::InvalidArgumentError(
        "the body must be JSON: {\"file\": \"/path/of/chain.yaml\"}, and \"options\" if needed"));
  }
  for (auto const& [key, value] : request.items()) {
    if (key != "file" && key != "options" && key != "dry_run") {
      return error_answer(absl::InvalidArgumentError(concat("unknown '", key, "'; allowed: file, options, dry_run")));
    }
  }
  const auto file = request["file"].get<std::string>();
  if (!file.starts_with('/') || file.find('\0') != std::string::npos) {
    return error_answer(
        absl::InvalidArgumentError(concat("'file' must be a whole path, from / on, and not '", file, "'")));
  }
  const Result<RequestOptions> options = options_from(request.value("options", Json::object()));
  if (!options.ok()) {
    return error_answer(options.status());
  }
  if (request.contains("dry_run") && !request["dry_run"].is_boolean()) {
    return error_answer(absl::InvalidArgumentError("'dry_run' must be true or false"));
  }
  const bool is_dry_run = request.value("dry_run", false);
  const Result<ChainSet::AppliedChain> applied = is_dry_run ? chains.preview(name, file, *options, caller, asked.gone)
                                                            : chains.apply(name, file, *options, caller, asked.gone);
  if (!applied.ok()) {
    return error_answer(applied.status());
  }
  Json answer = {{"name", applied->name}};
  if (!is_dry_run) {
    const Result<ChainView> view = chains.get(applied->name, caller);
    if (!view.ok()) {
      return error_answer(view.status());
    }
    answer = json_of(*view);
  }
  answer["dry_run"] = is_dry_run;
  answer["applied"] = applied->is_new ? "started" : applied->is_changed ? "changed" : "replaced";
  answer["changes"] = applied->changes;
  answer["why_replaced"] = applied->replace_reason.empty() ? Json() : Json(applied->replace_reason);
  answer["why_packets_are_lost"] = applied->loss_reason.empty() ? Json() : Json(applied->loss_reason);
  return json_answer(answer, applied->is_new && !is_dry_run ? kHttpCreated : kHttpOk);
}

HttpResponse get_chain(Exchange const& exchange) {
  const Result<ChainView> view = exchange.chains.get(exchange.name, exchange.caller);
  return view.ok() ? json_answer(json_of(*view)) : error_answer(view.status());
}

HttpResponse get_config(Exchange const& exchange) {
  const Result<std::string> config = exchange.chains.config_of(exchange.name, exchange.caller);
  return config.ok() ? json_answer({{"name", exchange.name}, {"config", *config}}) : error_answer(config.status());
}

HttpResponse stop_chain(Exchange const& exchange) {
  const Status status = exchange.chains.stop(exchange.name, exchange.caller);
  return status.ok() ? get_chain(exchange) : error_answer(status);
}

HttpResponse remove_chain(Exchange const& exchange) {
  const Status status = exchange.chains.remove(exchange.name, exchange.caller);
  return status.ok() ? json_answer({{"ok", true}}) : error_answer(status);
}

HttpResponse reset_chain(Exchange const& exchange) {
  const Status status = exchange.chains.lift_quarantine(exchange.name);
  return status.ok() ? get_chain(exchange) : error_answer(status);
}

}  // namespace catena::service
