// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report.hpp"

#include "pipeline/counts.hpp"

#include <utility>

namespace catena::runtime {
namespace {

RxReport rx_report_of(metrics::Snapshot const& counts) {
  RxReport rx;
  rx.seen = counts.sum(counts::kSeen);
  rx.received = counts.sum(counts::kReceived);
  rx.received_bytes = counts.sum(counts::kReceivedBytes);
  rx.backlog_full = counts.sum(counts::kBacklogFull);
  rx.slots_in_use = counts.sum(counts::kSlotsInUse);
  rx.drops = named_counts(counts.sums(counts::kRxDrops, "reason"));
  return rx;
}

TxReport tx_report_of(metrics::Snapshot const& counts) {
  TxReport tx;
  tx.sent = counts.sum(counts::kSent);
  tx.fragments = counts.sum(counts::kFragments);
  tx.drops = named_counts(counts.sums(counts::kTxDrops, "reason"));
  tx.latency.merge(counts.times(counts::kLatency));
  return tx;
}

std::vector<StageReport> stage_reports_of(metrics::Snapshot const& counts) {
  constexpr double kNsPerSecond = 1e9;
  std::vector<StageReport> stages;
  for (auto& [name, busy_ns] : counts.sums(counts::kBusy, "stage")) {
    stages.push_back({std::move(name), static_cast<double>(busy_ns) / kNsPerSecond});
  }
  return stages;
}

}  // namespace

Report report_of(metrics::Snapshot const& counts) {
  Report report;
  report.rx = rx_report_of(counts);
  report.tx = tx_report_of(counts);
  report.device.losses = counts.sum(counts::kDeviceLosses);
  report.device.returns = counts.sum(counts::kDeviceReturns);
  report.work.stages = stage_reports_of(counts);
  return report;
}

ClassifierReport report_of_classifier(std::string_view from, metrics::Snapshot const& counts) {
  const metrics::Labels label{{"from", std::string(from)}};
  ClassifierReport row;
  row.from = from;
  row.to = nonzero(named_counts(counts.sums(counts::kSentToNode, "to", label)));
  row.mirrored = nonzero(named_counts(counts.sums(counts::kMirrored, "to", label)));
  row.drops = nonzero(named_counts(counts.sums(counts::kClassifierDrops, "reason", label)));
  return row;
}

std::uint64_t Report::dropped() const {
  std::uint64_t sum = total(rx.drops) + total(tx.drops);
  for (NfReport const& nf : nfs) {
    sum += total(nf.packets.drops) + nf.queue.drops;
  }
  for (ClassifierReport const& classifier : classifiers) {
    sum += total(classifier.drops);
  }
  return sum;
}

double Report::packets_per_second() const { return seconds > 0 ? static_cast<double>(rx.received) / seconds : 0; }

double Report::bits_per_second() const {
  return seconds > 0 ? static_cast<double>(rx.received_bytes) * 8 / seconds : 0;
}

std::uint64_t Report::mirrored() const {
  std::uint64_t sum = 0;
  for (ClassifierReport const& classifier : classifiers) {
    sum += total(classifier.mirrored);
  }
  return sum;
}

bool Report::accounted() const { return rx.seen + mirrored() == tx.sent + dropped(); }

}  // namespace catena::runtime
