// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report.hpp"

#include "base/core/scale.hpp"
#include "pipeline/counts.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <catena/core/text.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>
#include <utility>

namespace catena::runtime {
namespace {

constexpr double kNsPerSecond = 1e9;

std::uint64_t total(std::vector<io::NamedCount> const& counts) {
  std::uint64_t sum = 0;
  for (io::NamedCount const& entry : counts) {
    sum += entry.count;
  }
  return sum;
}

std::string list(std::vector<io::NamedCount> const& counts) {
  std::string text;
  for (io::NamedCount const& entry : counts) {
    if (entry.count > 0) {
      fmt::format_to(std::back_inserter(text), "{}{} {}", text.empty() ? "" : ", ", entry.name, entry.count);
    }
  }
  return text.empty() ? "-" : text;
}

nlohmann::ordered_json object(std::vector<io::NamedCount> const& counts) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (io::NamedCount const& entry : counts) {
    json[entry.name] = entry.count;
  }
  return json;
}

nlohmann::ordered_json objects(std::vector<UninspectedReport> const& kinds) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (UninspectedReport const& kind : kinds) {
    json.push_back({{"reason", kind.reason},
                    {"ethertype", kind.ether_type},
                    {"verdict", kind.verdict},
                    {"packets", kind.packets}});
  }
  return json;
}

std::vector<io::NamedCount> named(std::vector<std::pair<std::string, std::uint64_t>> const& counts) {
  std::vector<io::NamedCount> named;
  for (auto const& [name, count] : counts) {
    named.push_back({name, count});
  }
  return named;
}

double rate(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

/// "ipv6 3, truncated 1" of the packets with this verdict; control frames only if `with_link_local`. Empty if none.
std::string list_uninspected(NfReport const& nf, std::string_view verdict, bool with_link_local) {
  std::vector<io::NamedCount> kinds;
  for (UninspectedReport const& each : nf.uninspected) {
    const bool is_link_local = each.reason == "link_local";
    if (each.verdict != verdict || (is_link_local && !with_link_local)) {
      continue;
    }
    std::string const& name = is_link_local || each.reason == "not_ipv4" ? each.ether_type : each.reason;
    const auto found = std::ranges::find(kinds, name, &io::NamedCount::name);
    if (found == kinds.end()) {
      kinds.push_back({name, each.packets});
    } else {
      found->count += each.packets;
    }
  }
  return kinds.empty() ? std::string() : list(kinds);
}

/// The line about packets that the NF did not inspect; empty if it inspected all.
std::string uninspected_line(NfReport const& nf) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kParts{
      {{"pass", "passed "}, {"drop", "dropped "}, {"outer", "outer headers only "}}};
  std::string text;
  for (auto const& [verdict, words] : kParts) {
    if (const std::string kinds = list_uninspected(nf, verdict, true); !kinds.empty()) {
      text += concat(text.empty() ? "" : "; ", words, kinds);
    }
  }
  return text;
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

/// A row for each NF, and under it the meaning of its drop reasons. Without an NF on a GPU the columns of transfers are
/// left out.
void add_nf_table(Report const& report, std::string& text) {
  const auto out = std::back_inserter(text);
  const bool has_gpu = std::ranges::any_of(report.nfs, [](NfReport const& nf) {
    return nf.placement.starts_with("gpu") || nf.bytes_to_device_per_packet + nf.bytes_to_host_per_packet > 0;
  });
  fmt::format_to(out, "\n{:<12} {:<10} {:<10} {:>10} {:>10} {:>8} {:>11} {:>8}{}  {}\n", "NF", "type", "on", "in",
                 "passed", "alerts", "uninspected", "busy", has_gpu ? "   H2D B/pkt   D2H B/pkt" : "", "drops");
  for (NfReport const& nf : report.nfs) {
    fmt::format_to(
        out, "{:<12} {:<10} {:<10} {:>10} {:>10} {:>8} {:>11} {:>8}{}  {}\n", nf.name, nf.type, nf.placement, nf.in,
        nf.passed, nf.alerts, nf.unsupported + nf.link_local, time_text(nf.busy_seconds),
        has_gpu ? fmt::format(" {:>11.1f} {:>11.1f}", nf.bytes_to_device_per_packet, nf.bytes_to_host_per_packet) : "",
        list(nf.drops));
    for (std::size_t i = 0; i < std::min(nf.drops.size(), nf.drop_help.size()); ++i) {
      fmt::format_to(out, "{:<12} {}: {}\n", "", nf.drops[i].name, nf.drop_help[i]);
    }
  }
  text += '\n';
}

}  // namespace

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

