// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report.hpp"

#include "pipeline/counts.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace catena::runtime {
namespace {

constexpr double kNsPerSecond = 1e9;

std::vector<io::NamedCount> named(std::vector<std::pair<std::string, std::uint64_t>> const& counts) {
  std::vector<io::NamedCount> named;
  for (auto const& [name, count] : counts) {
    named.push_back({name, count});
  }
  return named;
}

/// The sums of all shards of the NF with this label.
std::vector<UninspectedReport> uninspected_of(metrics::Label const& nf, metrics::Snapshot const& counts) {
  std::vector<UninspectedReport> kinds;
  for (metrics::Sample const& sample : counts.samples()) {
    const auto value_of = [&sample](std::string_view name) {
      const auto label = std::ranges::find(sample.labels, name, &metrics::Label::name);
      return label == sample.labels.end() ? std::string() : label->value;
    };
    if (sample.name != counts::kUninspected || value_of(nf.name) != nf.value) {
      continue;
    }
    UninspectedReport kind{value_of("reason"), value_of("ethertype"), value_of("verdict"), sample.value};
    const auto found = std::ranges::find_if(kinds, [&kind](UninspectedReport const& other) {
      return other.reason == kind.reason && other.ether_type == kind.ether_type && other.verdict == kind.verdict;
    });
    if (found == kinds.end()) {
      kinds.push_back(std::move(kind));
    } else {
      found->packets += kind.packets;
    }
  }
  // the same order however the packets are divided among shards
  std::ranges::sort(kinds, {},
                    [](UninspectedReport const& kind) { return std::tie(kind.reason, kind.ether_type, kind.verdict); });
  return kinds;
}

}  // namespace

std::uint64_t total(std::vector<io::NamedCount> const& counts) {
  std::uint64_t sum = 0;
  for (io::NamedCount const& entry : counts) {
    sum += entry.count;
  }
  return sum;
}

Report report_of(metrics::Snapshot const& counts) {
  Report report;
  report.seen = counts.sum(counts::kSeen);
  report.received = counts.sum(counts::kReceived);
  report.received_bytes = counts.sum(counts::kReceivedBytes);
  report.sent = counts.sum(counts::kSent);
  report.backlog_full = counts.sum(counts::kBacklogFull);
  report.slots_in_use = counts.sum(counts::kSlotsInUse);
  report.rx_drops = named(counts.sums(counts::kRxDrops, "reason"));
  report.tx_drops = named(counts.sums(counts::kTxDrops, "reason"));
  report.tx_fragments = counts.sum(counts::kFragments);
  for (auto& [name, busy_ns] : counts.sums(counts::kBusy, "stage")) {
    report.stages.push_back({std::move(name), static_cast<double>(busy_ns) / kNsPerSecond});
  }
  report.device_losses = counts.sum(counts::kDeviceLosses);
  report.device_returns = counts.sum(counts::kDeviceReturns);
  report.latency.merge(counts.times(counts::kLatency));
  return report;
}

ClassifierReport report_of_classifier(std::string_view from, metrics::Snapshot const& counts) {
  const metrics::Labels label{{"from", std::string(from)}};
  ClassifierReport row;
  row.from = from;
  const auto that_happened = [](std::vector<io::NamedCount> all) {
    std::erase_if(all, [](io::NamedCount const& count) { return count.count == 0; });
    return all;
  };
  row.to = that_happened(named(counts.sums(counts::kSentToNode, "to", label)));
  row.mirrored = that_happened(named(counts.sums(counts::kMirrored, "to", label)));
  row.drops = that_happened(named(counts.sums(counts::kClassifierDrops, "reason", label)));
  return row;
}

NfReport report_of(std::string_view name, metrics::Snapshot const& counts) {
  const metrics::Labels nf{{"nf", std::string(name)}};
  NfReport row;
  row.name = name;
  row.in = counts.sum(counts::kIn, nf);
  row.unsupported = counts.sum(counts::kUnsupported, nf);
  row.link_local = counts.sum(counts::kLinkLocal, nf);
  row.uninspected = uninspected_of(nf.front(), counts);
  row.kernel_faults = counts.sum(counts::kKernelFaults, nf);
  row.launches = counts.sum(counts::kLaunches, nf);
  row.queue_drops = counts.sum(counts::kQueueDrops, nf);
  row.slow_downs = counts.sum(counts::kSlowDowns, nf);
  row.fasten_ups = counts.sum(counts::kFastenUps, nf);
  row.pauses = counts.sum(counts::kPauses, nf);
  row.peak_queue = counts.sum(counts::kWaiting, nf);
  row.process_restarts = counts.sum(counts::kProcessRestarts, nf);
  row.process_refusals = counts.sum(counts::kProcessRefusals, nf);
  row.alerts = counts.sum(counts::kAlerts, nf);
  row.replies = counts.sum(counts::kReplies, nf);
  row.drops = named(counts.sums(counts::kDrops, "reason", nf));
  std::erase_if(row.drops, [](io::NamedCount const& drop) { return drop.count == 0; });
  row.passed = row.in - std::min(row.in, total(row.drops) + row.replies);  // they are not of quite one moment
  row.statistics = named(counts.sums(counts::kStatistic, "name", nf));
  row.busy_seconds = static_cast<double>(counts.sum(counts::kBusy, nf)) / kNsPerSecond;
  if (const auto moved = static_cast<double>(counts.sum(counts::kTransferPackets, nf)); moved > 0) {
    const auto bytes = [&](const char* direction) {
      return static_cast<double>(counts.sum(counts::kTransferBytes, {nf.front(), {"direction", direction}}));
    };
    row.bytes_to_device_per_packet = bytes("h2d") / moved;
    row.bytes_to_host_per_packet = bytes("d2h") / moved;
  }
  return row;
}

std::uint64_t Report::dropped() const {
  std::uint64_t sum = total(rx_drops) + total(tx_drops);
  for (NfReport const& nf : nfs) {
    sum += total(nf.drops) + nf.queue_drops;
  }
  for (ClassifierReport const& classifier : classifiers) {
    sum += total(classifier.drops);
  }
  return sum;
}

double Report::packets_per_second() const { return seconds > 0 ? static_cast<double>(received) / seconds : 0; }

double Report::bits_per_second() const { return seconds > 0 ? static_cast<double>(received_bytes) * 8 / seconds : 0; }

std::uint64_t Report::mirrored() const {
  std::uint64_t sum = 0;
  for (ClassifierReport const& classifier : classifiers) {
    sum += total(classifier.mirrored);
  }
  return sum;
}

bool Report::accounted() const { return seen + mirrored() == sent + dropped(); }

}  // namespace catena::runtime
