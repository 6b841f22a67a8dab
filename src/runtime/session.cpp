// SPDX-License-Identifier: Apache-2.0
#include "runtime/session.hpp"

#include "chain/findings.hpp"
#include "chain/instances.hpp"
#include "chain/named_files.hpp"
#include "chain/workers.hpp"
#include "runtime/counts.hpp"
#include "runtime/ends.hpp"
#include "runtime/workers.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/persistent.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <iterator>
#include <random>
#include <system_error>
#include <utility>

namespace catena::runtime {
namespace {

constexpr double kNsPerSecond = 1e9;

std::int64_t now_ns() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

std::string describe(device::DeviceInfo const& info) { return concat(info.name, " (", info.backend, ")"); }

}  // namespace

Result<std::unique_ptr<Session>> Session::create(chain::ChainConfig config, chain::RunOptions const& options,
                                                 nf::Registry const& registry) {
  std::unique_ptr<Session> session(new Session());
  session->config_ = std::move(config);
  session->workers_ = options.workers;
  session->cores_ = options.cores;
  session->is_traced_ = options.trace || !options.trace_path.empty();
  CATENA_RETURN_IF_ERROR(chain::apply(options, session->config_));
  session->flow_key_ = std::uint64_t{std::random_device{}()} << 32U | std::random_device{}();
  CATENA_RETURN_IF_ERROR(start_eal_for(session->config_.rx, session->config_.tx));
  CATENA_RETURN_IF_ERROR(session->make_nfs(registry, options));
  CATENA_RETURN_IF_ERROR(session->make_pools(options));
  CATENA_RETURN_IF_ERROR(session->open_devices(options));
  CATENA_RETURN_IF_ERROR(session->open_ends(options));
  CATENA_RETURN_IF_ERROR(session->start_nfs(options));
  CATENA_RETURN_IF_ERROR(session->make_stages(options));
  session->register_counts();
  return session;
}

Session::~Session() {
  // in front of the NFs and the device: they hold launches
  stages_.clear();
}

template <typename Visit>
void Session::for_each_entry(Visit visit) const {
  for (Section const& section : sections_) {
    for (std::size_t shard = 0; shard < section.shards.size(); ++shard) {
      for (Entry const& entry : section.shards[shard].nfs) {
        visit(shard, entry);
      }
    }
  }
}

std::vector<nf::Instance*> Session::first_instances() const {
  std::vector<nf::Instance*> instances;
  for (std::vector<Entry*> const& entries : entries_) {
    instances.push_back(entries.front()->instance.get());
  }
  return instances;
}

namespace {

void keep_alerts(nf::Instance& instance) {
  if (auto* alerting = dynamic_cast<nf::Alerting*>(&instance.nf()); alerting != nullptr) {
    alerting->keep_alerts();
  }
}

}  // namespace

/// The NFs of the first shard from their configuration; those of the others from them.
Status Session::make_nfs(nf::Registry const& registry, chain::RunOptions const& options) {
  const nf::NamedFiles of_nfs;
  const nf::Shard shard{0, config_.shards};
  std::vector<Entry> first;
  chain::Findings findings;
  for (chain::NfConfig const& config : config_.nfs) {
    first.push_back({config, findings.take(chain::make_instance(config, registry, !options.record_path.empty(),
                                                                chain::ends_of(config_.rx, config_.tx), shard))});
  }
  CATENA_RETURN_IF_ERROR(findings.status());
  CATENA_RETURN_IF_ERROR(chain::check_files(chain::named_files(config_, options, of_nfs.files())));
  return make_sections(std::move(first), !options.eve_path.empty());
}

Status Session::make_sections(std::vector<Entry> first, bool with_alerts) {
  std::vector<nf::Instance*> instances;
  for (Entry const& entry : first) {
    instances.push_back(entry.instance.get());
  }
  for (chain::Section const& part : chain::sections_of(instances, config_.shards)) {
    Section& section = sections_.emplace_back();
    section.part = part;
    section.shards.resize(part.shards);
    for (std::size_t nf = part.first; nf < part.end; ++nf) {
      for (std::uint32_t shard = 1; shard < part.shards; ++shard) {
        CATENA_ASSIGN_OR_RETURN(auto instance,
                                chain::replicate(first[nf].config, *first[nf].instance, {shard, part.shards}));
        section.shards[shard].nfs.push_back({first[nf].config, std::move(instance)});
      }
      section.shards[0].nfs.push_back(std::move(first[nf]));
    }
  }
  entries_.resize(first.size());
  for (Section& section : sections_) {
    for (Shard& shard : section.shards) {
      for (std::size_t i = 0; i < shard.nfs.size(); ++i) {
        entries_[section.part.first + i].push_back(&shard.nfs[i]);
        if (with_alerts) {
          keep_alerts(*shard.nfs[i].instance);
        }
      }
    }
  }
  return absl::OkStatus();
}

Status Session::make_pools(chain::RunOptions const& options) {
  std::uint32_t queues = 0;
  std::uint32_t shards = 1;
  for (Section const& section : sections_) {
    queues += section.part.shards * static_cast<std::uint32_t>(section.part.end - section.part.first + 1);
    shards = std::max(shards, section.part.shards);
  }
  if (shards > 1 && sections_.size() == 1) {
    bool by_packet = true;
    for_each_entry([&by_packet](std::size_t /*shard*/, Entry const& entry) {
      by_packet = by_packet && entry.instance->nf().sharding() == nf::Sharding::kPacket;
    });
    CATENA_ASSIGN_OR_RETURN(has_own_ends_, may_divide_ends(config_, options, by_packet, shards));
  }
  const std::uint32_t pools = has_own_ends_ ? shards : 1;
  for (std::uint32_t i = 0; i < pools; ++i) {
    CATENA_ASSIGN_OR_RETURN(pools_.emplace_back(),
                            memory::PacketPool::create(config_.tuning.pool_slots, config_.tuning.unit_packets,
                                                       queues / pools, shards / pools));
  }
  std::vector<std::uint32_t> used(pools);
  for (Section& section : sections_) {
    for (std::size_t i = 0; i < section.shards.size(); ++i) {
      Shard& shard = section.shards[i];
      for (std::size_t queue = 0; queue <= shard.nfs.size(); ++queue) {
        shard.queues.emplace_back(pool_of(i).arena(), used[i % pools]++);
      }
    }
  }
  return absl::OkStatus();
}

Status Session::start_nfs(chain::RunOptions const& options) {
  const nf::RunContext context{.live_tx = !options.make_sink && config_.tx.kind == chain::PortKind::kDpdk,
                               .new_keys = options.new_keys};
  Status first_error;
  for_each_entry([&](std::size_t /*shard*/, Entry const& entry) {
    auto* persistent = dynamic_cast<nf::Persistent*>(&entry.instance->nf());
    if (persistent == nullptr || !first_error.ok()) {
      return;
    }
    if (const Status status = persistent->start(context); !status.ok()) {
      first_error = Status(status.code(), concat(entry.config.position, ": NF '", entry.config.name,
                                                 "': ", std::string(status.message())));
    }
  });
  return first_error;
}

bool Session::wants_device() const {
  return std::any_of(config_.nfs.begin(), config_.nfs.end(),
                     [](chain::NfConfig const& entry) { return entry.on == plan::Processor::kGpu; });
}

Status Session::open_devices(chain::RunOptions const& options) {
  if (!wants_device()) {
    no_device_reason_ = "no NF of the chain is placed on the gpu";
    return absl::OkStatus();
  }
  for (device::DevicePreference const& choice : config_.devices) {
    CATENA_ASSIGN_OR_RETURN(std::unique_ptr<device::Device> device,
                            options.open_device ? options.open_device() : device::open(choice, &no_device_reason_));
    if (!device) {
      if (choice.kind == device::DevicePreference::Kind::kNone) {
        no_device_reason_ = "the device is 'none'";
      }
      return absl::OkStatus();
    }
    opened_.push_back(std::move(device));
  }
  // where each shard has a pool of its own, each has the twin of it, and tables beside it
  for (std::size_t i = 0; i < std::max(opened_.size(), pools_.size()); ++i) {
    CATENA_ASSIGN_OR_RETURN(devices_.emplace_back(), DeviceSide::create(opened_[i % opened_.size()], config_, options,
                                                                        first_instances(), pools_[i % pools_.size()]));
  }
  return absl::OkStatus();
}

Status Session::open_ends(chain::RunOptions const& options) {
  CATENA_ASSIGN_OR_RETURN(Ends ends, runtime::open_ends(config_, options, pools_, division_of(sections_.front())));
  sources_ = std::move(ends.sources);
  sink_ = std::move(ends.sinks.front());
  more_sinks_.assign(std::make_move_iterator(ends.sinks.begin() + 1), std::make_move_iterator(ends.sinks.end()));
  return absl::OkStatus();
}

trace::SpanLog* Session::trace_of_next_stage(std::string name) {
  if (!is_traced_) {
    return nullptr;
  }
  trace_names_.push_back(std::move(name));
  return trace_logs_.emplace_back(std::make_unique<trace::SpanLog>()).get();
}

/// `shard`: what is put behind its name in traces.
void Session::add_host_stage(std::unique_ptr<HostStage> stage, std::string_view shard) {
  stage->trace_to(trace_of_next_stage(concat(stage->name(), shard)));
  stages_.push_back(std::move(stage));
}

Status Session::make_stages(chain::RunOptions const& options) {
  if (!options.record_path.empty() || !options.eve_path.empty()) {
    lines_.emplace(pools_.front()->arena());
  }
  LineBook* const lines = lines_ ? &*lines_ : nullptr;
  reserve_ = std::make_unique<UnitReserve>(*pools_.front());
  for (Section& section : sections_) {
    if (section.part.shards > 1 && !has_own_ends_) {
      section.order = std::make_unique<SplitOrder>(pools_.front()->arena().units());
    }
  }
  add_rx(lines);
  for (Section& section : sections_) {
    if (section.part.first != 0) {
      auto stage = std::make_unique<HandOverStage>(*pools_.front(), merger_of(*(&section - 1), lines),
                                                   splitter_to(section, lines), config_.devices.size() > 1);
      hand_overs_.push_back(stage.get());
      add_host_stage(std::move(stage));
    }
    CATENA_RETURN_IF_ERROR(add_nf_stages(section, lines));
  }
  std::vector<nf::Instance const*> nfs;
  for (nf::Instance* instance : first_instances()) {
    nfs.push_back(instance);
  }
  CATENA_ASSIGN_OR_RETURN(outputs_, Outputs::open(config_, options, std::move(sink_), std::move(nfs)));
  add_tx(lines);
  if (has_own_ends_) {
    group_by_shard();
  }
  return absl::OkStatus();
}

/// Where each shard has all stages of its own: those of one beside each other, so that a worker has whole shards.
void Session::group_by_shard() {
  const std::size_t shards = sources_.size();
  const std::size_t nfs = config_.nfs.size();
  std::vector<std::unique_ptr<Stage>> grouped;
  for (std::size_t shard = 0; shard < shards; ++shard) {
    grouped.push_back(std::move(stages_[shard]));
    for (std::size_t nf = 0; nf < nfs; ++nf) {
      grouped.push_back(std::move(stages_[shards + shard * nfs + nf]));
    }
    grouped.push_back(std::move(stages_[shards + shards * nfs + shard]));
  }
  stages_ = std::move(grouped);
}

Division Session::division_of(Section const& section) const {
  if (!section.part.divided_by) {
    return {section.part.shards, flow_key_};
  }
  return {section.part.shards, flow_key_, *first_of(*section.part.divided_by).instance};
}

namespace {

std::vector<memory::UnitQueue*> ends_of(auto& shards, bool first) {
  std::vector<memory::UnitQueue*> queues;
  for (auto& shard : shards) {
    queues.push_back(first ? &shard.queues.front() : &shard.queues.back());
  }
  return queues;
}

}  // namespace

Splitter Session::splitter_to(Section& section, LineBook* lines) {
  if (!section.order) {
    return {section.shards.front().queues.front(), sections_.size() > 1 ? reserve_.get() : nullptr};
  }
  return {ends_of(section.shards, true), *pools_.front(), *section.order, division_of(section), lines, *reserve_};
}

Merger Session::merger_of(Section& section, LineBook* lines) {
  return section.order ? Merger(ends_of(section.shards, false), *pools_.front(), *section.order, lines)
                       : Merger(section.shards.front().queues.back());
}

void Session::add_rx(LineBook* lines) {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    Splitter out =
        has_own_ends_ ? Splitter(sections_.front().shards[i].queues.front()) : splitter_to(sections_.front(), lines);
    auto rx = std::make_unique<RxStage>(*sources_[i], pool_of(i), std::move(out), stop_, lines);
    rx_.push_back(rx.get());
    add_host_stage(std::move(rx), has_own_ends_ ? concat("/", i) : std::string());
  }
}

