// SPDX-License-Identifier: Apache-2.0
#include "pipeline/nf_report.hpp"

#include "pipeline/counts.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace catena::runtime {
namespace {

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

NfPacketReport packets_of(metrics::Labels const& nf, metrics::Snapshot const& counts) {
  NfPacketReport packets;
  packets.in = counts.sum(counts::kIn, nf);
  packets.alerts = counts.sum(counts::kAlerts, nf);
  packets.replies = counts.sum(counts::kReplies, nf);
  packets.unsupported = counts.sum(counts::kUnsupported, nf);
  packets.link_local = counts.sum(counts::kLinkLocal, nf);
  packets.uninspected = uninspected_of(nf.front(), counts);
  packets.drops = nonzero(named_counts(counts.sums(counts::kDrops, "reason", nf)));
  const std::uint64_t decided = total(packets.drops) + packets.replies;
  packets.passed = packets.in - std::min(packets.in, decided);  // they are not of quite one moment
  return packets;
}

NfQueueReport queue_of(metrics::Labels const& nf, metrics::Snapshot const& counts) {
  NfQueueReport queue;
  queue.drops = counts.sum(counts::kQueueDrops, nf);
  queue.slow_downs = counts.sum(counts::kSlowDowns, nf);
  queue.fasten_ups = counts.sum(counts::kFastenUps, nf);
  queue.pauses = counts.sum(counts::kPauses, nf);
  queue.peak = counts.sum(counts::kWaiting, nf);
  return queue;
}

NfDeviceReport device_of(metrics::Labels const& nf, metrics::Snapshot const& counts) {
  NfDeviceReport device;
  device.launches = counts.sum(counts::kLaunches, nf);
  device.kernel_faults = counts.sum(counts::kKernelFaults, nf);
  if (const auto moved = static_cast<double>(counts.sum(counts::kTransferPackets, nf)); moved > 0) {
    const auto bytes = [&](const char* direction) {
      return static_cast<double>(counts.sum(counts::kTransferBytes, {nf.front(), {"direction", direction}}));
    };
    device.bytes_to_device_per_packet = bytes("h2d") / moved;
    device.bytes_to_host_per_packet = bytes("d2h") / moved;
  }
  return device;
}

}  // namespace

std::uint64_t total(std::vector<io::NamedCount> const& counts) {
  std::uint64_t sum = 0;
  for (io::NamedCount const& entry : counts) {
    sum += entry.count;
  }
  return sum;
}

std::vector<io::NamedCount> named_counts(std::vector<std::pair<std::string, std::uint64_t>> const& counts) {
  std::vector<io::NamedCount> named;
  for (auto const& [name, count] : counts) {
    named.push_back({name, count});
  }
  return named;
}

std::vector<io::NamedCount> nonzero(std::vector<io::NamedCount> counts) {
  std::erase_if(counts, [](io::NamedCount const& count) { return count.count == 0; });
  return counts;
}

NfReport report_of(std::string_view name, metrics::Snapshot const& counts) {
  constexpr double kNsPerSecond = 1e9;
  const metrics::Labels nf{{"nf", std::string(name)}};
  NfReport row;
  row.name = name;
  row.busy_seconds = static_cast<double>(counts.sum(counts::kBusy, nf)) / kNsPerSecond;
  row.packets = packets_of(nf, counts);
  row.queue = queue_of(nf, counts);
  row.device = device_of(nf, counts);
  row.isolation.restarts = counts.sum(counts::kProcessRestarts, nf);
  row.isolation.refusals = counts.sum(counts::kProcessRefusals, nf);
  row.statistics = named_counts(counts.sums(counts::kStatistic, "name", nf));
  return row;
}

}  // namespace catena::runtime
