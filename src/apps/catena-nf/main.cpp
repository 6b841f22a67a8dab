// SPDX-License-Identifier: Apache-2.0
// The program of a process of NFs: the data path of one, or of neighbours in a chain, whose packets come from another
// process (see nf_process/process.hpp), which starts it in a sandbox; people do not.
#include "apps/catena-nf/channel_ends.hpp"
#include "apps/catena-nf/host.hpp"
#include "apps/catena-nf/host_outputs.hpp"
#include "chain/chain_file.hpp"
#include "chain/instances.hpp"
#include "chain/ports/generator.hpp"
#include "chain/run_options.hpp"
#include "nf/plugins.hpp"
#include "pipeline/gpu_sharing.hpp"
#include "pipeline/isolation/protocol.hpp"
#include "pipeline/session.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/persistent.hpp>
#include <catena/nf/portable.hpp>

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace catena::nf_program {
namespace {

using ipc::Frame;
using ipc::Mapping;
using nf_process::Call;
using nf_process::Channel;
using nf_process::ChannelShape;
using nf_process::kControlFd;
using nf_process::kEventNotifierFd;
using nf_process::NfStatistics;
using nf_process::Setup;
using runtime::Session;

constexpr std::chrono::milliseconds kTellEvery{200};

/// Plug-ins that were loaded, by file: two NFs may come from one.
using Plugins = std::map<std::string, nf::Descriptor const*>;

Result<nf_process::NfInfo> describe(nf::Registry& registry, Plugins& plugins, nf_process::StartRequest const& wanted) {
  nf::Descriptor const* descriptor = nullptr;
  if (wanted.plugin.empty()) {
    CATENA_ASSIGN_OR_RETURN(descriptor, registry.find(wanted.type));
  } else {
    if (!plugins.contains(wanted.plugin)) {
      CATENA_ASSIGN_OR_RETURN(plugins[wanted.plugin], nf::load_plugin(registry, wanted.plugin));
    }
    descriptor = plugins[wanted.plugin];
    if (!wanted.type.empty() && wanted.type != descriptor->type) {
      return absl::InvalidArgumentError(
          concat(wanted.plugin, " is a '", descriptor->type, "' and no '", wanted.type, "'; leave `type` out"));
    }
  }
  nf_process::NfInfo described{std::string(descriptor->type), std::string(descriptor->help), {}, {},
                               descriptor->has_kernel,        descriptor->sharding};
  for (nf::DropReason const& reason : descriptor->drop_reasons) {
    described.drop_reasons.emplace_back(reason.name, reason.help);
  }
  for (nf::PacketOutput const& output : descriptor->packet_outputs) {
    described.packet_outputs.emplace_back(output.name, output.help);
  }
  return described;
}

/// The data path.
class Path {
 public:
  /// `types`: which NFs the process said that it has.
  static Result<std::unique_ptr<Path>> create(Host& host, nf::Registry const& registry,
                                              std::vector<std::string> const& types, Setup const& setup,
                                              FileDescriptor frames, FileDescriptor channel_fd) {
    if (types.size() != setup.nfs.size()) {
      return absl::InvalidArgumentError("other NFs are to start than were asked for");
    }
    CATENA_ASSIGN_OR_RETURN(
        Channel channel,
        Channel::map(std::move(channel_fd), ChannelShape::of(setup.unit_packets, setup.records || setup.alerts)));
    auto path = std::unique_ptr<Path>(new Path(host, std::move(channel), setup.slots));
    CATENA_ASSIGN_OR_RETURN(path->session_, path->make_session(registry, types, setup, std::move(frames)));
    return path;
  }

  Session& session() { return *session_; }
  /// In the order of the chain.
  std::vector<nf::Instance*> const& instances() const { return instances_; }
  /// Whether another process goes on for this one, after the last packet.
  bool hands_over() const { return hands_over_; }

 private:
  /// The NFs keep to the parts that the channel says, and say so there. `on_gpu`: their numbers.
  Status share_gpu(nf_process::SharedGpu const& shared, std::vector<std::size_t> const& on_gpu,
                   runtime::RunOptions& options) {
    chain::SharingOptions& sharing = options.sharing.emplace();
    CATENA_ASSIGN_OR_RETURN(sharing.mode, share::parse_mode(shared.mode));
    CATENA_ASSIGN_OR_RETURN(sharing.parts, share::parse_parts(shared.parts));
    sharing.compute_units = shared.compute_units;
    options.partitions.given =
        runtime::GivenParts{[this, on_gpu] {
                              std::vector<share::Part> parts;
                              for (const std::size_t nf : on_gpu) {
                                const nf_process::GpuPart part = channel_.given_part(nf);
                                parts.push_back({part.first, {part.units, part.packets_per_unit}});
                              }
                              return parts;
                            },
                            [this, on_gpu](std::vector<share::Part> const& parts) {
                              for (std::size_t i = 0; i < parts.size(); ++i) {
                                channel_.take_part(on_gpu[i], runtime::as_given(parts[i]));
                              }
                            }};
    return absl::OkStatus();
  }

  Path(Host& host, Channel channel, std::uint32_t slots) : host_(&host), channel_(std::move(channel)), notes_(slots) {}

  Result<std::vector<chain::NfConfig>> read_nfs(std::vector<std::string> const& types, Setup const& setup) {
    std::vector<chain::NfConfig> nfs;
    chain::ChainSource source{.file = setup.file, .text = setup.text, .environment = setup.environment};
    for (auto const& [file, text] : setup.included) {
      source.included.push_back({file, text});
    }
    std::size_t outputs = 0;
    for (std::size_t i = 0; i < types.size(); ++i) {
      nf_process::NfSetup const& of = setup.nfs[i];
      CATENA_ASSIGN_OR_RETURN(chain::NfConfig nf, chain::parse_nf(source, of.name));
      nf.type = types[i];
      if (std::exchange(nf.is_auto, false)) {  // the chain has decided
        nf.on = of.on_gpu ? plan::Processor::kGpu : plan::Processor::kCpu;
      }
      nf.config.set_outputs(std::make_shared<HostOutputs>(*host_, of.outputs, outputs));
      outputs += of.outputs.size();
      nfs.push_back(std::move(nf));
    }
    return nfs;
  }

  Result<std::unique_ptr<Session>> make_session(nf::Registry const& registry, std::vector<std::string> const& types,
                                                Setup const& setup, FileDescriptor frames) {
    chain::ChainConfig config;
    CATENA_ASSIGN_OR_RETURN(config.nfs, read_nfs(types, setup));
    config.source.file = setup.file;
    config.name = setup.nfs.front().name;
    config.rx = chain::generated({.packet_bytes = 0});  // what a plan is made for: the mix of sizes that it has
    CATENA_ASSIGN_OR_RETURN(config.devices.front(), device::parse_preference(setup.device));
    config.tuning = {.pool_slots = setup.slots,
                     .unit_packets = setup.unit_packets,
                     .units_per_launch = setup.units_per_launch,
                     .launches_in_flight = setup.launches_in_flight,
                     .device_limit_ms = setup.device_limit_ms,
                     .max_batch_delay_us = setup.max_batch_delay_us};
    runtime::RunOptions options;
    options.ends = setup.ends;
    options.shard = setup.shard;
    options.context = setup.context;
    options.context->continues = setup.waits_for_state;
    options.new_keys = setup.context.new_keys;
    options.with_records = setup.records;
    if (setup.sharing) {
      std::vector<std::size_t> on_gpu;
      for (std::size_t i = 0; i < config.nfs.size(); ++i) {
        if (config.nfs[i].on == plan::Processor::kGpu) {
          on_gpu.push_back(i);
        }
      }
      CATENA_RETURN_IF_ERROR(share_gpu(*setup.sharing, on_gpu, options));
    }
    options.sync.mode = static_cast<plan::Mode>(setup.sync);
    options.sync.pushdown = setup.pushdown;
    options.sync.methods = setup.methods;
    options.open_device = [host = host_](device::DevicePreference const& /*of_the_chain*/, std::string* why) {
      return host->open_device(why);
    };
    options.device_returns = true;
    options.make_pool = [frames = std::make_shared<FileDescriptor>(std::move(frames)),
                         &setup](std::uint32_t queues) -> Result<std::shared_ptr<memory::PacketPool>> {
      return memory::PacketPool::create_over(frames->get(), setup.slots, setup.unit_packets, queues);
    };
    options.make_source = [this, &setup]() -> Result<std::unique_ptr<io::Source>> {
      return std::make_unique<ChannelSource>(channel_.reader_of_nf(kEventNotifierFd), kEventNotifierFd,
                                             setup.ends.live_rx, [this] {
                                               hands_over_ = true;
                                               session_->release_nfs();
                                             });
    };
    ChannelSink* sink = nullptr;
    options.make_sink = [this, &sink]() -> Result<std::unique_ptr<io::Sink>> {
      auto made = std::make_unique<ChannelSink>(channel_, kEventNotifierFd, notes_);
      sink = made.get();
      return made;
    };
    CATENA_ASSIGN_OR_RETURN(auto session, Session::create(std::move(config), options, registry));
    for (std::size_t i = 0; i < types.size(); ++i) {
      nf::Instance& instance = session->instance(i);
      instance.outcome().note_decisions(notes_, static_cast<std::uint8_t>(i));
      if (auto* alerting = dynamic_cast<nf::Alerting*>(&instance.nf()); alerting != nullptr && setup.alerts) {
        alerting->keep_alerts();
      }
      instances_.push_back(&instance);
    }
    sink->speak_for(instances_);
    return session;
  }

  Host* host_;
  Channel channel_;
  std::vector<nf::PacketNote> notes_;  ///< by slot
  std::unique_ptr<Session> session_;
  std::vector<nf::Instance*> instances_;  ///< the session's
  std::atomic<bool> hands_over_{false};
};

/// What the NFs have of packets, for the process that goes on.
Status transfer_state(Host& host, std::span<nf::Instance* const> nfs) {
  for (std::size_t nf = 0; nf < nfs.size(); ++nf) {
    auto const* const portable = dynamic_cast<nf::Portable const*>(&nfs[nf]->nf());
    if (portable == nullptr) {
      continue;
    }
    nf::StateWriter state;
    portable->save(state);
    const nf_process::StateOf of{nf, state.bytes().size()};
    CATENA_ASSIGN_OR_RETURN(FileDescriptor given, host.memory_for(of));
    CATENA_ASSIGN_OR_RETURN(const Mapping memory, Mapping::map(std::move(given), nf_process::memory_bytes(of)));
    std::ranges::copy(state.bytes(), memory.bytes().begin());
  }
  return absl::OkStatus();
}

Status load(nf::Nf& nf, nf_process::StateOf const& of, FileDescriptor memory) try {
  auto* const portable = dynamic_cast<nf::Portable*>(&nf);
  if (portable == nullptr) {
    return absl::DataLossError("a state for an NF without state");
  }
  CATENA_ASSIGN_OR_RETURN(const Mapping mapped, Mapping::map(std::move(memory), nf_process::memory_bytes(of)));
  nf::StateReader reader(std::span<const std::byte>(mapped.bytes()).first(of.bytes));
  return portable->load(reader);
} catch (std::exception const& error) {  // its memory is less than both
  return absl::ResourceExhaustedError(error.what());
}

/// NFs whose state did not come, or is none for them, begin with what is in their files, or not at all.
Status start_others(std::span<nf::Instance* const> nfs, nf::RunContext context, std::vector<bool> const& has_gone_on) {
  context.continues = false;
  for (std::size_t nf = 0; nf < nfs.size(); ++nf) {
    auto* const persistent = dynamic_cast<nf::Persistent*>(&nfs[nf]->nf());
    const bool has_started = has_gone_on[nf] || dynamic_cast<nf::Portable const*>(&nfs[nf]->nf()) == nullptr;
    if (persistent != nullptr && !has_started) {
      if (!context.live_tx) {  // nothing is kept, as for a process that is started again
        return absl::UnavailableError("the numbers used by the previous process are unknown");
      }
      CATENA_RETURN_IF_ERROR(persistent->start(context));
    }
  }
  return absl::OkStatus();
}

/// Takes over what the NFs of the process before this one have left, if they have, and says what became of it.
Status go_on(Host& host, std::span<nf::Instance* const> nfs, nf::RunContext const& context) {
  std::vector<std::pair<nf_process::StateOf, FileDescriptor>> states;
  Frame frame;
  for (;;) {
    CATENA_ASSIGN_OR_RETURN(frame, host.next());
    if (frame.call == static_cast<std::uint32_t>(Call::kBegin)) {
      break;
    }
    if (frame.call != static_cast<std::uint32_t>(Call::kTakeState)) {
      return absl::InvalidArgumentError("an invalid call before the first packets");
    }
    CATENA_ASSIGN_OR_RETURN(const nf_process::StateOf of,
                            nf_process::read_state_of(nf_process::text_of(frame.body), nfs.size()));
    states.emplace_back(of, std::move(frame.fd));
  }
  // not in between: who opens files talks with the host, too
  std::vector<Status> statuses(nfs.size());
  std::vector<bool> has_gone_on(nfs.size());
  for (auto& [of, memory] : states) {
    statuses[of.nf] = load(nfs[of.nf]->nf(), of, std::move(memory));
    has_gone_on[of.nf] = statuses[of.nf].ok();
  }
  CATENA_RETURN_IF_ERROR(start_others(nfs, context, has_gone_on));
  return host.tell(Call::kBegun, nf_process::to_json(statuses));
}

/// Runs the data path to its end, and says meanwhile what the NFs have to say.
Status run(Host& host, Path& path) {
  std::future<Status> status = std::async(std::launch::async, [&path] {
    try {
      return path.session().run();
    } catch (std::exception const& error) {
      return Status(absl::ResourceExhaustedError(error.what()));
    }
  });
  std::vector<nf::Instance*> const& nfs = path.instances();
  std::vector<std::string> told(nfs.size());
  while (status.wait_for(kTellEvery) != std::future_status::ready) {
    for (std::size_t nf = 0; nf < nfs.size(); ++nf) {
      if (std::string text = nf_process::to_json(NfStatistics{nf, nfs[nf]->board().read()}); text != told[nf]) {
        CATENA_RETURN_IF_ERROR(host.tell(Call::kStatistics, text));
        told[nf] = std::move(text);
      }
    }
  }
  const nf_process::Ended ended{status.get()};
  for (std::size_t nf = 0; nf < nfs.size(); ++nf) {
    nf::Nf const& of = nfs[nf]->nf();
    CATENA_RETURN_IF_ERROR(
        host.tell(Call::kStatistics, nf_process::to_json(NfStatistics{nf, of.statistics(), of.end_report()})));
  }
  if (path.hands_over() && ended.status.ok()) {
    try {
      CATENA_RETURN_IF_ERROR(transfer_state(host, nfs));
    } catch (std::exception const& error) {  // memory: the states that were written go along
      static_cast<void>(std::fputs(concat("sends no more state: ", error.what(), "\n").c_str(), stderr));
    }
  }
  return host.tell(Call::kEnded, nf_process::to_json(ended));
}

std::vector<nf_process::Started> started_of(Path& path) {
  std::vector<nf_process::Started> started;
  for (nf::Instance* instance : path.instances()) {
    nf_process::Started& nf = started.emplace_back();
    nf.field_use = nf_process::FieldUse::of(instance->nf().hints());
    nf.lines = instance->nf().start_report();
    for (auto const& [reason, count] : nf::count_by_reason(chain::refusals_of(*instance))) {
      nf.refused_rules.emplace_back(reason, count);
    }
    nf.is_portable = dynamic_cast<nf::Portable const*>(&instance->nf()) != nullptr;
  }
  return started;
}

/// Each name of a statistic is a series of metrics.
Status check_statistics(Path& path, Setup const& setup) {
  auto const& instances = path.instances();
  for (std::size_t nf = 0; nf < instances.size(); ++nf) {
    for (nf::Statistic const& statistic : instances[nf]->nf().statistics()) {
      if (!nf_process::is_statistic_name(statistic.name)) {
        return absl::InvalidArgumentError(concat("NF '", setup.nfs[nf].name, "' has a statistic '", statistic.name,
                                                 "'; allowed: a name of letters, digits, '_', '-' and '.'"));
      }
    }
  }
  return absl::OkStatus();
}

/// `path`: what there is in the end. It is not torn down: nobody answers any more, neither devices nor the host.
Status serve(Host& host, std::unique_ptr<Path>& path) {
  nf::Registry registry = nf::builtin_nfs();
  Plugins plugins;
  std::vector<std::string> types;
  FileDescriptor frames;
  FileDescriptor channel;
  for (;;) {
    CATENA_ASSIGN_OR_RETURN(Frame frame, host.next());
    const std::string_view text = nf_process::text_of(frame.body);
    switch (static_cast<Call>(frame.call)) {
      case Call::kDescribe: {
        CATENA_ASSIGN_OR_RETURN(const nf_process::StartRequest wanted, nf_process::read_start_request(text));
        const Result<nf_process::NfInfo> described = describe(registry, plugins, wanted);
        if (described.ok()) {
          types.push_back(described->type);
        }
        CATENA_RETURN_IF_ERROR(described.ok() ? host.tell(Call::kNfInfo, nf_process::to_json(*described))
                                              : host.tell(Call::kRefused, nf_process::to_json(described.status())));
        break;
      }
      case Call::kFrames:
        frames = std::move(frame.fd);
        break;
      case Call::kChannel:
        channel = std::move(frame.fd);
        break;
      case Call::kStart: {
        CATENA_ASSIGN_OR_RETURN(const Setup setup, nf_process::read_setup(text));
        Result<std::unique_ptr<Path>> made =
            Path::create(host, registry, types, setup, std::move(frames), std::move(channel));
        if (!made.ok()) {
          return host.tell(Call::kRefused, nf_process::to_json(made.status()));
        }
        path = *std::move(made);
        if (const Status named = check_statistics(*path, setup); !named.ok()) {
          return host.tell(Call::kRefused, nf_process::to_json(named));
        }
        CATENA_RETURN_IF_ERROR(host.tell(Call::kStarted, nf_process::to_json(started_of(*path))));
        if (setup.waits_for_state) {
          CATENA_RETURN_IF_ERROR(go_on(host, path->instances(), setup.context));
        }
        return run(host, *path);
      }
      default:
        return absl::InvalidArgumentError("an invalid call");
    }
  }
}

}  // namespace
}  // namespace catena::nf_program

int main() {
  // its arguments are for people: they tell which NF of which chain it is
  if (::fcntl(catena::nf_process::kControlFd, F_GETFD) < 0 || isatty(catena::nf_process::kControlFd) == 1) {
    static_cast<void>(std::fputs("a part of Catena, which starts it by itself: see docs/concepts.md\n", stderr));
    return 2;
  }
  prctl(PR_SET_TIMERSLACK, 1);
  catena::nf_program::Host host(catena::nf_process::kControlFd);
  std::unique_ptr<catena::nf_program::Path> path;
  const catena::Status status = catena::nf_program::serve(host, path);
  if (!status.ok()) {
    static_cast<void>(std::fputs(catena::concat("ends: ", std::string(status.message()), "\n").c_str(), stderr));
  }
  // without destructors: a device that never answers would be waited for
  std::_Exit(status.ok() ? EXIT_SUCCESS : EXIT_FAILURE);
}
