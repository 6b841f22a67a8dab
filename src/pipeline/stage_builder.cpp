// SPDX-License-Identifier: Apache-2.0
#include "pipeline/stage_builder.hpp"

#include "pipeline/isolation.hpp"
#include "pipeline/process_stage.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace catena::runtime {
namespace {

/// Number `queue` of each shard.
std::vector<memory::UnitQueue*> of_each(auto& shards, std::size_t queue) {
  std::vector<memory::UnitQueue*> queues;
  for (auto& shard : shards) {
    queues.push_back(&shard.queues[queue]);
  }
  return queues;
}

/// Appended to names of stages, if there are several with one name.
std::string suffix_of(std::size_t shard, bool has_several) { return has_several ? concat("/", shard) : std::string(); }

}  // namespace

StageBuilder::StageBuilder(StageParts const& parts)
    : chain_(parts.chain),
      options_(parts.options),
      pipeline_(parts.pipeline),
      ends_(parts.ends),
      devices_(parts.devices),
      flow_(parts.flow),
      telemetry_(parts.telemetry),
      stop_(parts.stop) {}

Status StageBuilder::make_all(Ends const* before, std::stop_token const& give_up) {
  if (!options_.record_path.empty() || !options_.eve_path.empty()) {
    telemetry_.keep_lines(ends_.pool_of(0).arena());
  }
  for (Segment& segment : pipeline_.segments()) {
    if (segment.part.shards > 1 && !ends_.are_divided() && pipeline_.path().tables.empty()) {
      segment.order = std::make_unique<SplitOrder>(ends_.pool_of(0).arena().units());
    }
  }
  add_rx();
  for (Segment& segment : pipeline_.segments()) {
    if (segment.part.first != 0) {
      pipeline_.add_reshard(traced(std::make_unique<ReshardStage>(ends_.pool_of(0), merger_of(*(&segment - 1)),
                                                                  splitter_to(segment), chain_.devices.size() > 1)));
    }
    CATENA_RETURN_IF_ERROR(add_nf_stages(segment));
  }
  std::vector<nf::Instance const*> nfs;
  for (nf::Instance* instance : pipeline_.first_instances()) {
    nfs.push_back(instance);
  }
  CATENA_RETURN_IF_ERROR(ends_.open_outputs(chain_, options_, std::move(nfs), give_up, before));
  add_tx();
  flow_.attach(chain_.flow, pipeline_.flow_paths(chain_));
  if (ends_.are_divided()) {
    pipeline_.group_by_shard();
  }
  if (options_.device_returns) {
    devices_.return_lost();
  }
  return absl::OkStatus();
}

Splitter StageBuilder::splitter_to(Segment& segment) {
  const std::size_t first = segment.topology.after_rx();
  if (segment.shards.size() == 1) {
    const bool is_alone = pipeline_.segments().size() == 1 && !pipeline_.path().has_classifiers();
    return {segment.shards.front().queues[first], is_alone ? nullptr : &ends_.reserve_of(0)};
  }
  return {of_each(segment.shards, first),  ends_.pool_of(0),   segment.order.get(),
          pipeline_.shard_map_of(segment), telemetry_.lines(), ends_.reserve_of(0)};
}

Merger StageBuilder::merger_of(Segment& segment) {
  std::vector<memory::UnitQueue*> queues = of_each(segment.shards, segment.topology.last());
  return segment.order ? Merger(std::move(queues), ends_.pool_of(0), *segment.order, telemetry_.lines())
                       : Merger(std::move(queues));
}

void StageBuilder::add_rx() {
  for (std::size_t i = 0; i < ends_.sources().size(); ++i) {
    Segment& first = pipeline_.segments().front();
    Splitter out = ends_.are_divided() ? Splitter(first.shards[i].queues[first.topology.after_rx()],
                                                  pipeline_.path().has_classifiers() ? &ends_.reserve_of(i) : nullptr)
                                       : splitter_to(first);
    auto rx =
        std::make_unique<RxStage>(*ends_.sources()[i], ends_.pool_of(i), std::move(out), stop_, telemetry_.lines());
    pipeline_.add_rx(traced(std::move(rx), suffix_of(i, ends_.are_divided())));
  }
}

void StageBuilder::add_tx() {
  for (std::size_t i = 0; i < ends_.sources().size(); ++i) {
    Segment& last = pipeline_.segments().back();
    Merger in = ends_.are_divided() ? Merger(last.shards[i].queues[last.topology.last()]) : merger_of(last);
    auto tx = std::make_unique<TxStage>(*ends_.sinks()[i], ends_.pool_of(i), std::move(in), ends_.outputs().recorder(),
                                        telemetry_.lines());
    pipeline_.add_tx(traced(std::move(tx), suffix_of(i, ends_.are_divided())));
  }
}

Status StageBuilder::add_nf_stages(Segment& segment) {
  for (std::size_t shard = 0; shard < segment.shards.size(); ++shard) {
    add_classifier_stage(segment, shard, 0);
    for (std::size_t i = 0; i < segment.shards[shard].nfs.size(); ++i) {
      CATENA_RETURN_IF_ERROR(add_nf_stage(segment, shard, i));
      add_classifier_stage(segment, shard, i + 1);
    }
  }
  return absl::OkStatus();
}