void Session::add_tx(LineBook* lines) {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    Merger in = has_own_ends_ ? Merger(sections_.front().shards[i].queues.back()) : merger_of(sections_.back(), lines);
    io::Sink& sink = i == 0 ? outputs_->sink() : *more_sinks_[i - 1];
    auto tx = std::make_unique<TxStage>(sink, pool_of(i), std::move(in), outputs_->recorder(), lines);
    tx_.push_back(tx.get());
    add_host_stage(std::move(tx), has_own_ends_ ? concat("/", i) : std::string());
  }
}

Status Session::add_nf_stages(Section& section, LineBook* lines) {
  for (std::size_t shard = 0; shard < section.shards.size(); ++shard) {
    for (std::size_t i = 0; i < section.shards[shard].nfs.size(); ++i) {
      CATENA_RETURN_IF_ERROR(add_nf_stage(section, shard, i, lines));
    }
  }
  return absl::OkStatus();
}

Status Session::add_nf_stage(Section& section, std::size_t shard, std::size_t number, LineBook* lines) {
  Entry& entry = section.shards[shard].nfs[number];
  const auto position = static_cast<std::uint32_t>(section.part.first + number);
  memory::UnitQueue& in = section.shards[shard].queues[number];
  memory::UnitQueue& out = section.shards[shard].queues[number + 1];
  const std::string suffix = section.shards.size() > 1 ? concat("/", shard) : std::string();
  const std::optional<io::LiveClock> live_clock = sources_.front()->live_clock();
  DeviceSide* const device = devices_.empty() ? nullptr : devices_[shard % devices_.size()].get();
  kernel::DeviceNf* const kernel = device != nullptr ? device->kernel_of(position) : nullptr;
  if (kernel == nullptr) {
    add_host_stage(std::make_unique<CpuStage>(*entry.instance, position, pool_of(shard), in, out, live_clock, lines),
                   suffix);
    entry.stage = stages_.back().get();
    return absl::OkStatus();
  }
  DeviceStageOptions options{config_.tuning.units_per_launch, config_.tuning.launches_in_flight,
                             std::chrono::milliseconds(config_.tuning.device_limit_ms),
                             std::chrono::microseconds(config_.tuning.max_batch_delay_us)};
  options.only_on_device = device->only_on_device(position);
  options.use = &device->use();
  options.trace = trace_of_next_stage(concat(entry.config.name, suffix));
  options.live_clock = live_clock;
  options.lines = lines;
  CATENA_ASSIGN_OR_RETURN(auto stage,
                          DeviceStage::create(*entry.instance, position, *kernel, pool_of(shard), in, out, options));
  entry.device_stage = stage.get();
  entry.stage = stage.get();
  stages_.push_back(std::move(stage));
  return absl::OkStatus();
}

