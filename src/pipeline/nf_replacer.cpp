// SPDX-License-Identifier: Apache-2.0
#include "pipeline/nf_replacer.hpp"

#include "chain/change.hpp"
#include "chain/diagnostics.hpp"
#include "chain/instances.hpp"
#include "chain/named_files.hpp"
#include "pipeline/isolation.hpp"
#include "pipeline/nf_builder.hpp"
#include "pipeline/nf_making.hpp"
#include "pipeline/process_stage.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/persistent.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
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

/// Calls `visit` with the replacements of the stage that begins with the entry.
template <typename Visit>
void visit_replacements(NfEntry const& entry, Visit visit) {
  if (entry.device_stage != nullptr) {
    visit(entry.device_stage->replacements());
  } else if (auto* process = dynamic_cast<ProcessStage*>(entry.stage); process != nullptr) {
    visit(process->replacements());
  } else if (auto* cpu = dynamic_cast<CpuStage*>(entry.stage); cpu != nullptr) {
    visit(cpu->replacements());
  }
}

std::vector<std::string> describe_all(std::span<const NewNfs> all) {
  std::vector<std::string> lines;
  for (NewNfs const& made : all) {
    std::ranges::move(made.describe(), std::back_inserter(lines));
  }
  return lines;
}

/// NFs that stages no longer use, in the order of the shards.
struct Replaced {
  void add(DeviceStage::Next next) { of_devices.push_back(std::move(next)); }
  void add(ProcessStage::Next next) { std::ranges::move(next.instances, std::back_inserter(instances)); }
  void add(std::unique_ptr<nf::Instance> next) { instances.push_back(std::move(next)); }
  std::vector<DeviceStage::Next> of_devices;
  std::vector<std::unique_ptr<nf::Instance>> instances;
};

}  // namespace

/// Whether stages can take other NFs at all.
Status NfReplacer::can_change() const {
  if (devices_.sharing() != nullptr) {
    return cannot_change({}, "the NFs share their GPU (--share), and its SM partitions are made for the present NFs");
  }
  for (Segment const& segment : pipeline_.segments()) {
    for (std::size_t i = 0; i < segment.part.end - segment.part.first; ++i) {
      // units of before may come there after the first one of another version
      if (segment.topology.pushers(segment.topology.before_nf(i)) > 1) {
        return cannot_change(
            {}, concat("several branches of the graph lead to NF '", chain_.nfs[segment.part.first + i].name, "'"));
      }
    }
  }
  return absl::OkStatus();
}