/// How an NF on the CPU gets the headers of its packets. The stages before it are complete.
Fetch StageBuilder::fetch_for(nf::Instance const& instance, std::size_t position) const {
  const packet::Hints hints = instance.nf().hints();
  const packet::FieldSet writes = hints.cw | hints.prepare_writes | hints.complete_writes;
  if ((writes & packet::kFrameFields) == 0) {
    return Fetch::kToRead;
  }
  for (Segment const& segment : pipeline_.segments()) {
    std::vector<NfEntry> const& nfs = segment.shards.front().nfs;
    for (std::size_t i = 0; i < nfs.size() && segment.part.first + i < position; ++i) {
      if (nfs[i].device_stage == nullptr) {
        return Fetch::kToWrite;
      }
    }
  }
  return Fetch::kToRead;
}

Status StageBuilder::add_nf_stage(Segment& segment, std::size_t shard, std::size_t number) {
  NfEntry& entry = segment.shards[shard].nfs[number];
  const auto position = static_cast<std::uint32_t>(segment.part.first + number);
  memory::UnitQueue& in = segment.shards[shard].queues[segment.topology.before_nf(number)];
  memory::UnitQueue& out = segment.shards[shard].queues[segment.topology.after_nf(number)];
  const std::string suffix = suffix_of(shard, segment.shards.size() > 1);
  const std::optional<io::LiveClock> live_clock = ends_.sources().front()->live_clock();
  if (entry.isolated != nullptr) {
    if (entry.isolated->number() == 0) {
      add_process_stage(segment, shard, number, entry.isolated->process());
    }
    return absl::OkStatus();
  }
  DeviceSide* const device = devices_.side_of(shard);
  kernel::DeviceNf* const kernel = device != nullptr ? device->kernel_of(position) : nullptr;
  if (kernel == nullptr) {
    pipeline_.add_nf(
        entry, traced(std::make_unique<CpuStage>(*entry.instance, position, ends_.pool_of(shard), in, out, live_clock,
                                                 telemetry_.lines(), fetch_for(*entry.instance, position)),
                      suffix));
    return absl::OkStatus();
  }
  DeviceStageOptions options{chain_.tuning.units_per_launch, chain_.tuning.launches_in_flight,
                             std::chrono::milliseconds(chain_.tuning.device_limit_ms),
                             std::chrono::microseconds(chain_.tuning.max_batch_delay_us)};
  options.only_on_device = device->only_on_device(position);
  options.use = &device->use();
  options.trace = telemetry_.trace_of(concat(entry.config.name, suffix));
  options.live_clock = live_clock;
  options.lines = telemetry_.lines();
  options.bounds.max_packets = entry.config.batch_size;
  if (devices_.sharing() != nullptr) {
    options.bounds = devices_.bounds_of(position);
  }
  CATENA_ASSIGN_OR_RETURN(
      auto stage, DeviceStage::create(*entry.instance, position, *kernel, ends_.pool_of(shard), in, out, options));
  entry.device_stage = stage.get();
  devices_.add(shard, *stage);
  pipeline_.add_nf(entry, std::move(stage));
  return absl::OkStatus();
}

/// Adds the stage of a process, with NFs from number `first` of the segment on. The queues between them have no units.
void StageBuilder::add_process_stage(Segment& segment, std::size_t number, std::size_t first,
                                     nf_process::NfProcess& process) {
  Shard& shard = segment.shards[number];
  const auto position = static_cast<std::uint32_t>(segment.part.first + first);
  const std::size_t nfs = chain::group_of(chain_, position).end - position;
  std::vector<nf::Instance*> instances;
  for (std::size_t i = 0; i < nfs; ++i) {
    instances.push_back(shard.nfs[first + i].instance.get());
  }
  auto stage = std::make_unique<ProcessStage>(
      instances, position, process, ends_.pool_of(number), shard.queues[segment.topology.before_nf(first)],
      shard.queues[segment.topology.after_nf(first + nfs - 1)],
      std::chrono::milliseconds(chain_.tuning.device_limit_ms), telemetry_.lines());
  if (const std::optional<std::uint64_t> limit = flow_.limit_in_process(position, position + nfs)) {
    stage->bound(*limit);
  }
  for (std::size_t i = 0; devices_.sharing() != nullptr && i < nfs; ++i) {
    if (is_on_own_gpu(shard.nfs[first + i].config)) {
      devices_.add(position + i, stage->part_of(i));
    }
  }
  shard.nfs[first].process_stage = stage.get();
  pipeline_.add_nf(shard.nfs[first], traced(std::move(stage), suffix_of(number, segment.shards.size() > 1)));
}

/// Adds the classifier after rx (0) or NF `node` - 1 of a graph, if packets take several branches there.
void StageBuilder::add_classifier_stage(Segment& segment, std::size_t shard, std::size_t node) {
  const std::optional<std::size_t> in = segment.topology.classifier(node);
  if (!in) {
    return;
  }
  std::deque<memory::UnitQueue>& queues = segment.shards[shard].queues;
  std::vector<memory::UnitQueue*> out;
  for (const std::size_t target : pipeline_.path().tables[node].targets()) {
    out.push_back(&queues[segment.topology.before_target(target)]);
  }
  auto stage = std::make_unique<ClassifierStage>(
      node == 0 ? "rx" : chain_.nfs[node - 1].name, pipeline_.path().tables[node], ends_.pool_of(shard), queues[*in],
      std::move(out), queues[segment.topology.last()], ends_.reserve_of(shard), telemetry_.lines());
  pipeline_.add_classifier(shard, traced(std::move(stage), suffix_of(shard, segment.shards.size() > 1)));
}

}  // namespace catena::runtime
