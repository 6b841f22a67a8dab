// SPDX-License-Identifier: Apache-2.0
#include "chain/placing.hpp"

#include "chain/diagnostics.hpp"
#include "chain/instances.hpp"
#include "chain/run_options.hpp"
#include "chain/segments.hpp"
#include "nf/named_files.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <span>
#include <utility>

namespace catena::chain {
namespace {

using plan::Processor;
using share::NfMoves;

/// What a step of a plan moves.
NfMoves moves_of(plan::GpuStep const& step) {
  NfMoves moves;
  for (plan::Move const& move : step.moves) {
    const double bus_ns = move.cost.total_ns - move.cost.cpu_ns;
    (move.direction == Direction::kToDevice ? moves.to_device_ns : moves.to_host_ns) += bus_ns;
    moves.cpu_ns += move.cost.cpu_ns;
  }
  return moves;
}

/// All that the decision is made of.
class Placing {
 public:
  Placing(ChainConfig const& config, SyncOptions const& sync, Location const& where, nf::Registry const& registry)
      : config_(&config), sync_(&sync), where_(&where), registry_(&registry) {}

  /// Makes the NFs, and asks for their costs.
  Status prepare() {
    Diagnostics diagnostics;
    on_cpu_ = diagnostics.take(plan_input(*config_, *sync_));
    on_gpu_ = apart_ = on_cpu_;
    packet_bytes_ = static_cast<std::uint32_t>(std::ceil(on_cpu_.profile.average_bytes()));
    for (NfConfig const& entry : config_->nfs) {
      diagnostics.add(add(entry));
    }
    CATENA_RETURN_IF_ERROR(diagnostics.status());
    add_ways(*config_, pointers_to(instances_), on_cpu_);
    add_ways(*config_, pointers_to(instances_), on_gpu_);
    return absl::OkStatus();
  }

  Result<share::PartitionPlacement> decide() const {
    return share::place(options_, machine(), [this](share::OnGpu const& on_gpu) { return price(on_gpu); });
  }

  share::Machine machine() const {
    const std::uint32_t sms = where_->device ? where_->device->compute_units : 0;
    share::Machine machine{.workers = where_->workers,
                           .shards = config_->shards,
                           .sms = where_->compute_units == 0 ? sms : std::min(sms, where_->compute_units),
                           .launch_packets = on_cpu_.costs.packets_per_transfer,
                           .launches_in_flight = config_->tuning.launches_in_flight};
    if (MeasuredEnds const* const ends = find(sync_->profile.ends, packet_bytes_); ends != nullptr) {
      machine.ends = may_divide_ends() ? config_->shards : 1;
      machine.rx_ns = ends->rx_ns_per_packet;
      machine.tx_ns = ends->tx_ns_per_packet;
    }
    return machine;
  }

  Placement result(share::PartitionPlacement const& placed) const;

 private:
  /// Whether each shard has a part of rx and a tx of its own.
  bool may_divide_ends() const {
    return may_divide_traffic(*config_, {}) && segments_of(*config_, pointers_to(instances_)).size() == 1;
  }
  Status add(NfConfig const& entry);
  void add_costs(NfKey const& key, share::NfOptions& options) const;
  Status add_on_gpu(NfConfig entry, nf::Instance& instance, std::string& note);
  Result<plan::PlacedNf> planned_apart(NfConfig entry, nf::Instance& instance) const;
  Result<std::vector<NfMoves>> price(share::OnGpu const& on_gpu) const;
  Status price_process(NfGroup const& group, share::OnGpu const& on_gpu, std::vector<NfMoves>& moves) const;
  std::string note_of(std::size_t nf, share::Reason reason) const;

  ChainConfig const* config_;
  SyncOptions const* sync_;
  Location const* where_;
  nf::Registry const* registry_;
  std::uint32_t packet_bytes_ = 0;
  // one of each NF
  std::vector<std::unique_ptr<nf::Instance>> instances_;
  std::vector<share::NfOptions> options_;
  std::vector<std::string> notes_;  ///< why it cannot be on the gpu; else empty
  // of NFs whose process has a plan of its own
  std::vector<std::optional<plan::PlacedNf>> apart_on_cpu_;
  std::vector<std::optional<plan::PlacedNf>> apart_on_gpu_;  ///< where it may be there

