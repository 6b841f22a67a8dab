// SPDX-License-Identifier: Apache-2.0
#include "plan/planner.hpp"

#include <catena/core/text.hpp>

#include "plan/candidates.hpp"
#include "plan/pricing.hpp"
#include "plan/reasons.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace catena::plan {
namespace {

using packet::FieldSet;

constexpr std::uint32_t kMaxBytesPerPacket = 65536;

/// What is so where no path has come yet: both() with it changes nothing.
constexpr Views kAnything{kAllFields, kAllFields, true};

/// Algorithm 1 as a depth-first search over the NFs in their order. Beside its two prunings, by wrong result and by
/// cost, it gives up where it has been in the same state for no more: what follows would be the same. The state are the
/// views of the packets that wait in front of each NF that is still to come; in a row that is one.
class Search {
 public:
  Search(PlanInput const& input, std::span<const PlanEdge> edges, std::span<const NfNeeds> chain,
         Pricing const& pricing)
      : input_(&input),
        chain_(chain),
        pricing_(&pricing),
        edges_from_(chain.size()),
        waiting_(chain.size(), kAnything),
        seen_(chain.size() + 1),
        current_(chain.size()) {
    for (PlanEdge const& edge : edges) {
      if (edge.from != kRx) {
        edges_from_[edge.from].push_back(edge);
      } else if (edge.to != kTx) {
        waiting_[edge.to] = both(waiting_[edge.to], kOnHost);
      }
    }
  }

  /// The movements of the cheapest plan, one an NF; those of CPU NFs are empty.
  std::vector<Movement> find() {
    visit(0, waiting_, 0);
    return best_;
  }
  std::uint64_t visited() const { return visited_; }

 private:
  /// In front of each NF.
  using Waiting = std::vector<Views>;
  struct Seen {
    Waiting waiting;  ///< in front of the NFs from there on
    double cost;
  };

  void visit(std::size_t nf, Waiting const& waiting, double cost);
  void visit_gpu(std::size_t nf, Views const& views, Waiting const& waiting, double cost);
  /// Packets with these views leave `nf`: goes on with the next.
  void leave(std::size_t nf, Views const& views, Waiting const& waiting, double cost);
  bool is_allowed(Candidate const& candidate, NfNeeds const& nf, Views const& before, Movement const& movement) const;
  /// Whether the search has stood at `nf` with these views for at most this cost; notes that it does now.
  bool was_here(std::size_t nf, Waiting const& waiting, double cost);

