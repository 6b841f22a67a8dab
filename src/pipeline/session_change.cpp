// SPDX-License-Identifier: Apache-2.0
// How NFs of a running session are replaced. Stages take them at the first unit of their version: succession.hpp.
#include "chain/change.hpp"
#include "chain/diagnostics.hpp"
#include "chain/instances.hpp"
#include "chain/named_files.hpp"
#include "pipeline/isolation.hpp"
#include "pipeline/nf_making.hpp"
#include "pipeline/process_stage.hpp"
#include "pipeline/session.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/persistent.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>
#include <utility>

namespace catena::runtime {
namespace {

/// Changes whose first unit has not come yet, at most: what they made takes memory.
constexpr std::size_t kMaxWaiting = 4;
/// Where packets come, they have come after that time, and what was replaced can end.
constexpr std::chrono::milliseconds kTakingTime{200};

Status cannot_change(std::string_view position, std::string_view what) {
  return absl::FailedPreconditionError(concat(position, position.empty() ? "" : ": ", what));
}

}  // namespace

struct Session::PendingReplacements {
  std::size_t first = 0;  ///< position of the first NF
  /// For each NF, for each of its shards.
  std::vector<std::vector<std::unique_ptr<nf::Instance>>> instances = {};
  std::vector<std::unique_ptr<DeviceStage::DeviceBinding>> bindings = {};  ///< for each shard, of one NF on a device
  std::vector<std::vector<nf::NamedFile>> files = {};                      ///< for each NF
  std::vector<std::vector<nf::NamedKey>> keys = {};                        ///< for each NF
  std::vector<std::optional<Content>> contents = {};  ///< for each NF, from before it read its files
  bool is_isolated = false;
  bool has_started = false;  ///< the process has made them
};

/// Whether stages can take other NFs at all.
Status Session::can_change() const {
  if (devices_.sharing() != nullptr) {
    return cannot_change({}, "the NFs share their GPU (--share), and its SM partitions are made for the present NFs");
  }
  for (Segment const& segment : segments_) {
    for (std::size_t i = 0; i < segment.part.end - segment.part.first; ++i) {
      // units of before may come there after the first one of another version
      if (segment.topology.pushers(segment.topology.before_nf(i)) > 1) {
        return cannot_change(
            {}, concat("several branches of the graph lead to NF '", config_.nfs[segment.part.first + i].name, "'"));
      }
    }
  }
  return absl::OkStatus();
}

Result<std::vector<std::string>> Session::change(chain::ChainConfig next, nf::Registry const& registry, bool new_keys,
                                                 std::stop_token const& give_up) {
  CATENA_RETURN_IF_ERROR(chain::apply(options_, next));
  CATENA_ASSIGN_OR_RETURN(const std::unique_lock<std::mutex> lock, lock_settled());
  if (waiting_replacements() >= kMaxWaiting) {
    return absl::UnavailableError(
        concat("no packets have come since the last ", kMaxWaiting, " changes of the chain: try again"));
  }
  reclaim_replaced();
  CATENA_ASSIGN_OR_RETURN(std::vector<PendingReplacements> all, make_checked_replacements(next, registry, give_up));
  for (PendingReplacements& made : all) {
    CATENA_RETURN_IF_ERROR(prepare_migration(made, new_keys));
  }
  for (PendingReplacements& made : all) {
    CATENA_RETURN_IF_ERROR(made.is_isolated ? start_replacements(made, next, new_keys) : attach_replacements(made));
  }
  std::vector<std::string> lines = describe_replacements(all);
  publish(std::move(all), next);
  for (const auto end = std::chrono::steady_clock::now() + kTakingTime;
       waiting_replacements() > 0 && std::chrono::steady_clock::now() < end;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  reclaim_replaced();
  return lines;
}

Result<std::vector<std::string>> Session::preview_change(chain::ChainConfig next, nf::Registry const& registry,
                                                         std::stop_token const& give_up) {
  CATENA_RETURN_IF_ERROR(chain::apply(options_, next));
  CATENA_ASSIGN_OR_RETURN(const std::unique_lock<std::mutex> lock, lock_settled());
  CATENA_ASSIGN_OR_RETURN(const std::vector<PendingReplacements> all,
                          make_checked_replacements(next, registry, give_up));
  return describe_replacements(all);
}

/// The NFs, with what they say of themselves.
std::vector<std::string> Session::describe_replacements(std::span<const PendingReplacements> all) {
  std::vector<std::string> lines;
  for (PendingReplacements const& made : all) {
    for (auto const& of_nf : made.instances) {
      // one in a process says nothing before that has made it
      const std::vector<std::string> details =
          made.is_isolated && !made.has_started ? std::vector<std::string>() : of_nf.front()->nf().start_report();
      lines.push_back(
          concat(of_nf.front()->name(), details.empty() ? "" : ": ", fmt::format("{}", fmt::join(details, "; "))));
    }
  }
  return lines;
}

Result<std::vector<Session::PendingReplacements>> Session::make_checked_replacements(chain::ChainConfig& next,
                                                                                     nf::Registry const& registry,
                                                                                     std::stop_token const& give_up) {
  CATENA_ASSIGN_OR_RETURN(std::vector<PendingReplacements> all, make_replacements(next, registry, give_up));
  CATENA_RETURN_IF_ERROR(all.empty() ? absl::OkStatus() : can_change());
  for (PendingReplacements const& made : all) {
    CATENA_RETURN_IF_ERROR(check_replacements(made));
  }
  return all;
}

/// Those of NFs that are not the same in `next`, which gets what was settled when the chain was made.
Result<std::vector<Session::PendingReplacements>> Session::make_replacements(chain::ChainConfig& next,
                                                                             nf::Registry const& registry,
                                                                             std::stop_token const& give_up) {
  CATENA_ASSIGN_OR_RETURN(const std::vector<std::size_t> changed, chain::changed_nfs(config_, next));
  std::vector<bool> is_changed(next.nfs.size());
  std::vector<std::optional<Content>> contents;
  for (std::size_t nf = 0; nf < next.nfs.size(); ++nf) {
    Entry const& now = first_of(nf);
    next.nfs[nf].on = now.config.on;
    next.nfs[nf].isolation = now.config.isolation;
    next.nfs[nf].type = now.config.type;  // a plug-in has said it
    // before the NF reads its files: what is written later is another change
    std::optional<Content> const& content = contents.emplace_back(content_of(next.nfs[nf], now.files));
    is_changed[nf] = std::ranges::find(changed, nf) != changed.end() || !content || content != now.content;
  }
  const nf::NamedFiles of_nfs;
  chain::Diagnostics diagnostics;
  std::vector<PendingReplacements> all;
  for (std::size_t nf = 0; nf < next.nfs.size();) {
    const chain::NfGroup group =
        next.nfs[nf].isolation == chain::Isolation::kProcess ? chain::group_of(next, nf) : chain::NfGroup{nf, nf + 1};
    if (std::any_of(is_changed.begin() + static_cast<std::ptrdiff_t>(group.first),
                    is_changed.begin() + static_cast<std::ptrdiff_t>(group.end), std::identity())) {
      PendingReplacements& made = all.emplace_back();
      diagnostics.add(make_replacements_of(group.first, next, registry, give_up, of_nfs, made));
      made.contents.assign(contents.begin() + static_cast<std::ptrdiff_t>(group.first),
                           contents.begin() + static_cast<std::ptrdiff_t>(group.end));
    }
    nf = group.end;
  }
  CATENA_RETURN_IF_ERROR(diagnostics.status());
  std::vector<nf::NamedFile> files = of_nfs.files();
  for (std::size_t nf = 0; nf < next.nfs.size(); ++nf) {
    if (!is_changed[nf]) {
      files.insert(files.end(), first_of(nf).files.begin(), first_of(nf).files.end());
    }
  }
  CATENA_RETURN_IF_ERROR(chain::check_files(chain::named_files(next, options_, files)));
  CATENA_RETURN_IF_ERROR(chain::check_keys(keys_with(all, next)));
  return all;
}

/// Those of the NFs of `next`, of which `all` are others than now.
std::vector<chain::KeysOfNf> Session::keys_with(std::span<const PendingReplacements> all,
                                                chain::ChainConfig const& next) const {
  std::vector<chain::KeysOfNf> keys;
  for (std::size_t nf = 0; nf < next.nfs.size(); ++nf) {
    keys.push_back({next.nfs[nf].name, next.nfs[nf].position, first_of(nf).keys});
  }
  for (PendingReplacements const& made : all) {
    for (std::size_t i = 0; i < made.keys.size(); ++i) {
      keys[made.first + i].keys = made.keys[i];
    }
  }
  return keys;
}

/// The NF at `first`, or those of its process, for every shard.
Status Session::make_replacements_of(std::size_t first, chain::ChainConfig const& next, nf::Registry const& registry,
                                     std::stop_token const& give_up, nf::NamedFiles const& of_nfs,
                                     PendingReplacements& made) {
  made.first = first;
  made.is_isolated = next.nfs[first].isolation == chain::Isolation::kProcess;
  const auto shards = static_cast<std::uint32_t>(entries_[first].size());
  if (!made.is_isolated) {
    const std::size_t files = of_nfs.files().size();
    const std::size_t keys = of_nfs.keys().size();
    CATENA_ASSIGN_OR_RETURN(auto instance,
                            chain::make_instance(next.nfs[first], registry, wants_records(options_),
                                                 options_.ends.value_or(chain::ends_of(config_.rx, config_.tx)),
                                                 options_.shard.value_or(nf::Shard{0, config_.shards})));
    made.files.emplace_back(of_nfs.files().begin() + static_cast<std::ptrdiff_t>(files), of_nfs.files().end());
    made.keys.emplace_back(of_nfs.keys().begin() + static_cast<std::ptrdiff_t>(keys), of_nfs.keys().end());
    std::vector<std::unique_ptr<nf::Instance>>& of_shards = made.instances.emplace_back();
    of_shards.push_back(std::move(instance));
    for (std::uint32_t shard = 1; shard < shards; ++shard) {
      CATENA_ASSIGN_OR_RETURN(auto other, chain::replicate(next.nfs[first], *of_shards.front(), {shard, shards}));
      of_shards.push_back(std::move(other));
    }
  } else {
    const chain::NfGroup group = chain::group_of(next, first);
    const std::span<const chain::NfConfig> configs(&next.nfs[group.first], group.end - group.first);
    made.instances.resize(configs.size());
    made.files.resize(configs.size());
    made.keys.resize(configs.size());
    RunOptions options = options_;
    options.processes.give_up = give_up;
    for (std::uint32_t shard = 0; shard < shards; ++shard) {
      const nf::NamedFiles same_as_the_first_ones;
      CATENA_ASSIGN_OR_RETURN(std::vector<Isolated> isolated,
                              make_isolated(configs, options, registry, shard == 0 ? of_nfs : same_as_the_first_ones));
      for (std::size_t i = 0; i < configs.size(); ++i) {
        made.instances[i].push_back(std::move(isolated[i].instance));
        if (shard == 0) {
          made.files[i] = std::move(isolated[i].files);
          made.keys[i] = std::move(isolated[i].keys);
        }
      }
    }
  }
  for (auto const& of_shards : made.instances) {
    for (auto const& instance : of_shards) {
      if (!options_.eve_path.empty()) {
        keep_alerts(*instance);
      }
    }
  }
  return absl::OkStatus();
}

/// Whether each can take the place of the one that there is, but for what that has of packets.
Status Session::check_replacements(PendingReplacements const& made) const {
  for (std::size_t i = 0; i < made.instances.size(); ++i) {
    const std::size_t nf = made.first + i;
    for (std::size_t shard = 0; shard < made.instances[i].size(); ++shard) {
      Entry const& now = *entries_[nf][shard];
      nf::Instance const& next = *made.instances[i][shard];
      const auto refuse = [&now](std::string_view what) {
        return cannot_change(now.config.position, concat("NF '", now.config.name, "': ", what));
      };
      if (!are_alike(now.instance->descriptor(), next.descriptor())) {
        return refuse("it reports a different NF");
      }
      if (next.descriptor().sharding == nf::Sharding::kOwn && made.instances[i].size() > 1) {
        return refuse("it divides the packets of several shards");
      }
      if (next.descriptor().sharding != nf::Sharding::kPacket && made.is_isolated) {
        return refuse("it keeps state in a process of its own");
      }
      const bool has_same_hints =
          now.instance->look([&next](nf::Nf const& before) { return before.hints() == next.nf().hints(); });
      if (devices_.side_of(0) != nullptr && !has_same_hints) {  // the plan is made for all of them
        return refuse("it now reads or writes other fields of packets, and so the plan changes");
      }
    }
  }
  return absl::OkStatus();
}

/// Of NFs that keep what packets leave in them. None of them waits to be taken then: whose place they take is certain.
Status Session::prepare_migration(PendingReplacements& made, bool new_keys) const {
  const nf::RunContext context = run_context(new_keys);
  for (std::size_t i = 0; i < made.instances.size(); ++i) {
    for (std::size_t shard = 0; shard < made.instances[i].size(); ++shard) {
      nf::Instance& next = *made.instances[i][shard];
      Entry const& now = *entries_[made.first + i][shard];
      if (next.descriptor().sharding == nf::Sharding::kPacket) {
        continue;
      }
      if (waiting_replacements() > 0) {
        return absl::UnavailableError(concat(now.config.position, ": NF '", now.config.name,
                                             "': no packets have come since the last change of the chain: try again"));
      }
      if (auto* persistent = dynamic_cast<nf::Persistent*>(&next.nf()); persistent != nullptr) {
        persistent->join(context);
      }
      if (const Status status = next.nf().prepare_migration(now.instance->nf()); !status.ok()) {
        // the NF's own word, which no other chain is a way around
        const auto code = absl::IsFailedPrecondition(status) ? absl::StatusCode::kAborted : status.code();
        return {code, concat(now.config.position, ": NF '", now.config.name, "': ", std::string(status.message()))};
      }
    }
  }
  return absl::OkStatus();
}

/// Brings the kernels of NFs on a device there.
Status Session::attach_replacements(PendingReplacements& made) {
  std::map<copy::SharedBuffer const*, std::shared_ptr<kernel::DeviceNf>> kernels;  // one for shards with one memory
  for (std::size_t shard = 0; shard < made.instances.front().size(); ++shard) {
    DeviceStage* const stage = entries_[made.first][shard]->device_stage;
    if (stage == nullptr) {
      continue;
    }
    chain::NfConfig const& config = entries_[made.first][shard]->config;
    nf::Instance& first = *made.instances.front().front();
    kernel::DeviceNf const& now = stage->kernel();
    std::shared_ptr<kernel::DeviceNf>& kernel = kernels[now.shared()];
    if (kernel == nullptr) {
      CATENA_ASSIGN_OR_RETURN(nf::KernelSide side, chain::make_kernel_side(config, first));
      CATENA_ASSIGN_OR_RETURN(
          kernel, kernel::DeviceNf::create(now.device(), std::move(side.spec), first.launch_plan(now.plan().shared),
                                           side.state, now.shared(), now.groups()));
    }
    CATENA_ASSIGN_OR_RETURN(made.bindings.emplace_back(), stage->attach_next(kernel, config.batch_size));
  }
  return absl::OkStatus();
}

/// Has processes make their NFs.
Status Session::start_replacements(PendingReplacements& made, chain::ChainConfig const& next, bool new_keys) {
  std::vector<chain::NfConfig> group;
  bool is_any_elsewhere = false;
  for (std::size_t i = 0; i < made.instances.size(); ++i) {
    Entry const& entry = first_of(made.first + i);
    group.push_back(next.nfs[made.first + i]);
    is_any_elsewhere = is_any_elsewhere || is_elsewhere(entry);
  }
  nf_process::Setup setup = setup_of_group(group, next, is_any_elsewhere);
  const nf::RunContext context = run_context(new_keys);
  const auto shards = static_cast<std::uint32_t>(made.instances.front().size());
  for (std::uint32_t shard = 0; shard < shards; ++shard) {
    setup.shard = {shard, shards};
    setup.device = device::to_string(config_.devices[shard % config_.devices.size()]);
    nf_process::IsolatedNf& first = *as_isolated(*made.instances.front()[shard]);
    first.prepare(setup);
    CATENA_RETURN_IF_ERROR(chain::as_refusal(first.start(context)));
  }
  made.has_started = true;
  return absl::OkStatus();
}

/// From the next unit on that rx takes.
void Session::publish(std::vector<PendingReplacements> all, chain::ChainConfig const& next) {
  const std::uint32_t version = version_.load(std::memory_order_relaxed) + 1;
  for (PendingReplacements& made : all) {
    for (std::size_t shard = 0; shard < made.instances.front().size(); ++shard) {
      Entry& entry = *entries_[made.first][shard];
      if (entry.device_stage != nullptr) {
        entry.device_stage->replacements().add(
            version, {std::move(made.instances.front()[shard]), std::move(made.bindings[shard])});
      } else if (made.is_isolated) {
        ProcessStage::Next process;
        process.process = &as_isolated(*made.instances.front()[shard])->process();
        for (auto& of_nf : made.instances) {
          process.instances.push_back(std::move(of_nf[shard]));
        }
        static_cast<ProcessStage&>(*entry.stage).replacements().add(version, std::move(process));
      } else {
        static_cast<CpuStage&>(*entry.stage).replacements().add(version, std::move(made.instances.front()[shard]));
      }
    }
    for (std::size_t i = 0; i < made.files.size(); ++i) {
      for (Entry* const entry : entries_[made.first + i]) {
        entry->files = made.files[i];
        entry->keys = made.keys[i];
        entry->content = made.contents[i];
      }
    }
  }
  version_.store(version, std::memory_order_release);
  config_.text = next.text;
  config_.options = next.options;
  for (std::size_t nf = 0; nf < next.nfs.size(); ++nf) {
    const auto take = [&next, nf](chain::NfConfig& config) {
      config.config = next.nfs[nf].config;
      config.on_unsupported = next.nfs[nf].on_unsupported;
      config.link_local = next.nfs[nf].link_local;
      config.position = next.nfs[nf].position;
    };
    take(config_.nfs[nf]);
    for (Entry* const entry : entries_[nf]) {
      take(entry->config);
    }
  }
}

/// Of the stage that has most.
std::size_t Session::waiting_replacements() const {
  std::size_t waiting = 0;
  for_each_entry([&waiting](std::size_t /*shard*/, Entry const& entry) {
    if (entry.device_stage != nullptr) {
      waiting = std::max(waiting, entry.device_stage->replacements().waiting());
    } else if (auto* process = dynamic_cast<ProcessStage*>(entry.stage); process != nullptr) {
      waiting = std::max(waiting, process->replacements().waiting());
    } else if (auto* cpu = dynamic_cast<CpuStage*>(entry.stage); cpu != nullptr) {
      waiting = std::max(waiting, cpu->replacements().waiting());
    }
  });
  return waiting;
}

/// Ends what was replaced, where all shards have taken what comes: an NF may use what that of the first shard has.
void Session::reclaim_replaced() {
  if (waiting_replacements() > 0) {
    return;
  }
  std::vector<DeviceStage::Next> of_devices;
  std::vector<std::unique_ptr<nf::Instance>> instances;
  for_each_entry([&](std::size_t /*shard*/, Entry const& entry) {
    if (entry.device_stage != nullptr) {
      std::ranges::move(entry.device_stage->replacements().reclaim(), std::back_inserter(of_devices));
    } else if (auto* process = dynamic_cast<ProcessStage*>(entry.stage); process != nullptr) {
      for (ProcessStage::Next& replaced : process->replacements().reclaim()) {
        std::ranges::move(replaced.instances, std::back_inserter(instances));
      }
    } else if (auto* cpu = dynamic_cast<CpuStage*>(entry.stage); cpu != nullptr) {
      std::ranges::move(cpu->replacements().reclaim(), std::back_inserter(instances));
    }
  });
  // those of later shards first
  while (!of_devices.empty()) {
    of_devices.back().binding.reset();
    of_devices.pop_back();
  }
  while (!instances.empty()) {
    auto const* const isolated = as_isolated(*instances.back());
    bool is_described_by_it = false;  // what stands in the chain was made by that of the first process
    for_each_entry([&](std::size_t /*shard*/, Entry const& entry) {
      is_described_by_it =
          is_described_by_it || (isolated != nullptr && &isolated->descriptor() == &entry.instance->descriptor());
    });
    if (is_described_by_it) {
      as_isolated(*instances.back())->end_process();
      kept_.push_back(std::move(instances.back()));
    }
    instances.pop_back();
  }
}

/// Nothing is made for a device that stages still have other NFs to take for.
std::unique_lock<std::mutex> Session::admit_recovery() {
  std::unique_lock lock(change_mutex_, std::try_to_lock);
  if (!lock || waiting_replacements() > 0) {
    return {};
  }
  reclaim_replaced();
  return lock;
}

}  // namespace catena::runtime
