// SPDX-License-Identifier: Apache-2.0
#include "system/fault_runner.hpp"

#include "chain/ports/generator.hpp"

#include <catena/core/text.hpp>

#include "gpu/device/testing/remote_device.hpp"
#include "pipeline/counts.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <csignal>
#include <functional>
#include <map>
#include <random>
#include <thread>

namespace catena::testing {
namespace {

using device::testing::Call;
using device::testing::FaultyDevice;
using packet::testing::Frame;

/// Delivers frames in full units, and says how many it has delivered.
class FrameSource final : public io::Source {
 public:
  /// `may_continue` is asked how many frames were delivered, each time before more are.
  FrameSource(std::vector<Frame> const& frames, std::function<bool(std::uint64_t)> may_continue)
      : frames_(&frames), may_continue_(std::move(may_continue)) {}

  Status receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index, bool& starved) override {
    if (!may_continue_(next_)) {
      starved = true;
      return absl::OkStatus();
    }
    const auto count =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(pool.unit_packets(), frames_->size() - next_));
    if (!pool.acquire_slots(unit, count)) {
      starved = true;
      return absl::OkStatus();
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      Frame const& frame = (*frames_)[next_ + i];
      std::copy(frame.begin(), frame.end(), pool.slot(unit.slots()[i]) + packet::kSlotHeadroom);
      pool.set_arrived(unit.slots()[i], static_cast<std::uint32_t>(frame.size()), next_index, next_index);
      ++next_index;
    }
    unit.count = count;
    next_ += count;
    return absl::OkStatus();
  }
  bool finished() const override { return next_ == frames_->size(); }
  io::SourceCounts counts() const override { return {next_, {}}; }
  std::string describe() const override { return "frames"; }

 private:
  std::vector<Frame> const* frames_;
  std::function<bool(std::uint64_t)> may_continue_;
  std::uint64_t next_ = 0;
};

/// Keeps what is sent.
class FrameSink final : public io::Sink {
 public:
  explicit FrameSink(std::vector<SentFrame>& sent) : sent_(&sent) {}
  Status send(memory::PacketPool& pool, memory::Unit& unit) override {
    const packet::Batch batch = pool.batch(unit);
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      if (batch[i].verdict() != packet::Verdict::kDrop) {
        sent_->push_back({batch[i].index(), batch[i].port(), {batch[i].frame(), batch[i].frame() + batch[i].length()}});
      }
    }
    pool.release_slots(unit, 0, unit.count);
    return absl::OkStatus();
  }
  Status finish() override { return absl::OkStatus(); }
  io::SinkCounts counts() const override { return {sent_->size(), {}}; }
  std::string describe() const override { return "frames"; }

 private:
  std::vector<SentFrame>* sent_;
};

/// Precondition: not kDirect.
TransferMethod method_of(FieldMask field_mask) { return kTransferMethods[static_cast<std::size_t>(field_mask) - 1]; }

chain::SyncOptions sync_for(FieldMask field_mask) {
  if (field_mask == FieldMask::kDirect) {
    return {plan::Mode::kCopy};
  }
  return {plan::Mode::kAdaptive, true, costs_for(method_of(field_mask))};
}

/// Has the device fail as `fault` says.
void arm(FaultyDevice& device, Fault const& fault) {
  switch (fault.kind) {
    case Fault::Kind::kNone:
      break;
    case Fault::Kind::kOnce:
      device.fail(fault.call, fault.nth, absl::InternalError("a call failed"));
      break;
    case Fault::Kind::kLost:
      device.lose(fault.call, fault.nth, absl::UnavailableError("the device fell off the bus"));
      break;
    case Fault::Kind::kHangs:
      device.hold_events(true);
      break;
    case Fault::Kind::kBadSpill:
      set_spill_requests(fault.requests);
      break;
    case Fault::Kind::kKilled:  // by a Killer
    case Fault::Kind::kEndless:
      break;
  }
}

/// Kills the server that has the device of a chain, and holds the chain's packets back until it uses the next one.
class Killer {
 public:
  Killer(FaultRun const& run, runtime::Session const*& session)
      : run_(&run), session_(&session), servers_({device::testing::server_options().program, limits_for(run), {}}) {}

