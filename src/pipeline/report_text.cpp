// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report.hpp"

#include "base/core/scale.hpp"

#include <fmt/format.h>

#include <catena/core/text.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace catena::runtime {
namespace {

std::string list(std::vector<io::NamedCount> const& counts) {
  std::string text;
  for (io::NamedCount const& entry : counts) {
    if (entry.count > 0) {
      fmt::format_to(std::back_inserter(text), "{}{} {}", text.empty() ? "" : ", ", entry.name, entry.count);
    }
  }
  return text.empty() ? "-" : text;
}

double rate(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

/// "ipv6 3, truncated 1" of the packets with this verdict; control frames only if `with_link_local`. Empty if none.
std::string list_uninspected(std::vector<UninspectedReport> const& uninspected, std::string_view verdict,
                             bool with_link_local) {
  std::vector<io::NamedCount> kinds;
  for (UninspectedReport const& each : uninspected) {
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
std::string uninspected_line(std::vector<UninspectedReport> const& uninspected) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kParts{
      {{"pass", "passed "}, {"drop", "dropped "}, {"outer", "outer headers only "}}};
  std::string text;
  for (auto const& [verdict, words] : kParts) {
    if (const std::string kinds = list_uninspected(uninspected, verdict, true); !kinds.empty()) {
      text += concat(text.empty() ? "" : "; ", words, kinds);
    }
  }
  return text;
}

/// A row for each NF, and under it the meaning of its drop reasons. Without an NF on a GPU the columns of transfers are
/// left out.
void add_nf_table(std::vector<NfReport> const& nfs, std::string& text) {
  const auto out = std::back_inserter(text);
  const bool has_gpu = std::ranges::any_of(nfs, [](NfReport const& nf) {
    return nf.placement.starts_with("gpu") ||
           nf.device.bytes_to_device_per_packet + nf.device.bytes_to_host_per_packet > 0;
  });
  fmt::format_to(out, "\n{:<12} {:<10} {:<10} {:>10} {:>10} {:>8} {:>11} {:>8}{}  {}\n", "NF", "type", "on", "in",
                 "passed", "alerts", "uninspected", "busy", has_gpu ? "   H2D B/pkt   D2H B/pkt" : "", "drops");
  for (NfReport const& nf : nfs) {
    fmt::format_to(out, "{:<12} {:<10} {:<10} {:>10} {:>10} {:>8} {:>11} {:>8}{}  {}\n", nf.name, nf.type, nf.placement,
                   nf.packets.in, nf.packets.passed, nf.packets.alerts, nf.packets.unsupported + nf.packets.link_local,
                   time_text(nf.busy_seconds),
                   has_gpu ? fmt::format(" {:>11.1f} {:>11.1f}", nf.device.bytes_to_device_per_packet,
                                         nf.device.bytes_to_host_per_packet)
                           : "",
                   list(nf.packets.drops));
    for (std::size_t i = 0; i < std::min(nf.packets.drops.size(), nf.packets.drop_help.size()); ++i) {
      fmt::format_to(out, "{:<12} {}: {}\n", "", nf.packets.drops[i].name, nf.packets.drop_help[i]);
    }
  }
  text += '\n';
}

/// The device, and how the NFs share it.
void add_device(DeviceReport const& device, SharingReport const& sharing, std::string& text) {
  const auto out = std::back_inserter(text);
  if (device.cpu_instead_of_gpu) {
    fmt::format_to(out, "device    not used: NFs placed `on: gpu` ran on the CPU{}\n", indented(device.note, 10));
  } else {
    fmt::format_to(out, "device    {}{}{}\n", device.name, device.name == "none" ? ": " : "",
                   device.name == "none" ? device.note : "");
  }
  if (device.losses > 0) {
    fmt::format_to(out, "          losses: {}, returns: {}; NFs ran on the CPU without it\n", device.losses,
                   device.returns);
  }
  if (!device.sync.empty()) {
    fmt::format_to(out, "sync      {}, by {}\n", device.sync, device.costs_from);
    if (!sharing.mode.empty()) {
      fmt::format_to(out, "share     {}\n", sharing.mode);
      for (PartReport const& part : sharing.parts) {
        fmt::format_to(out, "          {}\n", part.text);
      }
    }
  }
}

/// What each NF has to say besides its row.
void add_notes(Report const& report, std::string& text) {
  const auto out = std::back_inserter(text);
  // back-pressure is ordinary where rx can wait, and explains a loss where it cannot
  const bool shows_flow = report.has_flow || total(report.rx.drops) > 0;
  for (NfReport const& nf : report.nfs) {
    if (nf.packets.replies > 0) {
      fmt::format_to(out, "{:<9} {} packets answered\n", nf.name, nf.packets.replies);
    }
    if (const std::string kinds = uninspected_line(nf.packets.uninspected); !kinds.empty()) {
      fmt::format_to(out, "{:<9} not inspected: {}\n", nf.name, kinds);
    }
    if (nf.queue.drops > 0) {
      fmt::format_to(out, "{:<9} {} packets did not fit into its queue and were dropped\n", nf.name, nf.queue.drops);
    }
    if (shows_flow && nf.queue.slow_downs + nf.queue.pauses > 0) {
      fmt::format_to(out, "{:<9} sent {} back-pressure signals, paused {} times; peak queue {} packets\n", nf.name,
                     nf.queue.slow_downs, nf.queue.pauses, nf.queue.peak);
    }
    if (total(nf.statistics) > 0) {
      fmt::format_to(out, "{:<9} {}\n", nf.name, list(nf.statistics));
    }
    for (std::string const& line : nf.lines) {
      fmt::format_to(out, "{:<9} {}\n", nf.name, line);
    }
  }
}

/// What an operator should not overlook.
void add_warnings(std::vector<NfReport> const& nfs, std::string& text) {
  const auto out = std::back_inserter(text);
  for (NfReport const& nf : nfs) {
    if (const std::string kinds = list_uninspected(nf.packets.uninspected, "pass", false); !kinds.empty()) {
      fmt::format_to(out, "WARNING   {}: passed packets without inspection: {}\n", nf.name, kinds);
    }
    if (nf.isolation.refusals > 0) {
      fmt::format_to(out, "WARNING   {}: {} forbidden writes of its process were refused\n", nf.name,
                     nf.isolation.refusals);
    }
    if (nf.isolation.restarts > 0) {
      fmt::format_to(out, "WARNING   {}: its process was started again {} times\n", nf.name, nf.isolation.restarts);
    }
    if (!nf.refused_rules.empty()) {
      fmt::format_to(out, "WARNING   {}: {} rules were not applied: {}\n", nf.name, total(nf.refused_rules),
                     list(nf.refused_rules));
    }
    if (!nf.device.error.empty()) {
      fmt::format_to(out, "WARNING   {}: {}\n", nf.name, nf.device.error);
    }
    if (nf.device.kernel_faults > 0) {
      fmt::format_to(out,
                     "WARNING   {}: its kernel accessed memory out of bounds {} times; the packets concerned were "
                     "dropped (kernel_fault)\n",
                     nf.name, nf.device.kernel_faults);
    }
  }
}

/// Throughput and latency.
void add_speed(Report const& report, std::string& text) {
  const auto out = std::back_inserter(text);
  const double packets_per_second = report.packets_per_second();
  fmt::format_to(out, "speed     {}, {}, {}, {} worker{}\n", time_text(report.seconds),
                 rate_text(packets_per_second, "pps"), rate_text(report.bits_per_second(), "bps"), report.work.workers,
                 report.work.workers == 1 ? "" : "s");
  if (report.rx.offered_per_second != 0) {
    constexpr double kAsOffered = 0.99;
    const double taken = std::min(1.0, packets_per_second / static_cast<double>(report.rx.offered_per_second));
    fmt::format_to(out, "offered   {}, of which {:.1f} % were taken{}\n",
                   rate_text(static_cast<double>(report.rx.offered_per_second), "pps"), taken * 100,
                   taken < kAsOffered ? ": the chain, or the source, is not fast enough for more" : "");
  }
  const auto time = [](std::uint64_t ns) { return time_text(static_cast<double>(ns) / 1e9); };
  fmt::format_to(out, "latency   p50 {}, p95 {}, p99 {}, max {}\n", time(report.tx.latency.percentile(50)),
                 time(report.tx.latency.percentile(95)), time(report.tx.latency.percentile(99)),
                 time(report.tx.latency.max()));
}

}  // namespace

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
  add_device(report.device, report.sharing, text);
  fmt::format_to(out, "rx        {}: {} packets, {} bytes; dropped: {}\n", report.rx.port, report.rx.seen,
                 report.rx.received_bytes, list(report.rx.drops));
  add_nf_table(report.nfs, text);
  for (ClassifierReport const& classifier : report.classifiers) {
    fmt::format_to(out, "{:<9} went to: {}{}{}\n", classifier.from, list(classifier.to),
                   classifier.mirrored.empty() ? "" : "; copied to: " + list(classifier.mirrored),
                   classifier.drops.empty() ? "" : "; dropped: " + list(classifier.drops));
  }
  add_notes(report, text);
  add_warnings(report.nfs, text);
  fmt::format_to(out, "tx        {}: {} packets{}; dropped: {}\n", report.tx.port, report.tx.sent,
                 report.tx.fragments > 0 ? fmt::format(", some as {} fragments", report.tx.fragments) : "",
                 list(report.tx.drops));
  fmt::format_to(out, "account   {} in{} = {} out + {} dropped{}\n", report.rx.seen,
                 report.mirrored() > 0 ? fmt::format(" + {} copies", report.mirrored()) : "", report.tx.sent,
                 report.dropped(), report.accounted() ? "" : "   NOT BALANCED");
  add_speed(report, text);
  return text;
}

std::string stages_text(Report const& report) {
  std::string text;
  for (StageReport const& stage : report.work.stages) {
    fmt::format_to(std::back_inserter(text), "stage     {}: busy {}, {:.1f} % of the run\n", stage.name,
                   time_text(stage.busy_seconds), rate(stage.busy_seconds * 100, report.seconds));
  }
  for (std::size_t i = 0; i < report.work.shards.size(); ++i) {
    fmt::format_to(std::back_inserter(text), "shard     {}: {} packets, busy {}\n", i, report.work.shards[i].packets,
                   time_text(report.work.shards[i].busy_seconds));
  }
  fmt::format_to(std::back_inserter(text), "rx        waited {} times for a free slot\n", report.rx.backlog_full);
  return text;
}

}  // namespace catena::runtime
