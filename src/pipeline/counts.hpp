// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/metrics.hpp"
#include "nf/instance.hpp"
#include "packet/memory/packet_pool.hpp"
#include "pipeline/classifier_stage.hpp"
#include "pipeline/device_recovery.hpp"
#include "pipeline/flow_signals.hpp"
#include "pipeline/host_stages.hpp"
#include "pipeline/isolation/process.hpp"

#include <span>
#include <string>
#include <string_view>

/// Names of a session's counts, and functions to collect them.
namespace catena::runtime {

namespace counts {
// rx
inline constexpr std::string_view kSeen = "catena_rx_seen_packets_total";  ///< received + every drop of the source
inline constexpr std::string_view kReceived = "catena_rx_packets_total";
inline constexpr std::string_view kReceivedBytes = "catena_rx_bytes_total";
inline constexpr std::string_view kRxDrops = "catena_rx_dropped_packets_total";  ///< by reason
inline constexpr std::string_view kBacklogFull = "catena_rx_backlog_full_polls_total";
// by nf
inline constexpr std::string_view kIn = "catena_nf_packets_total";
inline constexpr std::string_view kDrops = "catena_nf_dropped_packets_total";  ///< by reason
inline constexpr std::string_view kReplies = "catena_nf_replies_total";
inline constexpr std::string_view kAlerts = "catena_nf_alerts_total";
inline constexpr std::string_view kUnsupported = "catena_nf_unsupported_packets_total";
inline constexpr std::string_view kLinkLocal = "catena_nf_link_local_packets_total";
inline constexpr std::string_view kUninspected =
    "catena_nf_not_inspected_packets_total";  ///< by reason, ethertype, verdict
inline constexpr std::string_view kKernelFaults = "catena_nf_kernel_faults_total";
inline constexpr std::string_view kDevicePackets = "catena_nf_device_packets_total";
inline constexpr std::string_view kLaunches = "catena_nf_launches_total";
inline constexpr std::string_view kTransferPackets = "catena_transfer_packets_total";
inline constexpr std::string_view kTransferBytes = "catena_transfer_bytes_total";  ///< by direction: h2d, d2h
inline constexpr std::string_view kProcessRestarts = "catena_nf_process_restarts_total";
inline constexpr std::string_view kProcessRefusals = "catena_nf_process_refusals_total";
inline constexpr std::string_view kStatistic = "catena_nf_statistic";  ///< by name: the NF's own
// by nf, where rings have bounds
inline constexpr std::string_view kQueueDrops = "catena_nf_queue_dropped_packets_total";  ///< at its ring
inline constexpr std::string_view kSlowDowns = "catena_flow_slow_downs_total";  ///< signals sent to upstream NFs
inline constexpr std::string_view kFastenUps = "catena_flow_fasten_ups_total";
inline constexpr std::string_view kPauses = "catena_flow_pauses_total";           ///< of the NF itself
inline constexpr std::string_view kWaiting = "catena_flow_waiting_packets_most";  ///< peak in its ring
inline constexpr std::string_view kRxPauses = "catena_rx_pauses_total";  ///< because packets waited in the chain
inline constexpr std::string_view kRxPaused = "catena_rx_paused";        ///< now: 1, or 0
inline constexpr std::string_view kRxPausedTime = "catena_rx_paused_ns_total";
// between chains of several hosts
inline constexpr std::string_view kFlowSignals = "catena_flow_signals_total";  ///< by event
inline constexpr std::string_view kFlowAskers = "catena_flow_askers";          ///< upstream chains, now
inline constexpr std::string_view kFlowSilent = "catena_flow_silent";    ///< downstream chains without a reply, now
inline constexpr std::string_view kTxCongested = "catena_tx_congested";  ///< a downstream chain is, now: 1, or 0
// by from, at branches after rx or an NF; to: an NF, or tx
inline constexpr std::string_view kSentToNode = "catena_steered_packets_total";
inline constexpr std::string_view kMirrored = "catena_mirrored_packets_total";                 ///< copies
inline constexpr std::string_view kClassifierDrops = "catena_steering_dropped_packets_total";  ///< by reason
// tx
inline constexpr std::string_view kSent = "catena_tx_packets_total";
inline constexpr std::string_view kTxDrops = "catena_tx_dropped_packets_total";  ///< by reason
inline constexpr std::string_view kFragments = "catena_tx_fragments_total";
inline constexpr std::string_view kLatency = "catena_latency_ns";  ///< time from rx to tx, of sent packets
// all
inline constexpr std::string_view kBusy = "catena_stage_busy_ns_total";  ///< by stage; for stages of NFs by nf, too
inline constexpr std::string_view kSlotsInUse = "catena_slots_in_use";
inline constexpr std::string_view kDeviceLosses = "catena_device_losses_total";
inline constexpr std::string_view kDeviceReturns = "catena_device_returns_total";  ///< to use, after a loss
}  // namespace counts

// Each adds the counts of its argument, from any thread.
void collect(RxStage const& rx, metrics::Snapshot& counts);
void collect(nf::Instance& nf, metrics::Snapshot& counts);
/// `nf`: the name of an NF in the process.
void collect(std::string const& nf, nf_process::NfProcess const& process, metrics::Snapshot& counts);
/// `nfs`: names of the NFs by their numbers.
void collect(ClassifierStage const& classifier, std::span<const std::string> nfs, metrics::Snapshot& counts);
void collect(TxStage const& tx, metrics::Snapshot& counts);
void collect(std::string const& nf, memory::UnitQueue const& queue, metrics::Snapshot& counts);
void collect(CongestionMonitor const& monitor, metrics::Snapshot& counts);
void collect(std::string const& nf, FlowGate const& gate, metrics::Snapshot& counts);
void collect(SourcePauses const& pauses, metrics::Snapshot& counts);
void collect(FlowSignals const& signals, metrics::Snapshot& counts);
void collect(sched::Stage const& stage, bool is_nf, metrics::Snapshot& counts);
void collect(memory::PacketPool const& pool, metrics::Snapshot& counts);
void collect(DeviceRecovery const& recovery, metrics::Snapshot& counts);

}  // namespace catena::runtime