  Result<std::unique_ptr<device::Device>> open() { return servers_.open(kDevice, {"chain"}, nullptr); }
  /// Where the run was of a kernel without end, when the death of its server has been judged: clients may see it first.
  std::string quarantine() const {
    constexpr std::chrono::seconds kLimit{60};
    const auto until = std::chrono::steady_clock::now() + kLimit;
    std::string why = servers_.quarantine_of("chain");
    while (why.empty() && run_->fault.kind == Fault::Kind::kEndless && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      why = servers_.quarantine_of("chain");
    }
    return why;
  }
  /// Whether rx may go on after so many frames.
  bool may_continue(std::uint64_t delivered) {
    if (kills_ > returns_) {
      const metrics::Snapshot counts = (*session_)->counts();
      if (delivered < killed_at_ + kFramesWithout) {
        return true;
      }
      if (counts.sum(runtime::counts::kDeviceReturns) < kills_) {
        return false;
      }
      ++returns_;
      device_packets_ = counts.sum(runtime::counts::kDevicePackets);
    }
    if (kills_ < run_->fault.nth && delivered >= run_->armed_after * (kills_ + 1)) {
      note_device_work();
      kill(servers_.pid_of(kDevice), SIGKILL);
      ++kills_;
      killed_at_ = delivered;
    }
    return true;
  }
  /// At the end, too.
  void note_device_work() {
    const std::uint64_t now = (*session_)->counts().sum(runtime::counts::kDevicePackets);
    has_done_work_ = has_done_work_ && now > device_packets_;
  }
  bool has_done_work() const { return has_done_work_ && kills_ == run_->fault.nth && returns_ == kills_; }

 private:
  static device::remote::ServerLimits limits_for(FaultRun const& run) {
    device::remote::ServerLimits limits;
    if (run.fault.kind == Fault::Kind::kEndless) {
      limits.launch = std::chrono::seconds(2);
    }
    return limits;
  }

  inline static const device::DevicePreference kDevice = device::DevicePreference::of("opencl");
  static constexpr std::uint64_t kFramesWithout = 300;  ///< that come while the device is away

  FaultRun const* run_;
  runtime::Session const** session_;
  device::remote::ServerPool servers_;
  std::uint64_t kills_ = 0;
  std::uint64_t returns_ = 0;
  std::uint64_t killed_at_ = 0;
  std::uint64_t device_packets_ = 0;
  bool has_done_work_ = true;
};

/// Launches of one NF after another have streams of their own, which are made last; those after them bring packets
/// back.
void aim(FaultyDevice& device, FaultRun const& run) {
  const auto gpu_nfs = static_cast<std::uint64_t>(std::popcount(run.gpu_mask));
  const std::uint64_t first = device.streams() - gpu_nfs * run.launches_in_flight;
  device.aim(first + run.failing * run.launches_in_flight, first + (run.failing + 1) * run.launches_in_flight);
}

Result<chain::ChainConfig> config_of(FaultRun const& run, bool on_device) {
  constexpr std::uint32_t kQuickMs = 200;
  constexpr std::uint32_t kPatientMs = 60'000;
  const bool hangs = run.fault.kind == Fault::Kind::kHangs;
  ChainRun chain;
  chain.nfs = run.nfs;
  chain.gpu_mask = on_device ? run.gpu_mask : 0;
  chain.capture = data_file("../../examples/branch-office.pcap");  // has to be there; frames come from elsewhere
  chain.device = on_device ? "opencl" : "none";
  CATENA_ASSIGN_OR_RETURN(chain::ChainConfig config,
                          chain::parse_chain(chain_text(chain, "unused"), data_file("chain/test.yaml")));
  // also what a chain file may not say: pools and units so small that all of this happens soon
  config.tuning = {.pool_slots = run.pool_slots,
                   .unit_packets = run.unit_packets,
                   .units_per_launch = run.units_per_launch,
                   .launches_in_flight = run.launches_in_flight,
                   .device_limit_ms = hangs ? kQuickMs : kPatientMs};
  config.rx = chain::generated({});
  config.tx = {};
  return config;
}

std::string name_of(Call call) {
  static const std::map<Call, std::string> kNames{{Call::kAllocatePinned, "allocate pinned"},
                                                  {Call::kCreateStream, "create stream"},
                                                  {Call::kCreateCommandBuffer, "create a command buffer"},
                                                  {Call::kCopyToDevice, "copy to device"},
                                                  {Call::kCopyToHost, "copy to host"},
                                                  {Call::kCopyRowsToDevice, "copy rows to device"},
                                                  {Call::kCopyRowsToHost, "copy rows to host"},
                                                  {Call::kLaunch, "launch"},
                                                  {Call::kEnqueue, "enqueue a command buffer"},
                                                  {Call::kFinalize, "finalize a command buffer"},
                                                  {Call::kRecord, "record"},
                                                  {Call::kFlush, "flush"},
                                                  {Call::kReady, "ready"}};
  const auto found = kNames.find(call);
  return found == kNames.end() ? concat("call ", static_cast<int>(call)) : found->second;
}

/// Drops by "NF: reason", and those for the device apart.
std::map<std::string, std::uint64_t> decisions(runtime::Report const& report) {
  std::map<std::string, std::uint64_t> drops;
  for (runtime::NfReport const& nf : report.nfs) {
    for (io::NamedCount const& drop : nf.packets.drops) {
      if (drop.name != "device_failed") {
        drops[concat(nf.name, ": ", drop.name)] += drop.count;
      }
    }
  }
  return drops;
}

