// SPDX-License-Identifier: Apache-2.0
#include "pipeline/nf_builder.hpp"

#include "chain/instances.hpp"
#include "chain/named_files.hpp"
#include "chain/nf_costs.hpp"
#include "io/shared_ends.hpp"
#include "pipeline/nf_making.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/alert.hpp>
#include <catena/nf/portable.hpp>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace catena::runtime {
namespace {

bool wants_records(RunOptions const& options) { return options.with_records || !options.record_path.empty(); }

void keep_alerts_for(RunOptions const& options, nf::Instance& instance) {
  if (auto* alerting = dynamic_cast<nf::Alerting*>(&instance.nf()); alerting != nullptr && !options.eve_path.empty()) {
    alerting->keep_alerts();
  }
}

/// As chain::segments_of() for a graph, before the NFs exist: an NF with one instance has all ports, associations and
/// files.
std::uint32_t shards_of_nfs(chain::ChainConfig const& config, nf::Registry const& registry) {
  const auto is_divided_by_flow = [&registry](chain::NfConfig const& nf) {
    const Result<nf::Descriptor const*> descriptor = registry.find(nf.type);
    return !descriptor.ok() || (*descriptor)->sharding == nf::Sharding::kPacket ||
           (*descriptor)->sharding == nf::Sharding::kFlow;
  };
  return !config.graph || std::ranges::all_of(config.nfs, is_divided_by_flow) ? config.shards : 1;
}

std::vector<nf::Instance*> instances_of(std::span<const NfEntry> entries) {
  std::vector<nf::Instance*> instances;
  std::ranges::transform(entries, std::back_inserter(instances),
                         [](NfEntry const& entry) { return entry.instance.get(); });
  return instances;
}

/// The NFs from the first one on which are in one process with it.
std::span<const NfEntry> group_in(std::span<const NfEntry> entries) {
  nf_process::IsolatedNf const* const first = entries.front().isolated;
  std::size_t size = 1;
  while (first != nullptr && size < entries.size()) {
    nf_process::IsolatedNf const* const next = entries[size].isolated;
    if (next == nullptr || &next->process() != &first->process()) {
      break;
    }
    ++size;
  }
  return entries.first(size);
}

/// Arguments of the process of a group, for lists of processes: "chain=7 nf=2 shard=0". Numbers, since all users of the
/// machine can read them.
std::vector<std::string> label_of(std::span<const chain::NfConfig> group, chain::ChainConfig const& chain,
                                  RunOptions const& options, std::uint32_t shard) {
  std::vector<std::string> label;
  if (options.processes.chain != 0) {
    label.push_back(concat("chain=", options.processes.chain));
  }
  const auto found = std::ranges::find(chain.nfs, group.front().name, &chain::NfConfig::name);
  const auto first = static_cast<std::size_t>(found - chain.nfs.begin()) + 1;
  label.push_back(concat("nf=", first, group.size() == 1 ? "" : concat("-", first + group.size() - 1)));
  label.push_back(concat("shard=", shard));
  return label;
}

Status start_nf(nf::Persistent& persistent, nf::Nf& nf, nf::RunContext const& context) {
  if (auto* portable = dynamic_cast<nf::Portable*>(&nf); portable != nullptr && context.continues) {
    persistent.join(context);
    return portable->prepare_to_load();
  }
  return persistent.start(context);
}

}  // namespace

Result<std::vector<MadeNf>> NfBuilder::make(std::span<const chain::NfConfig> group,
                                            nf::NamedFiles const& collector) const {
  if (group.front().isolation == chain::Isolation::kProcess) {
    return make_isolated(group, label_of(group, *chain_, *options_, 0), *options_, *registry_, collector);
  }
  const auto files = static_cast<std::ptrdiff_t>(collector.files().size());
  const auto keys = static_cast<std::ptrdiff_t>(collector.keys().size());
  CATENA_ASSIGN_OR_RETURN(
      auto instance, chain::make_instance(group.front(), *registry_, wants_records(*options_),
                                          options_->ends.value_or(chain::ends_of(chain_->rx, chain_->tx)),
                                          options_->shard.value_or(nf::Shard{0, shards_of_nfs(*chain_, *registry_)})));
  keep_alerts_for(*options_, *instance);
  std::vector<MadeNf> made;
  made.push_back({std::move(instance),
                  nullptr,
                  {collector.files().begin() + files, collector.files().end()},
                  {collector.keys().begin() + keys, collector.keys().end()}});
  return made;
}