void Session::register_counts() {
  for_each_entry([](std::size_t /*shard*/, Entry const& entry) {
    entry.instance->board().publish(entry.instance->nf());  // a first reader finds them, too
  });
  const auto of_nfs = [this](auto collect_entry) {
    for (std::size_t i = 0; i < config_.shards; ++i) {
      metrics_.add({{"shard", std::to_string(i)}}, [this, i, collect_entry](metrics::Snapshot& counts) {
        for_each_entry([&](std::size_t shard, Entry const& entry) {
          if (shard == i) {
            collect_entry(entry, counts);
          }
        });
      });
    }
  };
  const auto of_ends = [this](auto const& ends, auto collect_end) {
    for (std::size_t i = 0; i < ends.size(); ++i) {
      metrics_.add(ends.size() > 1 ? metrics::Labels{{"shard", std::to_string(i)}} : metrics::Labels(),
                   [end = &*ends[i], collect_end](metrics::Snapshot& counts) { collect_end(*end, counts); });
    }
  };
  // tx before rx: never more out than in
  of_ends(tx_, [](TxStage const& tx, metrics::Snapshot& counts) { collect(tx, counts); });
  of_nfs([](Entry const& entry, metrics::Snapshot& counts) { collect(*entry.instance, counts); });
  of_ends(rx_, [](RxStage const& rx, metrics::Snapshot& counts) { collect(rx, counts); });
  of_ends(pools_, [](memory::PacketPool const& pool, metrics::Snapshot& counts) { collect(pool, counts); });
  of_ends(rx_, [](RxStage const& rx, metrics::Snapshot& counts) { collect(rx, false, counts); });
  for (HandOverStage const* stage : hand_overs_) {
    metrics_.add({}, [stage](metrics::Snapshot& counts) { collect(*stage, false, counts); });
  }
  of_nfs([](Entry const& entry, metrics::Snapshot& counts) { collect(*entry.stage, true, counts); });
  of_ends(tx_, [](TxStage const& tx, metrics::Snapshot& counts) { collect(tx, false, counts); });
}

