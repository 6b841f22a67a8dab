// SPDX-License-Identifier: Apache-2.0
#include "service/exposition.hpp"

#include "pipeline/counts.hpp"

#include <catena/core/text.hpp>

#include <prometheus/client_metric.h>
#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

namespace catena::service {
namespace {

using Labels = std::vector<prometheus::ClientMetric::Label>;
using prometheus::MetricType;
namespace counts = runtime::counts;

constexpr double kNsPerSecond = 1e9;

struct Help {
  std::string_view name;
  std::string_view text;
};

constexpr std::string_view kAuditLost = "catena_audit_lost_lines_total";
constexpr std::string_view kOmitted = "catena_omitted_series";
constexpr std::string_view kPortFrames = "catena_port_frames_total";
constexpr std::string_view kPortDrops = "catena_port_dropped_frames_total";
constexpr std::string_view kPortBusy = "catena_port_busy_ns_total";

constexpr std::array kHelp{
    Help{kAuditLost, "Lines missing in the file of the audit, as its disk was full."},
    Help{kOmitted, "Series of a chain left out beyond the quota metric_series of its user."},
    Help{kPortFrames, "Frames received by a shared port."},
    Help{kPortDrops, "Frames dropped by a shared port before they were assigned to a chain, by reason."},
    Help{kPortBusy, "Busy time of the thread of a shared port."},
    Help{counts::kSeen, "Packets that arrived at rx, including dropped ones."},
    Help{counts::kReceived, "Packets passed to the chain by rx."},
    Help{counts::kReceivedBytes, "Bytes of the packets passed to the chain by rx."},
    Help{counts::kRxDrops, "Packets dropped by rx, by reason."},
    Help{counts::kBacklogFull, "Polls in which rx had to wait for a slot."},
    Help{counts::kIn, "Packets given to an NF."},
    Help{counts::kDrops, "Packets dropped by an NF, by reason."},
    Help{counts::kReplies, "Packets turned into answers by an NF."},
    Help{counts::kAlerts, "Packets for which an NF raised an alert."},
    Help{counts::kUnsupported, "Packets that an NF could not inspect."},
    Help{counts::kLinkLocal, "Link-local control frames, as ARP, that an NF left to link_local."},
    Help{counts::kUninspected, "Packets that an NF passed or dropped without inspection, by reason and EtherType."},
    Help{counts::kKernelFaults, "Out-of-bounds reads and writes of a kernel that were prevented."},
    Help{counts::kProcessRestarts, "Restarts of the process of an NF."},
    Help{counts::kProcessRefusals,
         "Requests of the process of an NF for outputs that its configuration does not name."},
    Help{counts::kLaunches, "Launches of an NF on a device."},
    Help{counts::kDevicePackets, "Packets processed by an NF on a device."},
    Help{counts::kTransferPackets, "Packets moved for an NF between host and device."},
    Help{counts::kTransferBytes, "Bytes moved for an NF between host and device, by direction."},
    Help{counts::kStatistic, "Counts and measurements of the NF itself, by name."},
    Help{counts::kQueueDrops, "Packets dropped before an NF because its ring was full."},
    Help{counts::kSlowDowns, "Back-pressure signals sent to upstream NFs."},
    Help{counts::kFastenUps, "Signals to upstream NFs for the end of back-pressure."},
    Help{counts::kPauses, "Times an NF paused because too many packets waited downstream."},
    Help{counts::kWaiting, "Peak queue of an NF, in packets."},
    Help{counts::kRxPauses, "Times rx paused because too many packets waited in the chain."},
    Help{counts::kRxPaused, "Whether rx is paused."},
    Help{counts::kRxPausedTime, "Time during which rx was paused."},
    Help{counts::kFlowSignals, "Flow control datagrams to and from chains of other hosts, by event."},
    Help{counts::kFlowAskers, "Upstream chains notified when rx pauses."},
    Help{counts::kFlowSilent, "Downstream chains that do not report whether they pause."},
    Help{counts::kTxCongested, "Whether tx waits for a downstream chain."},
    Help{counts::kSentToNode, "Packets sent from rx or an NF of a graph to an NF or tx."},
    Help{counts::kMirrored, "Copies of packets sent from rx or an NF of a graph to an NF or tx."},
    Help{counts::kClassifierDrops, "Packets that left rx or an NF of a graph and were dropped, by reason."},
    Help{counts::kSent, "Packets sent by tx."},
    Help{counts::kTxDrops, "Packets dropped by tx, by reason."},
    Help{counts::kFragments, "Fragments that tx made of packets."},
    Help{counts::kLatency, "Time from rx to tx of sent packets."},
    Help{counts::kBusy, "Busy time of a stage on the host."},
    Help{counts::kSlotsInUse, "Slots of packet memory in use."},
    Help{counts::kDeviceLosses, "Losses of the chain's device."},
    Help{counts::kDeviceReturns, "Returns of a lost device to use."},
};

/// Upper bounds of the histogram, in nanoseconds.
constexpr std::array<std::uint64_t, 18> kBoundsNs{
    1'000,     2'000,     5'000,     10'000,     20'000,     50'000,     100'000,     200'000,       500'000,
    1'000'000, 2'000'000, 5'000'000, 10'000'000, 20'000'000, 50'000'000, 100'000'000, 1'000'000'000, 10'000'000'000};

/// "x_ns_total" is "x_seconds_total"; its value is divided.
std::string in_base_units(std::string_view name, bool& is_time) {
  constexpr std::string_view kNs = "_ns";
  const std::size_t at = name.rfind(kNs);
  is_time =
      at != std::string_view::npos && (at + kNs.size() == name.size() || name.substr(at + kNs.size()) == "_total");
  return is_time ? concat(name.substr(0, at), "_seconds", name.substr(at + kNs.size())) : std::string(name);
}

std::string_view help_of(std::string_view name) {
  const auto* found = std::find_if(kHelp.begin(), kHelp.end(), [name](Help const& each) { return each.name == name; });
  return found == kHelp.end() ? std::string_view() : found->text;
}

/// Families by name, each with one metric for each set of labels.
class Families {
 public:
  void add(std::string_view name, Labels labels, std::uint64_t value) {
    bool is_time = false;
    const std::string shown = in_base_units(name, is_time);
    const bool is_counter = name.ends_with("_total");
    prometheus::ClientMetric& metric =
        at(shown, help_of(name), is_counter ? MetricType::Counter : MetricType::Gauge, std::move(labels));
    // of labels that come twice the sum
    double& sum = is_counter ? metric.counter.value : metric.gauge.value;
    sum += static_cast<double>(value) / (is_time ? kNsPerSecond : 1);
  }
  void add_info(std::string_view name, std::string_view help, Labels labels, bool value) {
    at(std::string(name), help, MetricType::Gauge, std::move(labels)).gauge.value = value ? 1 : 0;
  }
  void add(std::string_view name, Labels labels, Histogram const& times) {
    bool is_time = false;
    const std::string shown = in_base_units(name, is_time);
    prometheus::ClientMetric& metric = at(shown, help_of(name), MetricType::Histogram, std::move(labels));
    metric.histogram.sample_count = times.count();
    metric.histogram.sample_sum = times.sum() / kNsPerSecond;
    for (const std::uint64_t bound : kBoundsNs) {
      metric.histogram.bucket.push_back({times.count_up_to(bound), static_cast<double>(bound) / kNsPerSecond});
    }
  }
  std::vector<prometheus::MetricFamily> take() {
    std::vector<prometheus::MetricFamily> families;
    for (auto& [name, family] : families_) {
      for (auto& [labels, metric] : family.metrics) {
        family.head.metric.push_back(std::move(metric));
      }
      families.push_back(std::move(family.head));
    }
    return families;
  }