Result<std::vector<MadeNf>> NfBuilder::replicate(std::span<const chain::NfConfig> group,
                                                 std::span<nf::Instance* const> first, nf::Shard shard) const {
  if (group.front().isolation != chain::Isolation::kProcess) {
    std::vector<MadeNf> alone(1);
    CATENA_ASSIGN_OR_RETURN(alone.front().instance, chain::replicate(group.front(), *first.front(), shard));
    keep_alerts_for(*options_, *alone.front().instance);
    return alone;
  }
  const nf::NamedFiles same_as_the_first_ones;
  CATENA_ASSIGN_OR_RETURN(std::vector<MadeNf> made,
                          make_isolated(group, label_of(group, *chain_, *options_, shard.index), *options_, *registry_,
                                        same_as_the_first_ones));
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (!are_alike(first[i]->descriptor(), made[i].instance->descriptor())) {
      return absl::DataLossError(
          concat(group[i].position, ": NF '", first[i]->name(), "' reports a different NF in another process"));
    }
  }
  return made;
}

Result<Pipeline> NfBuilder::make_all(std::uint64_t flow_key) const {
  CATENA_ASSIGN_OR_RETURN(std::vector<NfEntry> first, make_first());
  if (replan_ != nullptr && replan_->fit_to(chain::segments_of(*chain_, instances_of(first)))) {
    first.clear();
    CATENA_ASSIGN_OR_RETURN(first, make_first());
  }
  return divide(std::move(first), flow_key);
}

/// The NFs in the first shard.
Result<std::vector<NfEntry>> NfBuilder::make_first() const {
  chain::ChainConfig const& chain = *chain_;
  const nf::NamedFiles of_nfs;
  std::vector<NfEntry> first;
  chain::Diagnostics diagnostics;
  while (first.size() < chain.nfs.size()) {
    if (options_->processes.give_up.stop_requested()) {
      return absl::CancelledError("the start was aborted");
    }
    const std::size_t begin = first.size();
    const std::span<const chain::NfConfig> group(&chain.nfs[begin], chain::group_of(chain, begin).end - begin);
    if (replan_ != nullptr && replan_->kept(begin)) {
      for (chain::NfConfig const& config : group) {
        NfEntry const& before = replan_->running().first_of(*replan_->kept(first.size()));
        NfEntry& entry = first.emplace_back(entry_of(config, keep(config, before), diagnostics));
        entry.content = before.content;  // as the NF read it, whatever the files have by now
        entry.is_kept = true;
      }
      continue;
    }
    std::vector<MadeNf> made = diagnostics.take(make(group, of_nfs));
    made.resize(group.size());
    for (std::size_t i = 0; i < group.size(); ++i) {
      first.push_back(entry_of(group[i], std::move(made[i]), diagnostics));
    }
  }
  CATENA_RETURN_IF_ERROR(diagnostics.status());
  std::vector<nf::NamedFile> files = of_nfs.files();
  std::vector<chain::KeysOfNf> keys;
  for (NfEntry const& entry : first) {
    keys.push_back({entry.config.name, entry.config.position, entry.keys});
    if (entry.is_kept) {
      files.insert(files.end(), entry.files.begin(), entry.files.end());
    }
  }
  CATENA_RETURN_IF_ERROR(chain::check_files(chain::named_files(chain, *options_, files)));
  CATENA_RETURN_IF_ERROR(chain::check_keys(keys));
  if (!options_->context) {  // an NF process has a part of the chain's keys
    CATENA_RETURN_IF_ERROR(chain::check_new_keys(keys, options_->new_keys));
  }
  return first;
}