/// The first frame that is not what the CPU makes of it, or that came twice or too late.
std::string wrong_frame(std::vector<SentFrame> const& sent, std::vector<SentFrame> const& on_cpu) {
  std::map<std::uint64_t, SentFrame const*> expected;
  for (SentFrame const& frame : on_cpu) {
    expected[frame.index] = &frame;
  }
  std::optional<std::uint64_t> last;
  for (SentFrame const& frame : sent) {
    if (last && frame.index <= *last) {
      return concat("frame ", frame.index, " came after frame ", *last);
    }
    last = frame.index;
    const auto found = expected.find(frame.index);
    if (found == expected.end()) {
      return concat("frame ", frame.index, " was sent, which the CPU drops");
    }
    if (frame.bytes != found->second->bytes) {
      return concat("frame ", frame.index, " has other bytes than on the CPU");
    }
    if (frame.port != found->second->port) {
      return concat("frame ", frame.index, " left through port ", frame.port, " instead of ", found->second->port);
    }
  }
  return {};
}

Result<FaultResult> run_chain(FaultRun const& run, std::vector<Frame> const& frames, bool on_device) {
  CATENA_ASSIGN_OR_RETURN(chain::ChainConfig config, config_of(run, on_device));
  FaultResult result;
  FaultyDevice* faulty = nullptr;
  bool is_armed = false;
  const bool is_killed = on_device && run.fault.kind == Fault::Kind::kKilled;
  const bool is_served = is_killed || (on_device && run.fault.kind == Fault::Kind::kEndless);
  runtime::Session const* session = nullptr;
  Killer killer(run, session);
  runtime::RunOptions options;
  options.workers = run.workers;
  options.sync = sync_for(run.field_mask);
  options.device_returns = is_served;
  if (run.sharing) {
    options.sharing = run.sharing;
    options.trace = true;
    CATENA_ASSIGN_OR_RETURN(options.sync.profile.nfs, costs_of_nfs(config, nfs_for_faults()));
    for (chain::MeasuredNf& nf : options.sync.profile.nfs) {
      nf.cost.max_packets_per_sm = 1;
    }
  }
  options.open_device = [&](device::DevicePreference const&, std::string*) -> Result<std::unique_ptr<device::Device>> {
    if (is_served) {
      return killer.open();
    }
    auto device = std::make_unique<FaultyDevice>(*nf::testing::devices().front());
    faulty = device.get();
    if (run.field_mask != FieldMask::kDirect && kernel_path(method_of(run.field_mask)) == KernelPath::kNone) {
      // else a kernel fetches the few packets of small launches
      faulty->fail(Call::kMapHost, 1, absl::UnimplementedError("this device does not map memory of the host"));
    }
    return device;
  };
  options.make_source = [&]() -> Result<std::unique_ptr<io::Source>> {
    return std::make_unique<FrameSource>(frames, [&](std::uint64_t delivered) {
      if (faulty != nullptr && !is_armed && delivered >= run.armed_after) {
        is_armed = true;
        aim(*faulty, run);
        arm(*faulty, run.fault);
      }
      return !is_killed || killer.may_continue(delivered);
    });
  };
  options.make_sink = [&]() -> Result<std::unique_ptr<io::Sink>> { return std::make_unique<FrameSink>(result.sent); };
  CATENA_ASSIGN_OR_RETURN(const auto chain, runtime::Session::create(std::move(config), options, nfs_for_faults()));
  session = chain.get();
  set_spill_requests(SpillRequests::kNone);
  result.status = chain->run();
  if (is_killed) {
    killer.note_device_work();
  }
  result.report = chain->report();
  result.plan = chain->plan();
  result.has_failed = std::any_of(result.report.nfs.begin(), result.report.nfs.end(),
                                  [](runtime::NfReport const& nf) { return !nf.device.error.empty(); });
  for (runtime::StageTrace const& stage : chain->traces()) {
    for (trace::Span const& span : stage.log->spans()) {
      if (std::string_view(span.what) == "kernel") {
        result.max_launch_packets = std::max(result.max_launch_packets, span.packets);
      }
    }
  }
  if (is_served) {
    result.has_failed = result.report.device.losses > 0;
    result.has_worked_after_return = killer.has_done_work();
    result.quarantine = killer.quarantine();
  }
  return result;
}

}  // namespace

