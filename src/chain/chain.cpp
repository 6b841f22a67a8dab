// SPDX-License-Identifier: Apache-2.0
#include "chain/chain.hpp"

#include "chain/findings.hpp"
#include "chain/instances.hpp"
#include "chain/named_files.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/persistent.hpp>

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace catena::chain {
namespace {

constexpr double kNsPerSecond = 1e9;

std::string describe(PortConfig const& port) {
  switch (port.kind) {
    case PortKind::kPcap:
      return concat("pcap ", port.target);
    case PortKind::kDpdk:
      return fmt::format("dpdk {}", fmt::join(port.devices, " + "));
    case PortKind::kGenerator:
      return "generator";
    case PortKind::kReplay:
      return "replay";
    case PortKind::kNull:
      return "null";
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Chain>> Chain::create(ChainConfig config, RunOptions const& options,
                                             nf::Registry const& registry) {
  std::unique_ptr<Chain> chain(new Chain());
  chain->config_ = std::move(config);
  chain->workers_ = options.workers;
  chain->cores_ = options.cores;
  chain->config_.rx = options.rx.value_or(chain->config_.rx);
  chain->config_.tx = options.tx.value_or(chain->config_.tx);
  CATENA_RETURN_IF_ERROR(start_eal(chain->config_.rx, chain->config_.tx));
  const nf::NamedFiles of_nfs;
  CATENA_RETURN_IF_ERROR(chain->make_nfs(registry, options));
  CATENA_RETURN_IF_ERROR(check_files(named_files(chain->config_, options, of_nfs.files())));
  const auto queues = static_cast<std::uint32_t>(chain->nfs_.size() + 1);
  CATENA_ASSIGN_OR_RETURN(chain->pool_, memory::PacketPool::create(chain->config_.tuning.pool_slots,
                                                                   chain->config_.tuning.unit_packets, queues));
  CATENA_RETURN_IF_ERROR(chain->open_device(options));
  CATENA_RETURN_IF_ERROR(chain->open_ports(options));
  CATENA_RETURN_IF_ERROR(chain->start_nfs(options));
  CATENA_RETURN_IF_ERROR(chain->make_stages(options));
  return chain;
}

Chain::~Chain() {
  // in front of the NFs and the device: they hold launches
  stages_.clear();
}

Status Chain::make_nfs(nf::Registry const& registry, RunOptions const& options) {
  Findings findings;
  for (NfConfig const& config : config_.nfs) {
    ChainEntry entry{config, nullptr, nullptr, nullptr, nullptr};
    entry.instance =
        findings.take(make_instance(config, registry, !options.record_path.empty(), ends_of(config_.rx, config_.tx)));
    if (entry.instance != nullptr && !options.eve_path.empty()) {
      if (auto* alerting = dynamic_cast<nf::Alerting*>(&entry.instance->nf()); alerting != nullptr) {
        alerting->keep_alerts();
      }
    }
    nfs_.push_back(std::move(entry));
  }
  return findings.status();
}

Status Chain::start_nfs(RunOptions const& options) {
  const nf::RunContext context{.live_tx = !options.make_sink && config_.tx.kind == PortKind::kDpdk,
                               .new_keys = options.new_keys};
  for (ChainEntry& entry : nfs_) {
    auto* persistent = dynamic_cast<nf::Persistent*>(&entry.instance->nf());
    if (persistent == nullptr) {
      continue;
    }
    if (Status status = persistent->start(context); !status.ok()) {
      return Status(status.code(),
                    concat(entry.config.position, ": NF '", entry.config.name, "': ", std::string(status.message())));
    }
  }
  return absl::OkStatus();
}

bool Chain::wants_device() const {
  return std::any_of(nfs_.begin(), nfs_.end(),
                     [](ChainEntry const& entry) { return entry.config.on == plan::Processor::kGpu; });
}

Status Chain::open_device(RunOptions const& options) {
  const device::DevicePreference choice = options.device.value_or(config_.device);
  if (!wants_device()) {
    no_device_reason_ = "no NF of the chain is placed on the gpu";
    return absl::OkStatus();
  }
  CATENA_ASSIGN_OR_RETURN(device_,
                          options.open_device ? options.open_device() : device::open(choice, &no_device_reason_));
  if (!device_) {
    if (choice.kind == device::DevicePreference::Kind::kNone) {
      no_device_reason_ = "the device is 'none'";
    }
    return absl::OkStatus();
  }
  SyncOptions sync = options.sync;
  if (options.profiles) {
    sync.profile = options.profiles->find(device_->info());
  }
  costs_from_ = chain::describe(sync.profile);
  if (!sync.profile.measured.empty() && !sync.profile.is_of(device_->info())) {
    costs_from_ += concat(" on another device, ", sync.profile.device);
  }
  return load_kernels(sync);
}

Status Chain::load_kernels(SyncOptions const& options) {
  memory::Arena const& arena = pool_->arena();
  std::vector<std::optional<nf::KernelSide>> sides(nfs_.size());
  CATENA_ASSIGN_OR_RETURN(plan::PlanInput input, plan_input(config_, options));
  if (options.mode != plan::Mode::kCopy) {
    CATENA_ASSIGN_OR_RETURN(
        shared_, copy::SharedBuffer::create(*device_, {arena.slot_bytes(), arena.fd(), arena.slot_offset()}, pool_));
    if (shared_->mapped() == nullptr) {
      input.costs.available &= static_cast<plan::MethodSet>(~plan::method_bit(TransferMethod::kGather));
    }
  }
  for (std::size_t i = 0; i < nfs_.size(); ++i) {
    CATENA_ASSIGN_OR_RETURN(sides[i], add_nf(nfs_[i].config, *nfs_[i].instance, input));
  }
  if (options.plan) {
    plan_ = options.plan;
  } else {
    CATENA_ASSIGN_OR_RETURN(plan_, plan::make_plan(input));
  }
  only_on_device_ = only_on_device(input.nfs, *plan_);
  for (std::size_t i = 0; i < nfs_.size(); ++i) {
    if (sides[i]) {
      CATENA_ASSIGN_OR_RETURN(nfs_[i].device_nf,
                              kernel::DeviceNf::create(*device_, std::move(sides[i]->spec),
                                                       nfs_[i].instance->launch_plan(shared_step(*plan_->nfs[i].step)),
                                                       sides[i]->state, shared_.get()));
    }
  }
  return absl::OkStatus();
}

Status Chain::open_ports(RunOptions const& options) {
  const std::vector<std::string> none;
  CATENA_ASSIGN_OR_RETURN(io::DpdkPort ports,
                          io::open_dpdk_ports(options.make_source ? none : config_.rx.devices,
                                              options.make_sink ? none : config_.tx.devices, *pool_));
  if (options.make_source) {
    CATENA_ASSIGN_OR_RETURN(source_, options.make_source());
  } else {
    CATENA_RETURN_IF_ERROR(open_source(ports));
  }
  if (options.make_sink) {
    CATENA_ASSIGN_OR_RETURN(sink_, options.make_sink());
    return absl::OkStatus();
  }
  open_sink(ports);
  return absl::OkStatus();
}

Status Chain::open_source(io::DpdkPort& ports) {
  PortConfig const& rx = config_.rx;
  switch (rx.kind) {
    case PortKind::kPcap: {
      CATENA_ASSIGN_OR_RETURN(source_, io::open_pcap_source(rx.target, rx.loops));
      break;
    }
    case PortKind::kGenerator: {
      CATENA_ASSIGN_OR_RETURN(source_, io::make_generator(rx.generator));
      break;
    }
    case PortKind::kReplay: {
      CATENA_ASSIGN_OR_RETURN(source_, io::make_replay(rx.replay));
      break;
    }
    case PortKind::kDpdk:
      source_ = std::move(ports.source);
      break;
    case PortKind::kNull:
      return absl::InvalidArgumentError("rx cannot be null");
  }
  return absl::OkStatus();
}

void Chain::open_sink(io::DpdkPort& ports) {
  if (config_.tx.kind == PortKind::kDpdk) {
    sink_ = std::move(ports.sink);
  } else if (config_.tx.kind != PortKind::kPcap) {  // that is opened with the other files
    sink_ = io::make_null_sink();
  }
}

/// After everything that can fail: a run that cannot start has emptied no file.
Status Chain::open_outputs(RunOptions const& options) {
  std::optional<io::OutputFile> tx;
  std::optional<io::OutputFile> record;
  std::optional<io::OutputFile> eve;
  const auto open = [](std::string const& path, std::optional<io::OutputFile>& file) -> Status {
    if (!path.empty()) {
      CATENA_ASSIGN_OR_RETURN(file, io::OutputFile::open(path));
    }
    return absl::OkStatus();
  };
  if (!sink_) {
    if (io::names_standard_output(config_.tx.target) && ::isatty(STDOUT_FILENO) == 1) {
      return absl::FailedPreconditionError(
          "tx: standard output is a terminal; send the capture to a file or a program, as `| tcpdump -r -`");
    }
    CATENA_RETURN_IF_ERROR(open(config_.tx.target, tx));
  }
  CATENA_RETURN_IF_ERROR(open(options.record_path, record));
  CATENA_RETURN_IF_ERROR(open(options.eve_path, eve));
  CATENA_RETURN_IF_ERROR(open(options.trace_path, trace_file_));
  for (std::optional<io::OutputFile>* file : {&tx, &record, &eve, &trace_file_}) {
    CATENA_RETURN_IF_ERROR(file->has_value() ? (*file)->start() : absl::OkStatus());
  }
  if (tx) {
    sink_ = io::make_pcap_sink(*std::move(tx));
  }
  if (record || eve) {
    dataplane::RecorderOptions lines{config_.name, config_.rx.kind == PortKind::kPcap, {}};
    for (ChainEntry const& entry : nfs_) {
      lines.nfs.push_back(entry.instance.get());
    }
    recorder_ = std::make_unique<dataplane::Recorder>(std::move(lines), std::move(record), std::move(eve));
  }
  return absl::OkStatus();
}

Status Chain::make_stages(RunOptions const& options) {
  for (std::uint32_t i = 0; i <= nfs_.size(); ++i) {
    queues_.emplace_back(pool_->arena(), i);
  }
  if (!options.record_path.empty() || !options.eve_path.empty()) {  // files are opened last
    lines_.emplace(pool_->arena());
  }
  dataplane::LineBook* lines = lines_ ? &*lines_ : nullptr;
  auto rx = std::make_unique<dataplane::RxStage>(*source_, *pool_, queues_.front(), stop_, lines);
  rx_ = rx.get();
  stages_.push_back(std::move(rx));
  dataplane::DeviceStageOptions device_options{config_.tuning.units_per_launch, config_.tuning.launches_in_flight,
                                               std::chrono::milliseconds(config_.tuning.device_limit_ms),
                                               std::chrono::microseconds(config_.tuning.max_batch_delay_us)};
  device_options.live_clock = source_->live_clock();
  device_options.lines = lines;
  for (std::uint32_t i = 0; i < nfs_.size(); ++i) {
    ChainEntry& entry = nfs_[i];
    if (entry.device_nf) {
      device_options.only_on_device = only_on_device_[i];
      device_options.use = &device_use_;
      if (options.trace || !options.trace_path.empty()) {
        entry.trace = std::make_unique<dataplane::TraceLog>();
        device_options.trace = entry.trace.get();
      }
      CATENA_ASSIGN_OR_RETURN(auto stage, dataplane::DeviceStage::create(*entry.instance, i, *entry.device_nf, *pool_,
                                                                         queues_[i], queues_[i + 1], device_options));
      entry.device_stage = stage.get();
      stages_.push_back(std::move(stage));
    } else {
      stages_.push_back(std::make_unique<dataplane::CpuStage>(*entry.instance, i, *pool_, queues_[i], queues_[i + 1],
                                                              device_options.live_clock, lines));
    }
  }
  CATENA_RETURN_IF_ERROR(open_outputs(options));
  auto tx = std::make_unique<dataplane::TxStage>(*sink_, *pool_, queues_.back(), recorder_.get(), lines);
  tx_ = tx.get();
  stages_.push_back(std::move(tx));
  busy_ns_ = std::vector<std::atomic<std::uint64_t>>(stages_.size());
  return absl::OkStatus();
}

std::vector<std::string> Chain::start_report() const {
  std::vector<std::string> lines;
  if (device_) {
    lines.push_back(concat("device   ", device_->info().name, " (", device_->info().backend, ")"));
    if (!no_device_reason_.empty()) {
      lines.push_back(concat("         not used: ", no_device_reason_));
    }
  } else if (wants_device()) {
    lines.push_back(concat("device   none: the CPU implementations serve, for NFs placed `on: gpu` too",
                           indented(no_device_reason_, 9)));
  } else {
    lines.push_back(concat("device   none (", no_device_reason_, ")"));
  }
  if (plan_) {
    lines.push_back(concat("sync     ", plan::to_string(plan_->mode), ", by ", costs_from_));
    if (is_mix_assumed(config_.rx)) {
      lines.emplace_back("         for a simple IMIX: what rx brings is not known before it runs");
    }
  }
  lines.push_back(concat("rx       ", source_->describe()));
  for (ChainEntry const& entry : nfs_) {
    std::string line =
        fmt::format("nf       {} ({}) on {}", entry.config.name, entry.config.type, entry.device_nf ? "gpu" : "cpu");
    for (std::string const& detail : entry.instance->nf().start_report()) {
      line += concat("\n           ", detail);
    }
    if (const std::string unseen = entry.instance->passes_unseen(); !unseen.empty()) {
      line += concat("\n           ", unseen);
    }
    lines.push_back(std::move(line));
  }
  lines.push_back(concat("tx       ", sink_->describe()));
  if (trace_file_) {
    lines.push_back(concat("trace    ", trace_file_->path(),
                           device_ ? concat(", the first ", dataplane::TraceLog::kMaxLaunches, " launches of each NF")
                                   : std::string(": no launches, as no NF runs on a device")));
  }
  return lines;
}

Status Chain::run() {
  Status status = run_stages();
  status.Update(close_outputs());
  if (trace_file_) {
    status.Update(write_trace());
  }
  return status;
}

/// A run that was ended by an error left in the outputs' buffers what they had.
Status Chain::close_outputs() {
  Status status = sink_->finish();
  if (recorder_) {
    status.Update(recorder_->finish());
  }
  return status;
}

std::vector<StageTrace> Chain::traces() const {
  std::vector<StageTrace> traces;
  for (ChainEntry const& entry : nfs_) {
    if (entry.trace) {
      traces.push_back({entry.config.name, entry.trace->launches()});
    }
  }
  return traces;
}

Status Chain::write_trace() {
  Status status;
  for (ChainEntry const& entry : nfs_) {
    if (entry.trace && !entry.trace->status().ok()) {
      status.Update(absl::DataLossError(concat("the trace lacks times on the device of NF '", entry.config.name,
                                               "': ", std::string(entry.trace->status().message()))));
    }
  }
  const std::string text = to_chrome_trace(traces());
  status.Update(trace_file_->write(text.data(), text.size()));
  status.Update(trace_file_->close());
  return status;
}

Status Chain::run_stages() {
  std::vector<dataplane::Stage*> stages;
  for (auto const& stage : stages_) {
    stages.push_back(stage.get());
  }
  const auto start = std::chrono::steady_clock::now();
  const Status status = dataplane::run_stages(stages, workers_, busy_ns_, cores_);
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  CATENA_RETURN_IF_ERROR(status);
  for (ChainEntry& entry : nfs_) {
    if (Status finished = entry.instance->nf().finish(); !finished.ok()) {
      return Status(finished.code(), concat("NF '", entry.config.name, "': ", std::string(finished.message())));
    }
  }
  return rx_->error();
}

RunProgress Chain::progress() const {
  const io::SinkCounts sent = sink_->counts();
  std::uint64_t dropped = tx_->dropped();
  for (io::NamedCount const& drop : sent.drops) {
    dropped += drop.count;
  }
  return {rx_->packets(), sent.sent, dropped, source_->part_done()};
}

Report Chain::report() const {
  Report report;
  report.chain = config_.name;
  report.device = device_ ? fmt::format("{} ({})", device_->info().name, device_->info().backend) : "none";
  report.device_note = no_device_reason_;
  report.cpu_instead_of_gpu = !device_ && wants_device();
  if (plan_) {
    report.sync = plan::to_string(plan_->mode);
    report.costs_from = costs_from_;
  }
  report.rx = describe(config_.rx);
  report.tx = describe(config_.tx);
  report.workers = workers_;
  io::SourceCounts seen = source_->counts();
  report.seen = seen.seen;
  report.received = rx_->packets();
  report.received_bytes = rx_->bytes();
  report.rx_drops = std::move(seen.drops);
  io::SinkCounts sent = sink_->counts();
  report.sent = sent.sent;
  report.tx_drops = std::move(sent.drops);
  report.tx_fragments = sent.fragments;
  report.backlog_full = rx_->starved_polls();
  report.slots_in_use = pool_->slots() - pool_->free_slots();
  report.seconds = seconds_;
  report.offered_per_second = source_->offered_per_second();
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    report.stages.push_back({stages_[i]->name(), static_cast<double>(busy_ns_[i].load()) / kNsPerSecond});
  }
  dataplane::LatencyHistogram const& latency = tx_->latency();
  constexpr double kNsPerUs = 1000.0;
  report.latency = {
      static_cast<double>(latency.percentile(50)) / kNsPerUs, static_cast<double>(latency.percentile(95)) / kNsPerUs,
      static_cast<double>(latency.percentile(99)) / kNsPerUs, static_cast<double>(latency.max()) / kNsPerUs};
  for (std::size_t i = 0; i < nfs_.size(); ++i) {
    ChainEntry const& entry = nfs_[i];
    nf::Counters const& counters = entry.instance->counters();
    NfReport row;
    row.busy_seconds = report.stages[i + 1].busy_seconds;  // the first is rx
    row.name = entry.config.name;
    row.type = entry.config.type;
    row.placement = entry.device_nf ? "gpu" : "cpu";
    if (entry.device_stage != nullptr && !entry.device_stage->device_status().ok()) {
      row.placement = "gpu -> cpu";
      row.device_error = entry.device_stage->device_status().ToString();
    }
    row.in = counters.in;
    row.unsupported = counters.unsupported;
    row.link_local = counters.link_local;
    row.kernel_faults = counters.kernel_faults;
    row.alerts = entry.instance->outcome().alerts();
    row.replies = entry.instance->outcome().replies();
    std::uint64_t dropped = 0;
    for (auto const& [name, count] : entry.instance->drops()) {
      dropped += count;
      if (count > 0) {
        row.drops.push_back({std::string(name), count});
      }
    }
    row.passed = counters.in - dropped - row.replies;
    for (nf::Statistic& statistic : entry.instance->nf().statistics()) {
      row.statistics.push_back({std::move(statistic.name), statistic.value});
    }
    row.lines = entry.instance->nf().end_report();
    for (auto const& [reason, count] : nf::count_by_reason(refusals_of(*entry.instance))) {
      row.refused_rules.push_back({reason, count});
    }
    if (const copy::TransferCounts& moved = counters.transfers; moved.packets > 0) {
      row.bytes_to_device_per_packet = static_cast<double>(moved.bytes_to_device) / static_cast<double>(moved.packets);
      row.bytes_to_host_per_packet = static_cast<double>(moved.bytes_to_host) / static_cast<double>(moved.packets);
    }
    report.nfs.push_back(std::move(row));
  }
  return report;
}

bool Chain::abandoned_device() const {
  return std::any_of(nfs_.begin(), nfs_.end(), [](ChainEntry const& entry) {
    return entry.device_stage != nullptr && entry.device_stage->abandoned();
  });
}

}  // namespace catena::chain