  PlanInput const* input_;
  std::span<const NfNeeds> chain_;
  Pricing const* pricing_;
  std::vector<std::vector<PlanEdge>> edges_from_;  ///< from each NF
  Waiting waiting_;                                ///< when packets are still at rx
  std::vector<std::vector<Seen>> seen_;
  std::vector<Movement> current_;
  std::vector<Movement> best_;
  double least_ = std::numeric_limits<double>::infinity();
  std::uint64_t visited_ = 0;
};

bool Search::was_here(std::size_t nf, Waiting const& waiting, double cost) {
  const std::span<const Views> ahead = std::span(waiting).subspan(nf);
  for (Seen& seen : seen_[nf]) {
    if (std::ranges::equal(seen.waiting, ahead)) {
      if (seen.cost <= cost) {
        return true;
      }
      seen.cost = cost;
      return false;
    }
  }
  seen_[nf].push_back({{ahead.begin(), ahead.end()}, cost});
  return false;
}

void Search::visit(std::size_t nf, Waiting const& waiting, double cost) {
  ++visited_;
  if (cost >= least_ || was_here(nf, waiting, cost)) {
    return;
  }
  if (nf == chain_.size()) {
    least_ = cost;
    best_ = current_;
    return;
  }
  Views views = waiting[nf];
  if (!run(chain_[nf].prepare(), views)) {
    return;
  }
  if (chain_[nf].on_gpu) {
    visit_gpu(nf, views, waiting, cost);
  } else if (run(chain_[nf].host[1], views) && run(chain_[nf].complete(), views)) {
    leave(nf, views, waiting, cost);
  }
}

void Search::visit_gpu(std::size_t nf, Views const& views, Waiting const& waiting, double cost) {
  for (Candidate const& candidate : all_candidates(views.gsb)) {
    Views after = views;
    Movement movement;
    if (!apply(candidate, chain_[nf], after, movement) || !is_allowed(candidate, chain_[nf], views, movement)) {
      continue;
    }
    const double cost_after = cost + pricing_->bill(nf, movement).total_ns();
    if (run(chain_[nf].complete(), after)) {
      current_[nf] = movement;
      leave(nf, after, waiting, cost_after);
    }
  }
}

void Search::leave(std::size_t nf, Views const& views, Waiting const& waiting, double cost) {
  Waiting after = waiting;
  for (PlanEdge const& edge : edges_from_[nf]) {
    if ((edge.to == kTx || edge.is_copy) && views.cpu != kAllFields) {
      return;  // tx reads everything, and so does who copies
    }
    if (edge.to != kTx) {
      after[edge.to] = both(after[edge.to], edge.is_copy ? kOnHost : views);
    }
  }
  visit(nf + 1, after, cost);
}

bool Search::is_allowed(Candidate const& candidate, NfNeeds const& nf, Views const& before,
                        Movement const& movement) const {
  const auto is_whole_or_none = [](FieldSet set) {
    return packet::has_frame(set) || (set & packet::kFrameFields) == packet::kNoFields;
  };
  const bool is_direct = candidate.h2d == H2dRow::kDirect;
  switch (input_->mode) {
    case Mode::kCopy:
      return !before.gsb && !candidate.gsb_after;
    case Mode::kShared: {
      const bool gsb = before.gsb || nf.needs_whole;
      return is_direct != gsb && candidate.gsb_after == gsb &&
             (is_direct || (is_whole_or_none(movement.to_device) && is_whole_or_none(movement.to_host)));
    }
    case Mode::kAdaptive:
      return candidate.h2d != H2dRow::kWhole || input_->pushdown || nf.whole_by_now;
  }
  return false;
}

Status check_links(PlanInput const& input) {
  std::vector<bool> is_reached(input.nfs.size());
  const std::vector<PlanEdge> edges = edges_of(input);
  for (PlanEdge const& edge : edges) {
    const bool is_sound = (edge.from == kRx || edge.from < input.nfs.size()) &&
                          (edge.to == kTx || (edge.to < input.nfs.size() && (edge.from == kRx || edge.from < edge.to)));
    if (!is_sound) {
      return absl::InvalidArgumentError("an edge of the chain goes back, or to or from no NF");
    }
    if (edge.to != kTx) {
      is_reached[edge.to] = true;
    }
  }
  for (std::size_t nf = 0; nf < input.nfs.size(); ++nf) {
    if (!is_reached[nf]) {
      return absl::InvalidArgumentError(concat("NF ", input.nfs[nf].name, ": no packet comes to it"));
    }
  }
  return absl::OkStatus();
}

Status check(PlanInput const& input) {
  if (input.nfs.size() > kMaxNfs) {
    return absl::InvalidArgumentError(
        concat("a chain of ", input.nfs.size(), " NFs; at most ", kMaxNfs, " are planned"));
  }
  if (input.costs.packets_per_transfer == 0) {
    return absl::InvalidArgumentError("packets_per_transfer is 0; a transfer moves at least one packet");
  }
  for (PlacedNf const& nf : input.nfs) {
    for (const std::uint32_t bytes : {nf.aux_bytes, nf.result_bytes, nf.headroom, nf.tailroom}) {
      if (bytes > kMaxBytesPerPacket) {
        return absl::InvalidArgumentError(
            concat("NF ", nf.name, ": ", bytes, " bytes per packet; at most ", kMaxBytesPerPacket, " can be"));
      }
    }
    if ((nf.hints.prepare_writes_few & ~(nf.hints.prepare_writes & packet::fields(packet::kPayload))) != 0) {
      return absl::InvalidArgumentError(
          concat("NF ", nf.name, ": prepare_writes_few may name only the payload, and only if prepare_writes does"));
    }
    if (!std::isfinite(nf.grows_by)) {
      return absl::InvalidArgumentError(concat("NF ", nf.name, ": grows_by is not a number"));
    }
  }
  return check_links(input);
}

/// Where the kernel of a step reads and writes.
void choose_places(PlacedNf const& nf, NfNeeds const& needs, GpuStep& step) {
  FieldSet staged_in = packet::kNoFields;
  FieldSet staged_out = packet::kNoFields;
  for (Move const& move : step.moves) {
    if (move.kind == TransferShape::Kind::kColumns && uses_staging(move.method)) {
      (move.direction == Direction::kToDevice ? staged_in : staged_out) |= move.fields;
    }
  }
  if (!step.shared) {
    step.from_columns = step.to_device;
    step.to_columns = step.to_host;
    return;
  }
  step.from_columns = staged_in & needs.on_device;
  step.from_shared = needs.on_device & ~step.from_columns;
  step.to_columns = staged_out & nf.hints.gw;
  step.to_shared = nf.hints.gw;
}

GpuStep make_step(PlacedNf const& nf, NfNeeds const& needs, Movement const& movement, Pricing::Bill const& bill) {
  GpuStep step;
  step.shared = movement.shared;
  step.to_device = movement.to_device;
  step.to_host = movement.to_host;
  step.moves.assign(bill.list().begin(), bill.list().end());
  step.cost_ns = bill.total_ns();
  for (Move const& move : step.moves) {
    (move.direction == Direction::kToDevice ? step.bytes_to_device : step.bytes_to_host) += move.cost.bytes;
    step.cpu_ns += move.cost.cpu_ns;
  }
  choose_places(nf, needs, step);
  return step;
}

}  // namespace

