// SPDX-License-Identifier: Apache-2.0
// What of a session's NFs is in other processes. The rest of how it is made: session.cpp.
#include "chain/diagnostics.hpp"
#include "chain/nf_costs.hpp"
#include "pipeline/isolation.hpp"
#include "pipeline/nf_making.hpp"
#include "pipeline/process_stage.hpp"
#include "pipeline/session.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace catena::runtime {

bool are_alike(nf::Descriptor const& one, nf::Descriptor const& other) {
  return one.type == other.type && one.has_kernel == other.has_kernel &&
         std::ranges::equal(one.drop_reasons, other.drop_reasons, {}, &nf::DropReason::name, &nf::DropReason::name);
}

bool Session::has_isolated_on_gpu() const {
  return std::any_of(entries_.begin(), entries_.end(), [](auto const& of_nf) { return is_elsewhere(*of_nf.front()); });
}

/// Whether the NF is on a GPU, in a process of its own.
bool Session::is_elsewhere(Entry const& entry) {
  return entry.config.isolation == chain::Isolation::kProcess && entry.config.on == plan::Processor::kGpu;
}

/// The NFs of one process, the next ones after those in `first`, to which they are added.
Status Session::make_process(nf::Registry const& registry, RunOptions const& options, nf::NamedFiles const& of_nfs,
                             std::vector<Entry>& first) {
  const chain::NfGroup group = chain::group_of(config_, first.size());
  const std::span<chain::NfConfig> configs(&config_.nfs[group.first], group.end - group.first);
  chain::Diagnostics diagnostics;
  std::vector<Isolated> made = diagnostics.take(make_isolated(configs, options, registry, of_nfs));
  made.resize(configs.size());
  for (std::size_t i = 0; i < configs.size(); ++i) {
    chain::NfConfig& config = configs[i];
    if (made[i].instance != nullptr) {
      config.type = made[i].instance->descriptor().type;  // a plug-in says itself which NF it is
    }
    const bool is_made = made[i].instance != nullptr;
    first.push_back({config, std::move(made[i].instance)});
    first.back().content = is_made ? content_of(config, made[i].files) : std::nullopt;
    if (options.sharing) {  // of one whose files are too long to be known it is not known what it costs
      first.back().key = first.back().content ? first.back().content->key : chain::NfKey{config.type, {}};
    }
    first.back().files = std::move(made[i].files);
    first.back().keys = std::move(made[i].keys);
    config.on = plan::Processor::kCpu;  // as far as this process is concerned
  }
  return diagnostics.status();
}

/// The next NFs of another shard, after those in `nfs`, which are of one process: another one with the same NFs.
/// `first`: those of the first shard.
Status Session::replicate_process(nf::Registry const& registry, RunOptions const& options, std::span<const Entry> first,
                                  std::vector<Entry>& nfs) {
  std::vector<chain::NfConfig> configs;
  nf_process::NfProcess const* process = nullptr;
  for (Entry const& entry : first.subspan(nfs.size())) {
    auto const* const isolated = as_isolated(*entry.instance);
    if (isolated == nullptr || (process != nullptr && &isolated->process() != process)) {
      break;
    }
    process = &isolated->process();
    configs.push_back(entry.config);
  }
  const nf::NamedFiles same_as_the_first_ones;
  CATENA_ASSIGN_OR_RETURN(std::vector<Isolated> made,
                          make_isolated(configs, options, registry, same_as_the_first_ones));
  for (std::size_t i = 0; i < configs.size(); ++i) {
    nf::Instance const& one = *first[nfs.size()].instance;
    if (!are_alike(one.descriptor(), made[i].instance->descriptor())) {
      return absl::DataLossError(
          concat(configs[i].position, ": NF '", one.name(), "' reports a different NF in another process"));
    }
    nfs.push_back({std::move(configs[i]), std::move(made[i].instance)});
  }
  return absl::OkStatus();
}

/// What a process is to make the NFs of `group` of, a part of `config`; without its shard and device.
nf_process::Setup Session::setup_of_group(std::span<const chain::NfConfig> group, chain::ChainConfig const& config,
                                          bool is_any_elsewhere) const {
  nf_process::Setup setup = setup_of(group, config);
  setup.records = !options_.record_path.empty();
  setup.alerts = !options_.eve_path.empty();
  if (devices_.sharing() != nullptr && is_any_elsewhere) {
    setup.sharing = {std::string(share::to_string(options_.sharing->mode)),
                     std::string(share::to_string(*options_.sharing->parts)), options_.sharing->compute_units};
  }
  setup.sync = static_cast<std::uint8_t>(options_.sync.mode);
  setup.pushdown = options_.sync.pushdown;
  setup.methods = options_.sync.methods;
  return setup;
}

/// Tells processes what their NFs are to be made of.
void Session::prepare_processes() {
  for (std::size_t nf = 0; nf < entries_.size(); ++nf) {
    auto const* const first = as_isolated(*first_of(nf).instance);
    if (first == nullptr || first->number() != 0) {
      continue;
    }
    std::vector<chain::NfConfig> group;
    bool is_any_elsewhere = false;
    for (std::size_t other = nf; other < chain::group_of(config_, nf).end; ++other) {
      group.push_back(first_of(other).config);
      is_any_elsewhere = is_any_elsewhere || is_elsewhere(first_of(other));
    }
    nf_process::Setup setup = setup_of_group(group, config_, is_any_elsewhere);
    const auto shards = static_cast<std::uint32_t>(entries_[nf].size());
    for (std::uint32_t shard = 0; shard < shards; ++shard) {
      setup.shard = {shard, shards};
      setup.device = device::to_string(config_.devices[shard % config_.devices.size()]);
      as_isolated(*entries_[nf][shard]->instance)->prepare(setup);
    }
  }
}

/// Of the NFs of a process, from number `first` of the section on. The queues between them have no units.
void Session::add_process_stage(Segment& segment, std::size_t number, std::size_t first, nf_process::NfProcess& process,
                                RecordLog* lines) {
  Shard& shard = segment.shards[number];
  const auto position = static_cast<std::uint32_t>(segment.part.first + first);
  const std::size_t nfs = chain::group_of(config_, position).end - position;
  std::vector<nf::Instance*> instances;
  for (std::size_t i = 0; i < nfs; ++i) {
    instances.push_back(shard.nfs[first + i].instance.get());
  }
  auto stage = std::make_unique<ProcessStage>(std::move(instances), position, process, ends_.pool_of(number),
                                              shard.queues[segment.topology.before_nf(first)],
                                              shard.queues[segment.topology.after_nf(first + nfs - 1)],
                                              std::chrono::milliseconds(config_.tuning.device_limit_ms), lines);
  if (const std::optional<std::uint64_t> limit = flow_->limit_in_process(position, position + nfs)) {
    stage->bound(*limit);
  }
  for (std::size_t i = 0; devices_.sharing() != nullptr && i < nfs; ++i) {
    if (is_elsewhere(shard.nfs[first + i])) {
      devices_.add(position + i, stage->part_of(i));
    }
  }
  add_host_stage(std::move(stage), segment.shards.size() > 1 ? concat("/", number) : std::string());
  shard.nfs[first].stage = stages_.back().get();
}

}  // namespace catena::runtime
