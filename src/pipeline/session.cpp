// SPDX-License-Identifier: Apache-2.0
#include "pipeline/session.hpp"

#include "chain/diagnostics.hpp"
#include "chain/instances.hpp"
#include "chain/named_files.hpp"
#include "pipeline/ends.hpp"
#include "pipeline/isolation.hpp"
#include "pipeline/nf_making.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/persistent.hpp>
#include <catena/nf/portable.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <random>
#include <utility>

namespace catena::runtime {

Result<std::unique_ptr<Session>> Session::create(chain::ChainConfig config, RunOptions const& run_options,
                                                 nf::Registry const& registry, std::stop_token const& give_up,
                                                 std::optional<PreviousPipeline> before) {
  RunOptions options = run_options;
  options.processes.give_up = give_up;
  options.opens_rx = !options.make_source;
  options.opens_tx = !options.make_sink;
  std::unique_ptr<Session> session(new Session(options));
  session->config_ = std::move(config);
  session->workers_ = options.workers;
  session->cores_ = options.cores;
  CATENA_RETURN_IF_ERROR(chain::apply(options, session->config_));
  session->before_ = std::move(before);
  std::unique_lock<std::mutex> as_it_is;  // the one before, while this one is made
  if (session->before_) {
    CATENA_ASSIGN_OR_RETURN(as_it_is, session->before_->session->lock_settled());
    CATENA_RETURN_IF_ERROR(session->check_before());
    session->flow_key_ = session->before_->session->flow_key_;  // flows stay in the shards that know them
  } else {
    session->flow_key_ = std::uint64_t{std::random_device{}()} << 32U | std::random_device{}();
  }
  CATENA_RETURN_IF_ERROR(start_eal_for(session->config_.rx, session->config_.tx));
  if (chain::has_auto(session->config_)) {
    CATENA_RETURN_IF_ERROR(session->place_nfs(registry, options));
    CATENA_RETURN_IF_ERROR(session->make_nfs(registry, options));
  } else {
    CATENA_RETURN_IF_ERROR(session->make_nfs(registry, options));
    CATENA_RETURN_IF_ERROR(session->open_devices());
  }
  std::shared_ptr<device::Device> shared_device;  // null: nothing is shared
  if (options.sharing) {
    CATENA_ASSIGN_OR_RETURN(
        shared_device,
        session->devices_.device_to_share(session->config_.devices, session->has_isolated_on_gpu(), *options.sharing));
  }
  CATENA_RETURN_IF_ERROR(session->resolve_unit_packets(options));
  session->options_ = options;
  session->options_.new_keys = false;  // for this start, and for no session or change that comes after it
  CATENA_RETURN_IF_ERROR(session->before_ ? session->find_next_nfs(options.new_keys) : absl::OkStatus());
  CATENA_RETURN_IF_ERROR(session->make_pools(options));
  CATENA_RETURN_IF_ERROR(session->make_device_sides());
  CATENA_RETURN_IF_ERROR(session->make_sharing(options, shared_device));
  shared_device.reset();
  CATENA_RETURN_IF_ERROR(session->flow_->connect(session->config_.flow.signals,
                                                 session->before_ ? session->before_->session->flow_.get() : nullptr));
  CATENA_RETURN_IF_ERROR(session->ends_.open_ports(
      session->config_, options, session->shard_map_of(session->segments_.front()), session->ends_before()));
  CATENA_RETURN_IF_ERROR(session->start_nfs(options.new_keys));
  CATENA_RETURN_IF_ERROR(session->make_stages(options, give_up));
  session->telemetry_.watch(session->counted_parts());
  return session;
}

Session::~Session() {
  // in front of the NFs and the device: they hold launches
  stages_.clear();
}

std::vector<nf::Instance*> Session::first_instances() const {
  std::vector<nf::Instance*> instances;
  for (std::vector<Entry*> const& entries : entries_) {
    instances.push_back(entries.front()->instance.get());
  }
  return instances;
}

/// The NFs of the first shard from their configuration; those of the others from them.
Status Session::make_nfs(nf::Registry const& registry, RunOptions const& options) {
  const nf::NamedFiles of_nfs;
  const nf::Shard shard = options.shard.value_or(nf::Shard{0, config_.shards});
  const nf::Ends ends = options.ends.value_or(chain::ends_of(config_.rx, config_.tx));
  std::vector<Entry> first;
  chain::Diagnostics diagnostics;
  while (first.size() < config_.nfs.size()) {
    if (options.processes.give_up.stop_requested()) {
      return absl::CancelledError("the start was aborted");
    }
    chain::NfConfig const& config = config_.nfs[first.size()];
    if (config.isolation == chain::Isolation::kProcess) {
      diagnostics.add(make_process(registry, options, of_nfs, first));
      continue;
    }
    const std::size_t files = of_nfs.files().size();
    const auto keys = static_cast<std::ptrdiff_t>(of_nfs.keys().size());
    first.push_back(
        {config, diagnostics.take(chain::make_instance(config, registry, wants_records(options), ends, shard))});
    const std::span<const nf::NamedFile> own = std::span(of_nfs.files()).subspan(files);
    first.back().files.assign(own.begin(), own.end());
    first.back().keys.assign(of_nfs.keys().begin() + keys, of_nfs.keys().end());
    if (first.back().instance == nullptr) {
      continue;
    }
    if (options.sharing) {
      first.back().key = diagnostics.take(chain::key_of(config, own));
    }
    first.back().content = content_of(config, own);
  }
  CATENA_RETURN_IF_ERROR(diagnostics.status());
  CATENA_RETURN_IF_ERROR(chain::check_files(chain::named_files(config_, options, of_nfs.files())));
  std::vector<chain::KeysOfNf> all_keys;
  for (Entry const& entry : first) {
    all_keys.push_back({entry.config.name, entry.config.position, entry.keys});
  }
  CATENA_RETURN_IF_ERROR(chain::check_keys(all_keys));
  return make_segments(registry, options, std::move(first));
}

/// The NFs of shard `shard` of a segment, whose first shard's are in `first`.
Status Session::replicate(nf::Registry const& registry, RunOptions const& options, std::span<const Entry> first,
                          std::uint32_t shard, Segment& segment) {
  std::vector<Entry>& nfs = segment.shards[shard].nfs;
  while (nfs.size() < first.size()) {
    Entry const& next = first[nfs.size()];
    if (next.config.isolation != chain::Isolation::kProcess) {
      CATENA_ASSIGN_OR_RETURN(auto instance,
                              chain::replicate(next.config, *next.instance, {shard, segment.part.shards}));
      nfs.push_back({next.config, std::move(instance)});
      continue;
    }
    CATENA_RETURN_IF_ERROR(replicate_process(registry, options, first, nfs));
  }
  return absl::OkStatus();
}

Status Session::make_segments(nf::Registry const& registry, RunOptions const& options, std::vector<Entry> first) {
  std::vector<nf::Instance*> instances;
  for (Entry const& entry : first) {
    instances.push_back(entry.instance.get());
  }
  CATENA_ASSIGN_OR_RETURN(tables_, chain::next_node_tables(config_, instances));
  const std::vector<chain::Segment> parts = config_.graph
                                                ? std::vector{chain::segment_of_graph(instances, config_.shards)}
                                                : chain::segments_of(instances, config_.shards);
  for (chain::Segment const& part : parts) {
    Segment& segment =
        segments_.emplace_back(Segment{part, config_.graph ? Topology(tables_) : Topology(part.end - part.first)});
    segment.shards.resize(part.shards);
    const std::span<Entry> of_part(&first[part.first], part.end - part.first);
    for (std::uint32_t shard = 1; shard < part.shards; ++shard) {
      CATENA_RETURN_IF_ERROR(replicate(registry, options, of_part, shard, segment));
    }
    std::ranges::move(of_part, std::back_inserter(segment.shards[0].nfs));
  }
  entries_.resize(first.size());
  for (Segment& segment : segments_) {
    for (Shard& shard : segment.shards) {
      for (std::size_t i = 0; i < shard.nfs.size(); ++i) {
        entries_[segment.part.first + i].push_back(&shard.nfs[i]);
        shard.nfs[i].instance->outcome().set_position(static_cast<std::uint8_t>(segment.part.first + i));
        if (!options.eve_path.empty()) {
          keep_alerts(*shard.nfs[i].instance);
        }
      }
    }
  }
  return absl::OkStatus();
}

Status Session::make_pools(RunOptions const& options) {
  std::uint32_t queues = 0;
  std::uint32_t shards = 1;
  for (Segment const& segment : segments_) {
    queues += segment.part.shards * segment.topology.queues();
    shards = std::max(shards, segment.part.shards);
  }
  std::uint32_t parts = 1;  // maximum parts of a unit, over all classifiers
  for (chain::NextNodeTable const& table : tables_) {
    parts += static_cast<std::uint32_t>(table.targets().size());
  }
  parts = has_classifiers() ? parts : 1;
  bool are_ends_divided = false;
  if (shards > 1 && segments_.size() == 1) {
    bool by_packet = true;
    for_each_entry([&by_packet](std::size_t /*shard*/, Entry const& entry) {
      by_packet = by_packet && entry.instance->descriptor().sharding == nf::Sharding::kPacket;
    });
    CATENA_ASSIGN_OR_RETURN(are_ends_divided, may_divide_ends(config_, options, by_packet, shards));
  }
  chain::ChainConfig placed = config_;
  for (std::size_t nf = 0; nf < placed.nfs.size(); ++nf) {
    placed.nfs[nf].on = first_of(nf).config.on;  // in a process of its own an NF has launches, too
  }
  if (!options.make_pool) {  // else somebody else says how much waits there
    chain::resolve_slots(placed, placed.tuning.unit_packets);
    if (before_) {
      const std::uint32_t there = before_->session->config_.tuning.pool_slots;
      if (placed.tuning.pool_slots > there) {
        return absl::FailedPreconditionError(
            concat("it needs ", placed.tuning.pool_slots, " slots for packets, and the running chain has ", there));
      }
      placed.tuning.pool_slots = there;
    }
    chain::resolve_flow(placed, placed.tuning.unit_packets);
  }
  config_.tuning.pool_slots = placed.tuning.pool_slots;
  config_.flow.mode = placed.flow.mode;
  const std::uint32_t pools = are_ends_divided ? shards : 1;
  if (options.make_pool) {
    for (std::uint32_t i = 0; i < pools; ++i) {
      CATENA_ASSIGN_OR_RETURN(std::shared_ptr<memory::PacketPool> pool, options.make_pool(queues));
      ends_.add_pool(std::move(pool));
    }
  } else {
    const Ends::PoolSize size{config_.tuning.pool_slots, config_.tuning.unit_packets, queues / pools,
                              parts * shards / pools};
    CATENA_RETURN_IF_ERROR(ends_.make_pools(pools, size, ends_before()));
  }
  CATENA_ASSIGN_OR_RETURN(std::vector<chain::FlowLimits> limits,
                          chain::flow_limits(placed, placed.tuning.unit_packets));
  flow_ = std::make_unique<FlowControl>(std::move(limits));
  const bool drops_at_tail = config_.flow.mode == chain::FlowMode::kVanilla;
  if (drops_at_tail && shards > 1 && !are_ends_divided) {
    return absl::InvalidArgumentError(concat(config_.flow.position,
                                             ": 'flow' is vanilla, which is for comparisons and runs in one shard; "
                                             "write `shards: 1`"));
  }
  std::vector<std::uint32_t> used(pools);
  for (Segment& segment : segments_) {
    for (std::size_t i = 0; i < segment.shards.size(); ++i) {
      Shard& shard = segment.shards[i];
      Topology const& topology = segment.topology;
      std::uint32_t before_nfs = 0;  // who pushes there
      for (std::size_t nf = 0; nf < shard.nfs.size(); ++nf) {
        before_nfs += topology.pushers(topology.before_nf(nf));
      }
      for (std::uint32_t queue = 0; queue < topology.queues(); ++queue) {
        const bool gets_refused = drops_at_tail && queue == topology.last();
        shard.queues.emplace_back(ends_.pool_of(i).arena(), used[i % pools]++,
                                  topology.pushers(queue) + (gets_refused ? before_nfs : 0));
      }
    }
  }
  return absl::OkStatus();
}

/// `new_keys`: of the start, or the change, that it is for.
nf::RunContext Session::run_context(bool new_keys) const {
  nf::RunContext context =
      options_.context.value_or(nf::RunContext{.live_tx = !options_.make_sink && config_.tx.kind->is_live});
  context.new_keys = new_keys;
  return context;
}

namespace {

Status start_nf(nf::Persistent& persistent, nf::Nf& nf, nf::RunContext const& context) {
  if (auto* portable = dynamic_cast<nf::Portable*>(&nf); portable != nullptr && context.continues) {
    persistent.join(context);
    return portable->prepare_to_load();
  }
  return persistent.start(context);
}

}  // namespace

Status Session::start_nfs(bool new_keys) {
  prepare_processes();
  const nf::RunContext context = run_context(new_keys);
  Status first_error;
  for_each_entry([&](std::size_t /*shard*/, Entry const& entry) {
    auto* persistent = dynamic_cast<nf::Persistent*>(&entry.instance->nf());
    const bool continues = std::ranges::find(next_nfs_, entry.instance.get(), &NextNf::instance) != next_nfs_.end();
    if (persistent == nullptr || continues || !first_error.ok()) {
      return;
    }
    if (const Status status = start_nf(*persistent, entry.instance->nf(), context); !status.ok()) {
      // a process's errors have their position
      first_error = as_isolated(*entry.instance) != nullptr
                        ? status
                        : Status(status.code(), concat(entry.config.position, ": NF '", entry.config.name,
                                                       "': ", std::string(status.message())));
    }
  });
  return before_ ? as_not_beside(first_error) : first_error;
}

bool Session::wants_device() const {
  const bool is_open = !placement_;
  return std::ranges::any_of(config_.nfs, [is_open](chain::NfConfig const& entry) {
    return entry.on == plan::Processor::kGpu || (is_open && entry.is_auto);
  });
}

Status Session::open_devices() {
  if (!wants_device()) {
    devices_.close(kNobodyOnGpu);
    return absl::OkStatus();
  }
  return devices_.open(config_.devices);
}

Status Session::resolve_unit_packets(RunOptions const& options) {
  if (config_.tuning.unit_packets != chain::kAutoUnitPackets) {
    return absl::OkStatus();
  }
  has_chosen_units_ = true;
  if (devices_.opened().empty()) {
    config_.tuning.unit_packets = memory::kDefaultUnitPackets;
    return absl::OkStatus();
  }
  CATENA_ASSIGN_OR_RETURN(plan::PlanInput input,
                          chain::plan_input(config_, sync_for(options, devices_.opened().front()->info())));
  const std::vector<nf::Instance*> instances = first_instances();
  for (std::size_t i = 0; i < instances.size(); ++i) {
    CATENA_RETURN_IF_ERROR(chain::add_nf(config_.nfs[i], *instances[i], input).status());
  }
  chain::add_ways(config_, instances, input);
  CATENA_ASSIGN_OR_RETURN(config_.tuning.unit_packets, chain::resolve_unit_packets(config_, input));
  return absl::OkStatus();
}

Status Session::make_device_sides() {
  const auto pools = ends_.pools();
  return devices_.make_sides(pools.size(), [this, pools](std::shared_ptr<device::Device> device, std::size_t side) {
    return DeviceSide::create(std::move(device), config_, options_, first_instances(), pools[side % pools.size()]);
  });
}

/// Divides `device` among the NFs on it; null: each has all of its own.
Status Session::make_sharing(RunOptions const& options, std::shared_ptr<device::Device> const& device) {
  if (device == nullptr) {
    return absl::OkStatus();
  }
  // of a chain that brings more than one NF can do, most packets wait for that
  constexpr std::uint64_t kPartThatWaits = 8;
  const std::uint64_t slots = ends_.slots();
  const auto profile = std::make_shared<chain::CostProfile>(sync_for(options, device->info()).profile);
  std::vector<GpuSharing::Nf> nfs;
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry const& entry = first_of(i);
    kernel::DeviceNf const* const kernel = devices_.side_of(0) == nullptr ? nullptr : devices_.side_of(0)->kernel_of(i);
    if (kernel == nullptr && !is_elsewhere(entry)) {
      continue;
    }
    positions.push_back(i);
    nfs.push_back({entry.config.name,
                   [profile, key = *entry.key](std::uint32_t bytes) { return profile->find(key, bytes); },
                   1000.0 * entry.config.latency_limit_us, kernel == nullptr ? 1 : kernel->spec().group_size,
                   static_cast<std::uint32_t>(entries_[i].size()), config_.tuning.unit_packets,
                   config_.tuning.unit_packets * config_.tuning.units_per_launch, kernel == nullptr,
                   std::max<std::uint64_t>(slots / kPartThatWaits, config_.tuning.unit_packets)});
  }
  if (nfs.empty()) {
    return absl::OkStatus();
  }
  CATENA_ASSIGN_OR_RETURN(const plan::PacketProfile packets, chain::profile_of(config_.rx));
  return devices_.share(*device, *options.sharing, options.partitions, std::move(positions), std::move(nfs),
                        static_cast<std::uint32_t>(std::ceil(packets.average_bytes())));
}

