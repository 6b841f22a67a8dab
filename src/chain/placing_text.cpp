// SPDX-License-Identifier: Apache-2.0
#include "chain/placing.hpp"

#include "base/core/scale.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cmath>
#include <string_view>

namespace catena::chain {
namespace {

using Json = nlohmann::ordered_json;
using share::Estimate;
using share::Reason;

std::string_view name_of(plan::Processor on) { return on == plan::Processor::kGpu ? "gpu" : "cpu"; }

std::string_view reason_of(PlacedEntry const& entry) {
  static constexpr std::array<std::string_view, 7> kNames{"fixed",     "faster",  "not_faster", "no_gpu",
                                                          "not_known", "latency", "full"};
  const bool is_impossible = entry.is_auto && entry.reason == Reason::kFixed;
  return is_impossible ? "no_kernel" : kNames[static_cast<std::size_t>(entry.reason)];
}

std::string_view name_of(Estimate::Limit limit) {
  static constexpr std::array<std::string_view, 9> kNames{"unknown", "workers", "nf",      "gpu", "bus",
                                                          "rx",      "tx",      "latency", "sms"};
  return kNames[static_cast<std::size_t>(limit)];
}

std::string pps(double packets_per_s) { return rate_text(packets_per_s, "pps"); }

/// "1.25 Mpps, by rx, and 2.50 Mpps without it": by the latter placements are compared.
std::string by_an_end(Estimate const& estimate, std::string_view end) {
  const std::string without =
      std::isfinite(estimate.without_ends) ? concat(", and ", pps(estimate.without_ends), " without it") : "";
  return concat(pps(estimate.packets_per_s), ", by ", end, without);
}

/// "1.25 Mpps, by ids on the gpu".
std::string achieves(Estimate const& estimate, std::vector<PlacedEntry> const& nfs) {
  std::string const& nf = nfs[estimate.nf].name;
  switch (estimate.limit) {
    case Estimate::Limit::kUnknown:
      return "not known";
    case Estimate::Limit::kWorkers:
      return pps(estimate.packets_per_s) + ", by the work on the CPU";
    case Estimate::Limit::kNf:
      return concat(pps(estimate.packets_per_s), ", by the CPU's work for ", nf);
    case Estimate::Limit::kGpu:
      return concat(pps(estimate.packets_per_s), ", by ", nf, " on the gpu");
    case Estimate::Limit::kBus:
      return pps(estimate.packets_per_s) + ", by the bus";
    case Estimate::Limit::kRx:
      return by_an_end(estimate, "rx");
    case Estimate::Limit::kTx:
      return by_an_end(estimate, "tx");
    case Estimate::Limit::kLatency:
      return concat("does not fit: no launch of ", nf, " ends within its latency limit");
    case Estimate::Limit::kSms:
      return "does not fit: the gpu has too few compute units";
  }
  return {};
}

std::string figures(PlacedEntry const& entry) {
  const std::string gpu = entry.gpu_ns > 0 ? fmt::format("{:.1f} ns per packet", entry.gpu_ns) : "";
  const std::string cpu = entry.cpu_ns ? fmt::format("{:.1f} ns per packet", *entry.cpu_ns) : "";
  if (entry.on == plan::Processor::kGpu) {
    return concat(gpu, cpu.empty() ? "" : concat(", cpu ", cpu));
  }
  return concat(cpu, gpu.empty() ? "" : concat(cpu.empty() ? "" : ", ", "gpu ", gpu));
}

std::string why(PlacedEntry const& entry) {
  const std::string other = entry.otherwise_pps ? pps(*entry.otherwise_pps) : "";
  switch (entry.reason) {
    case Reason::kFixed:
    case Reason::kNotKnown:
      return entry.note;
    case Reason::kFaster:
      return concat("on the cpu the chain would achieve ", other);
    case Reason::kNotFaster:
      return concat("with it on the gpu the chain would achieve ", other);
    case Reason::kNoGpu:
      return "no device is available";
    case Reason::kLatency:
      return "no launch of it on the gpu ends within its latency_limit_us";
    case Reason::kFull:
      return "the gpu has no room for it beside the others";
  }
  return {};
}

Json to_json(Estimate const& estimate, std::vector<PlacedEntry> const& nfs) {
  Json json{{"packets_per_s", std::isfinite(estimate.packets_per_s) ? Json(estimate.packets_per_s) : Json()},
            {"limited_by", name_of(estimate.limit)}};
  using Limit = Estimate::Limit;
  if (estimate.limit == Limit::kNf || estimate.limit == Limit::kGpu || estimate.limit == Limit::kLatency) {
    json["nf"] = nfs[estimate.nf].name;
  }
  return json;
}

}  // namespace

std::string describe(PlacedEntry const& entry) {
  const std::string numbers = figures(entry);
  const std::string reason = why(entry);
  return concat(entry.name, "  auto -> ", name_of(entry.on), numbers.empty() && reason.empty() ? "" : ": ", numbers,
                numbers.empty() || reason.empty() ? "" : "; ", reason);
}

std::vector<std::string> describe(Placement const& placement) {
  std::vector<std::string> lines;
  for (PlacedEntry const& entry : placement.nfs) {
    if (entry.is_auto) {
      lines.push_back(describe(entry));
    }
  }
  const bool is_less = placement.is_partial && placement.chosen.limit != Estimate::Limit::kUnknown;
  lines.push_back(concat("as placed: ", achieves(placement.chosen, placement.nfs),
                         is_less ? ", and less by the unknown costs" : ""));
  lines.push_back(concat("with all of these on the cpu: ", achieves(placement.all_cpu, placement.nfs)));
  lines.push_back(concat("with all possible NFs on the gpu: ", achieves(placement.all_gpu, placement.nfs)));
  return lines;
}

Json to_json(Placement const& placement) {
  Json json{{"device", placement.device},
            {"compute_units", placement.machine.sms},
            {"workers", placement.machine.workers},
            {"shards", placement.machine.shards},
            {"packet_bytes", placement.packet_bytes},
            {"partial", placement.is_partial},
            {"chosen", to_json(placement.chosen, placement.nfs)},
            {"all_cpu", to_json(placement.all_cpu, placement.nfs)},
            {"all_gpu", to_json(placement.all_gpu, placement.nfs)},
            {"nfs", Json::array()}};
  for (PlacedEntry const& entry : placement.nfs) {
    json["nfs"].push_back(
        {{"name", entry.name},
         {"auto", entry.is_auto},
         {"on", name_of(entry.on)},
         {"reason", reason_of(entry)},
         {"cpu_ns", entry.cpu_ns ? Json(*entry.cpu_ns) : Json()},
         {"gpu_ns", entry.gpu_ns > 0 ? Json(entry.gpu_ns) : Json()},
         {"otherwise_packets_per_s",
          entry.otherwise_pps && std::isfinite(*entry.otherwise_pps) ? Json(*entry.otherwise_pps) : Json()},
         {"note", entry.note}});
  }
  return json;
}

}  // namespace catena::chain