  plan::PlanInput on_cpu_;  ///< with every NF on the CPU, but for those fixed on the gpu
  plan::PlanInput on_gpu_;  ///< with every NF on the gpu that may be there
  plan::PlanInput apart_;   ///< without NFs
};

Status Placing::add(NfConfig const& entry) {
  instances_.push_back(nullptr);
  share::NfOptions& options = options_.emplace_back();
  std::string& note = notes_.emplace_back();
  apart_on_cpu_.emplace_back();
  apart_on_gpu_.emplace_back();
  const nf::NamedFiles files;
  if (!entry.plugin.empty()) {
    instances_.back() = stand_in_for_plugin(entry);
    note = "a plugin, whose costs are not measured";
  } else {
    CATENA_ASSIGN_OR_RETURN(instances_.back(), make_instance(entry, *registry_, false,
                                                             ends_of(config_->rx, config_->tx), {0, config_->shards}));
    CATENA_ASSIGN_OR_RETURN(const NfKey key, key_of(entry, files.files()));
    add_costs(key, options);
  }
  options.latency_limit_ns = 1000.0 * entry.latency_limit_us;
  CATENA_RETURN_IF_ERROR(add_nf(entry, *instances_.back(), on_cpu_).status());
  if (entry.isolation == Isolation::kProcess) {
    NfConfig on_cpu = entry;
    on_cpu.on = Processor::kCpu;
    CATENA_ASSIGN_OR_RETURN(apart_on_cpu_.back(), planned_apart(std::move(on_cpu), *instances_.back()));
  }
  if (note.empty()) {
    CATENA_RETURN_IF_ERROR(add_on_gpu(entry, *instances_.back(), note));
  }
  if (on_gpu_.nfs.size() < on_cpu_.nfs.size()) {
    on_gpu_.nfs.push_back(on_cpu_.nfs.back());
  }
  using Where = share::NfOptions::Where;
  options.where = entry.is_auto && note.empty() ? Where::kEither
                  : entry.on == Processor::kGpu ? Where::kGpu
                                                : Where::kCpu;
  return absl::OkStatus();
}

/// What the profile has of it.
void Placing::add_costs(NfKey const& key, share::NfOptions& options) const {
  const auto if_measured = [](double ns) { return ns > 0 ? std::optional(ns) : std::nullopt; };
  if (MeasuredOnCpu const* const on_cpu = find(sync_->profile.nfs_on_cpu, key, packet_bytes_); on_cpu != nullptr) {
    options.cpu_ns = on_cpu->ns_per_packet;
    options.after_gpu_ns = if_measured(on_cpu->after_gpu_ns);
  }
  if (MeasuredNf const* const on_gpu = find(sync_->profile.nfs, key, packet_bytes_); on_gpu != nullptr) {
    options.gpu = on_gpu->cost;
    options.host_alone_ns = if_measured(on_gpu->host_alone_ns);
  }
}

/// As if the entry said `on: gpu`. `note` becomes why that is not possible, where the user did not say it.
Status Placing::add_on_gpu(NfConfig entry, nf::Instance& instance, std::string& note) {
  const bool is_auto = entry.is_auto;
  if (is_auto && !instance.descriptor().has_kernel) {
    note = concat("type '", entry.type, "' has no kernel");
    return absl::OkStatus();
  }
  if (!is_auto && entry.on != Processor::kGpu) {
    return absl::OkStatus();
  }
  entry.on = Processor::kGpu;
  Status status;
  if (entry.isolation == Isolation::kProcess) {
    Result<plan::PlacedNf> planned = planned_apart(std::move(entry), instance);
    status = planned.status();
    apart_on_gpu_.back() = planned.ok() ? std::optional(*std::move(planned)) : std::nullopt;
  } else {
    status = add_nf(entry, instance, on_gpu_).status();
  }
  if (is_auto) {
    note = std::string(status.message());
    return absl::OkStatus();
  }
  return status;
}

/// The NF as its process has it, for which a plan can be made.
Result<plan::PlacedNf> Placing::planned_apart(NfConfig entry, nf::Instance& instance) const {
  entry.isolation = Isolation::kNone;
  plan::PlanInput input = apart_;
  CATENA_RETURN_IF_ERROR(add_nf(entry, instance, input).status());
  CATENA_RETURN_IF_ERROR(plan::make_plan(input).status());
  return std::move(input.nfs.front());
}

/// What the NFs of one process move, by the plan that it makes for them.
Status Placing::price_process(NfGroup const& group, share::OnGpu const& on_gpu, std::vector<NfMoves>& moves) const {
  plan::PlanInput input = apart_;
  for (std::size_t nf = group.first; nf < group.end; ++nf) {
    input.nfs.push_back(on_gpu[nf] && apart_on_gpu_[nf] ? *apart_on_gpu_[nf] : *apart_on_cpu_[nf]);
  }
  CATENA_ASSIGN_OR_RETURN(const plan::Plan plan, plan::make_plan(input));
  for (std::size_t nf = group.first; nf < group.end; ++nf) {
    if (auto const& step = plan.nfs[nf - group.first].step; step) {
      moves[nf] = moves_of(*step);
    }
  }
  return absl::OkStatus();
}

Result<std::vector<NfMoves>> Placing::price(share::OnGpu const& on_gpu) const {
  plan::PlanInput input = on_cpu_;
  for (std::size_t i = 0; i < on_gpu.size(); ++i) {
    input.nfs[i] = on_gpu[i] ? on_gpu_.nfs[i] : on_cpu_.nfs[i];
  }
  CATENA_ASSIGN_OR_RETURN(const plan::Plan plan, plan::make_plan(input));
  std::vector<NfMoves> moves(on_gpu.size());
  for (NfGroup group{}; group.first < on_gpu.size(); group.first = group.end) {
    group = group_of(*config_, group.first);
    if (apart_on_cpu_[group.first]) {
      CATENA_RETURN_IF_ERROR(price_process(group, on_gpu, moves));
    } else if (plan.nfs[group.first].step) {
      moves[group.first] = moves_of(*plan.nfs[group.first].step);
    }
  }
  return moves;
}

std::string Placing::note_of(std::size_t nf, share::Reason reason) const {
  if (reason != share::Reason::kNotKnown) {
    return config_->nfs[nf].is_auto ? notes_[nf] : "";
  }
  const bool is_cpu_known = options_[nf].cpu_ns.has_value();
  const char* const where = is_cpu_known ? "the gpu" : options_[nf].gpu ? "the CPU" : "either";
  return concat("its time on ", where, " for packets of ", packet_bytes_, " bytes is unknown; `catena profile --nf ",
                config_->source.file, "` measures it");
}

Placement Placing::result(share::PartitionPlacement const& placed) const {
  Placement result;
  for (std::size_t i = 0; i < options_.size(); ++i) {
    std::optional<share::Estimate> const& other = placed.otherwise[i];
    PlacedEntry& entry = result.nfs.emplace_back();
    entry.name = config_->nfs[i].name;
    entry.is_auto = config_->nfs[i].is_auto;
    entry.on = placed.on_gpu[i] ? Processor::kGpu : Processor::kCpu;
    entry.reason = placed.reasons[i];
    entry.cpu_ns = options_[i].cpu_ns;
    entry.gpu_ns = placed.on_gpu[i] ? placed.chosen.nf_ns[i] : other && other->fits() ? other->nf_ns[i] : 0;
    entry.otherwise_pps = other ? std::optional(other->without_ends) : std::nullopt;
    entry.note = note_of(i, entry.reason);
    result.is_partial = result.is_partial || (placed.on_gpu[i] ? !options_[i].gpu : !options_[i].cpu_ns);
  }
  result.chosen = placed.chosen;
  result.all_cpu = placed.all_cpu;
  result.all_gpu = placed.all_gpu;
  result.machine = machine();
  result.packet_bytes = packet_bytes_;
  result.device = where_->device ? where_->device->name : "";
  return result;
}

}  // namespace

bool has_auto(ChainConfig const& config) { return std::ranges::any_of(config.nfs, &NfConfig::is_auto); }

Result<Placement> place(ChainConfig const& config, SyncOptions const& sync, Location const& where,
                        nf::Registry const& registry) {
  Placing placing(config, sync, where, registry);
  CATENA_RETURN_IF_ERROR(placing.prepare());
  CATENA_ASSIGN_OR_RETURN(const share::PartitionPlacement placed, placing.decide());
  return placing.result(placed);
}

}  // namespace catena::chain