 private:
  struct Family {
    prometheus::MetricFamily head;
    std::map<Labels, prometheus::ClientMetric> metrics;
  };
  prometheus::ClientMetric& at(std::string const& name, std::string_view help, MetricType type, Labels labels) {
    Family& family = families_[name];
    family.head.name = name;
    family.head.help = std::string(help);
    family.head.type = type;
    std::sort(labels.begin(), labels.end());
    prometheus::ClientMetric& metric = family.metrics[labels];
    metric.label = std::move(labels);
    return metric;
  }

  std::map<std::string, Family> families_;
};

/// Series of the users of chains, up to their quotas.
class SeriesBudget {
 public:
  explicit SeriesBudget(Quotas const& quotas) : quotas_(quotas) {}

  /// False, without counting, for more series than the user may have.
  bool take(uid_t user, std::uint64_t series) {
    std::uint64_t& used = used_[user];
    const std::uint64_t limit = quotas_.limit(user, Quota::kMetricSeries);
    const bool has_room = used <= limit && limit - used >= series;
    used += has_room ? series : 0;
    return has_room;
  }

 private:
  Quotas const& quotas_;
  std::map<uid_t, std::uint64_t> used_;
};

class ChainCollector final : public prometheus::Collectable {
 public:
  ChainCollector(std::vector<ChainView> const& chains, std::vector<io::SharedPort> const& ports,
                 ServiceFacts const& service)
      : chains_(chains), ports_(ports), service_(service) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    Families families;
    families.add_info("catena_build_info", "The version of Catena; always 1.", {{"version", service_.version}}, true);
    families.add(kAuditLost, {}, service_.lost_audit_lines);
    SeriesBudget budget(service_.quotas);
    for (ChainView const& chain : chains_) {
      add_state(families, chain);
      add_counts(families, chain, budget);
    }
    for (io::SharedPort const& port : ports_) {
      add_port(families, port);
    }
    return families.take();
  }

