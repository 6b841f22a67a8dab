// SPDX-License-Identifier: Apache-2.0
#include "functions/classify/rule_tree.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace catena::classify {
namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFFU;
constexpr std::uint32_t kLeafFlag = 0x80000000U;
/// Levels of nodes: what a search keeps for later is bounded by it.
constexpr std::uint32_t kMaxDepth = 48;
/// Rules that are not worth a node.
constexpr std::size_t kLeafRules = 12;
/// Rules of a node whose ranges are tried as the value to compare with.
constexpr std::size_t kSamples = 24;
/// A node copies the rules that hold both sides if they are at most one in so many.
constexpr std::size_t kCopyShare = 2;
/// Copies that a tree may make, for each of its rules.
constexpr std::size_t kCopiesEach = 8;

}  // namespace

/// Makes one tree.
class RuleTreeBuilder {
 public:
  static RuleTree::Tree build(std::span<const Rule> rules, bool with_ports) {
    RuleTreeBuilder builder(rules);
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t i = 0; i < rules.size(); ++i) {
      if (with_ports || rules[i].matches_without_ports()) {
        numbers.push_back(i);
      }
    }
    Box everything{{{0, kNone}, {0, kNone}, {0, 0xFFFF}, {0, 0xFFFF}, {0, 0xFF}}};
    builder.tree_.root = builder.subtree(numbers, everything, 0, kCopiesEach * numbers.size());
    builder.tree_.nodes.shrink_to_fit();
    builder.tree_.entries.shrink_to_fit();
    return std::move(builder.tree_);
  }

 private:
  struct Interval {
    std::uint32_t low;
    std::uint32_t high;
  };
  using Box = std::array<Interval, RuleTree::kFields>;
  using Numbers = std::vector<std::uint32_t>;

  struct Cut {
    std::uint32_t field;
    std::uint32_t value;
    double rules_left;  ///< that a search of a rule's packets has yet to expect
  };

  explicit RuleTreeBuilder(std::span<const Rule> rules) : rules_(rules) {
    for (Rule const& rule : rules) {
      // the protocols that a mask takes lie in this interval, but need not fill it
      const auto highest = static_cast<std::uint32_t>(rule.protocol | (~rule.protocol_mask & 0xFF));
      boxes_.push_back({{{rule.src.address, rule.src.address | ~rule.src.mask()},
                         {rule.dst.address, rule.dst.address | ~rule.dst.mask()},
                         {rule.sport.first, rule.sport.last},
                         {rule.dport.first, rule.dport.last},
                         {rule.protocol, highest}}});
    }
  }

  bool covers(std::uint32_t rule, Box const& box) const {
    const std::uint8_t mask = rules_[rule].protocol_mask;
    bool all = mask == 0 || mask == 0xFF;
    for (std::uint32_t field = 0; field < RuleTree::kFields; ++field) {
      all = all && boxes_[rule][field].low <= box[field].low && boxes_[rule][field].high >= box[field].high;
    }
    return all;
  }

  /// The subtree of `numbers`, in rising order, for packets of `box`. It may make `copies` copies.
  RuleTree::Child subtree(Numbers& numbers, Box const& box, std::uint32_t depth, std::size_t copies) {
    // nothing after a rule that takes all that comes here is ever first
    const auto covering = std::find_if(numbers.begin(), numbers.end(), [&](auto rule) { return covers(rule, box); });
    if (covering != numbers.end()) {
      numbers.erase(covering + 1, numbers.end());
    }
    if (numbers.empty()) {
      return {kNone, 0};
    }
    const std::uint32_t first_rule = numbers.front();
    const std::optional<Cut> cut =
        numbers.size() <= kLeafRules || depth == kMaxDepth ? std::nullopt : best_cut(numbers, box);
    if (!cut) {
      return {first_rule, leaf(numbers)};
    }
    std::array<Numbers, 2> sides;
    Numbers both;
    for (const std::uint32_t rule : numbers) {
      Interval const& range = boxes_[rule][cut->field];
      (range.high <= cut->value ? sides[0] : range.low > cut->value ? sides[1] : both).push_back(rule);
    }
    if (both.size() <= copies && both.size() * kCopyShare <= numbers.size()) {
      copies -= both.size();
      for (Numbers& side : sides) {
        Numbers merged;
        std::merge(side.begin(), side.end(), both.begin(), both.end(), std::back_inserter(merged));
        side = std::move(merged);
      }
      both.clear();
    }
    const std::size_t total = sides[0].size() + sides[1].size() + both.size();
    const auto share = [&, copies](Numbers const& part) { return copies * part.size() / total; };
    const std::array<std::size_t, 3> shares{share(sides[0]), share(sides[1]), share(both)};
    numbers = Numbers();
    const auto at = static_cast<std::uint32_t>(tree_.nodes.size());
    tree_.nodes.push_back({cut->field, cut->value, {}, {}});
    Box part = box;
    part[cut->field].high = cut->value;
    const RuleTree::Child below = subtree(sides[0], part, depth + 1, shares[0]);
    part[cut->field] = {cut->value + 1, box[cut->field].high};
    const RuleTree::Child above = subtree(sides[1], part, depth + 1, shares[1]);
    tree_.nodes[at].both = subtree(both, box, depth + 1, shares[2]);
    tree_.nodes[at].sides = {below, above};
    return {first_rule, at};
  }

  /// The cut that leaves the fewest rules to search; none where no cut helps.
  std::optional<Cut> best_cut(Numbers const& numbers, Box const& box) const {
    Cut best{0, 0, static_cast<double>(numbers.size())};
    const std::size_t step = std::max<std::size_t>(1, numbers.size() / kSamples);
    for (std::uint32_t field = 0; field < RuleTree::kFields; ++field) {
      for (std::size_t i = step / 2; i < numbers.size(); i += step) {
        Interval const& range = boxes_[numbers[i]][field];
        if (range.low > box[field].low) {
          best = better(best, numbers, field, range.low - 1);
        }
        if (range.high < box[field].high) {
          best = better(best, numbers, field, range.high);
        }
      }
    }
    return best.rules_left < static_cast<double>(numbers.size()) ? std::optional(best) : std::nullopt;
  }

  Cut better(Cut const& best, Numbers const& numbers, std::uint32_t field, std::uint32_t value) const {
    std::size_t below = 0;
    std::size_t above = 0;
    for (const std::uint32_t rule : numbers) {
      below += boxes_[rule][field].high <= value ? 1 : 0;
      above += boxes_[rule][field].low > value ? 1 : 0;
    }
    const auto all = static_cast<double>(numbers.size());
    const auto both = static_cast<double>(numbers.size() - below - above);
    // a packet comes to a side as often as rules do
    const auto to_side = [&](std::size_t side) {
      const auto rules = static_cast<double>(side);
      return rules * (rules + both) / (all + both);
    };
    const double left = to_side(below) + to_side(above) + both;
    return left < best.rules_left ? Cut{field, value, left} : best;
  }

  std::uint32_t leaf(Numbers const& numbers) {
    const auto at = static_cast<std::uint32_t>(tree_.entries.size());
    for (const std::uint32_t number : numbers) {
      Box const& box = boxes_[number];
      const auto low16 = [&](RuleTree::Field field) { return static_cast<std::uint16_t>(box[field].low); };
      const auto more = [&](RuleTree::Field field) { return box[field].high - box[field].low; };
      const auto more16 = [&](RuleTree::Field field) { return static_cast<std::uint16_t>(more(field)); };
      tree_.entries.push_back({box[RuleTree::kSrc].low, more(RuleTree::kSrc), box[RuleTree::kDst].low,
                               more(RuleTree::kDst), low16(RuleTree::kSport), more16(RuleTree::kSport),
                               low16(RuleTree::kDport), more16(RuleTree::kDport), rules_[number].protocol,
                               rules_[number].protocol_mask, 0, number});
    }
    tree_.entries.back().is_last = 1;
    return at | kLeafFlag;
  }

  std::span<const Rule> rules_;
  std::vector<Box> boxes_;
  RuleTree::Tree tree_;
};

