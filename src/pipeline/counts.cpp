// SPDX-License-Identifier: Apache-2.0
#include "pipeline/counts.hpp"

#include <string>
#include <utility>
#include <vector>

namespace catena::runtime {
namespace {

using metrics::Label;
using metrics::Snapshot;

void add(Snapshot& counts, std::string_view name, std::vector<io::NamedCount> const& drops) {
  for (io::NamedCount const& drop : drops) {
    counts.add(name, {{"reason", drop.name}}, drop.count);
  }
}

}  // namespace

void collect(RxStage const& rx, Snapshot& counts) {
  // before what the source saw, so that it never saw fewer than it brought
  counts.add(counts::kReceived, {}, rx.packets());
  counts.add(counts::kReceivedBytes, {}, rx.bytes());
  const io::SourceCounts source = rx.source().counts();
  counts.add(counts::kSeen, {}, source.seen);
  add(counts, counts::kRxDrops, source.drops);
  if (rx.refused() > 0) {
    counts.add(counts::kRxDrops, {{"reason", "backlog_full"}}, rx.refused());
  }
  counts.add(counts::kBacklogFull, {}, rx.starved_polls());
}

void collect(nf::Instance& nf, Snapshot& counts) {
  const Label name{"nf", nf.name()};
  nf::Counters const& of = nf.counters();
  // what became of packets before how many there were: never more than that
  for (auto const& [reason, count] : nf.drops()) {
    counts.add(counts::kDrops, {name, {"reason", std::string(reason)}}, count);
  }
  counts.add(counts::kReplies, {name}, nf.outcome().replies());
  counts.add(counts::kIn, {name}, of.in);
  counts.add(counts::kAlerts, {name}, nf.outcome().alerts());
  counts.add(counts::kUnsupported, {name}, of.unsupported);
  counts.add(counts::kLinkLocal, {name}, of.link_local);
  for (std::size_t number = 0; number < nf::UninspectedCounts::kKinds; ++number) {
    if (const std::uint64_t packets = of.uninspected.counts[number]; packets > 0) {
      const nf::UninspectedKind kind = nf::UninspectedCounts::kind(number);
      counts.add(counts::kUninspected,
                 {name,
                  {"reason", std::string(kind.reason)},
                  {"ethertype", std::string(kind.ether_type)},
                  {"verdict", std::string(kind.verdict)}},
                 packets);
    }
  }
  counts.add(counts::kKernelFaults, {name}, of.kernel_faults);
  counts.add(counts::kDevicePackets, {name}, of.device_packets);
  counts.add(counts::kLaunches, {name}, of.launches);
  counts.add(counts::kTransferPackets, {name}, of.transfers.packets);
  counts.add(counts::kTransferBytes, {name, {"direction", "h2d"}}, of.transfers.bytes_to_device);
  counts.add(counts::kTransferBytes, {name, {"direction", "d2h"}}, of.transfers.bytes_to_host);
  for (nf::Statistic const& statistic : nf.board().read()) {
    counts.add(counts::kStatistic, {name, {"name", statistic.name}}, statistic.value);
  }
}

void collect(std::string const& nf, nf_process::NfProcess const& process, Snapshot& counts) {
  counts.add(counts::kProcessRestarts, {{"nf", nf}}, process.restarts());
  counts.add(counts::kProcessRefusals, {{"nf", nf}}, process.refusals());
}

void collect(ClassifierStage const& classifier, std::span<const std::string> nfs, Snapshot& counts) {
  const Label from{"from", classifier.from()};
  counts.add(counts::kClassifierDrops, {from, {"reason", "dropped_by_row"}}, classifier.dropped());
  counts.add(counts::kClassifierDrops, {from, {"reason", "unmatched"}}, classifier.unmatched());
  counts.add(counts::kClassifierDrops, {from, {"reason", "malformed"}}, classifier.malformed());
  const auto targets = classifier.table().targets();
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const Label to{"to", targets[i] == chain::kTx ? std::string(chain::kTxWord) : nfs[targets[i]]};
    counts.add(counts::kSentToNode, {from, to}, classifier.sent_to(i));
    counts.add(counts::kMirrored, {from, to}, classifier.mirrored_to(i));
  }
}

void collect(TxStage const& tx, Snapshot& counts) {
  const io::SinkCounts sink = tx.sink().counts();
  counts.add(counts::kSent, {}, sink.sent);
  add(counts, counts::kTxDrops, sink.drops);
  counts.add(counts::kFragments, {}, sink.fragments);
  counts.add(counts::kLatency, tx.latency());
}

void collect(std::string const& nf, memory::UnitQueue const& queue, Snapshot& counts) {
  counts.add(counts::kQueueDrops, {{"nf", nf}}, queue.refused());
}

void collect(CongestionMonitor const& monitor, Snapshot& counts) {
  const Label nf{"nf", monitor.nf()};
  counts.add(counts::kFastenUps, {nf}, monitor.fasten_ups());
  counts.add(counts::kSlowDowns, {nf}, monitor.slow_downs());
  counts.add(counts::kWaiting, {nf}, monitor.most());
}

void collect(std::string const& nf, FlowGate const& gate, Snapshot& counts) {
  counts.add(counts::kPauses, {{"nf", nf}}, gate.pauses());
}

void collect(SourcePauses const& pauses, Snapshot& counts) {
  counts.add(counts::kRxPauses, {}, pauses.count());
  counts.add(counts::kRxPaused, {}, pauses.any() ? 1 : 0);
  counts.add(counts::kRxPausedTime, {}, static_cast<std::uint64_t>(pauses.time().count()));
}

void collect(FlowSignals const& signals, Snapshot& counts) {
  const FlowSignals::Counts now = signals.counts();
  const auto add_event = [&counts](const char* event, std::uint64_t count) {
    counts.add(counts::kFlowSignals, {{"event", event}}, count);
  };
  add_event("sent", now.sent);
  add_event("received", now.received);
  add_event("stale", now.stale);
  add_event("forged", now.forged);
  add_event("timeout", now.timeouts);
  add_event("unsent", now.unsent);
  counts.add(counts::kFlowAskers, {}, now.askers);
  counts.add(counts::kFlowSilent, {}, now.silent);
  counts.add(counts::kTxCongested, {}, signals.is_tx_congested() ? 1 : 0);
}

void collect(sched::Stage const& stage, bool is_nf, Snapshot& counts) {
  metrics::Labels labels{{"stage", stage.name()}};
  if (is_nf) {
    labels.push_back({"nf", stage.name()});
  }
  counts.add(counts::kBusy, std::move(labels), stage.busy_ns());
}

void collect(memory::PacketPool const& pool, Snapshot& counts) {
  counts.add(counts::kSlotsInUse, {}, pool.slots() - pool.free_slots());
}

void collect(DeviceRecovery const& recovery, Snapshot& counts) {
  // returns first: never more of them than losses
  counts.add(counts::kDeviceReturns, {}, recovery.returns());
  counts.add(counts::kDeviceLosses, {}, recovery.losses());
}

}  // namespace catena::runtime