std::string to_string(Fault const& fault) {
  switch (fault.kind) {
    case Fault::Kind::kNone:
      return "no fault";
    case Fault::Kind::kOnce:
      return concat(name_of(fault.call), " fails at call ", fault.nth);
    case Fault::Kind::kLost:
      return concat("lost at call ", fault.nth, " of ", name_of(fault.call));
    case Fault::Kind::kHangs:
      return "hangs";
    case Fault::Kind::kKilled:
      return concat("its server is killed ", fault.nth, " times");
    case Fault::Kind::kEndless:
      return "a kernel never ends";
    case Fault::Kind::kBadSpill:
      return concat("bad spill requests ", static_cast<int>(fault.requests));
  }
  return {};
}

std::string to_string(FieldMask field_mask) {
  return field_mask == FieldMask::kDirect ? "direct" : std::string(to_string(method_of(field_mask)));
}

std::string to_string(FaultRun const& run) {
  std::string text;
  for (std::size_t i = 0; i < run.nfs.size(); ++i) {
    text += concat(i == 0 ? "" : " -> ", run.nfs[i].name, (run.gpu_mask >> i & 1U) != 0 ? " (gpu)" : " (cpu)");
  }
  return concat(text, ", ", to_string(run.field_mask), ", gpu NF ", run.failing, ": ", to_string(run.fault),
                ", armed after ", run.armed_after, ", pool of ", run.pool_slots, ", units of ", run.unit_packets, ", ",
                run.units_per_launch, " a launch, ", run.launches_in_flight, " in flight, ", run.workers, " workers");
}

std::uint64_t FaultResult::device_failed() const {
  std::uint64_t sum = 0;
  for (runtime::NfReport const& nf : report.nfs) {
    for (io::NamedCount const& drop : nf.packets.drops) {
      sum += drop.name == "device_failed" ? drop.count : 0;
    }
  }
  return sum;
}

std::vector<Frame> unique_frames(std::size_t count, std::uint32_t seed) {
  constexpr std::uint32_t kShort = 300;
  constexpr std::uint32_t kLong = 1400;
  std::mt19937 random(seed);
  std::vector<Frame> frames;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::string payload(random() % 20 == 0 ? kLong : random() % kShort, '\0');
    for (char& byte : payload) {
      byte = static_cast<char>(random());
    }
    // the address makes each of them another one
    Frame frame = packet::testing::make_frame(random() % 3 == 0 ? packet::kProtocolTcp : packet::kProtocolUdp,
                                              0x0A000000U + i, static_cast<std::uint32_t>(random()), 1000,
                                              static_cast<std::uint16_t>(random()), payload);
    if (random() % 15 == 0) {
      frame[12] = 0x86;  // no IPv4
    }
    frames.push_back(std::move(frame));
  }
  return frames;
}

Result<FaultResult> run_with_fault(FaultRun const& run, std::vector<Frame> const& frames) {
  return run_chain(run, frames, true);
}

Result<FaultResult> run_on_cpu(FaultRun const& run, std::vector<Frame> const& frames) {
  return run_chain(run, frames, false);
}

std::string broken_promise(FaultRun const& run, FaultResult const& result, FaultResult const& on_cpu,
                           std::size_t frames) {
  runtime::Report const& report = result.report;
  if (std::string wrong = wrong_frame(result.sent, on_cpu.sent); !wrong.empty()) {
    return wrong;
  }
  if (!report.accounted()) {
    return concat(report.rx.seen, " in, ", report.tx.sent, " out, ", report.dropped(), " dropped");
  }
  if (result.status.ok() ? report.rx.received != frames
                         : !absl::IsResourceExhausted(result.status) ||
                               result.status.message().find("slots of the packet pool") == std::string_view::npos) {
    return concat(report.rx.received, " of ", frames, " packets were received: ", result.status.ToString());
  }
  const auto expected = decisions(on_cpu.report);
  for (auto const& [reason, count] : decisions(report)) {
    const auto found = expected.find(reason);
    if (found == expected.end() || count > found->second) {
      return concat(count, " packets dropped for ", reason, ", ", found == expected.end() ? 0 : found->second,
                    " on the CPU");
    }
  }
  // what is lost may have been on its way through the whole chain; where the device is sound, in one launch
  const bool is_sound = run.fault.kind == Fault::Kind::kOnce || run.fault.kind == Fault::Kind::kBadSpill;
  std::uint64_t max_lost = is_sound ? std::uint64_t{run.units_per_launch} * run.unit_packets : run.pool_slots;
  if (run.fault.kind == Fault::Kind::kKilled) {
    max_lost *= run.fault.nth;
  }
  if (run.fault.kind == Fault::Kind::kNone || run.fault.kind == Fault::Kind::kBadSpill) {
    max_lost = 0;
  }
  if (result.device_failed() > max_lost) {
    return concat(result.device_failed(), " packets lost with the device, not ", max_lost, " at most");
  }
  if (is_sound && !result.status.ok()) {
    return result.status.ToString();
  }
  return {};
}

}  // namespace catena::testing
