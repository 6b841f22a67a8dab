// SPDX-License-Identifier: Apache-2.0
#include "chain/chain_file.hpp"

#include "base/core/open_file.hpp"
#include "chain/diagnostics.hpp"
#include "chain/flow_keys.hpp"
#include "chain/graph_keys.hpp"
#include "chain/includes.hpp"
#include "chain/isolation_keys.hpp"
#include "chain/keys.hpp"
#include "chain/port_kind.hpp"
#include "chain/shared_ports.hpp"
#include "nf/yaml_limits.hpp"

#include <catena/core/text.hpp>

#include <optional>
#include <set>

namespace catena::chain {
namespace {

/// An entry with the values that `spec` has for all NFs.
Result<NfConfig> nf_defaults(FileSection& spec) {
  NfConfig nf{.name = {}, .type = {}, .on_unsupported = {}, .config = spec.config(), .position = {}};
  CATENA_RETURN_IF_ERROR(spec.read_into(nf));
  return nf;
}

/// But for where it runs, which a process of an NF need not know: it does not see all that other entries name.
/// `nf`: with the defaults of the chain.
Result<NfConfig> read_nf(FileSection& entry, NfConfig nf) {
  CATENA_RETURN_IF_ERROR(entry.read_into(nf));
  nf.position = entry.config().position(entry.has("plugin") ? "plugin" : "type");
  return nf;
}

Result<Tuning> read_tuning(FileSection section) {
  Tuning tuning;
  CATENA_RETURN_IF_ERROR(section.read_into(tuning));
  tuning.says_pool_slots = section.has("pool_slots");
  nf::Config& config = section.config();
  if ((tuning.pool_slots & (tuning.pool_slots - 1)) != 0) {
    return config.error(
        "pool_slots", concat("'pool_slots' is ", tuning.pool_slots, "; allowed: a power of two from 2048 to 1048576"));
  }
  if (const std::uint32_t packets = tuning.units_per_launch * tuning.unit_packets; packets > kMaxLaunchPackets) {
    return config.error("units_per_launch",
                        concat("'units_per_launch' is ", tuning.units_per_launch, ", with ", tuning.unit_packets,
                               " packets per unit ", packets, " packets; a launch takes at most ", kMaxLaunchPackets));
  }
  return tuning;
}

Result<std::uint32_t> read_shards(FileSection& spec, ChainConfig const& chain) {
  const bool is_given = spec.has("shards");
  CATENA_ASSIGN_OR_RETURN(const std::string text, spec.text("shards"));
  if (text == "auto" || (!is_given && chain.rx.kind->is_live)) {
    return kAutoShards;
  }
  CATENA_ASSIGN_OR_RETURN(const std::int64_t number, is_given ? spec.integer("shards") : std::int64_t{1});
  const auto shards = static_cast<std::uint32_t>(number);
  if (shards < chain.devices.size()) {
    return spec.config().error(
        "shards", concat("'shards' is ", shards, ", and each of the ", chain.devices.size(),
                         " devices has one at least; write `shards: auto`, or ", chain.devices.size(), " or more"));
  }
  if (const std::size_t queues = shards * queues_of(chain); queues > memory::kMaxQueues) {
    return spec.config().error(
        "shards", concat("'shards' is ", shards, ", which with ", chain.nfs.size(), " NFs may need ", queues,
                         " queues; the maximum is ", memory::kMaxQueues, "; write ",
                         memory::kMaxQueues / queues_of(chain), " or less"));
  }
  return shards;
}

/// What the table cannot say, of a chain whose keys are fine one by one, and the options over it.
Status read_spec(FileSection& spec, ChainConfig& chain) {
  Diagnostics diagnostics;
  chain.rx = diagnostics.take(read_rx(spec));
  chain.tx = diagnostics.take(read_tx(spec));
  diagnostics.add(check_sharing(spec, chain.rx, chain.tx));
  diagnostics.add(put_over(chain.source.options, chain));
  CATENA_ASSIGN_OR_RETURN(const NfConfig defaults, nf_defaults(spec));
  CATENA_ASSIGN_OR_RETURN(FileSection tuning, spec.section("tuning"));
  chain.tuning = diagnostics.take(read_tuning(std::move(tuning)));
  CATENA_ASSIGN_OR_RETURN(std::vector<FileSection> entries, spec.sections("nfs"));
  std::set<std::string> names;
  for (FileSection& entry : entries) {
    CATENA_ASSIGN_OR_RETURN(NfConfig nf, read_nf(entry, defaults));
    CATENA_RETURN_IF_ERROR(read_isolation(entry, chain.nfs, nf));
    CATENA_RETURN_IF_ERROR(read_plugin(entry, nf));
    if (!names.insert(nf.name).second) {
      diagnostics.add(entry.config().error("name", concat("two NFs are named '", nf.name, "'; names must differ")));
    }
    chain.nfs.push_back(std::move(nf));
  }
  diagnostics.add(read_graph(spec, chain));
  chain.flow = diagnostics.take(read_flow(spec));
  chain.shards = diagnostics.take(read_shards(spec, chain));
  if (diagnostics.empty()) {
    chain.tuning.pool_slots = slots_of(chain, unit_packets_of(chain.tuning));
  }
  return diagnostics.status();
}

/// The document of `source`, whose environment keeps only the variables taken from it.
Result<nf::Config> read_document(ChainSource& source) {
  return nf::Config::parse(source.text, source.file, [&source](YAML::Node& document, nf::YamlFiles& files) -> Status {
    CATENA_RETURN_IF_ERROR(merge_included(source, document, files));
    CATENA_ASSIGN_OR_RETURN(source.environment, replace_variables(document, files, source.environment));
    return absl::OkStatus();
  });
}

Result<ChainConfig> read_chain(ChainSource source) {
  CATENA_ASSIGN_OR_RETURN(source.included, read_included(source.file, source.text));
  return parse_chain(std::move(source));
}

}  // namespace

Result<ChainConfig> parse_chain(ChainSource source) {
  ChainConfig chain;
  CATENA_ASSIGN_OR_RETURN(nf::Config root, read_document(source));
  chain.source = std::move(source);
  CATENA_RETURN_IF_ERROR(check_keys(root, chain_keys()));
  FileSection file(std::move(root), chain_keys());
  CATENA_ASSIGN_OR_RETURN(FileSection metadata, file.section("metadata"));
  CATENA_RETURN_IF_ERROR(metadata.read_into(chain));
  CATENA_ASSIGN_OR_RETURN(FileSection spec, file.section("spec"));
  chain.tenant = chain.name;
  CATENA_RETURN_IF_ERROR(spec.read_into(chain));
  CATENA_RETURN_IF_ERROR(spec.read_into(chain.run));
  CATENA_RETURN_IF_ERROR(read_spec(spec, chain));
  return chain;
}

Result<ChainConfig> load_chain(std::string const& path, GivenOptions const& options, Variables environment) {
  CATENA_ASSIGN_OR_RETURN(std::string text, read_file(path, nf::YamlScope::limits().bytes));
  return read_chain({.file = path, .text = std::move(text), .options = options, .environment = std::move(environment)});
}

Result<ChainConfig> parse_chain(std::string_view text, std::string const& file, GivenOptions const& options,
                                Variables environment) {
  return read_chain(
      {.file = file, .text = std::string(text), .options = options, .environment = std::move(environment)});
}

void set_default_isolation(ChainConfig& config, Isolation isolation) {
  for (NfConfig& nf : config.nfs) {
    nf.isolation = nf.isolation == Isolation::kOfRun ? isolation : nf.isolation;
  }
}

NfGroup group_of(ChainConfig const& config, std::size_t nf) {
  NfGroup group{nf, nf + 1};
  std::string const& name = config.nfs[nf].group;
  const auto is_in_it = [&](std::size_t other) {
    return !name.empty() && config.nfs[nf].isolation == Isolation::kProcess && config.nfs[other].group == name;
  };
  while (group.first > 0 && is_in_it(group.first - 1)) {
    --group.first;
  }
  while (group.end < config.nfs.size() && is_in_it(group.end)) {
    ++group.end;
  }
  return group;
}

Result<NfConfig> parse_nf(ChainSource source, std::string_view name) {
  CATENA_ASSIGN_OR_RETURN(nf::Config root, read_document(source));
  CATENA_RETURN_IF_ERROR(check_keys(root, chain_keys()));
  FileSection whole(std::move(root), chain_keys());
  CATENA_ASSIGN_OR_RETURN(FileSection spec, whole.section("spec"));
  CATENA_ASSIGN_OR_RETURN(const NfConfig defaults, nf_defaults(spec));
  CATENA_ASSIGN_OR_RETURN(std::vector<FileSection> entries, spec.sections("nfs"));
  for (FileSection& entry : entries) {
    CATENA_ASSIGN_OR_RETURN(const std::string own, entry.text("name"));
    if (own == name) {
      return read_nf(entry, defaults);
    }
  }
  return absl::NotFoundError(concat(source.file, ": no NF is named '", name, "'"));
}

}  // namespace catena::chain
