// SPDX-License-Identifier: Apache-2.0
// Plans of random chains and graphs against all the plans that there are. What is enumerated here is the tables'
// formulas, with the views read off simulated packets, on each path apart; whether a plan is right is up to the
// simulation alone.
#include "plan/planner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>

#include "plan/chain_needs.hpp"
#include "plan/pricing.hpp"
#include "plan/testing/simulation.hpp"

namespace catena::plan {
namespace {

using packet::fields;
using packet::FieldSet;

constexpr std::uint32_t kSeed = 20240513;
constexpr int kChains = 2000;
constexpr int kGraphs = 1000;
/// Paths from rx to an NF or to tx, at most: each is simulated apart.
constexpr std::size_t kMaxPaths = 12;
constexpr FieldSet kFrameBounds = fields(packet::kMetaOffset, packet::kMetaLength);
constexpr FieldSet kWhereHeadersAre = kFrameBounds | fields(packet::kMetaLayers);
constexpr FieldSet kNoPlaceOfTheirOwn =
    fields(packet::kEthType, packet::kIpv4Options, packet::kIpv6Extensions, packet::kTcpOptions, packet::kTrailer);

/// Modes of which one enumeration finds the cheapest plans.
struct Setting {
  Mode mode;
  bool pushdown;
};
constexpr std::array<Setting, 4> kSettings{
    {{Mode::kCopy, true}, {Mode::kShared, true}, {Mode::kAdaptive, false}, {Mode::kAdaptive, true}}};

PlanInput with(PlanInput input, Setting const& setting) {
  input.mode = setting.mode;
  input.pushdown = setting.pushdown;
  return input;
}

/// Every plan of a chain.
class BruteForce {
 public:
  explicit BruteForce(PlanInput const& input) : nfs_(input.nfs), edges_(edges_of(input)) {
    for (std::size_t setting = 0; setting < kSettings.size(); ++setting) {
      inputs_[setting] = with(input, kSettings[setting]);
      pricings_.emplace_back(inputs_[setting]);
    }
    least_.fill(std::numeric_limits<double>::infinity());
    Waiting waiting(nfs_.size());
    if (send_on(kRx, {{testing::Simulation(nfs_), false}}, waiting)) {
      visit(0, waiting, {true, true, true, true}, {});
    }
  }
  /// The cost of the cheapest right plan of each of kSettings; infinity if there is none.
  std::array<double, kSettings.size()> const& least() const { return least_; }

 private:
  using Allowed = std::array<bool, kSettings.size()>;
  using Costs = std::array<double, kSettings.size()>;

  /// Packets that came on one path, and whether the shared buffer is on there.
  struct OnPath {
    testing::Simulation packets;
    bool gsb;
  };
  /// Those that wait in front of each NF.
  using Waiting = std::vector<std::vector<OnPath>>;

  void visit(std::size_t nf, Waiting const& waiting, Allowed const& allowed, Costs const& costs);
  /// Sends what is done at `from` to those behind it; false where packets are not as tx, or a copy, needs them.
  bool send_on(std::size_t from, std::vector<OnPath> const& done, Waiting& waiting) const;
  /// `cv`, `gv`: fields that are valid on the host and on the device when prepare() is done.
  Movement movement_of(Candidate const& candidate, std::size_t nf, FieldSet cv, FieldSet gv) const;
  bool is_allowed(Setting const& setting, Candidate const& candidate, std::size_t nf, bool gsb,
                  Movement const& movement) const;
  /// Whether the CPU reads what is in host memory after the kernel of `nf` before another kernel runs.
  bool host_reads_next(std::size_t nf, std::uint32_t field) const;
  bool needs_whole(std::size_t nf) const {
    const Hints& hints = nfs_[nf].hints;
    return nfs_[nf].on == Processor::kGpu &&
           ((hints.gr | hints.gw) & (fields(packet::kPayload) | kNoPlaceOfTheirOwn)) != 0;
  }

  /// Whether `nf` needs packets whole, or one before it on some path.
  bool is_whole_by(std::size_t nf) const {
    return needs_whole(nf) || std::any_of(edges_.begin(), edges_.end(), [&](PlanEdge const& edge) {
             return edge.to == nf && edge.from != kRx && is_whole_by(edge.from);
           });
  }

