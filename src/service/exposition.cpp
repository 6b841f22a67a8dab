// SPDX-License-Identifier: Apache-2.0
#include "service/exposition.hpp"

#include "runtime/counts.hpp"

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

constexpr std::string_view kPortFrames = "catena_port_frames_total";
constexpr std::string_view kPortDrops = "catena_port_dropped_frames_total";
constexpr std::string_view kPortBusy = "catena_port_busy_ns_total";

constexpr std::array kHelp{
    Help{kPortFrames, "Frames that a shared port received."},
    Help{kPortDrops, "Frames that a shared port dropped before it was known whose they are, by reason."},
    Help{kPortBusy, "Time that the thread of a shared port was at work."},
    Help{counts::kSeen, "Packets that arrived at rx, with those that it dropped."},
    Help{counts::kReceived, "Packets that rx gave to the chain."},
    Help{counts::kReceivedBytes, "Bytes of the packets that rx gave to the chain."},
    Help{counts::kRxDrops, "Packets that rx dropped, by reason."},
    Help{counts::kBacklogFull, "Polls in which rx had to wait for a slot."},
    Help{counts::kIn, "Packets that an NF was given."},
    Help{counts::kDrops, "Packets that an NF dropped, by reason."},
    Help{counts::kReplies, "Packets that an NF turned into answers."},
    Help{counts::kAlerts, "Packets for which an NF raised an alert."},
    Help{counts::kUnsupported, "Packets that an NF could not inspect."},
    Help{counts::kLinkLocal, "Frames of one link, as ARP, that an NF left to link_local."},
    Help{counts::kKernelFaults, "Reads and writes out of bounds that a kernel was kept from."},
    Help{counts::kDevicePackets, "Packets that an NF worked on on a device."},
    Help{counts::kTransferPackets, "Packets that were moved for an NF between host and device."},
    Help{counts::kTransferBytes, "Bytes that were moved for an NF between host and device, by direction."},
    Help{counts::kStatistic, "What an NF counts or measures itself, by name."},
    Help{counts::kQueueDrops, "Packets that were dropped in front of an NF because its ring was full."},
    Help{counts::kSlowDowns, "Signals to who is in front of an NF that too many packets wait for it."},
    Help{counts::kFastenUps, "Signals that they no longer do."},
    Help{counts::kPauses, "Times that an NF paused because too many packets waited behind it."},
    Help{counts::kWaiting, "The most packets that were seen in front of an NF."},
    Help{counts::kRxPauses, "Times that rx paused because too many packets waited in the chain."},
    Help{counts::kRxPaused, "Whether rx is paused."},
    Help{counts::kFlowSignals, "Datagrams to and from chains of other hosts about packets that wait, by event."},
    Help{counts::kFlowAskers, "Chains in front of rx that are told when it pauses."},
    Help{counts::kFlowSilent, "Chains behind tx that do not say whether they pause."},
    Help{counts::kTxCongested, "Whether tx waits for a chain behind it."},
    Help{counts::kHookRuns, "Commands that were started because rx paused, or no longer did."},
    Help{counts::kHookFailures, "Such commands that failed or could not be started."},
    Help{counts::kSteered, "Packets that went from rx or an NF of a graph to an NF or tx."},
    Help{counts::kMirrored, "Copies of packets that went from rx or an NF of a graph to an NF or tx."},
    Help{counts::kSteerDrops, "Packets that left rx or an NF of a graph and were dropped there, by reason."},
    Help{counts::kSent, "Packets that tx sent."},
    Help{counts::kTxDrops, "Packets that tx dropped, by reason."},
    Help{counts::kFragments, "Frames that packets were cut into at tx."},
    Help{counts::kLatency, "Time from rx to tx of packets that were sent."},
    Help{counts::kBusy, "Time that a stage was at work on the host."},
    Help{counts::kSlotsInUse, "Slots of packet memory in use."},
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

class ChainCollector final : public prometheus::Collectable {
 public:
  ChainCollector(std::vector<ChainView> const& chains, std::vector<io::SharedPort> const& ports,
                 std::string const& version)
      : chains_(chains), ports_(ports), version_(version) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    Families families;
    families.add_info("catena_build_info", "The version of Catena; always 1.", {{"version", version_}}, true);
    for (ChainView const& chain : chains_) {
      const prometheus::ClientMetric::Label of_chain{"chain", chain.applied.name};
      for (const ChainState state : kChainStates) {
        families.add_info("catena_chain_state", "1 for the state that a chain is in.",
                          {of_chain, {"state", std::string(to_string(state))}}, state == chain.state);
      }
      families.add_info("catena_chain_quarantined",
                        "1 for a chain whose kernel took its device down: the CPU serves it.", {of_chain},
                        !chain.quarantine.empty());
      for (metrics::Sample const& sample : chain.counts.samples()) {
        Labels labels{of_chain};
        for (metrics::Label const& label : sample.labels) {
          labels.push_back({label.name, label.value});
        }
        families.add(sample.name, std::move(labels), sample.value);
      }
      if (chain.report) {
        families.add(counts::kLatency, {of_chain}, chain.counts.times(counts::kLatency));
      }
    }
    for (io::SharedPort const& port : ports_) {
      add_port(families, port);
    }
    return families.take();
  }

 private:
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
  std::string const& version_;
};

}  // namespace

std::string exposition(std::vector<ChainView> const& chains, std::vector<io::SharedPort> const& ports,
                       std::string const& version) {
  return prometheus::TextSerializer().prometheus::Serializer::Serialize(
      ChainCollector(chains, ports, version).Collect());
}

}  // namespace catena::service
