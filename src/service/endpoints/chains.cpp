// SPDX-License-Identifier: Apache-2.0
// /v1/chains: all chains, or one by its name.
#include "service/answers.hpp"
#include "service/apply_record.hpp"
#include "service/chain_log.hpp"
#include "service/chain_set.hpp"
#include "service/route.hpp"

#include <catena/core/text.hpp>

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace catena::service {
namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(std::string const& text) { return text.empty() ? Json() : Json(text); }

/// A message about a chain. Errors in its files quote them.
Json message_for(Client const& client, ChainView const& chain, std::string const& message) {
  const bool may_read = client.reads_texts || owns(client.caller, chain.applied);
  return text_or_null(message.empty() || may_read ? message : "its user and operators see the reason");
}

/// The report of `catena run --json`, with what the service knows.
Json json_of(ChainView const& chain, Client const& client) {
  Json json = {{"name", chain.applied.name},
               {"state", to_string(chain.state)},
               {"file", chain.applied.file},
               {"tenant", chain.applied.tenant},
               {"uid", chain.applied.caller.uid},
               {"number", chain.number == 0 ? Json() : Json(chain.number)},
               {"options", to_json(chain.applied.options)},
               {"quarantine", text_or_null(chain.quarantine)},
               {"own_device_server", text_or_null(chain.separation)},
               {"ok", chain.error.empty()},
               {"error", nullptr},
               {"retry_s", chain.retry ? Json(chain.retry->count()) : Json()},
               {"revision", text_or_null(chain.revision)},
               {"fallback", message_for(client, chain, chain.fallback)},
               {"confirm_s", chain.confirm ? Json(chain.confirm->count()) : Json()}};
  if (chain.report) {
    json.update(Json::parse(runtime::to_json(*chain.report)));
  }
  json["error"] = message_for(client, chain, chain.error);
  return json;
}

Json json_of(Amounts const& amounts) {
  Json json = Json::object();
  for (std::size_t i = 0; i < kQuotas.size(); ++i) {
    json[std::string(kQuotas[i].key)] = amounts[i];
  }
  return json;
}

/// What is nested deeper than anything in a request is left out, and what has it is not what it must be: JSON is copied
/// level by level, and a stack has an end.
Json parse_request(std::string const& body) {
  constexpr int kMaxDepth = 3;
  return Json::parse(
      body, [](int depth, Json::parse_event_t /*event*/, Json const& /*parsed*/) { return depth <= kMaxDepth; }, false);
}

HttpResponse applied_answer(Exchange const& exchange, Result<AppliedChain> const& applied, bool is_dry_run = false) {
  if (!applied.ok()) {
    return error_answer(applied.status());
  }
  Json answer = {{"name", applied->name}};
  if (!is_dry_run) {
    const Result<ChainView> view = exchange.chains.get(applied->name, exchange.client);
    if (!view.ok()) {
      return error_answer(view.status());
    }
    answer = json_of(*view, exchange.client);
  }
  answer["dry_run"] = is_dry_run;
  answer["applied"] = applied->is_new ? "started" : applied->is_changed ? "changed" : "replaced";
  answer["changes"] = applied->changes;
  answer["why_replaced"] = text_or_null(applied->replace_reason);
  answer["warnings"] = applied->warnings;
  answer["losses"] = runtime::describe(applied->losses);
  answer["restarted_nfs"] = applied->losses.nf_states;
  if (is_dry_run) {
    answer["quotas"] = json_of(applied->amounts);
    answer["quota_limits"] = applied->quotas ? json_of(*applied->quotas) : Json();
  }
  answer["why_packets_are_lost"] = text_or_null(applied->losses.packets);
  return json_answer(answer, applied->is_new && !is_dry_run ? kHttpCreated : kHttpOk);
}

/// What a request about a known spec may have: consents, and the revision if `revision` is not null.
Result<RequestOptions> consents_of(HttpRequest const& asked, std::string* revision = nullptr) {
  const Json request = asked.body.empty() ? Json::object() : parse_request(asked.body);
  if (!request.is_object()) {
    return absl::InvalidArgumentError("the body must be a JSON object, or empty");
  }
  for (auto const& [key, value] : request.items()) {
    if (key == "revision" && revision != nullptr && value.is_string()) {
      *revision = value.get<std::string>();
    } else if (key != "options") {
      return absl::InvalidArgumentError(
          concat("wrong '", key, "'; allowed: ", revision != nullptr ? "revision, a text, and " : "", "options"));
    }
  }
  CATENA_ASSIGN_OR_RETURN(RequestOptions options, options_from(request.value("options", Json::object())));
  if (!options.over_file.empty()) {
    return absl::InvalidArgumentError(
        concat("options: '", options.over_file.begin()->first, "' is of the spec; apply its file for another value"));
  }
  return options;
}

using Again = Result<AppliedChain> (ChainSet::*)(std::string const&, RequestOptions const&, Client const&,
                                                 std::stop_token const&);

HttpResponse apply_again(Exchange const& exchange, Again again) {
  const Result<RequestOptions> consents = consents_of(exchange.request);
  return consents.ok() ? applied_answer(exchange, (exchange.chains.*again)(exchange.name, *consents, exchange.client,
                                                                           exchange.request.gone))
                       : error_answer(consents.status());
}

}  // namespace

HttpResponse list_chains(Exchange const& exchange) {
  Json all = Json::array();
  for (ChainView const& chain : exchange.chains.list(exchange.client)) {
    all.push_back(json_of(chain, exchange.client));
  }
  return json_answer({{"chains", std::move(all)}});
}

