// SPDX-License-Identifier: Apache-2.0
#include "runtime/session.hpp"

#include "chain/findings.hpp"
#include "chain/instances.hpp"
#include "chain/named_files.hpp"
#include "runtime/counts.hpp"
#include "runtime/ends.hpp"
#include "runtime/workers.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/persistent.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

namespace catena::runtime {
namespace {

constexpr double kNsPerSecond = 1e9;

std::int64_t now_ns() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

}  // namespace

Result<std::unique_ptr<Session>> Session::create(chain::ChainConfig config, chain::RunOptions const& options,
                                                 nf::Registry const& registry) {
  std::unique_ptr<Session> session(new Session());
  session->config_ = std::move(config);
  session->workers_ = options.workers;
  session->cores_ = options.cores;
  session->is_traced_ = options.trace || !options.trace_path.empty();
  session->config_.rx = options.rx.value_or(session->config_.rx);
  session->config_.tx = options.tx.value_or(session->config_.tx);
  CATENA_RETURN_IF_ERROR(start_eal_for(session->config_.rx, session->config_.tx));
  CATENA_RETURN_IF_ERROR(session->make_shards(registry, options));
  const auto queues = static_cast<std::uint32_t>(session->shards_.size() * (session->config_.nfs.size() + 1));
  CATENA_ASSIGN_OR_RETURN(session->pool_, memory::PacketPool::create(session->config_.tuning.pool_slots,
                                                                     session->config_.tuning.unit_packets, queues));
  CATENA_RETURN_IF_ERROR(session->open_device(options));
  CATENA_ASSIGN_OR_RETURN(Ends ends, open_ends(session->config_, options, *session->pool_));
  session->source_ = std::move(ends.source);
  CATENA_RETURN_IF_ERROR(session->start_nfs(options));
  CATENA_RETURN_IF_ERROR(session->make_stages(options, std::move(ends.sink)));
  session->register_counts();
  return session;
}

Session::~Session() {
  // in front of the NFs and the device: they hold launches
  stages_.clear();
}

std::vector<nf::Instance*> Session::instances(Shard const& shard) {
  std::vector<nf::Instance*> instances;
  for (Entry const& entry : shard.nfs) {
    instances.push_back(entry.instance.get());
  }
  return instances;
}

/// The first of each shard, or the last.
std::vector<memory::UnitQueue*> Session::queues(bool first) {
  std::vector<memory::UnitQueue*> queues;
  for (Shard& shard : shards_) {
    queues.push_back(first ? &shard.queues.front() : &shard.queues.back());
  }
  return queues;
}

Status Session::make_shards(nf::Registry const& registry, chain::RunOptions const& options) {
  {
    const nf::NamedFiles of_nfs;  // of one shard: the others read the same
    CATENA_ASSIGN_OR_RETURN(Shard first, make_shard(registry, options));
    shards_.push_back(std::move(first));
    CATENA_RETURN_IF_ERROR(chain::check_files(chain::named_files(config_, options, of_nfs.files())));
  }
  CATENA_RETURN_IF_ERROR(chain::check_shards(config_, instances(shards_.front())));
  while (shards_.size() < config_.shards) {
    CATENA_ASSIGN_OR_RETURN(Shard shard, make_shard(registry, options));
    shards_.push_back(std::move(shard));
  }
  return absl::OkStatus();
}

Result<Session::Shard> Session::make_shard(nf::Registry const& registry, chain::RunOptions const& options) const {
  Shard shard;
  chain::Findings findings;
  for (chain::NfConfig const& config : config_.nfs) {
    Entry entry{config, nullptr};
    entry.instance = findings.take(
        chain::make_instance(config, registry, !options.record_path.empty(), chain::ends_of(config_.rx, config_.tx)));
    if (entry.instance != nullptr && !options.eve_path.empty()) {
      if (auto* alerting = dynamic_cast<nf::Alerting*>(&entry.instance->nf()); alerting != nullptr) {
        alerting->keep_alerts();
      }
    }
    shard.nfs.push_back(std::move(entry));
  }
  CATENA_RETURN_IF_ERROR(findings.status());
  return shard;
}

Status Session::start_nfs(chain::RunOptions const& options) {
  const nf::RunContext context{.live_tx = !options.make_sink && config_.tx.kind == chain::PortKind::kDpdk,
                               .new_keys = options.new_keys};
  for (Shard& shard : shards_) {
    for (Entry& entry : shard.nfs) {
      auto* persistent = dynamic_cast<nf::Persistent*>(&entry.instance->nf());
      if (persistent == nullptr) {
        continue;
      }
      if (Status status = persistent->start(context); !status.ok()) {
        return Status(status.code(),
                      concat(entry.config.position, ": NF '", entry.config.name, "': ", std::string(status.message())));
      }
    }
  }
  return absl::OkStatus();
}

bool Session::wants_device() const {
  return std::any_of(config_.nfs.begin(), config_.nfs.end(),
                     [](chain::NfConfig const& entry) { return entry.on == plan::Processor::kGpu; });
}

Status Session::open_device(chain::RunOptions const& options) {
  const device::DevicePreference choice = options.device.value_or(config_.device);
  if (!wants_device()) {
    no_device_reason_ = "no NF of the chain is placed on the gpu";
    return absl::OkStatus();
  }
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<device::Device> device,
                          options.open_device ? options.open_device() : device::open(choice, &no_device_reason_));
  if (!device) {
    if (choice.kind == device::DevicePreference::Kind::kNone) {
      no_device_reason_ = "the device is 'none'";
    }
    return absl::OkStatus();
  }
  CATENA_ASSIGN_OR_RETURN(device_,
                          DeviceSide::create(std::move(device), config_, options, instances(shards_.front()), pool_));
  return absl::OkStatus();
}