GpuSharing::Traffic Session::traffic() const {
  GpuSharing::Traffic traffic;
  for (const std::size_t nf : devices_.shared_by()) {
    std::uint64_t packets = 0;
    for (Entry const* entry : entries_[nf]) {
      packets += entry->instance->counters().in;
    }
    traffic.packets.push_back(packets);
    traffic.waiting.push_back(waiting_for(nf));
  }
  for (RxStage const* rx : rx_) {
    traffic.rx_packets += rx->packets();
    traffic.rx_bytes += rx->bytes();
  }
  return traffic;
}

/// Packets in front of NF number `nf`: no more than its units have room for, and than there are in the chain.
std::uint64_t Session::waiting_for(std::size_t nf) const {
  std::uint64_t units = 0;
  for (Segment const& segment : segments_) {
    for (Shard const& shard : segment.shards) {
      if (nf >= segment.part.first && nf < segment.part.end) {
        units += shard.queues[segment.topology.before_nf(nf - segment.part.first)].size();
      }
    }
  }
  return std::min(units * config_.tuning.unit_packets, ends_.used_slots());
}

Ends const* Session::ends_before() const { return before_ ? &before_->session->ends_ : nullptr; }

/// `shard`: what is put behind its name in traces.
void Session::add_host_stage(std::unique_ptr<HostStage> stage, std::string_view shard) {
  stage->trace_to(telemetry_.trace_of(concat(stage->name(), shard)));
  stages_.push_back(std::move(stage));
}