HttpResponse apply_chain(Exchange const& exchange) {
  auto& [chains, audit, version, asked, client, name] = exchange;
  const Json request = parse_request(asked.body);
  if (!request.is_object() || !request.contains("file") || !request["file"].is_string()) {
    return error_answer(absl::InvalidArgumentError(
        "the body must be JSON: {\"file\": \"/path/of/chain.yaml\"}, and \"options\" if needed"));
  }
  for (auto const& [key, value] : request.items()) {
    if (key != "file" && key != "options" && key != "dry_run" && key != "confirm_s") {
      return error_answer(
          absl::InvalidArgumentError(concat("unknown '", key, "'; allowed: file, options, dry_run, confirm_s")));
    }
  }
  const auto file = request["file"].get<std::string>();
  if (!file.starts_with('/') || file.find('\0') != std::string::npos) {
    return error_answer(
        absl::InvalidArgumentError(concat("'file' must be a whole path, from / on, and not '", file, "'")));
  }
  Result<RequestOptions> options = options_from(request.value("options", Json::object()));
  if (!options.ok()) {
    return error_answer(options.status());
  }
  if (request.contains("confirm_s")) {
    Json const& seconds = request["confirm_s"];
    if (!seconds.is_number_unsigned() || seconds < 1U || seconds > kMaxConfirmSeconds) {
      return error_answer(
          absl::InvalidArgumentError(concat("'confirm_s' must be a whole number from 1 to ", kMaxConfirmSeconds)));
    }
    options->confirm = std::chrono::seconds(seconds.get<std::uint32_t>());
  }
  if (request.contains("dry_run") && !request["dry_run"].is_boolean()) {
    return error_answer(absl::InvalidArgumentError("'dry_run' must be true or false"));
  }
  const bool is_dry_run = request.value("dry_run", false);
  HttpResponse response = applied_answer(exchange,
                                         is_dry_run ? chains.preview(name, {file}, *options, client.caller, asked.gone)
                                                    : chains.apply(name, {file}, *options, client.caller, asked.gone),
                                         is_dry_run);
  response.is_dry_run = is_dry_run;
  return response;
}

HttpResponse get_chain(Exchange const& exchange) {
  const Result<ChainView> view = exchange.chains.get(exchange.name, exchange.client);
  return view.ok() ? json_answer(json_of(*view, exchange.client)) : error_answer(view.status());
}

HttpResponse get_config(Exchange const& exchange) {
  const Result<std::string> config = exchange.chains.config_of(exchange.name, exchange.client);
  return config.ok() ? json_answer({{"name", exchange.name}, {"config", *config}}) : error_answer(config.status());
}

HttpResponse stop_chain(Exchange const& exchange) {
  const Status status = exchange.chains.stop(exchange.name, exchange.client);
  return status.ok() ? get_chain(exchange) : error_answer(status);
}

HttpResponse start_chain(Exchange const& exchange) { return apply_again(exchange, &ChainSet::start); }
HttpResponse reload_chain(Exchange const& exchange) { return apply_again(exchange, &ChainSet::reload); }
HttpResponse restart_chain(Exchange const& exchange) { return apply_again(exchange, &ChainSet::restart); }

HttpResponse roll_back_chain(Exchange const& exchange) {
  std::string revision;
  Result<RequestOptions> consents = consents_of(exchange.request, &revision);
  return consents.ok()
             ? applied_answer(exchange, exchange.chains.rollback(exchange.name, revision, *std::move(consents),
                                                                 exchange.client, exchange.request.gone))
             : error_answer(consents.status());
}

HttpResponse list_revisions(Exchange const& exchange) {
  const Result<ChainView> view = exchange.chains.get(exchange.name, exchange.client);
  const Result<std::vector<RevisionInfo>> kept = exchange.chains.history(exchange.name, exchange.client);
  if (!view.ok() || !kept.ok()) {
    return error_answer(view.ok() ? kept.status() : view.status());
  }
  Json all = Json::array();
  for (RevisionInfo const& revision : *kept) {
    all.push_back({{"revision", revision.id},
                   {"applied", time_text(revision.applied)},
                   {"uid", revision.uid},
                   {"file", revision.file},
                   {"is_present", revision.id == view->revision}});
  }
  return json_answer({{"name", exchange.name}, {"revisions", std::move(all)}});
}

HttpResponse get_log(Exchange const& exchange) {
  Json lines = Json::array();
  for (ChainLogLine const& line : chain_log()->lines_of(exchange.name)) {
    lines.push_back({{"number", line.number},
                     {"time", time_text(line.time)},
                     {"level", line.level},
                     {"stage", text_or_null(line.stage)},
                     {"message", line.message}});
  }
  return json_answer({{"name", exchange.name}, {"lines", std::move(lines)}});
}

HttpResponse confirm_chain(Exchange const& exchange) {
  const Status status = exchange.chains.confirm(exchange.name, exchange.client);
  return status.ok() ? get_chain(exchange) : error_answer(status);
}

HttpResponse cancel_chain(Exchange const& exchange) {
  const Status status = exchange.chains.cancel(exchange.name, exchange.client);
  return status.ok() ? get_chain(exchange) : error_answer(status);
}

HttpResponse remove_chain(Exchange const& exchange) {
  const Status status = exchange.chains.remove(exchange.name, exchange.client);
  return status.ok() ? json_answer({{"ok", true}}) : error_answer(status);
}

HttpResponse reset_chain(Exchange const& exchange) {
  const Status status = exchange.chains.lift_quarantine(exchange.name);
  return status.ok() ? get_chain(exchange) : error_answer(status);
}

}  // namespace catena::service