Status Session::run() {
  began_ns_ = now_ns();
  Status status = run_stages();
  ended_ns_ = now_ns();
  has_ended_ = true;
  status.Update(outputs_->finish(traces()));
  for (auto const& sink : more_sinks_) {
    status.Update(sink->finish());
  }
  return status;
}

/// Stages and workers of group number `group` of `groups`: whole shards. As runtime::run_stages().
Status Session::work_on(std::size_t group, std::size_t groups) {
  const auto begin_of = [groups](std::size_t of, std::size_t all) { return of * all / groups; };
  const std::size_t stages_of_source = stages_.size() / sources_.size();
  std::vector<Stage*> stages;
  const std::size_t end = begin_of(group + 1, sources_.size()) * stages_of_source;
  for (std::size_t i = begin_of(group, sources_.size()) * stages_of_source; i < end; ++i) {
    stages.push_back(stages_[i].get());
  }
  const std::size_t first_worker = begin_of(group, workers_);
  const std::size_t workers = begin_of(group + 1, workers_) - first_worker;
  std::vector<std::uint32_t> cores;
  for (std::size_t i = 0; i < workers && !cores_.empty(); ++i) {
    cores.push_back(cores_[(first_worker + i) % cores_.size()]);
  }
  Status status = runtime::run_stages(stages, static_cast<std::uint32_t>(workers), cores);
  if (!status.ok()) {
    stop();  // the other groups need not go on
  }
  return status;
}