/// The NF of a running chain, for a chain that goes on with it.
MadeNf NfBuilder::keep(chain::NfConfig const& config, NfEntry const& before) const {
  nf::Descriptor const& descriptor = before.instance->descriptor();
  const bool is_isolated = config.isolation == chain::Isolation::kProcess;
  const auto on_unsupported =
      is_isolated ? nf::OnUnsupported::kPass : config.on_unsupported.value_or(descriptor.on_unsupported_default);
  return {std::make_unique<nf::Instance>(config.name, descriptor, before.instance->shared_nf(), on_unsupported,
                                         before.instance->outcome().recording(),
                                         is_isolated ? nf::LinkLocal::kPass : config.link_local),
          before.isolated, before.files, before.keys};
}

/// Without an instance for an NF that could not be made.
NfEntry NfBuilder::entry_of(chain::NfConfig config, MadeNf made, chain::Diagnostics& diagnostics) const {
  if (made.instance == nullptr) {
    return {std::move(config), nullptr};
  }
  const bool is_isolated = config.isolation == chain::Isolation::kProcess;
  if (is_isolated) {
    config.type = made.instance->descriptor().type;  // a plug-in says itself which NF it is
  }
  NfEntry entry{std::move(config), std::move(made.instance), made.isolated};
  entry.content = content_of(entry.config, made.files);
  if (options_->sharing && is_isolated) {  // the cost of an NF with files too long to be known is unknown
    entry.key = entry.content ? entry.content->key : chain::NfKey{entry.config.type, {}};
  } else if (options_->sharing) {
    entry.key = diagnostics.take(chain::key_of(entry.config, made.files));
  }
  entry.files = std::move(made.files);
  entry.keys = std::move(made.keys);
  return entry;
}

/// `first`: the NFs in their first shard.
Result<Pipeline> NfBuilder::divide(std::vector<NfEntry> first, std::uint64_t flow_key) const {
  CATENA_ASSIGN_OR_RETURN(chain::DataPath path,
                          chain::data_path_of(*chain_, *options_, instances_of(first), [this](std::uint32_t parts) {
                            return io::can_divide(chain_->rx.devices, chain_->tx.devices, parts);
                          }));
  std::vector<Segment> segments;
  for (std::size_t i = 0; i < path.segments.size(); ++i) {
    chain::Segment const& part = path.segments[i];
    Segment& segment = segments.emplace_back(Segment{part, path.topology_of(i)});
    segment.shards.resize(part.shards);
    const std::span<NfEntry> of_part(first.data() + part.first, part.end - part.first);
    for (std::uint32_t shard = 1; shard < part.shards; ++shard) {
      CATENA_RETURN_IF_ERROR(replicate_segment(of_part, shard, segment));
    }
    std::ranges::move(of_part, std::back_inserter(segment.shards[0].nfs));
  }
  Pipeline pipeline(std::move(path), std::move(segments), flow_key);
  for (std::size_t nf = 0; nf < pipeline.entries().size(); ++nf) {
    for (NfEntry* const entry : pipeline.entries()[nf]) {
      entry->instance->outcome().set_position(static_cast<std::uint8_t>(nf));
    }
  }
  return pipeline;
}