Status Session::make_stages(RunOptions const& options, std::stop_token const& give_up) {
  if (!options.record_path.empty() || !options.eve_path.empty()) {
    telemetry_.keep_lines(ends_.pool_of(0).arena());
  }
  RecordLog* const lines = telemetry_.lines();
  for (Segment& segment : segments_) {
    if (segment.part.shards > 1 && !ends_.are_divided() && tables_.empty()) {
      segment.order = std::make_unique<SplitOrder>(ends_.pool_of(0).arena().units());
    }
  }
  add_rx(lines);
  for (Segment& segment : segments_) {
    if (segment.part.first != 0) {
      auto stage = std::make_unique<ReshardStage>(ends_.pool_of(0), merger_of(*(&segment - 1), lines),
                                                  splitter_to(segment, lines), config_.devices.size() > 1);
      reshard_stages_.push_back(stage.get());
      add_host_stage(std::move(stage));
    }
    CATENA_RETURN_IF_ERROR(add_nf_stages(segment, lines));
  }
  std::vector<nf::Instance const*> nfs;
  for (nf::Instance* instance : first_instances()) {
    nfs.push_back(instance);
  }
  CATENA_RETURN_IF_ERROR(ends_.open_outputs(config_, options, std::move(nfs), give_up, ends_before()));
  add_tx(lines);
  flow_->attach(config_.flow, flow_paths());
  if (ends_.are_divided()) {
    group_by_shard();
  }
  if (options.device_returns) {
    devices_.return_lost();
  }
  return absl::OkStatus();
}