  std::span<const PlacedNf> nfs_;
  std::vector<PlanEdge> edges_;
  std::array<PlanInput, kSettings.size()> inputs_;
  std::vector<Pricing> pricings_;  // of inputs_
  Costs least_{};
};

bool BruteForce::send_on(std::size_t from, std::vector<OnPath> const& done, Waiting& waiting) const {
  for (PlanEdge const& edge : edges_) {
    for (OnPath const& path : done) {
      if (edge.from != from) {
        continue;
      }
      OnPath on = path;
      if (edge.is_copy) {
        on.packets.copy();
        on.gsb = false;
      }
      if (edge.to == kTx) {
        on.packets.send();
      }
      if (!on.packets.error().empty()) {
        return false;
      }
      if (edge.to != kTx) {
        waiting[edge.to].push_back(std::move(on));
      }
    }
  }
  return true;
}

void BruteForce::visit(std::size_t nf, Waiting const& waiting, Allowed const& allowed, Costs const& costs) {
  if (nf == nfs_.size()) {
    for (std::size_t setting = 0; setting < kSettings.size(); ++setting) {
      if (allowed[setting]) {
        least_[setting] = std::min(least_[setting], costs[setting]);
      }
    }
    return;
  }
  const auto go_on = [&](Movement const* movement, bool gsb_after, Allowed const& still, Costs const& sums) {
    std::vector<OnPath> done;
    for (OnPath const& path : waiting[nf]) {
      OnPath& after = done.emplace_back(path);
      after.packets.work(nf, movement);
      if (!after.packets.error().empty()) {
        return;
      }
      if (movement != nullptr) {
        after.gsb = gsb_after;
        if (!gsb_after) {
          after.packets.forget_device();
        }
      }
    }
    Waiting next = waiting;
    next[nf].clear();
    if (send_on(nf, done, next)) {
      visit(nf + 1, next, still, sums);
    }
  };
  if (nfs_[nf].on == Processor::kCpu) {
    go_on(nullptr, false, allowed, costs);
    return;
  }
  FieldSet cv = packet::kAllFields;
  FieldSet gv = packet::kAllFields;
  bool gsb = true;
  for (OnPath const& path : waiting[nf]) {
    testing::Simulation prepared = path.packets;
    prepared.prepare(nf);
    cv &= prepared.valid_on_host();
    gv &= prepared.valid_on_device();
    gsb = gsb && path.gsb;
  }
  for (Candidate const& candidate : all_candidates(gsb)) {
    const Movement movement = movement_of(candidate, nf, cv, gv);
    Allowed still = allowed;
    Costs sums = costs;
    for (std::size_t setting = 0; setting < kSettings.size(); ++setting) {
      still[setting] = still[setting] && is_allowed(kSettings[setting], candidate, nf, gsb, movement);
      sums[setting] += still[setting] ? pricings_[setting].bill(nf, movement).total_ns() : 0;
    }
    if (std::find(still.begin(), still.end(), true) != still.end()) {
      go_on(&movement, candidate.gsb_after, still, sums);
    }
  }
}

bool BruteForce::host_reads_next(std::size_t nf, std::uint32_t field) const {
  const FieldSet bit = FieldSet{1} << field;
  // what is written leaves some packets their old value
  const auto touches = [bit](FieldSet read, FieldSet written) { return ((read | written) & bit) != 0; };
  if (touches(nfs_[nf].hints.complete_reads, nfs_[nf].hints.complete_writes)) {
    return true;
  }
  return std::any_of(edges_.begin(), edges_.end(), [&](PlanEdge const& edge) {
    if (edge.from != nf) {
      return false;
    }
    if (edge.to == kTx || edge.is_copy) {
      return true;
    }
    const Hints& hints = nfs_[edge.to].hints;
    const FieldSet of_framework = kWhereHeadersAre | fields(packet::kMetaVerdict);
    if (touches(hints.prepare_reads | of_framework, hints.prepare_writes)) {
      return true;
    }
    return nfs_[edge.to].on == Processor::kCpu && (touches(hints.cr, hints.cw) || host_reads_next(edge.to, field));
  });
}

Movement BruteForce::movement_of(Candidate const& candidate, std::size_t nf, FieldSet cv, FieldSet gv) const {
  const Hints& hints = nfs_[nf].hints;
  const bool moves_frame_bounds = (hints.gw & kFrameBounds) != 0;
  const auto whole_if = [](bool condition, FieldSet set) { return condition ? set | packet::kFrameFields : set; };
  const auto in = [&](FieldSet set) { return whole_if((set & kNoPlaceOfTheirOwn) != 0, set); };
  const auto out = [&](FieldSet set) {
    return whole_if((set & kNoPlaceOfTheirOwn) != 0 || (moves_frame_bounds && (set & packet::kFrameFields) != 0), set);
  };

  Movement movement;
  if (candidate.h2d == H2dRow::kDirect) {
    movement.to_device = in(hints.gr);
    movement.to_host = out(hints.gw);
    const bool payload = packet::contains(hints.gr | hints.gw, packet::kPayload);
    if (packet::has_frame(movement.to_device | movement.to_host)) {
      // the kernel works on a copy of the frame, and a payload written there comes back as the frame does
      movement.to_device |= packet::kFrameFields | kWhereHeadersAre;
      movement.to_host = whole_if(packet::contains(hints.gw, packet::kPayload), movement.to_host);
    } else if (payload) {
      movement.to_device |= fields(packet::kPayload);
    }
    movement.to_host |= packet::has_frame(movement.to_host) ? kFrameBounds : packet::kNoFields;
    return movement;
  }

  movement.shared = true;
  const bool whole = candidate.h2d == H2dRow::kWhole;
  const FieldSet read = hints.gr | kWhereHeadersAre | hints.gw;
  movement.to_device = whole ? packet::kFrameFields | (read & ~gv) : in(read & ~gv);

  const FieldSet gv_after = gv | movement.to_device | hints.gw;
  const FieldSet dirty = gv_after & ~(cv & ~hints.gw);
  FieldSet needed = packet::kNoFields;
  for (std::uint32_t field = 0; field < packet::kFieldCount; ++field) {
    needed |= host_reads_next(nf, field) ? dirty & FieldSet{1} << field : packet::kNoFields;
  }
  switch (candidate.d2h) {
    case D2hRow::kNeeded:
      movement.to_host = out(needed);
      break;
    case D2hRow::kDirty:
      movement.to_host = out(dirty);
      break;
    case D2hRow::kWhole:
    case D2hRow::kDirect:
      movement.to_host = packet::kFrameFields | (dirty & packet::kMetaFields);
      break;
  }
  if ((movement.to_host & packet::kFrameFields) != 0) {
    movement.to_host |= dirty & (packet::has_frame(movement.to_host) ? kFrameBounds : kWhereHeadersAre);
  }
  return movement;
}

bool BruteForce::is_allowed(Setting const& setting, Candidate const& candidate, std::size_t nf, bool gsb,
                            Movement const& movement) const {
  switch (setting.mode) {
    case Mode::kCopy:
      return !gsb && !candidate.gsb_after && (!movement.shared || candidate.d2h != D2hRow::kNeeded);
    case Mode::kShared: {
      const auto in_part = [](FieldSet set) {
        return (set & packet::kFrameFields) != 0 && (set & packet::kFrameFields) != packet::kFrameFields;
      };
      if (!gsb && !needs_whole(nf)) {
        return !movement.shared;
      }
      return movement.shared && candidate.gsb_after && !in_part(movement.to_device) && !in_part(movement.to_host);
    }
    case Mode::kAdaptive: {
      return setting.pushdown || is_whole_by(nf) || candidate.h2d != H2dRow::kWhole;
    }
  }
  return false;
}

/// Chains of 1 to 7 NFs that no author would write.
class RandomChains {
 public:
  /// A row, or a graph.
  PlanInput next(bool is_graph) {
    PlanInput input;
    const int count = is_graph ? pick(2, 6) : pick(1, 7);
    for (int nf = 0; nf < count; ++nf) {
      input.nfs.push_back(random_nf(concat_name(nf)));
    }
    input.profile = random_profile();
    input.costs = random_costs();
    if (is_graph) {
      do {
        input.edges = random_links(input.nfs.size());
      } while (paths_of(input) > kMaxPaths);
    }
    return input;
  }