/// Lets workers poll the stages to their end. Where shards have nothing in common each has workers of its own, so that
/// its packets stay near them.
Status Session::work() {
  const std::size_t groups = has_own_ends_ ? std::min<std::size_t>(workers_, sources_.size()) : 1;
  std::vector<std::future<Status>> others;
  Status status;
  for (std::size_t group = 1; group < groups && status.ok(); ++group) {
    try {
      others.push_back(std::async(std::launch::async, [this, group, groups] { return work_on(group, groups); }));
    } catch (std::system_error const& error) {
      stop();
      status = absl::ResourceExhaustedError(concat("no thread for the workers of a shard: ", error.what()));
    }
  }
  status.Update(work_on(0, groups));
  for (std::future<Status>& group : others) {
    status.Update(group.get());
  }
  return status;
}

Status Session::run_stages() {
  Status status = work();
  if (status.ok()) {
    // all are asked: one that cannot write its state is no reason to lose those of others
    for_each_entry([&status](std::size_t /*shard*/, Entry const& entry) {
      if (const Status end = entry.instance->nf().finish(); !end.ok()) {
        status.Update(Status(end.code(), concat("NF '", entry.config.name, "': ", std::string(end.message()))));
      }
    });
  }
  for_each_entry([](std::size_t /*shard*/, Entry const& entry) { entry.instance->board().end(entry.instance->nf()); });
  for (RxStage const* rx : rx_) {
    status.Update(rx->error());
  }
  return status;
}