/// Where each shard has all stages of its own: those of one beside each other, so that a worker has whole shards.
void Session::group_by_shard() {
  const std::size_t shards = ends_.sources().size();
  const std::size_t nfs = (stages_.size() - 2 * shards) / shards;  // those of one process are one stage
  std::vector<std::unique_ptr<PacketStage>> grouped;
  for (std::size_t shard = 0; shard < shards; ++shard) {
    grouped.push_back(std::move(stages_[shard]));
    for (std::size_t nf = 0; nf < nfs; ++nf) {
      grouped.push_back(std::move(stages_[shards + shard * nfs + nf]));
    }
    grouped.push_back(std::move(stages_[shards + shards * nfs + shard]));
  }
  stages_ = std::move(grouped);
}

ShardMap Session::shard_map_of(Segment const& segment) const {
  if (!segment.part.divided_by) {
    return {segment.part.shards, flow_key_};
  }
  return {segment.part.shards, flow_key_, *first_of(*segment.part.divided_by).instance};
}

namespace {

/// Number `queue` of each shard.
std::vector<memory::UnitQueue*> of_each(auto& shards, std::size_t queue) {
  std::vector<memory::UnitQueue*> queues;
  for (auto& shard : shards) {
    queues.push_back(&shard.queues[queue]);
  }
  return queues;
}

}  // namespace

