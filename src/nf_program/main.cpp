// SPDX-License-Identifier: Apache-2.0
// The program of an NF's process: the data path of one NF, whose packets come from another process (see
// nf_process/process.hpp), which starts it in a sandbox; people do not.
#include "chain/chain_file.hpp"
#include "chain/instances.hpp"
#include "chain/option_texts.hpp"
#include "nf/plugins.hpp"
#include "nf_process/protocol.hpp"
#include "nf_program/channel_ends.hpp"
#include "nf_program/host.hpp"
#include "nf_program/host_outputs.hpp"
#include "runtime/gpu_sharing.hpp"
#include "runtime/session.hpp"

#include <catena/core/text.hpp>

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace catena::nf_program {
namespace {

using device::remote::Fd;
using device::remote::Frame;
using nf_process::Call;
using nf_process::Channel;
using nf_process::ChannelShape;
using nf_process::kBellFd;
using nf_process::kControlFd;
using nf_process::Setup;
using runtime::Session;

constexpr std::chrono::milliseconds kTellEvery{200};

Result<nf_process::Described> describe(nf::Registry& registry, nf_process::Wanted const& wanted) {
  nf::Descriptor const* descriptor = nullptr;
  if (wanted.plugin.empty()) {
    CATENA_ASSIGN_OR_RETURN(descriptor, registry.find(wanted.type));
  } else {
    CATENA_ASSIGN_OR_RETURN(descriptor, nf::load_plugin(registry, wanted.plugin));
    if (!wanted.type.empty() && wanted.type != descriptor->type) {
      return absl::InvalidArgumentError(
          concat(wanted.plugin, " is a '", descriptor->type, "' and no '", wanted.type, "'; leave `type` out"));
    }
  }
  nf_process::Described described{
      std::string(descriptor->type), std::string(descriptor->help), {}, descriptor->has_kernel};
  for (nf::DropReason const& reason : descriptor->drop_reasons) {
    described.drop_reasons.emplace_back(reason.name, reason.help);
  }
  return described;
}

/// The data path.
class Path {
 public:
  /// `type`: which NF the process said that it is.
  static Result<std::unique_ptr<Path>> create(Host& host, nf::Registry const& registry, std::string const& type,
                                              Setup const& setup, Fd frames, Fd channel_fd) {
    CATENA_ASSIGN_OR_RETURN(
        Channel channel,
        Channel::map(std::move(channel_fd), ChannelShape::of(setup.unit_packets, setup.records || setup.alerts)));
    auto path = std::unique_ptr<Path>(new Path(host, std::move(channel), setup.slots));
    CATENA_ASSIGN_OR_RETURN(path->session_, path->make_session(registry, type, setup, std::move(frames)));
    return path;
  }

  Session& session() { return *session_; }
  nf::Instance& instance() { return session_->instance(0); }

 private:
  /// The NF keeps to the part that the channel says, and says so there.
  Result<chain::SharingOptions> share_gpu(nf_process::SharedGpu const& shared) {
    CATENA_ASSIGN_OR_RETURN(const auto options,
                            chain::sharing_options_of(shared.mode, shared.parts, shared.compute_units));
    if (!options) {
      return absl::InvalidArgumentError("a GPU that is shared in no way");
    }
    chain::SharingOptions sharing = *options;
    sharing.given = chain::GivenParts{
        [this] {
          const nf_process::GpuPart part = channel_.given_part();
          return std::vector{share::Part{part.first, {part.units, part.packets_per_unit}}};
        },
        [this](std::vector<share::Part> const& parts) { channel_.take_part(runtime::as_given(parts.front())); }};
    return sharing;
  }

  Path(Host& host, Channel channel, std::uint32_t slots)
      : host_(&host), channel_(std::move(channel)), reasons_(slots) {}

  Result<std::unique_ptr<Session>> make_session(nf::Registry const& registry, std::string const& type,
                                                Setup const& setup, Fd frames) {
    CATENA_ASSIGN_OR_RETURN(chain::NfConfig nf, chain::parse_nf(setup.text, setup.file, setup.name));
    nf.type = type;
    if (std::exchange(nf.is_auto, false)) {  // the chain has decided
      nf.on = setup.on_gpu ? plan::Processor::kGpu : plan::Processor::kCpu;
    }
    nf.config.set_outputs(std::make_shared<HostOutputs>(*host_, setup.outputs));
    chain::ChainConfig config;
    config.file = setup.file;
    config.name = setup.name;
    config.rx.kind = chain::PortKind::kGenerator;  // what a plan is made for: the mix of sizes that it has
    config.rx.generator.packet_bytes = 0;
    CATENA_ASSIGN_OR_RETURN(config.devices.front(), device::parse_preference(setup.device));
    config.nfs.push_back(std::move(nf));
    config.tuning = {setup.slots,           setup.unit_packets,      setup.units_per_launch, setup.launches_in_flight,
                     setup.device_limit_ms, setup.max_batch_delay_us};
    chain::RunOptions options;
    options.ends = setup.ends;
    options.context = setup.context;
    options.with_records = setup.records;
    if (setup.sharing) {
      CATENA_ASSIGN_OR_RETURN(options.sharing, share_gpu(*setup.sharing));
    }
    options.sync.mode = static_cast<plan::Mode>(setup.sync);
    options.sync.pushdown = setup.pushdown;
    options.sync.methods = setup.methods;
    options.open_device = [host = host_](device::DevicePreference const& /*of_the_chain*/, std::string* why) {
      return host->open_device(why);
    };
    options.device_returns = true;
    options.make_pool = [frames = std::make_shared<Fd>(std::move(frames)),
                         &setup](std::uint32_t queues) -> Result<std::shared_ptr<memory::PacketPool>> {
      return memory::PacketPool::create_over(frames->get(), setup.slots, setup.unit_packets, queues);
    };
    options.make_source = [this, &setup]() -> Result<std::unique_ptr<io::Source>> {
      return std::make_unique<ChannelSource>(channel_.reader_of_nf(kBellFd), kBellFd, setup.ends.live_rx);
    };
    ChannelSink* sink = nullptr;
    options.make_sink = [this, &sink]() -> Result<std::unique_ptr<io::Sink>> {
      auto made = std::make_unique<ChannelSink>(channel_, kBellFd, reasons_);
      sink = made.get();
      return made;
    };
    CATENA_ASSIGN_OR_RETURN(auto session, Session::create(std::move(config), options, registry));
    nf::Instance& instance = session->instance(0);
    instance.outcome().note_reasons(reasons_);
    if (auto* alerting = dynamic_cast<nf::Alerting*>(&instance.nf()); alerting != nullptr && setup.alerts) {
      alerting->keep_alerts();
    }
    sink->speak_for(instance);
    return session;
  }

  Host* host_;
  Channel channel_;
  std::vector<std::uint16_t> reasons_;  ///< by slot
  std::unique_ptr<Session> session_;
};

/// Runs the data path to its end, and says meanwhile what the NF has to say.
Status run(Host& host, Path& path) {
  std::future<Status> status = std::async(std::launch::async, [&path] {
    try {
      return path.session().run();
    } catch (std::exception const& error) {
      return Status(absl::ResourceExhaustedError(error.what()));
    }
  });
  std::string told;
  while (status.wait_for(kTellEvery) != std::future_status::ready) {
    if (std::string text = nf_process::to_json(path.instance().board().read()); text != told) {
      CATENA_RETURN_IF_ERROR(host.tell(Call::kStatistics, text));
      told = std::move(text);
    }
  }
  nf::Nf const& nf = path.instance().nf();
  return host.tell(Call::kEnded,
                   nf_process::to_json(nf_process::Ended{status.get(), nf.statistics(), nf.end_report()}));
}

Status serve() {
  Host host(kControlFd);
  nf::Registry registry = nf::builtin_nfs();
  std::string type;
  Fd frames;
  Fd channel;
  for (;;) {
    CATENA_ASSIGN_OR_RETURN(Frame frame, host.next());
    const std::string_view text = nf_process::text_of(frame.body);
    switch (static_cast<Call>(frame.call)) {
      case Call::kDescribe: {
        CATENA_ASSIGN_OR_RETURN(const nf_process::Wanted wanted, nf_process::read_wanted(text));
        const Result<nf_process::Described> described = describe(registry, wanted);
        type = described.ok() ? described->type : std::string();
        CATENA_RETURN_IF_ERROR(described.ok() ? host.tell(Call::kDescribed, nf_process::to_json(*described))
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
        Result<std::unique_ptr<Path>> path =
            Path::create(host, registry, type, setup, std::move(frames), std::move(channel));
        if (!path.ok()) {
          return host.tell(Call::kRefused, nf_process::to_json(path.status()));
        }
        nf::Nf const& nf = (*path)->instance().nf();
        nf_process::Started started{nf_process::Touched::of(nf.hints()), nf.start_report(), {}};
        for (auto const& [reason, count] : nf::count_by_reason(chain::refusals_of((*path)->instance()))) {
          started.refused_rules.emplace_back(reason, count);
        }
        CATENA_RETURN_IF_ERROR(host.tell(Call::kStarted, nf_process::to_json(started)));
        return run(host, **path);
      }
      default:
        return absl::InvalidArgumentError("a call that is none");
    }
  }
}

}  // namespace
}  // namespace catena::nf_program

int main(int count, char** /*arguments*/) {
  if (count != 1 || isatty(catena::nf_process::kControlFd) == 1) {
    static_cast<void>(std::fputs("a part of Catena, which starts it by itself: see docs/concepts.md\n", stderr));
    return 2;
  }
  prctl(PR_SET_TIMERSLACK, 1);
  const catena::Status status = catena::nf_program::serve();
  if (!status.ok()) {
    static_cast<void>(std::fputs(catena::concat("ends: ", std::string(status.message()), "\n").c_str(), stderr));
  }
  // without destructors: a device that never answers would be waited for
  std::_Exit(status.ok() ? EXIT_SUCCESS : EXIT_FAILURE);
}