std::vector<StageTrace> Session::traces() const {
  std::vector<StageTrace> traces;
  for (std::size_t i = 0; i < trace_logs_.size(); ++i) {
    traces.push_back({trace_names_[i], trace_logs_[i].get()});
  }
  return traces;
}

std::optional<plan::Plan> Session::plan() const {
  return devices_.empty() ? std::nullopt : std::optional(devices_.front()->plan());
}

bool Session::abandoned_device() const {
  bool abandoned = false;
  for_each_entry([&abandoned](std::size_t /*shard*/, Entry const& entry) {
    abandoned = abandoned || (entry.device_stage != nullptr && entry.device_stage->abandoned());
  });
  return abandoned;
}

/// "2: fw and ids by flow, nat in one, rt by flow".
std::string Session::describe_shards() const {
  std::vector<std::string> parts;
  for (Section const& section : sections_) {
    std::vector<std::string> names;
    for (Entry const& entry : section.shards.front().nfs) {
      names.push_back(entry.config.name);
    }
    const std::string how = section.part.shards == 1 ? "in one"
                            : section.part.divided_by
                                ? concat("as ", first_of(*section.part.divided_by).config.name, " says")
                                : "by flow";
    parts.push_back(fmt::format("{} {}", fmt::join(names, " and "), how));
  }
  return fmt::format("{}: {}{}", config_.shards, fmt::join(parts, ", "),
                     has_own_ends_ ? ", each with its part of rx and a tx of its own" : "");
}

std::vector<std::string> Session::start_report() const {
  std::vector<std::string> lines;
  for (auto const& device : opened_) {
    lines.push_back(concat("device   ", describe(device->info())));
  }
  if (!devices_.empty()) {
    DeviceSide const& first = *devices_.front();
    if (!no_device_reason_.empty()) {
      lines.push_back(concat("         not used: ", no_device_reason_));
    }
    lines.push_back(concat("sync     ", plan::to_string(first.plan().mode), ", by ", first.costs_from()));
    if (chain::is_mix_assumed(config_.rx)) {
      lines.emplace_back("         for a simple IMIX: what rx brings is not known before it runs");
    }
  } else if (wants_device()) {
    lines.push_back(concat("device   none: the CPU implementations serve, for NFs placed `on: gpu` too",
                           indented(no_device_reason_, 9)));
  } else {
    lines.push_back(concat("device   none (", no_device_reason_, ")"));
  }
  lines.push_back(concat("rx       ", sources_.front()->describe()));
  if (config_.shards > 1) {
    lines.push_back(concat("shards   ", describe_shards()));
  }
  for (std::vector<Entry*> const& entries : entries_) {
    Entry const& entry = *entries.front();
    std::string line = fmt::format("nf       {} ({}) on {}", entry.config.name, entry.config.type,
                                   entry.device_stage != nullptr ? "gpu" : "cpu");
    for (std::string const& detail : entry.instance->nf().start_report()) {
      line += concat("\n           ", detail);
    }
    if (const std::string unseen = entry.instance->passes_unseen(); !unseen.empty()) {
      line += concat("\n           ", unseen);
    }
    lines.push_back(std::move(line));
  }
  lines.push_back(concat("tx       ", outputs_->sink().describe()));
  if (std::string const* path = outputs_->trace_path(); path != nullptr) {
    lines.push_back(concat("trace    ", *path));
  }
  return lines;
}