 private:
  static std::string concat_name(int nf) { return "nf" + std::to_string(nf); }
  int pick(int least, int most) { return std::uniform_int_distribution(least, most)(random_); }
  bool chance(double share) { return std::bernoulli_distribution(share)(random_); }
  double factor() { return std::exp2(std::uniform_real_distribution(-3.0, 3.0)(random_)); }

  /// Between NFs in their order, so that each is on a path from rx, most to tx.
  std::vector<PlanEdge> random_links(std::size_t nfs) {
    std::vector<PlanEdge> edges;
    const auto number = [this](std::size_t least, std::size_t most) {
      return static_cast<std::size_t>(pick(static_cast<int>(least), static_cast<int>(most)));
    };
    const auto add = [&edges](PlanEdge const& edge) {
      if (std::none_of(edges.begin(), edges.end(),
                       [&edge](PlanEdge const& other) { return other.from == edge.from && other.to == edge.to; })) {
        edges.push_back(edge);
      }
    };
    for (std::size_t nf = 0; nf < nfs; ++nf) {
      const std::size_t from = number(0, nf);
      add({from == nf ? kRx : from, nf, chance(0.2)});
    }
    for (int more = pick(0, 3); more > 0; --more) {
      const std::size_t from = number(0, nfs - 1);
      const std::size_t to = number(from + 1, nfs);
      add({from, to == nfs ? kTx : to, to != nfs && chance(0.3)});
    }
    for (std::size_t nf = 0; nf < nfs; ++nf) {
      const bool is_end =
          std::none_of(edges.begin(), edges.end(), [nf](PlanEdge const& edge) { return edge.from == nf; });
      if (chance(is_end ? 0.8 : 0.2)) {
        add({nf, kTx});
      }
    }
    return edges;
  }

