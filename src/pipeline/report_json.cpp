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

nlohmann::ordered_json object(DeviceReport const& device) {
  return {{"name", device.name},
          {"note", device.note},
          {"cpu_instead_of_gpu", device.cpu_instead_of_gpu},
          {"losses", device.losses},
          {"returns", device.returns}};
}

nlohmann::ordered_json object(SharingReport const& sharing) {
  nlohmann::ordered_json parts = nlohmann::ordered_json::array();
  for (PartReport const& part : sharing.parts) {
    parts.push_back(
        {{"nf", part.nf}, {"units", part.units}, {"launch_packets", part.launch_packets}, {"taken", part.is_taken}});
  }
  return {{"mode", sharing.mode}, {"changes", sharing.changes}, {"parts", std::move(parts)}};
}

nlohmann::ordered_json object(RxReport const& rx) {
  return {{"port", rx.port},
          {"seen_packets", rx.seen},
          {"received_packets", rx.received},
          {"received_bytes", rx.received_bytes},
          {"backlog_full_polls", rx.backlog_full},
          {"slots_in_use", rx.slots_in_use},
          {"drops", object(rx.drops)}};
}

nlohmann::ordered_json object(TxReport const& tx) {
  return {{"port", tx.port}, {"sent_packets", tx.sent}, {"fragments", tx.fragments}, {"drops", object(tx.drops)}};
}

nlohmann::ordered_json object(NfReport const& nf) {
  return {{"name", nf.name},
          {"type", nf.type},
          {"on", nf.placement},
          {"in_packets", nf.packets.in},
          {"passed_packets", nf.packets.passed},
          {"alerts", nf.packets.alerts},
          {"replies", nf.packets.replies},
          {"unsupported_packets", nf.packets.unsupported},
          {"link_local_packets", nf.packets.link_local},
          {"not_inspected", objects(nf.packets.uninspected)},
          {"drops", object(nf.packets.drops)},
          {"busy_seconds", nf.busy_seconds},
          {"host_to_device_bytes_per_packet", nf.device.bytes_to_device_per_packet},
          {"device_to_host_bytes_per_packet", nf.device.bytes_to_host_per_packet},
          {"queue_drops", nf.queue.drops},
          {"flow",
           {{"slow_downs", nf.queue.slow_downs},
            {"fasten_ups", nf.queue.fasten_ups},
            {"pauses", nf.queue.pauses},
            {"most_waiting_packets", nf.queue.peak}}},
          {"launches", nf.device.launches},
          {"kernel_faults", nf.device.kernel_faults},
          {"processes", objects(nf.isolation.processes)},
          {"process_restarts", nf.isolation.restarts},
          {"process_refusals", nf.isolation.refusals},
          {"device_error", nf.device.error},
          {"statistics", object(nf.statistics)},
          {"refused_rules", object(nf.refused_rules)}};
}

nlohmann::ordered_json object(ClassifierReport const& classifier) {
  return {{"from", classifier.from},
          {"to", object(classifier.to)},
          {"mirrored", object(classifier.mirrored)},
          {"drops", object(classifier.drops)}};
}

/// Percentiles in microseconds.
nlohmann::ordered_json object(Histogram const& latency) {
  const auto us = [](std::uint64_t ns) { return static_cast<double>(ns) / 1e3; };
  return {{"p50", us(latency.percentile(50))},
          {"p95", us(latency.percentile(95))},
          {"p99", us(latency.percentile(99))},
          {"max", us(latency.max())}};
}

}  // namespace

std::string to_json(Report const& report) {
  nlohmann::ordered_json json;
  json["ok"] = report.error.empty();
  json["error"] = report.error.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(report.error);
  json["chain"] = report.chain;
  json["device"] = object(report.device);
  json["sync"] = {{"mode", report.device.sync}, {"cost_profile", report.device.costs_from}};
  if (!report.sharing.mode.empty()) {
    json["share"] = object(report.sharing);
  }
  json["workers"] = report.work.workers;
  json["rx"] = object(report.rx);
  json["nfs"] = nlohmann::ordered_json::array();
  for (NfReport const& nf : report.nfs) {
    json["nfs"].push_back(object(nf));
  }
  json["steering"] = nlohmann::ordered_json::array();
  for (ClassifierReport const& classifier : report.classifiers) {
    json["steering"].push_back(object(classifier));
  }
  json["tx"] = object(report.tx);
  json["stages"] = nlohmann::ordered_json::array();
  for (StageReport const& stage : report.work.stages) {
    json["stages"].push_back({{"name", stage.name}, {"busy_seconds", stage.busy_seconds}});
  }
  json["shards"] = nlohmann::ordered_json::array();
  for (ShardReport const& shard : report.work.shards) {
    json["shards"].push_back({{"in_packets", shard.packets}, {"busy_seconds", shard.busy_seconds}});
  }
  json["mirrored_packets"] = report.mirrored();
  json["dropped_packets"] = report.dropped();
  json["accounted"] = report.accounted();
  json["seconds"] = report.seconds;
  json["packets_per_second"] = report.packets_per_second();
  json["offered_packets_per_second"] = report.rx.offered_per_second != 0
                                           ? nlohmann::ordered_json(report.rx.offered_per_second)
                                           : nlohmann::ordered_json();
  json["bits_per_second"] = report.bits_per_second();
  json["latency_us"] = object(report.tx.latency);
  return json.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace catena::runtime