trace::SpanLog* Session::trace_of_next_stage() {
  return is_traced_ ? trace_logs_.emplace_back(std::make_unique<trace::SpanLog>()).get() : nullptr;
}

void Session::add_host_stage(std::unique_ptr<HostStage> stage) {
  stage->trace_to(trace_of_next_stage());
  stages_.push_back(std::move(stage));
}

Status Session::make_stages(chain::RunOptions const& options, std::unique_ptr<io::Sink> sink) {
  std::uint32_t queue = 0;
  for (Shard& shard : shards_) {
    for (std::size_t i = 0; i <= shard.nfs.size(); ++i) {
      shard.queues.emplace_back(pool_->arena(), queue++);
    }
  }
  if (!options.record_path.empty() || !options.eve_path.empty()) {
    lines_.emplace(pool_->arena());
  }
  LineBook* const lines = lines_ ? &*lines_ : nullptr;
  add_rx(lines);
  for (Shard& shard : shards_) {
    for (std::uint32_t i = 0; i < shard.nfs.size(); ++i) {
      CATENA_RETURN_IF_ERROR(add_nf_stage(shard, i, lines));
    }
  }
  return add_tx(options, std::move(sink), lines);
}

void Session::add_rx(LineBook* lines) {
  std::unique_ptr<RxStage> rx;
  if (shards_.size() == 1) {
    rx = std::make_unique<RxStage>(*source_, *pool_, shards_.front().queues.front(), stop_, lines);
  } else {
    order_.emplace(pool_->arena().units());
    Splitter splitter(queues(true), *pool_, *order_, std::random_device{}(), lines);
    rx = std::make_unique<RxStage>(*source_, *pool_, std::move(splitter), stop_, lines);
  }
  rx_ = rx.get();
  add_host_stage(std::move(rx));
}

Status Session::add_nf_stage(Shard& shard, std::uint32_t position, LineBook* lines) {
  Entry& entry = shard.nfs[position];
  memory::UnitQueue& in = shard.queues[position];
  memory::UnitQueue& out = shard.queues[position + 1];
  kernel::DeviceNf* const kernel = device_ ? device_->kernel_of(position) : nullptr;
  if (kernel == nullptr) {
    add_host_stage(
        std::make_unique<CpuStage>(*entry.instance, position, *pool_, in, out, source_->live_clock(), lines));
    entry.stage = stages_.back().get();
    return absl::OkStatus();
  }
  DeviceStageOptions options{config_.tuning.units_per_launch, config_.tuning.launches_in_flight,
                             std::chrono::milliseconds(config_.tuning.device_limit_ms),
                             std::chrono::microseconds(config_.tuning.max_batch_delay_us)};
  options.only_on_device = device_->only_on_device(position);
  options.use = &device_->use();
  options.trace = trace_of_next_stage();
  options.live_clock = source_->live_clock();
  options.lines = lines;
  CATENA_ASSIGN_OR_RETURN(auto stage,
                          DeviceStage::create(*entry.instance, position, *kernel, *pool_, in, out, options));
  entry.device_stage = stage.get();
  entry.stage = stage.get();
  stages_.push_back(std::move(stage));
  return absl::OkStatus();
}