  static std::size_t paths_of(PlanInput const& input) {
    std::vector<std::size_t> paths(input.nfs.size());
    std::size_t ended = 0;
    const auto send = [&](std::size_t from, std::size_t count) {
      for (PlanEdge const& edge : input.edges) {
        if (edge.from == from) {
          (edge.to == kTx ? ended : paths[edge.to]) += count;
        }
      }
    };
    send(kRx, 1);
    for (std::size_t nf = 0; nf < paths.size(); ++nf) {
      send(nf, paths[nf]);
    }
    return ended;
  }

  FieldSet random_set() {
    FieldSet set = packet::kNoFields;
    // few fields, so that NFs meet in them
    constexpr std::array kOften{packet::kIpv4Src, packet::kIpv4Dst,     packet::kIpv4Ttl,    packet::kL4Dport,
                                packet::kPayload, packet::kMetaVerdict, packet::kMetaLayers, packet::kMetaPort};
    for (int count = pick(0, 3); count > 0; --count) {
      set |= fields(kOften[static_cast<std::size_t>(pick(0, kOften.size() - 1))]);
    }
    if (chance(0.1)) {
      set |= FieldSet{1} << pick(0, packet::kFieldCount - 1);
    }
    if (chance(0.07)) {
      set |= packet::kFrameFields;
    }
    if (chance(0.05)) {
      set |= kFrameBounds;
    }
    return set;
  }

  PlacedNf random_nf(std::string name) {
    PlacedNf nf{.name = std::move(name), .on = chance(0.4) ? Processor::kGpu : Processor::kCpu};
    nf.hints = {.cr = random_set(), .cw = random_set(), .gr = random_set(), .gw = random_set()};
    const auto sometimes = [&](FieldSet& set) { set = chance(0.3) ? random_set() : packet::kNoFields; };
    sometimes(nf.hints.prepare_reads);
    sometimes(nf.hints.prepare_writes);
    sometimes(nf.hints.complete_reads);
    sometimes(nf.hints.complete_writes);
    if (chance(0.5)) {
      nf.hints.prepare_writes_few = nf.hints.prepare_writes & fields(packet::kPayload);
    }
    nf.aux_bytes = static_cast<std::uint32_t>(pick(0, 32));
    nf.result_bytes = static_cast<std::uint32_t>(pick(0, 32));
    if (chance(0.2)) {
      nf.headroom = static_cast<std::uint32_t>(pick(0, 64));
      nf.tailroom = static_cast<std::uint32_t>(pick(0, 64));
      nf.grows_by = pick(-40, 60);
    }
    return nf;
  }

