// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report.hpp"

#include <nlohmann/json.hpp>

#include <utility>

namespace catena::runtime {
namespace {

nlohmann::ordered_json object(std::vector<io::NamedCount> const& counts) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (io::NamedCount const& entry : counts) {
    json[entry.name] = entry.count;
  }
  return json;
}

nlohmann::ordered_json objects(std::vector<NfProcessReport> const& processes) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (NfProcessReport const& process : processes) {
    json.push_back({{"shard", process.shard}, {"pid", process.pid}});
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

}  // namespace

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
                           {"processes", objects(nf.processes)},
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
  json["packets_per_second"] = report.packets_per_second();
  json["offered_packets_per_second"] =
      report.offered_per_second != 0 ? nlohmann::ordered_json(report.offered_per_second) : nlohmann::ordered_json();
  json["bits_per_second"] = report.bits_per_second();
  const auto us = [](std::uint64_t ns) { return static_cast<double>(ns) / 1e3; };
  json["latency_us"] = {{"p50", us(report.latency.percentile(50))},
                        {"p95", us(report.latency.percentile(95))},
                        {"p99", us(report.latency.percentile(99))},
                        {"max", us(report.latency.max())}};
  return json.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace catena::runtime
