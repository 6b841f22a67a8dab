// SPDX-License-Identifier: Apache-2.0
#include "chain/layout.hpp"
#include "chain/planning.hpp"
#include "chain/process_plans.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <utility>

#include "apps/catena/commands.hpp"
#include "apps/catena/fail.hpp"
#include "apps/catena/known_nfs.hpp"
#include "apps/catena/profile_option.hpp"
#include "apps/catena/style.hpp"
#include "plan/explain.hpp"

namespace catena::cli {
namespace {

nlohmann::ordered_json to_json(plan::Plan const& plan) {
  nlohmann::ordered_json json;
  json["mode"] = plan::to_string(plan.mode);
  json["bytes_to_device"] = plan.bytes_to_device;
  json["bytes_to_host"] = plan.bytes_to_host;
  json["cost_ns"] = plan.cost_ns;
  json["cpu_ns"] = plan.cpu_ns;
  json["nfs"] = nlohmann::ordered_json::array();
  for (plan::PlannedNf const& nf : plan.nfs) {
    nlohmann::ordered_json entry{{"name", nf.name}, {"on", nf.on == plan::Processor::kGpu ? "gpu" : "cpu"}};
    if (nf.step) {
      entry["shared_buffer"] = nf.step->shared;
      entry["to_device"] = plan::describe(nf.step->to_device);
      entry["to_host"] = plan::describe(nf.step->to_host);
      entry["moves"] = nlohmann::ordered_json::array();
      for (plan::Move const& move : nf.step->moves) {
        entry["moves"].push_back({{"direction", to_string(move.direction)},
                                  {"method", to_string(move.method)},
                                  {"fields", plan::describe(move.fields)},
                                  {"bytes", move.cost.bytes},
                                  {"ns", move.cost.total_ns}});
      }
      entry["reasons"] = nlohmann::ordered_json::array();
      for (plan::Reason const& reason : nf.step->reasons) {
        entry["reasons"].push_back({{"direction", to_string(reason.direction)},
                                    {"moved", plan::is_moved(reason.kind)},
                                    {"fields", plan::describe(reason.fields)},
                                    {"why", plan::describe(reason, plan.nfs)}});
      }
    }
    json["nfs"].push_back(std::move(entry));
  }
  return json;
}

nlohmann::ordered_json to_json(plan::Comparison const& plans) {
  return {{"adaptive", to_json(plans.adaptive)}, {"copy", to_json(plans.copy)}, {"shared", to_json(plans.shared)}};
}

/// "CATENA_READS=8589940736UL" as a preprocessor line; a field set with its names after it.
std::string as_line(std::string const& define) {
  const std::size_t equals = define.find('=');
  const std::string name = define.substr(0, equals);
  const std::string value = define.substr(equals + 1);
  std::string line = fmt::format("#define {:<22} {}", name, value);
  for (const std::string_view set : {"CATENA_READS", "CATENA_WRITES", "CATENA_IN_COLUMNS", "CATENA_OUT_COLUMNS",
                                     "CATENA_COLUMNS", "CATENA_MAPPED_COLUMNS", "CATENA_WRITTEN"}) {
    if (name == set) {
      line += "  // " + plan::describe(static_cast<packet::FieldSet>(std::stoull(value)));
    }
  }
  return line;
}

/// What a plan is made of, as the command line says.
struct PlanInputs {
  chain::ChainConfig config;  ///< with its layout
  chain::ChainLayout layout;
  nf::Registry registry;
  chain::RunOptions options;
  std::optional<chain::Placement> placement;  ///< where an NF is `on: auto`
};

Result<PlanInputs> inputs_of(std::string const& chain_file, RunArguments const& arguments) {
  PlanInputs inputs;
  CATENA_ASSIGN_OR_RETURN(chain::ChainConfig spec,
                          chain::load_chain(chain_file, arguments.options, chain::environment_variables()));
  CATENA_ASSIGN_OR_RETURN(inputs.registry, known_nfs(arguments.nf_path));
  CATENA_ASSIGN_OR_RETURN(chain::RunOptions options, chain::run_options_of(spec));
  CATENA_ASSIGN_OR_RETURN(options.sync.profile, profile_for(spec));
  CATENA_ASSIGN_OR_RETURN(inputs.layout, layout_for(spec, options, inputs.registry, inputs.placement));
  inputs.config = chain::with_layout(std::move(spec), inputs.layout);
  inputs.options = std::move(options);
  return inputs;
}

}  // namespace

int plan(RunArguments const& arguments) {
  const Result<PlanInputs> inputs = inputs_of(arguments.chain_file, arguments);
  if (!inputs.ok()) {
    return fail(inputs.status(), arguments.json);
  }
  const Result<chain::ChainPlan> planned = chain::plan_chain(inputs->config, inputs->options, inputs->registry);
  if (!planned.ok()) {
    return fail(planned.status(), arguments.json);
  }
  const auto processes = chain::plan_processes(inputs->config, inputs->options, inputs->registry);
  if (!processes.ok()) {
    return fail(processes.status(), arguments.json);
  }
  plan::Comparison const& plans = planned->plans;
  const std::string costs = chain::describe(inputs->options.sync.profile, inputs->config.devices.front().backend);
  if (arguments.json) {
    nlohmann::ordered_json json{{"chain", inputs->config.name},
                                {"cost_profile", costs},
                                {"cost_profile_device", inputs->options.sync.profile.device},
                                {"layout", chain::to_json(inputs->layout)},
                                {"data_path", chain::to_json(planned->path, inputs->config)}};
    json.update(to_json(plans));
    for (chain::ProcessPlan const& process : *processes) {
      json["processes"].push_back(to_json(process.plans));
    }
    if (inputs->placement) {
      json["placement"] = chain::to_json(*inputs->placement);
    }
    print_json(std::cout, json);
  } else {
    if (std::ranges::any_of(plans.adaptive.nfs, [](plan::PlannedNf const& nf) { return nf.step.has_value(); })) {
      std::cout << concat("costs: ", costs, of_device(inputs->options.sync.profile), "\n");
    }
    if (inputs->placement) {
      for (std::string const& line : chain::describe(*inputs->placement)) {
        std::cout << line << '\n';
      }
    }
    if (inputs->config.shards > 1) {
      std::cout << "shards " << chain::describe(planned->path, inputs->config) << '\n';
    }
    std::cout << plan::explain(plans);
    for (chain::ProcessPlan const& process : *processes) {
      std::cout << "\nin the " << process.process
                << ", to which the chain gives whole packets, by the built-in profile:\n"
                << plan::explain(process.plans);
    }
  }
  return kExitOk;
}

int show_program(std::string const& chain_file, std::string const& nf, RunArguments const& arguments, bool json) {
  const Result<PlanInputs> inputs = inputs_of(chain_file, arguments);
  if (!inputs.ok()) {
    return fail(inputs.status(), json);
  }
  const auto programs = chain::adapted_programs(inputs->config, inputs->options.sync, inputs->registry, nf);
  if (!programs.ok()) {
    return fail(programs.status(), json);
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (chain::AdaptedProgram const& program : *programs) {
    if (json) {
      list.push_back({{"title", program.title},
                      {"defines", program.source.defines},
                      {"source", program.source.files.front().text}});
      continue;
    }
    std::cout << "// " << program.title << '\n';
    for (std::string const& define : program.source.defines) {
      std::cout << as_line(define) << '\n';
    }
    std::cout << '\n' << program.source.files.front().text << '\n';
  }
  if (json) {
    print_json(std::cout, list);
  }
  return kExitOk;
}

}  // namespace catena::cli
