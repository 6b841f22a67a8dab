// SPDX-License-Identifier: Apache-2.0
#include "nf/yaml_gauge.hpp"

#include "nf/yaml_limits.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <utility>

namespace catena::nf {
namespace {

thread_local YamlLimits limits_of_thread;

}  // namespace

YamlScope::YamlScope(YamlLimits limits) : outer_(std::exchange(limits_of_thread, limits)) {}
YamlScope::~YamlScope() { limits_of_thread = outer_; }
YamlLimits YamlScope::limits() { return limits_of_thread; }
std::unique_lock<std::mutex> YamlScope::take_turn() {
  std::mutex* const turn = limits_of_thread.turn;
  return turn == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock(*turn);
}

void YamlGauge::OnDocumentStart(YAML::Mark const& mark) {
  if (++documents_ > 1) {
    throw Second{mark};
  }
}

void YamlGauge::OnAlias(YAML::Mark const& mark, YAML::anchor_t anchor) {
  const Size size = anchor < anchors_.size() ? anchors_[anchor] : Size{};
  if (size.nodes == 0) {
    throw Refused{mark, "an alias refers to a value containing it"};
  }
  add(mark, YAML::NullAnchor, size);
}

/// A node that is complete.
void YamlGauge::add(YAML::Mark const& mark, YAML::anchor_t anchor, Size size) {
  if (nodes_ += size.nodes; nodes_ > max_nodes_) {
    throw Refused{mark, concat("more than ", max_nodes_, " values and keys, with the values of aliases")};
  }
  if (open_.size() + size.levels > kMaxYamlNesting + 1) {
    throw Refused{mark, concat("nested more than ", kMaxYamlNesting, " levels deep")};
  }
  if (!open_.empty()) {
    Size& around = open_.back().size;
    around.nodes += size.nodes;
    around.levels = std::max(around.levels, size.levels + 1);
  }
  name(anchor, size);
}

void YamlGauge::open(YAML::Mark const& mark, YAML::anchor_t anchor) {
  add(mark, YAML::NullAnchor, {1, 1});
  open_.push_back({anchor, {1, 1}});
  name(anchor, {});
}

/// Its nodes and levels are already those of all around it.
void YamlGauge::close() {
  const Open closed = open_.back();
  open_.pop_back();
  name(closed.anchor, closed.size);
  if (!open_.empty()) {
    Size& around = open_.back().size;
    around.nodes += closed.size.nodes - 1;
    around.levels = std::max(around.levels, closed.size.levels + 1);
  }
}

/// What aliases to `anchor` stand for from here on.
void YamlGauge::name(YAML::anchor_t anchor, Size size) {
  if (anchor == YAML::NullAnchor) {
    return;
  }
  anchors_.resize(std::max(anchors_.size(), anchor + 1));
  anchors_[anchor] = size;
}

}  // namespace catena::nf