Splitter Session::splitter_to(Segment& segment, RecordLog* lines) {
  const std::size_t first = segment.topology.after_rx();
  if (segment.shards.size() == 1) {
    const bool is_alone = segments_.size() == 1 && !has_classifiers();
    return {segment.shards.front().queues[first], is_alone ? nullptr : &ends_.reserve_of(0)};
  }
  return {of_each(segment.shards, first),
          ends_.pool_of(0),
          segment.order.get(),
          shard_map_of(segment),
          lines,
          ends_.reserve_of(0)};
}

Merger Session::merger_of(Segment& segment, RecordLog* lines) {
  std::vector<memory::UnitQueue*> queues = of_each(segment.shards, segment.topology.last());
  return segment.order ? Merger(std::move(queues), ends_.pool_of(0), *segment.order, lines) : Merger(std::move(queues));
}

void Session::add_rx(RecordLog* lines) {
  for (std::size_t i = 0; i < ends_.sources().size(); ++i) {
    Segment& first = segments_.front();
    Splitter out = ends_.are_divided() ? Splitter(first.shards[i].queues[first.topology.after_rx()],
                                                  has_classifiers() ? &ends_.reserve_of(i) : nullptr)
                                       : splitter_to(first, lines);
    auto rx = std::make_unique<RxStage>(*ends_.sources()[i], ends_.pool_of(i), std::move(out), stop_, lines);
    rx->number_by(version_);
    rx_.push_back(rx.get());
    add_host_stage(std::move(rx), ends_.are_divided() ? concat("/", i) : std::string());
  }
}