Result<RuleTree> RuleTree::create(std::span<const Rule> rules) {
  if (rules.size() > kMaxRules) {
    return absl::ResourceExhaustedError(concat(rules.size(), " rules; a tree holds at most ", kMaxRules));
  }
  RuleTree result;
  result.with_ports_ = RuleTreeBuilder::build(rules, true);
  result.without_ports_ = RuleTreeBuilder::build(rules, false);
  return result;
}

/// Without jumps: which field tells is random.
bool RuleTree::Entry::matches(Values const& values) const {
  const auto in = [](std::uint32_t value, std::uint32_t first, std::uint32_t more) {
    return static_cast<unsigned>(value - first <= more);
  };
  return (in(values[kSrc], src, src_more) & in(values[kDst], dst, dst_more) & in(values[kSport], sport, sport_more) &
          in(values[kDport], dport, dport_more) &
          static_cast<unsigned>(((values[kProtocol] ^ protocol) & protocol_mask) == 0)) != 0;
}

i32 RuleTree::Tree::find(Values const& values) const {
  std::array<Child, kMaxDepth + 1> waiting;
  std::size_t count = 0;
  waiting[count++] = root;
  std::uint32_t best = kNone;
  while (count > 0) {
    Child child = waiting[--count];
    while (child.first_rule < best) {
      if ((child.at & kLeafFlag) != 0) {
        for (Entry const* entry = &entries[child.at & ~kLeafFlag]; entry->rule < best; ++entry) {
          if (entry->matches(values)) {
            best = entry->rule;
          }
          if (entry->is_last != 0) {
            break;
          }
        }
        break;
      }
      Node const& node = nodes[child.at];
      child = node.sides[values[node.field] > node.value ? 1 : 0];
      if (node.both.first_rule < best) {
        waiting[count++] = node.both;
        if (node.both.first_rule < child.first_rule) {
          std::swap(child, waiting[count - 1]);
        }
      }
    }
  }
  return static_cast<i32>(best);
}

i32 RuleTree::find(Key const& key) const {
  if (key.has_ports != 0) {
    return with_ports_.find({key.src, key.dst, key.sport, key.dport, key.protocol});
  }
  return without_ports_.find({key.src, key.dst, 0, 0, key.protocol});
}

std::size_t RuleTree::bytes() const {
  const auto of = [](Tree const& tree) {
    return tree.nodes.capacity() * sizeof(Node) + tree.entries.capacity() * sizeof(Entry);
  };
  return of(with_ports_) + of(without_ports_);
}

}  // namespace catena::classify
