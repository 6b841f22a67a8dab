// SPDX-License-Identifier: Apache-2.0
#include "pipeline/session.hpp"

#include "chain/workers.hpp"
#include "nf/named_files.hpp"
#include "pipeline/isolation.hpp"
#include "pipeline/nf_builder.hpp"
#include "pipeline/resource_builder.hpp"
#include "pipeline/stage_builder.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/persistent.hpp>

#include <algorithm>
#include <random>
#include <utility>

namespace catena::runtime {
namespace {

constexpr const char* kNobodyOnGpu = "no NF of the chain is placed on the gpu";

/// Whether the NF has a folder for its state between runs.
bool keeps_folder(chain::NfConfig const& config, nf::Registry const& registry) {
  const nf::NamedFiles named;
  nf::Config own = config.config;
  const Result<nf::Descriptor const*> descriptor = registry.find(config.type);
  const bool is_named =
      descriptor.ok() && (*descriptor)->name_outputs != nullptr && (*descriptor)->name_outputs(own).ok();
  return is_named && std::ranges::find(named.outputs(), nf::NamedOutput::Kind::kFolder, &nf::NamedOutput::kind) !=
                         named.outputs().end();
}

}  // namespace

Result<std::unique_ptr<Session>> Session::create(chain::ChainConfig config, RunOptions const& run_options,
                                                 nf::Registry const& registry, std::stop_token const& give_up,
                                                 std::optional<PreviousPipeline> before) {
  Session* const previous = before ? before->session : nullptr;
  CATENA_ASSIGN_OR_RETURN(Draft draft, with_nfs(std::move(config), run_options, registry, give_up, std::move(before)));
  std::unique_ptr<Session>& session = draft.session;
  const nf::RunContext context = run_context_of(session->config_, session->options_, run_options.new_keys);
  if (session->takeover_) {
    CATENA_RETURN_IF_ERROR(session->takeover_->pair(context));
  }
  CATENA_RETURN_IF_ERROR(session->make_resources(draft.shared.get()));
  draft.shared.reset();
  CATENA_RETURN_IF_ERROR(
      session->flow_->connect(session->config_.flow.signals, previous != nullptr ? previous->flow_.get() : nullptr));
  CATENA_RETURN_IF_ERROR(session->open(context, give_up));
  session->telemetry_.watch(session->counted_parts());
  if (previous != nullptr) {
    session->telemetry_.continue_from(previous->telemetry_, session->shared_series(*previous));
  }
  return std::move(session);
}

Result<ReplacementPreview> Session::preview_replacement(chain::ChainConfig config, RunOptions const& options,
                                                        nf::Registry const& registry, std::stop_token const& give_up,
                                                        PreviousPipeline before) {
  CATENA_ASSIGN_OR_RETURN(const Draft draft,
                          with_nfs(std::move(config), options, registry, give_up, std::move(before)));
  std::unique_ptr<Session> const& session = draft.session;
  nf::RunContext context = run_context_of(session->config_, session->options_, options.new_keys);
  context.is_trial = true;
  CATENA_RETURN_IF_ERROR(session->takeover_->pair(context));
  CATENA_RETURN_IF_ERROR(ResourceBuilder(session->config_, session->options_, session->pipeline_, session->ends_,
                                         session->devices_, &session->takeover_->before())
                             .make_pools()
                             .status());
  CATENA_RETURN_IF_ERROR(session->check_kept_folders(registry));
  return ReplacementPreview{session->describe_changes(false), session->takeover_->restarted()};
}

/// A session with its NFs, which are not started, and without ports.
Result<Session::Draft> Session::with_nfs(chain::ChainConfig config, RunOptions options, nf::Registry const& registry,
                                         std::stop_token const& give_up, std::optional<PreviousPipeline> before) {
  options.processes.give_up = give_up;
  options.opens_rx = !options.make_source;
  options.opens_tx = !options.make_sink;
  Draft draft;
  std::unique_ptr<Session>& session = draft.session;
  session.reset(new Session(options));
  session->config_ = std::move(config);
  if (before) {
    CATENA_ASSIGN_OR_RETURN(draft.as_it_is, before->session->lock_settled());
    CATENA_RETURN_IF_ERROR(session->can_replace(*before->session));
    session->takeover_.emplace(before->session->takeover_parts(), session->takeover_parts(), std::move(before->hold));
  }
  CATENA_RETURN_IF_ERROR(start_eal_for(session->config_.rx, session->config_.tx));
  CATENA_RETURN_IF_ERROR(session->make_nfs(options, registry, draft.shared));
  session->options_ = std::move(options);
  session->options_.new_keys.clear();  // for this start, and for no session or change that comes after it
  return draft;
}

/// FailedPrecondition if an NF restarts whose folder, kept between runs, is used by the running chain.
Status Session::check_kept_folders(nf::Registry const& registry) const {
  std::vector<std::string> const& restarted = takeover_->restarted();
  for (chain::NfConfig const& config : config_.nfs) {
    if (run_context_of(config_, options_, {}).live_tx && std::ranges::find(restarted, config.name) != restarted.end() &&
        keeps_folder(config, registry)) {
      return absl::FailedPreconditionError(
          concat(config.position, ": NF '", config.name, "': its state folder is in use until the running chain ends"));
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> Session::restarted_nfs_of(chain::ChainConfig const& next, nf::Registry const& registry) {
  const std::unique_lock lock(nfs_mutex_);
  const bool keeps_state = run_context_of(config_, options_, {}).live_tx;
  std::vector<std::string> restarted;
  for (std::size_t nf = 0; nf < pipeline_.entries().size(); ++nf) {
    NfEntry const& entry = pipeline_.first_of(nf);
    const bool has_state = entry.isolated != nullptr ? entry.isolated->has_state()
                                                     : entry.instance->descriptor().sharding != nf::Sharding::kPacket;
    const bool is_in_next = std::ranges::find(next.nfs, entry.config.name, &chain::NfConfig::name) != next.nfs.end();
    if (has_state && is_in_next && !(keeps_state && keeps_folder(entry.config, registry))) {
      restarted.push_back(entry.config.name);
    }
  }
  return restarted;
}

/// Decides the layout, makes the NFs and opens the devices. `shared`: set to the device whose use is to be divided.
/// Completes `options`.
Status Session::make_nfs(RunOptions& options, nf::Registry const& registry, std::shared_ptr<device::Device>& shared) {
  const bool opens_first = chain::depends_on_device(config_);
  CATENA_RETURN_IF_ERROR(opens_first ? open_devices() : absl::OkStatus());
  CATENA_RETURN_IF_ERROR(resolve(registry, options));
  Replan* const replan = takeover_ ? &takeover_->plan(options, options.sharing.has_value()) : nullptr;
  const NfBuilder nfs(config_, options, registry, replan);
  // flows stay in the shards that know them
  const std::uint64_t flow_key = takeover_ ? takeover_->before().pipeline->flow_key()
                                           : std::uint64_t{std::random_device{}()} << 32U | std::random_device{}();
  CATENA_ASSIGN_OR_RETURN(pipeline_, nfs.make_all(flow_key));
  CATENA_RETURN_IF_ERROR(opens_first ? absl::OkStatus() : open_devices());
  if (options.sharing) {
    const bool is_used_elsewhere = std::ranges::any_of(
        pipeline_.entries(), [](auto const& of_nf) { return is_on_own_gpu(of_nf.front()->config); });
    CATENA_ASSIGN_OR_RETURN(shared,
                            devices_.device_to_share(config_.devices.front(), is_used_elsewhere, *options.sharing));
  }
  return absl::OkStatus();
}

/// Makes pools, queues, limits, and the chain's part of its devices. `shared`: as in make_nfs().
Status Session::make_resources(device::Device* shared) {
  ResourceBuilder resources(config_, options_, pipeline_, ends_, devices_, takeover_ ? &takeover_->before() : nullptr);
  CATENA_ASSIGN_OR_RETURN(std::vector<chain::FlowLimits> limits, resources.make_pools());
  flow_ = std::make_unique<FlowControl>(std::move(limits));
  CATENA_RETURN_IF_ERROR(resources.make_device_sides());
  return shared == nullptr ? absl::OkStatus() : resources.share(*shared);
}

/// Opens the ports, starts the NFs, makes the stages, and opens the outputs at last.
Status Session::open(nf::RunContext const& context, std::stop_token const& give_up) {
  Ends const* const before = takeover_ ? takeover_->before().ends : nullptr;
  CATENA_RETURN_IF_ERROR(
      ends_.open_ports(config_, options_, pipeline_.shard_map_of(pipeline_.segments().front()), before));
  prepare_processes(pipeline_, config_, options_, devices_.sharing() != nullptr);
  CATENA_RETURN_IF_ERROR(start_nfs(pipeline_, context, takeover_ ? &*takeover_ : nullptr));
  StageBuilder stages({.chain = config_,
                       .options = options_,
                       .pipeline = pipeline_,
                       .ends = ends_,
                       .devices = devices_,
                       .flow = *flow_,
                       .telemetry = telemetry_,
                       .stop = end_.stop_flag()});
  return stages.make_all(before, give_up);
}

Session::~Session() {
  // in front of the NFs and the device: they hold launches
  pipeline_.end_stages();
}

bool Session::wants_device() const {
  const bool is_open = placement_.placement() == nullptr;
  return std::ranges::any_of(config_.nfs, [is_open](chain::NfConfig const& entry) {
    const bool is_here = entry.isolation != chain::Isolation::kProcess;
    return (entry.on == plan::Processor::kGpu && is_here) || (is_open && entry.is_auto);
  });
}

Status Session::open_devices() {
  if (!wants_device()) {
    devices_.close(kNobodyOnGpu);
    return absl::OkStatus();
  }
  return devices_.open(config_.devices);
}

/// The machine of this chain, with the devices opened so far.
chain::Machine Session::machine(RunOptions const& options) const {
  using Owner = chain::PacketMemory::Owner;
  chain::Machine machine{.cores = static_cast<std::uint32_t>(chain::usable_cores().size()), .devices = {}};
  for (auto const& device : devices_.opened()) {
    machine.devices.push_back(device->info());
  }
  if (options.make_pool) {
    machine.memory.owner = Owner::kCaller;
  } else if (takeover_) {
    machine.memory = {Owner::kPrevious, takeover_->before().config->tuning.pool_slots};
  }
  return machine;
}

/// Decides the layout by the open devices, and closes them if no NF is placed there.
Status Session::resolve(nf::Registry const& registry, RunOptions const& options) {
  CATENA_RETURN_IF_ERROR(placement_.resolve(config_, options, machine(options), registry));
  config_ = chain::with_layout(std::move(config_), placement_.layout());
  const bool is_used = std::ranges::any_of(config_.nfs, [](chain::NfConfig const& entry) {
    return entry.on == plan::Processor::kGpu && entry.isolation != chain::Isolation::kProcess;
  });
  if (!is_used && !devices_.opened().empty()) {
    devices_.close(kNobodyOnGpu);
  }
  return absl::OkStatus();
}

GpuSharing::Traffic Session::traffic() const {
  GpuSharing::Traffic traffic;
  for (const std::size_t nf : devices_.shared_by()) {
    std::uint64_t packets = 0;
    for (NfEntry const* entry : pipeline_.entries()[nf]) {
      packets += entry->instance->counters().in;
    }
    traffic.packets.push_back(packets);
    traffic.waiting.push_back(waiting_for(nf));
  }
  for (RxStage const* rx : pipeline_.rx()) {
    traffic.rx_packets += rx->packets();
    traffic.rx_bytes += rx->bytes();
  }
  return traffic;
}

/// Packets before NF number `nf`, at most: its units may be partly full.
std::uint64_t Session::waiting_for(std::size_t nf) const {
  return std::min(pipeline_.waiting_units(nf) * config_.tuning.unit_packets, ends_.used_slots());
}

}  // namespace catena::runtime