/// Not from a snapshot: that asks each NF's thread for what it alone knows, which takes time.
RunProgress Session::progress() const {
  RunProgress progress;
  for (TxStage const* tx : tx_) {
    const io::SinkCounts sink = tx->sink().counts();
    progress.sent += sink.sent;
    for (io::NamedCount const& drop : sink.drops) {
      progress.dropped += drop.count;
    }
  }
  for_each_entry([&progress](std::size_t /*shard*/, Entry const& entry) {
    for (auto const& [reason, count] : entry.instance->drops()) {
      progress.dropped += count;
    }
  });
  progress.part_done = part_done();
  for (RxStage const* rx : rx_) {  // last: never more out than in
    progress.received += rx->packets();
  }
  return progress;
}

/// The slowest source's.
double Session::part_done() const {
  double part = sources_.front()->part_done();
  for (auto const& source : sources_) {
    part = std::min(part, source->part_done());
  }
  return part;
}

Report Session::report() const {
  const metrics::Snapshot counts = metrics_.read();
  Report report = runtime::report_of(counts);
  report.chain = config_.name;
  report.device_note = no_device_reason_;
  report.device = "none";
  report.cpu_instead_of_gpu = devices_.empty() && wants_device();
  if (!devices_.empty()) {
    std::vector<std::string> names;
    for (auto const& device : opened_) {
      names.push_back(describe(device->info()));
    }
    report.device = fmt::format("{}", fmt::join(names, " + "));
    report.sync = plan::to_string(devices_.front()->plan().mode);
    report.costs_from = devices_.front()->costs_from();
  }
  report.rx = describe(config_.rx);
  report.tx = describe(config_.tx);
  report.workers = workers_;
  if (const std::int64_t began_ns = began_ns_; began_ns != 0) {
    const std::int64_t ended_ns = has_ended_ ? ended_ns_.load() : now_ns();
    report.seconds = static_cast<double>(ended_ns - began_ns) / kNsPerSecond;
  }
  double offered_per_second = 0;
  for (auto const& source : sources_) {
    offered_per_second += source->offered_per_second();
  }
  report.offered_per_second = static_cast<std::uint64_t>(std::llround(offered_per_second));
  for (std::size_t nf = 0; nf < config_.nfs.size(); ++nf) {
    report.nfs.push_back(report_of(nf, counts));
  }
  const auto divided =
      std::find_if(sections_.begin(), sections_.end(), [](Section const& section) { return section.part.shards > 1; });
  for (std::size_t i = 0; divided != sections_.end() && i < config_.shards; ++i) {
    const metrics::Label shard{"shard", std::to_string(i)};
    std::string const& first = divided->shards.front().nfs.front().config.name;
    report.shards.push_back({counts.sum(counts::kIn, {shard, {"nf", first}}),
                             static_cast<double>(counts.sum(counts::kBusy, {shard})) / kNsPerSecond});
  }
  return report;
}

NfReport Session::report_of(std::size_t nf, metrics::Snapshot const& counts) const {
  Entry const& first = first_of(nf);
  NfReport row = runtime::report_of(first.config.name, counts);
  row.type = first.config.type;
  row.placement = first.device_stage != nullptr ? "gpu" : "cpu";
  for (Entry const* entry : entries_[nf]) {
    if (entry->device_stage != nullptr && !entry->device_stage->device_status().ok()) {
      row.placement = "gpu -> cpu";
      row.device_error = entry->device_stage->device_status().ToString();
    }
  }
  if (has_ended_) {
    for (Entry const* entry : entries_[nf]) {
      const std::vector<std::string> lines = entry->instance->nf().end_report();
      row.lines.insert(row.lines.end(), lines.begin(), lines.end());
    }
    for (auto const& [reason, count] : nf::count_by_reason(chain::refusals_of(*first.instance))) {
      row.refused_rules.push_back({reason, count});
    }
  }
  return row;
}

}  // namespace catena::runtime