Result<std::vector<std::string>> NfReplacer::change(chain::ChainConfig next, nf::Registry const& registry,
                                                    std::set<std::uint32_t> const& new_keys,
                                                    std::stop_token const& give_up) {
  if (waiting() >= kMaxWaiting) {
    return absl::UnavailableError(
        concat("no packets have come since the last ", kMaxWaiting, " changes of the chain: try again"));
  }
  reclaim();
  CATENA_ASSIGN_OR_RETURN(std::vector<NewNfs> all, make_checked(next, registry, give_up));
  const nf::RunContext context = run_context_of(chain_, options_, new_keys);
  for (NewNfs& made : all) {
    CATENA_RETURN_IF_ERROR(prepare_migration(made, context));
  }
  for (NewNfs& made : all) {
    CATENA_RETURN_IF_ERROR(made.is_isolated ? start(made, next, context) : attach(made));
  }
  std::vector<std::string> lines = describe_all(all);
  publish(std::move(all), next);
  for (const auto end = std::chrono::steady_clock::now() + kTakingTime;
       waiting() > 0 && std::chrono::steady_clock::now() < end;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  reclaim();
  return lines;
}

Result<std::vector<std::string>> NfReplacer::preview(chain::ChainConfig next, nf::Registry const& registry,
                                                     std::set<std::uint32_t> const& new_keys,
                                                     std::stop_token const& give_up) const {
  CATENA_ASSIGN_OR_RETURN(std::vector<NewNfs> all, make_checked(next, registry, give_up));
  nf::RunContext context = run_context_of(chain_, options_, new_keys);
  context.is_trial = true;
  for (NewNfs& made : all) {
    CATENA_RETURN_IF_ERROR(prepare_migration(made, context));
  }
  return describe_all(all);
}

Result<std::vector<NewNfs>> NfReplacer::make_checked(chain::ChainConfig& next, nf::Registry const& registry,
                                                     std::stop_token const& give_up) const {
  CATENA_ASSIGN_OR_RETURN(std::vector<NewNfs> all, make(next, registry, give_up));
  CATENA_RETURN_IF_ERROR(all.empty() ? absl::OkStatus() : can_change());
  for (NewNfs const& made : all) {
    CATENA_RETURN_IF_ERROR(check(made));
  }
  return all;
}

/// Those of NFs that are not the same in `next`, which gets what was settled when the chain was made.
Result<std::vector<NewNfs>> NfReplacer::make(chain::ChainConfig& next, nf::Registry const& registry,
                                             std::stop_token const& give_up) const {
  CATENA_ASSIGN_OR_RETURN(const std::vector<std::size_t> changed, chain::changed_nfs(chain_, next));
  next.tuning.unit_packets = chain_.tuning.unit_packets;  // chosen, if the file leaves it open
  std::vector<bool> is_changed(next.nfs.size());
  std::vector<std::optional<Content>> contents;
  for (std::size_t nf = 0; nf < next.nfs.size(); ++nf) {
    NfEntry const& now = pipeline_.first_of(nf);
    next.nfs[nf].on = now.config.on;
    next.nfs[nf].isolation = now.config.isolation;
    next.nfs[nf].type = now.config.type;  // a plug-in has said it
    // before the NF reads its files: what is written later is another change
    std::optional<Content> const& content = contents.emplace_back(content_of(next.nfs[nf], now.files));
    is_changed[nf] = std::ranges::find(changed, nf) != changed.end() || !content || content != now.content;
  }
  RunOptions options = options_;
  options.processes.give_up = give_up;
  const NfBuilder builder(chain_, options, registry);
  const nf::NamedFiles of_nfs;
  chain::Diagnostics diagnostics;
  std::vector<NewNfs> all;
  for (std::size_t nf = 0; nf < next.nfs.size();) {
    const chain::NfGroup group = chain::group_of(next, nf);
    if (std::any_of(is_changed.begin() + static_cast<std::ptrdiff_t>(group.first),
                    is_changed.begin() + static_cast<std::ptrdiff_t>(group.end), std::identity())) {
      NewNfs& made = all.emplace_back(NewNfs{.first = group.first});
      diagnostics.add(made.make(builder, {&next.nfs[group.first], group.end - group.first},
                                static_cast<std::uint32_t>(pipeline_.entries()[nf].size()), of_nfs));
      made.contents.assign(contents.begin() + static_cast<std::ptrdiff_t>(group.first),
                           contents.begin() + static_cast<std::ptrdiff_t>(group.end));
    }
    nf = group.end;
  }
  CATENA_RETURN_IF_ERROR(diagnostics.status());
  std::vector<nf::NamedFile> files = of_nfs.files();
  for (std::size_t nf = 0; nf < next.nfs.size(); ++nf) {
    if (!is_changed[nf]) {
      files.insert(files.end(), pipeline_.first_of(nf).files.begin(), pipeline_.first_of(nf).files.end());
    }
  }
  CATENA_RETURN_IF_ERROR(chain::check_files(chain::named_files(next, options_, files)));
  CATENA_RETURN_IF_ERROR(chain::check_keys(keys_with(all, next)));
  return all;
}

/// Those of the NFs of `next`, of which `all` are others than now.
std::vector<chain::KeysOfNf> NfReplacer::keys_with(std::span<const NewNfs> all, chain::ChainConfig const& next) const {
  std::vector<chain::KeysOfNf> keys;
  for (std::size_t nf = 0; nf < next.nfs.size(); ++nf) {
    keys.push_back({next.nfs[nf].name, next.nfs[nf].position, pipeline_.first_of(nf).keys});
  }
  for (NewNfs const& made : all) {
    for (std::size_t i = 0; i < made.keys.size(); ++i) {
      keys[made.first + i].keys = made.keys[i];
    }
  }
  return keys;
}

/// Whether each can take the place of the one that there is, but for what that has of packets.
Status NfReplacer::check(NewNfs const& made) const {
  for (std::size_t i = 0; i < made.instances.size(); ++i) {
    const std::size_t nf = made.first + i;
    for (std::size_t shard = 0; shard < made.instances[i].size(); ++shard) {
      NfEntry const& now = *pipeline_.entries()[nf][shard];
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
Status NfReplacer::prepare_migration(NewNfs& made, nf::RunContext const& context) const {
  for (std::size_t i = 0; i < made.instances.size(); ++i) {
    for (std::size_t shard = 0; shard < made.instances[i].size(); ++shard) {
      nf::Instance& next = *made.instances[i][shard];
      NfEntry const& now = *pipeline_.entries()[made.first + i][shard];
      if (next.descriptor().sharding == nf::Sharding::kPacket) {
        continue;
      }
      if (waiting() > 0) {
        return absl::UnavailableError(concat(now.config.position, ": NF '", now.config.name,
                                             "': no packets have come since the last change of the chain: try again"));
      }
      if (auto* persistent = dynamic_cast<nf::Persistent*>(&next.nf()); persistent != nullptr) {
        persistent->join(context);
      }
      nf::Nf const* const before = &now.instance->nf();
      if (const Status status = next.nf().prepare_migration(std::span(&before, 1)); !status.ok()) {
        // the NF's own word, which no other chain is a way around
        const auto code = absl::IsFailedPrecondition(status) ? absl::StatusCode::kAborted : status.code();
        return {code, concat(now.config.position, ": NF '", now.config.name, "': ", std::string(status.message()))};
      }
    }
  }
  return absl::OkStatus();
}

/// Brings the kernels of NFs on a device there.
Status NfReplacer::attach(NewNfs& made) const {
  std::map<copy::SharedBuffer const*, std::shared_ptr<kernel::DeviceNf>> kernels;  // one for shards with one memory
  for (std::size_t shard = 0; shard < made.instances.front().size(); ++shard) {
    DeviceStage* const stage = pipeline_.entries()[made.first][shard]->device_stage;
    if (stage == nullptr) {
      continue;
    }
    chain::NfConfig const& config = pipeline_.entries()[made.first][shard]->config;
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
Status NfReplacer::start(NewNfs& made, chain::ChainConfig const& next, nf::RunContext const& context) const {
  std::vector<nf::Instance*> first;
  for (auto const& instance : made.instances.front()) {
    first.push_back(instance.get());
  }
  prepare_processes({&next.nfs[made.first], made.instances.size()}, next, options_, devices_.sharing() != nullptr,
                    first);
  for (nf::Instance* const instance : first) {
    CATENA_RETURN_IF_ERROR(chain::as_refusal(as_isolated(*instance)->start(context)));
  }
  made.has_started = true;
  return absl::OkStatus();
}

/// From the next unit on that rx takes.
void NfReplacer::publish(std::vector<NewNfs> all, chain::ChainConfig const& next) {
  const std::uint32_t version = version_.load(std::memory_order_relaxed) + 1;
  for (NewNfs& made : all) {
    for (std::size_t shard = 0; shard < made.instances.front().size(); ++shard) {
      NfEntry& entry = *pipeline_.entries()[made.first][shard];
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
      for (NfEntry* const entry : pipeline_.entries()[made.first + i]) {
        entry->files = made.files[i];
        entry->keys = made.keys[i];
        entry->content = made.contents[i];
      }
    }
  }
  version_.store(version, std::memory_order_release);
  chain_.source = next.source;
  for (std::size_t nf = 0; nf < next.nfs.size(); ++nf) {
    const auto take = [&next, nf](chain::NfConfig& config) {
      config.config = next.nfs[nf].config;
      config.on_unsupported = next.nfs[nf].on_unsupported;
      config.link_local = next.nfs[nf].link_local;
      config.position = next.nfs[nf].position;
    };
    take(chain_.nfs[nf]);
    for (NfEntry* const entry : pipeline_.entries()[nf]) {
      take(entry->config);
    }
  }
}

std::size_t NfReplacer::waiting() const {
  std::size_t largest = 0;
  pipeline_.for_each_entry([&largest](std::size_t /*shard*/, NfEntry const& entry) {
    visit_replacements(entry, [&largest](auto& pending) { largest = std::max(largest, pending.waiting()); });
  });
  return largest;
}

/// Ends replaced NFs once all shards have taken the next ones: an NF may use parts of its like in the first shard.
void NfReplacer::reclaim() {
  if (waiting() > 0) {
    return;
  }
  Replaced replaced;
  pipeline_.for_each_entry([&replaced](std::size_t /*shard*/, NfEntry const& entry) {
    visit_replacements(entry, [&replaced](auto& pending) {
      for (auto& next : pending.reclaim()) {
        replaced.add(std::move(next));
      }
    });
  });
  // later shards first
  for (; !replaced.of_devices.empty(); replaced.of_devices.pop_back()) {
    replaced.of_devices.back().binding.reset();
  }
  for (; !replaced.instances.empty(); replaced.instances.pop_back()) {
    std::unique_ptr<nf::Instance>& last = replaced.instances.back();
    if (auto* const isolated = as_isolated(*last); isolated != nullptr && is_describing(isolated->descriptor())) {
      isolated->end_process();
      kept_.push_back(std::move(last));
    }
  }
}

/// Whether NFs of the chain have the descriptor: the first process of an NF has made it.
bool NfReplacer::is_describing(nf::Descriptor const& descriptor) const {
  bool is_one = false;
  pipeline_.for_each_entry([&](std::size_t /*shard*/, NfEntry const& entry) {
    is_one = is_one || &descriptor == &entry.instance->descriptor();
  });
  return is_one;
}

std::unique_lock<std::mutex> NfReplacer::admit_recovery() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || waiting() > 0) {
    return {};
  }
  reclaim();
  return lock;
}

}  // namespace catena::runtime