std::string_view to_string(Mode mode) {
  switch (mode) {
    case Mode::kCopy:
      return "copy";
    case Mode::kShared:
      return "shared";
    case Mode::kAdaptive:
      return "adaptive";
  }
  return "";
}

Result<Plan> make_plan(PlanInput const& input) {
  CATENA_RETURN_IF_ERROR(check(input));
  const std::vector<PlanEdge> edges = edges_of(input);
  const std::vector<NfNeeds> chain = needs_of(input.nfs, edges);
  const Pricing pricing(input);
  Search search(input, edges, chain, pricing);
  const std::vector<Movement> movements = search.find();
  if (movements.size() != chain.size()) {
    return absl::InternalError(concat("no plan in mode ", to_string(input.mode), " is right for this chain"));
  }

  Plan plan;
  plan.mode = input.mode;
  plan.visited = search.visited();
  for (std::size_t nf = 0; nf < chain.size(); ++nf) {
    PlannedNf& planned = plan.nfs.emplace_back(PlannedNf{input.nfs[nf].name, input.nfs[nf].on, std::nullopt});
    if (!chain[nf].on_gpu) {
      continue;
    }
    planned.step = make_step(input.nfs[nf], chain[nf], movements[nf], pricing.bill(nf, movements[nf]));
    plan.bytes_to_device += planned.step->bytes_to_device;
    plan.bytes_to_host += planned.step->bytes_to_host;
    plan.cost_ns += planned.step->cost_ns;
    plan.cpu_ns += planned.step->cpu_ns;
  }
  add_reasons(chain, edges, plan);
  return plan;
}

Result<Comparison> compare(PlanInput const& input) {
  PlanInput each = input;
  each.mode = Mode::kCopy;
  CATENA_ASSIGN_OR_RETURN(Plan copy, make_plan(each));
  each.mode = Mode::kShared;
  CATENA_ASSIGN_OR_RETURN(Plan shared, make_plan(each));
  each.mode = Mode::kAdaptive;
  CATENA_ASSIGN_OR_RETURN(Plan adaptive, make_plan(each));
  return Comparison{std::move(copy), std::move(shared), std::move(adaptive)};
}

}  // namespace catena::plan