/// Adds the NFs of shard `shard`. `first`: the segment's NFs in the first shard.
Status NfBuilder::replicate_segment(std::span<const NfEntry> first, std::uint32_t shard, Segment& segment) const {
  std::vector<NfEntry>& nfs = segment.shards[shard].nfs;
  while (nfs.size() < first.size()) {
    std::vector<chain::NfConfig> configs;
    std::vector<nf::Instance*> of_first;
    for (NfEntry const& entry : group_in(first.subspan(nfs.size()))) {
      configs.push_back(entry.config);
      of_first.push_back(entry.instance.get());
    }
    if (first[nfs.size()].is_kept) {
      for (chain::NfConfig& config : configs) {
        const std::size_t nf = segment.part.first + nfs.size();
        NfEntry& before = *replan_->running().entries()[*replan_->kept(nf)][shard];
        MadeNf kept = keep(config, before);
        NfEntry& entry = nfs.emplace_back(NfEntry{config, std::move(kept.instance), kept.isolated});
        entry.is_kept = true;
      }
      continue;
    }
    CATENA_ASSIGN_OR_RETURN(std::vector<MadeNf> made, replicate(configs, of_first, {shard, segment.part.shards}));
    for (std::size_t i = 0; i < configs.size(); ++i) {
      nfs.push_back({std::move(configs[i]), std::move(made[i].instance), made[i].isolated});
    }
  }
  return absl::OkStatus();
}

nf::RunContext run_context_of(chain::ChainConfig const& chain, RunOptions const& options,
                              std::set<std::uint32_t> const& new_keys) {
  nf::RunContext context =
      options.context.value_or(nf::RunContext{.live_tx = !options.make_sink && chain.tx.kind->is_live});
  context.new_keys = new_keys;
  return context;
}

nf_process::Setup process_setup(std::span<const chain::NfConfig> group, chain::ChainConfig const& chain,
                                RunOptions const& options, bool is_shared) {
  nf_process::Setup setup = setup_of(group, chain);
  setup.records = !options.record_path.empty();
  setup.alerts = !options.eve_path.empty();
  if (is_shared && std::ranges::any_of(group, is_on_own_gpu)) {
    setup.sharing = {std::string(share::to_string(options.sharing->mode)),
                     std::string(share::to_string(*options.sharing->parts)), options.sharing->compute_units};
  }
  setup.sync = static_cast<std::uint8_t>(options.sync.mode);
  setup.pushdown = options.sync.pushdown;
  setup.methods = options.sync.methods;
  return setup;
}

void prepare_processes(Pipeline const& pipeline, chain::ChainConfig const& chain, RunOptions const& options,
                       bool is_shared) {
  for (std::size_t nf = 0; nf < pipeline.entries().size(); ++nf) {
    NfEntry const& first = pipeline.first_of(nf);
    if (first.isolated == nullptr || first.isolated->number() != 0 || first.is_kept) {
      continue;
    }
    std::vector<chain::NfConfig> group;
    for (std::size_t other = nf; other < chain::group_of(chain, nf).end; ++other) {
      group.push_back(pipeline.first_of(other).config);
    }
    nf_process::Setup setup = process_setup(group, chain, options, is_shared);
    const auto shards = static_cast<std::uint32_t>(pipeline.entries()[nf].size());
    for (std::uint32_t shard = 0; shard < shards; ++shard) {
      setup.shard = {shard, shards};
      setup.device = device::to_string(chain.devices[shard % chain.devices.size()]);
      pipeline.entries()[nf][shard]->isolated->prepare(setup);
    }
  }
}

Status start_nfs(Pipeline const& pipeline, nf::RunContext const& context, Takeover const* takeover) {
  Status first_error;
  pipeline.for_each_entry([&](std::size_t /*shard*/, NfEntry const& entry) {
    auto* persistent = dynamic_cast<nf::Persistent*>(&entry.instance->nf());
    const bool continues = takeover != nullptr && takeover->is_paired(*entry.instance);
    if (persistent == nullptr || continues || entry.is_kept || !first_error.ok()) {
      return;
    }
    if (const Status status = start_nf(*persistent, entry.instance->nf(), context); !status.ok()) {
      // a process's errors have their position
      first_error = entry.isolated != nullptr
                        ? status
                        : Status(status.code(), concat(entry.config.position, ": NF '", entry.config.name,
                                                       "': ", std::string(status.message())));
    }
  });
  return takeover != nullptr ? as_not_beside(first_error) : first_error;
}

}  // namespace catena::runtime