Status Session::add_tx(chain::RunOptions const& options, std::unique_ptr<io::Sink> sink, LineBook* lines) {
  std::vector<nf::Instance const*> nfs;
  for (Entry const& entry : shards_.front().nfs) {
    nfs.push_back(entry.instance.get());
  }
  CATENA_ASSIGN_OR_RETURN(outputs_, Outputs::open(config_, options, std::move(sink), std::move(nfs)));
  Merger in = order_ ? Merger(queues(false), *pool_, *order_, lines) : Merger(shards_.front().queues.back());
  auto tx = std::make_unique<TxStage>(outputs_->sink(), *pool_, std::move(in), outputs_->recorder(), lines);
  tx_ = tx.get();
  add_host_stage(std::move(tx));
  return absl::OkStatus();
}

void Session::register_counts() {
  for (Shard const& shard : shards_) {
    for (Entry const& entry : shard.nfs) {
      entry.instance->board().publish(entry.instance->nf());  // a first reader finds them, too
    }
  }
  const auto of_nfs = [this](auto collect_entry) {
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      metrics_.add({{"shard", std::to_string(i)}}, [shard = &shards_[i], collect_entry](metrics::Snapshot& counts) {
        for (Entry const& entry : shard->nfs) {
          collect_entry(entry, counts);
        }
      });
    }
  };
  // tx before rx: never more out than in
  metrics_.add({}, [this](metrics::Snapshot& counts) { collect(*tx_, counts); });
  of_nfs([](Entry const& entry, metrics::Snapshot& counts) { collect(*entry.instance, counts); });
  metrics_.add({}, [this](metrics::Snapshot& counts) {
    collect(*rx_, counts);
    collect(*pool_, counts);
    collect(*rx_, false, counts);
  });
  of_nfs([](Entry const& entry, metrics::Snapshot& counts) { collect(*entry.stage, true, counts); });
  metrics_.add({}, [this](metrics::Snapshot& counts) { collect(*tx_, false, counts); });
}

Status Session::run() {
  began_ns_ = now_ns();
  Status status = run_stages();
  ended_ns_ = now_ns();
  has_ended_ = true;
  status.Update(outputs_->finish(traces()));
  return status;
}

Status Session::run_stages() {
  std::vector<Stage*> stages;
  for (auto const& stage : stages_) {
    stages.push_back(stage.get());
  }
  Status status = runtime::run_stages(stages, workers_, cores_);
  for (Shard& shard : shards_) {
    for (Entry& entry : shard.nfs) {
      if (const Status end = status.ok() ? entry.instance->nf().finish() : status; status.ok() && !end.ok()) {
        status = Status(end.code(), concat("NF '", entry.config.name, "': ", std::string(end.message())));
      }
      entry.instance->board().end(entry.instance->nf());
    }
  }
  CATENA_RETURN_IF_ERROR(status);
  return rx_->error();
}

std::vector<StageTrace> Session::traces() const {
  std::vector<StageTrace> traces;
  for (std::size_t i = 0; i < trace_logs_.size(); ++i) {
    // the NFs of the shards, one shard behind the other
    const bool is_nf = i > 0 && i + 1 < trace_logs_.size();
    const std::string shard = is_nf && shards_.size() > 1 ? concat("/", (i - 1) / config_.nfs.size()) : std::string();
    traces.push_back({stages_[i]->name() + shard, trace_logs_[i].get()});
  }
  return traces;
}

std::optional<plan::Plan> Session::plan() const { return device_ ? std::optional(device_->plan()) : std::nullopt; }

bool Session::abandoned_device() const {
  return std::any_of(shards_.begin(), shards_.end(), [](Shard const& shard) {
    return std::any_of(shard.nfs.begin(), shard.nfs.end(), [](Entry const& entry) {
      return entry.device_stage != nullptr && entry.device_stage->abandoned();
    });
  });
}