void Session::add_tx(RecordLog* lines) {
  for (std::size_t i = 0; i < ends_.sources().size(); ++i) {
    Segment& last = segments_.back();
    Merger in = ends_.are_divided() ? Merger(last.shards[i].queues[last.topology.last()]) : merger_of(last, lines);
    auto tx = std::make_unique<TxStage>(*ends_.sinks()[i], ends_.pool_of(i), std::move(in), ends_.outputs().recorder(),
                                        lines);
    tx_.push_back(tx.get());
    add_host_stage(std::move(tx), ends_.are_divided() ? concat("/", i) : std::string());
  }
}

Status Session::add_nf_stages(Segment& segment, RecordLog* lines) {
  for (std::size_t shard = 0; shard < segment.shards.size(); ++shard) {
    add_classifier_stage(segment, shard, 0, lines);
    for (std::size_t i = 0; i < segment.shards[shard].nfs.size(); ++i) {
      CATENA_RETURN_IF_ERROR(add_nf_stage(segment, shard, i, lines));
      add_classifier_stage(segment, shard, i + 1, lines);
    }
  }
  return absl::OkStatus();
}

/// How an NF on the CPU gets the headers of its packets. The stages in front of it are there.
Fetch Session::fetch_for(nf::Instance const& instance, std::size_t position) const {
  const packet::Hints hints = instance.nf().hints();
  const packet::FieldSet writes = hints.cw | hints.prepare_writes | hints.complete_writes;
  if ((writes & packet::kFrameFields) == 0) {
    return Fetch::kToRead;
  }
  for (Segment const& segment : segments_) {
    std::vector<Entry> const& nfs = segment.shards.front().nfs;
    for (std::size_t i = 0; i < nfs.size() && segment.part.first + i < position; ++i) {
      if (nfs[i].device_stage == nullptr) {
        return Fetch::kToWrite;
      }
    }
  }
  return Fetch::kToRead;
}