 private:
  static void add_state(Families& families, ChainView const& chain) {
    const prometheus::ClientMetric::Label of_chain{"chain", chain.applied.name};
    for (const ChainState state : kChainStates) {
      families.add_info("catena_chain_state", "1 for the current state of a chain.",
                        {of_chain, {"state", std::string(to_string(state))}}, state == chain.state);
    }
    families.add_info("catena_chain_quarantined", "1 for a chain whose kernel took its device down: the CPU serves it.",
                      {of_chain}, !chain.quarantine.empty());
  }

  static void add_counts(Families& families, ChainView const& chain, SeriesBudget& budget) {
    constexpr std::uint64_t kOfHistogram = kBoundsNs.size() + 3;  // and +Inf, sum and count
    const prometheus::ClientMetric::Label of_chain{"chain", chain.applied.name};
    const uid_t user = chain.applied.caller.uid;
    std::uint64_t omitted = 0;
    if (chain.report && budget.take(user, kOfHistogram)) {
      families.add(counts::kLatency, {of_chain}, chain.counts.times(counts::kLatency));
    } else {
      omitted += chain.report ? kOfHistogram : 0;
    }
    for (metrics::Sample const& sample : chain.counts.samples()) {
      if (!budget.take(user, 1)) {
        ++omitted;
        continue;
      }
      Labels labels{of_chain};
      for (metrics::Label const& label : sample.labels) {
        labels.push_back({label.name, label.value});
      }
      families.add(sample.name, std::move(labels), sample.value);
    }
    if (omitted != 0) {
      families.add(kOmitted, {of_chain}, omitted);
    }
  }

  static void add_port(Families& families, io::SharedPort const& port) {
    const prometheus::ClientMetric::Label of_port{"port", port.name};
    families.add(kPortFrames, {of_port}, port.received);
    for (io::NamedCount const& drop : io::drops_of(port)) {
      families.add(kPortDrops, {of_port, {"reason", drop.name}}, drop.count);
    }
    families.add(kPortBusy, {of_port}, port.busy_ns);
  }

  std::vector<ChainView> const& chains_;
  std::vector<io::SharedPort> const& ports_;
  ServiceFacts const& service_;
};

}  // namespace

std::string exposition(std::vector<ChainView> const& chains, std::vector<io::SharedPort> const& ports,
                       ServiceFacts const& service) {
  return prometheus::TextSerializer().prometheus::Serializer::Serialize(
      ChainCollector(chains, ports, service).Collect());
}

}  // namespace catena::service