  PacketProfile random_profile() {
    std::vector<FrameSize> sizes;
    for (int count = pick(1, 3); count > 0; --count) {
      sizes.push_back({static_cast<std::uint32_t>(pick(60, 1514)), factor()});
    }
    return *PacketProfile::from_histogram(sizes, {.vlan_tags = chance(0.2) ? 1.0 : 0.0, .tcp_share = 0.5});
  }

  CostModel random_costs() {
    CostModel costs = CostModel::h200();
    for (auto& method : costs.methods) {
      for (MethodCost& cost : method) {
        cost.per_transfer_ns *= factor();
        cost.per_packet_ns *= factor();
        cost.per_packet_fields_ns *= factor();
        cost.per_byte_ns *= factor();
      }
    }
    costs.host_copy_ns_per_byte *= factor();
    costs.host_touch_ns *= factor();
    costs.host_column_ns *= factor();
    costs.device_copy_ns_per_byte *= factor();
    costs.available = static_cast<MethodSet>(pick(1, kAllMethods));
    return costs;
  }

  std::mt19937 random_{kSeed};
};

std::string text_of(PlanInput const& input) {
  std::string text;
  for (PlacedNf const& nf : input.nfs) {
    Hints const& hints = nf.hints;
    char line[200];
    std::snprintf(line, sizeof line, "%s %s cr %lx cw %lx gr %lx gw %lx prepare %lx %lx complete %lx %lx\n",
                  nf.name.c_str(), nf.on == Processor::kGpu ? "gpu" : "cpu", hints.cr, hints.cw, hints.gr, hints.gw,
                  hints.prepare_reads, hints.prepare_writes, hints.complete_reads, hints.complete_writes);
    text += line;
  }
  const auto name = [](std::size_t nf) { return nf == kRx ? "rx" : nf == kTx ? "tx" : std::to_string(nf); };
  for (PlanEdge const& edge : input.edges) {
    text += name(edge.from) + (edge.is_copy ? " copies to " : " -> ") + name(edge.to) + "\n";
  }
  return text;
}

/// Compares `count` plans in each setting with all that there are.
void expect_cheapest(int count, bool is_graph) {
  RandomChains chains;
  std::array<int, kSettings.size()> cheaper_than_copy{};
  for (int number = 0; number < count; ++number) {
    const PlanInput input = chains.next(is_graph);
    SCOPED_TRACE(::testing::Message() << "chain " << number << "\n" << text_of(input));
    const BruteForce all(input);
    for (std::size_t setting = 0; setting < kSettings.size(); ++setting) {
      SCOPED_TRACE(::testing::Message() << to_string(kSettings[setting].mode)
                                        << (kSettings[setting].pushdown ? "" : " without pushdown"));
      const Result<Plan> plan = make_plan(with(input, kSettings[setting]));
      ASSERT_TRUE(plan.ok()) << plan.status();
      ASSERT_EQ(testing::simulate(input.nfs, edges_of(input), *plan), "");
      const double least = all.least()[setting];
      ASSERT_NEAR(plan->cost_ns, least, 1e-9 * least);
      cheaper_than_copy[setting] += plan->cost_ns < all.least()[0] * (1 - 1e-9) ? 1 : 0;
    }
  }
  // the chains are such that there is something to choose
  EXPECT_GT(cheaper_than_copy[1], count / 10);
  EXPECT_GT(cheaper_than_copy[2], count / 4);
  EXPECT_GE(cheaper_than_copy[3], cheaper_than_copy[2]);
}

TEST(OptimalPlan, IsRightAndTheCheapestOfAllForRandomChains) { expect_cheapest(kChains, false); }
TEST(OptimalPlan, IsRightAndTheCheapestOfAllForRandomGraphs) { expect_cheapest(kGraphs, true); }

}  // namespace
}  // namespace catena::plan