Status Session::add_nf_stage(Segment& segment, std::size_t shard, std::size_t number, RecordLog* lines) {
  Entry& entry = segment.shards[shard].nfs[number];
  const auto position = static_cast<std::uint32_t>(segment.part.first + number);
  memory::UnitQueue& in = segment.shards[shard].queues[segment.topology.before_nf(number)];
  memory::UnitQueue& out = segment.shards[shard].queues[segment.topology.after_nf(number)];
  const std::string suffix = segment.shards.size() > 1 ? concat("/", shard) : std::string();
  const std::optional<io::LiveClock> live_clock = ends_.sources().front()->live_clock();
  if (auto* isolated = as_isolated(*entry.instance); isolated != nullptr) {
    if (isolated->number() == 0) {
      add_process_stage(segment, shard, number, isolated->process(), lines);
    }
    return absl::OkStatus();
  }
  DeviceSide* const device = devices_.side_of(shard);
  kernel::DeviceNf* const kernel = device != nullptr ? device->kernel_of(position) : nullptr;
  if (kernel == nullptr) {
    add_host_stage(std::make_unique<CpuStage>(*entry.instance, position, ends_.pool_of(shard), in, out, live_clock,
                                              lines, fetch_for(*entry.instance, position)),
                   suffix);
    entry.stage = stages_.back().get();
    return absl::OkStatus();
  }
  DeviceStageOptions options{config_.tuning.units_per_launch, config_.tuning.launches_in_flight,
                             std::chrono::milliseconds(config_.tuning.device_limit_ms),
                             std::chrono::microseconds(config_.tuning.max_batch_delay_us)};
  options.only_on_device = device->only_on_device(position);
  options.use = &device->use();
  options.trace = telemetry_.trace_of(concat(entry.config.name, suffix));
  options.live_clock = live_clock;
  options.lines = lines;
  options.bounds.max_packets = entry.config.batch_size;
  if (devices_.sharing() != nullptr) {
    options.bounds = devices_.bounds_of(position);
  }
  CATENA_ASSIGN_OR_RETURN(
      auto stage, DeviceStage::create(*entry.instance, position, *kernel, ends_.pool_of(shard), in, out, options));
  entry.device_stage = stage.get();
  entry.stage = stage.get();
  devices_.add(shard, *stage);
  stages_.push_back(std::move(stage));
  return absl::OkStatus();
}

}  // namespace catena::runtime