std::vector<std::string> Session::start_report() const {
  std::vector<std::string> lines;
  if (device_) {
    device::DeviceInfo const& info = device_->device().info();
    lines.push_back(concat("device   ", info.name, " (", info.backend, ")"));
    if (!no_device_reason_.empty()) {
      lines.push_back(concat("         not used: ", no_device_reason_));
    }
    lines.push_back(concat("sync     ", plan::to_string(device_->plan().mode), ", by ", device_->costs_from()));
    if (chain::is_mix_assumed(config_.rx)) {
      lines.emplace_back("         for a simple IMIX: what rx brings is not known before it runs");
    }
  } else if (wants_device()) {
    lines.push_back(concat("device   none: the CPU implementations serve, for NFs placed `on: gpu` too",
                           indented(no_device_reason_, 9)));
  } else {
    lines.push_back(concat("device   none (", no_device_reason_, ")"));
  }
  lines.push_back(concat("rx       ", source_->describe()));
  if (shards_.size() > 1) {
    lines.push_back(concat("shards   ", shards_.size(), ", by flow"));
  }
  for (Entry const& entry : shards_.front().nfs) {
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
  const io::SinkCounts sink = tx_->sink().counts();
  RunProgress progress{0, sink.sent, 0, source_->part_done()};
  for (io::NamedCount const& drop : sink.drops) {
    progress.dropped += drop.count;
  }
  for (Shard const& shard : shards_) {
    for (Entry const& entry : shard.nfs) {
      for (auto const& [reason, count] : entry.instance->drops()) {
        progress.dropped += count;
      }
    }
  }
  progress.received = rx_->packets();  // last: never more out than in
  return progress;
}

Report Session::report() const {
  const metrics::Snapshot counts = metrics_.read();
  Report report = runtime::report_of(counts);
  report.chain = config_.name;
  report.device_note = no_device_reason_;
  report.device = "none";
  report.cpu_instead_of_gpu = !device_ && wants_device();
  if (device_) {
    device::DeviceInfo const& info = device_->device().info();
    report.device = fmt::format("{} ({})", info.name, info.backend);
    report.sync = plan::to_string(device_->plan().mode);
    report.costs_from = device_->costs_from();
  }
  report.rx = describe(config_.rx);
  report.tx = describe(config_.tx);
  report.workers = workers_;
  if (const std::int64_t began_ns = began_ns_; began_ns != 0) {
    const std::int64_t ended_ns = has_ended_ ? ended_ns_.load() : now_ns();
    report.seconds = static_cast<double>(ended_ns - began_ns) / kNsPerSecond;
  }
  report.offered_per_second = source_->offered_per_second();
  for (std::size_t nf = 0; nf < config_.nfs.size(); ++nf) {
    report.nfs.push_back(report_of(nf, counts));
  }
  for (std::size_t i = 0; i < shards_.size() && shards_.size() > 1 && !config_.nfs.empty(); ++i) {
    const metrics::Label shard{"shard", std::to_string(i)};
    report.shards.push_back({counts.sum(counts::kIn, {shard, {"nf", config_.nfs.front().name}}),
                             static_cast<double>(counts.sum(counts::kBusy, {shard})) / kNsPerSecond});
  }
  return report;
}

NfReport Session::report_of(std::size_t nf, metrics::Snapshot const& counts) const {
  Entry const& first = shards_.front().nfs[nf];
  NfReport row = runtime::report_of(first.config.name, counts);
  row.type = first.config.type;
  row.placement = first.device_stage != nullptr ? "gpu" : "cpu";
  // a device is in use for all shards, or for none
  if (first.device_stage != nullptr && !first.device_stage->device_status().ok()) {
    row.placement = "gpu -> cpu";
    row.device_error = first.device_stage->device_status().ToString();
  }
  if (has_ended_) {
    for (Shard const& shard : shards_) {
      const std::vector<std::string> lines = shard.nfs[nf].instance->nf().end_report();
      row.lines.insert(row.lines.end(), lines.begin(), lines.end());
    }
    for (auto const& [reason, count] : nf::count_by_reason(chain::refusals_of(*first.instance))) {
      row.refused_rules.push_back({reason, count});
    }
  }
  return row;
}

}  // namespace catena::runtime