std::uint64_t Report::mirrored() const {
  std::uint64_t sum = 0;
  for (ClassifierReport const& classifier : classifiers) {
    sum += total(classifier.mirrored);
  }
  return sum;
}

bool Report::accounted() const { return seen + mirrored() == sent + dropped(); }

std::string indented(std::string_view text, std::size_t columns) {
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    fmt::format_to(std::back_inserter(lines), "\n{:{}}{}", "", columns, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string to_text(Report const& report) {
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "chain     {}\n", report.chain);
  if (report.cpu_instead_of_gpu) {
    fmt::format_to(out, "device    not used: NFs placed `on: gpu` ran on the CPU{}\n",
                   indented(report.device_note, 10));
  } else {
    fmt::format_to(out, "device    {}{}{}\n", report.device, report.device == "none" ? ": " : "",
                   report.device == "none" ? report.device_note : "");
  }
  if (report.device_losses > 0) {
    fmt::format_to(out, "          losses: {}, returns: {}; NFs ran on the CPU without it\n", report.device_losses,
                   report.device_returns);
  }
  if (!report.sync.empty()) {
    fmt::format_to(out, "sync      {}, by {}\n", report.sync, report.costs_from);
    if (!report.sharing.empty()) {
      fmt::format_to(out, "share     {}\n", report.sharing);
      for (PartReport const& part : report.parts) {
        fmt::format_to(out, "          {}\n", part.text);
      }
    }
  }
  fmt::format_to(out, "rx        {}: {} packets, {} bytes; dropped: {}\n", report.rx, report.seen,
                 report.received_bytes, list(report.rx_drops));
  add_nf_table(report, text);
  for (ClassifierReport const& classifier : report.classifiers) {
    fmt::format_to(out, "{:<9} went to: {}{}{}\n", classifier.from, list(classifier.to),
                   classifier.mirrored.empty() ? "" : "; copied to: " + list(classifier.mirrored),
                   classifier.drops.empty() ? "" : "; dropped: " + list(classifier.drops));
  }
  // back-pressure is ordinary where rx can wait, and explains a loss where it cannot
  const bool shows_flow = report.has_flow || total(report.rx_drops) > 0;
  for (NfReport const& nf : report.nfs) {
    if (nf.replies > 0) {
      fmt::format_to(out, "{:<9} {} packets answered\n", nf.name, nf.replies);
    }
    if (const std::string kinds = uninspected_line(nf); !kinds.empty()) {
      fmt::format_to(out, "{:<9} not inspected: {}\n", nf.name, kinds);
    }
    if (nf.queue_drops > 0) {
      fmt::format_to(out, "{:<9} {} packets did not fit into its queue and were dropped\n", nf.name, nf.queue_drops);
    }
    if (shows_flow && nf.slow_downs + nf.pauses > 0) {
      fmt::format_to(out, "{:<9} sent {} back-pressure signals, paused {} times; peak queue {} packets\n", nf.name,
                     nf.slow_downs, nf.pauses, nf.peak_queue);
    }
    if (total(nf.statistics) > 0) {
      fmt::format_to(out, "{:<9} {}\n", nf.name, list(nf.statistics));
    }
    for (std::string const& line : nf.lines) {
      fmt::format_to(out, "{:<9} {}\n", nf.name, line);
    }
  }
  for (NfReport const& nf : report.nfs) {
    if (const std::string kinds = list_uninspected(nf, "pass", false); !kinds.empty()) {
      fmt::format_to(out, "WARNING   {}: passed packets without inspection: {}\n", nf.name, kinds);
    }
    if (nf.process_refusals > 0) {
      fmt::format_to(out, "WARNING   {}: {} forbidden writes of its process were refused\n", nf.name,
                     nf.process_refusals);
    }
    if (nf.process_restarts > 0) {
      fmt::format_to(out, "WARNING   {}: its process was started again {} times\n", nf.name, nf.process_restarts);
    }
    if (!nf.refused_rules.empty()) {
      fmt::format_to(out, "WARNING   {}: {} rules were not applied: {}\n", nf.name, total(nf.refused_rules),
                     list(nf.refused_rules));
    }
    if (!nf.device_error.empty()) {
      fmt::format_to(out, "WARNING   {}: {}\n", nf.name, nf.device_error);
    }
    if (nf.kernel_faults > 0) {
      fmt::format_to(out,
                     "WARNING   {}: its kernel accessed memory out of bounds {} times; the packets concerned were "
                     "dropped (kernel_fault)\n",
                     nf.name, nf.kernel_faults);
    }
  }
  fmt::format_to(out, "tx        {}: {} packets{}; dropped: {}\n", report.tx, report.sent,
                 report.tx_fragments > 0 ? fmt::format(", some as {} fragments", report.tx_fragments) : "",
                 list(report.tx_drops));
  fmt::format_to(out, "account   {} in{} = {} out + {} dropped{}\n", report.seen,
                 report.mirrored() > 0 ? fmt::format(" + {} copies", report.mirrored()) : "", report.sent,
                 report.dropped(), report.accounted() ? "" : "   NOT BALANCED");
  const double packets_per_second = rate(static_cast<double>(report.received), report.seconds);
  fmt::format_to(out, "speed     {}, {}, {}, {} worker{}\n", time_text(report.seconds),
                 rate_text(packets_per_second, "pps"),
                 rate_text(rate(static_cast<double>(report.received_bytes) * 8, report.seconds), "bps"), report.workers,
                 report.workers == 1 ? "" : "s");
  if (report.offered_per_second != 0) {
    constexpr double kAsOffered = 0.99;
    const double taken = std::min(1.0, packets_per_second / static_cast<double>(report.offered_per_second));
    fmt::format_to(out, "offered   {}, of which {:.1f} % were taken{}\n",
                   rate_text(static_cast<double>(report.offered_per_second), "pps"), taken * 100,
                   taken < kAsOffered ? ": the chain, or the source, is not fast enough for more" : "");
  }
  const auto time = [](std::uint64_t ns) { return time_text(static_cast<double>(ns) / 1e9); };
  fmt::format_to(out, "latency   p50 {}, p95 {}, p99 {}, max {}\n", time(report.latency.percentile(50)),
                 time(report.latency.percentile(95)), time(report.latency.percentile(99)), time(report.latency.max()));
  return text;
}

std::string stages_text(Report const& report) {
  std::string text;
  for (StageReport const& stage : report.stages) {
    fmt::format_to(std::back_inserter(text), "stage     {}: busy {}, {:.1f} % of the run\n", stage.name,
                   time_text(stage.busy_seconds), rate(stage.busy_seconds * 100, report.seconds));
  }
  for (std::size_t i = 0; i < report.shards.size(); ++i) {
    fmt::format_to(std::back_inserter(text), "shard     {}: {} packets, busy {}\n", i, report.shards[i].packets,
                   time_text(report.shards[i].busy_seconds));
  }
  fmt::format_to(std::back_inserter(text), "rx        waited {} times for a free slot\n", report.backlog_full);
  return text;
}

std::string to_json(Report const& report) {
  nlohmann::ordered_json json;
  json["ok"] = report.error.empty();
  json["error"] = report.error.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(report.error);
  json["chain"] = report.chain;
  json["device"] = {{"name", report.device},
                    {"note", report.device_note},
                    {"cpu_instead_of_gpu", report.cpu_instead_of_gpu},
                    {"losses", report.device_losses},
                    {"returns", report.device_returns}};
  json["sync"] = {{"mode", report.sync}, {"cost_profile", report.costs_from}};
  if (!report.sharing.empty()) {
    nlohmann::ordered_json parts = nlohmann::ordered_json::array();
    for (PartReport const& part : report.parts) {
      parts.push_back(
          {{"nf", part.nf}, {"units", part.units}, {"launch_packets", part.launch_packets}, {"taken", part.is_taken}});
    }
    json["share"] = {{"mode", report.sharing}, {"changes", report.sharing_changes}, {"parts", std::move(parts)}};
  }
  json["workers"] = report.workers;
  json["rx"] = {{"port", report.rx},
                {"seen_packets", report.seen},
                {"received_packets", report.received},
                {"received_bytes", report.received_bytes},
                {"backlog_full_polls", report.backlog_full},
                {"slots_in_use", report.slots_in_use},
                {"drops", object(report.rx_drops)}};
  json["nfs"] = nlohmann::ordered_json::array();
  for (NfReport const& nf : report.nfs) {
    json["nfs"].push_back({{"name", nf.name},
                           {"type", nf.type},
                           {"on", nf.placement},
                           {"in_packets", nf.in},
                           {"passed_packets", nf.passed},
                           {"alerts", nf.alerts},
                           {"replies", nf.replies},
                           {"unsupported_packets", nf.unsupported},
                           {"link_local_packets", nf.link_local},
                           {"not_inspected", objects(nf.uninspected)},
                           {"drops", object(nf.drops)},
                           {"busy_seconds", nf.busy_seconds},
                           {"host_to_device_bytes_per_packet", nf.bytes_to_device_per_packet},
                           {"device_to_host_bytes_per_packet", nf.bytes_to_host_per_packet},
                           {"queue_drops", nf.queue_drops},
                           {"flow",
                            {{"slow_downs", nf.slow_downs},
                             {"fasten_ups", nf.fasten_ups},
                             {"pauses", nf.pauses},
                             {"most_waiting_packets", nf.peak_queue}}},
                           {"launches", nf.launches},
                           {"kernel_faults", nf.kernel_faults},
                           {"process_restarts", nf.process_restarts},
                           {"process_refusals", nf.process_refusals},
                           {"device_error", nf.device_error},
                           {"statistics", object(nf.statistics)},
                           {"refused_rules", object(nf.refused_rules)}});
  }
  json["steering"] = nlohmann::ordered_json::array();
  for (ClassifierReport const& classifier : report.classifiers) {
    json["steering"].push_back({{"from", classifier.from},
                                {"to", object(classifier.to)},
                                {"mirrored", object(classifier.mirrored)},
                                {"drops", object(classifier.drops)}});
  }
  json["tx"] = {{"port", report.tx},
                {"sent_packets", report.sent},
                {"fragments", report.tx_fragments},
                {"drops", object(report.tx_drops)}};
  json["stages"] = nlohmann::ordered_json::array();
  for (StageReport const& stage : report.stages) {
    json["stages"].push_back({{"name", stage.name}, {"busy_seconds", stage.busy_seconds}});
  }
  json["shards"] = nlohmann::ordered_json::array();
  for (ShardReport const& shard : report.shards) {
    json["shards"].push_back({{"in_packets", shard.packets}, {"busy_seconds", shard.busy_seconds}});
  }
  json["mirrored_packets"] = report.mirrored();
  json["dropped_packets"] = report.dropped();
  json["accounted"] = report.accounted();
  json["seconds"] = report.seconds;
  json["packets_per_second"] = rate(static_cast<double>(report.received), report.seconds);
  json["offered_packets_per_second"] =
      report.offered_per_second != 0 ? nlohmann::ordered_json(report.offered_per_second) : nlohmann::ordered_json();
  json["bits_per_second"] = rate(static_cast<double>(report.received_bytes) * 8, report.seconds);
  const auto us = [](std::uint64_t ns) { return static_cast<double>(ns) / 1e3; };
  json["latency_us"] = {{"p50", us(report.latency.percentile(50))},
                        {"p95", us(report.latency.percentile(95))},
                        {"p99", us(report.latency.percentile(99))},
                        {"max", us(report.latency.max())}};
  return json.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace catena::runtime
