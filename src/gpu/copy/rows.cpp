// SPDX-License-Identifier: Apache-2.0
#include "gpu/copy/rows.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace catena::copy {

void Rows::reserve(std::uint32_t packets) {
  slots_.reserve(packets);
  if (needs_.passed) {
    passed_.reserve(packets);
  }
}

void Rows::clear() {
  parts_.clear();
  slots_.clear();
  passed_.clear();
  own_.clear();
  decided_ = 0;
}

void Rows::add(packet::Batch const& unit, std::span<const std::uint32_t> decided) {
  const auto passed_before = static_cast<std::uint32_t>(passed_.size());
  if (needs_.passed && decided.size() != unit.size()) {  // seldom so
    add_passed(unit, decided);
  }
  if (needs_.runs) {
    add_own(unit);
  }
  const auto count = static_cast<std::uint32_t>(decided.size());
  parts_.push_back({unit, decided_, count, passed_before, static_cast<std::uint32_t>(passed_.size()) - passed_before});
  slots_.insert(slots_.end(), decided.begin(), decided.end());
  decided_ += count;
}

void Rows::add_passed(packet::Batch const& unit, std::span<const std::uint32_t> decided) {
  packet::MetaColumns const& meta = unit.meta();
  auto next = decided.begin();
  for (const std::uint32_t slot : unit.slots()) {
    if (next != decided.end() && *next == slot) {
      ++next;
    } else if (packet::ended(meta.verdict[slot]) == 0) {
      passed_.push_back(slot);
    }
  }
}

void Rows::add_own(packet::Batch const& unit) {
  constexpr auto kReply = static_cast<std::uint8_t>(packet::Verdict::kReply);
  const std::uint8_t* verdicts = unit.meta().verdict;
  if (unit.size() == 0) {
    return;
  }
  if (unit.is_run() && std::memchr(verdicts + unit.slots()[0], kReply, unit.size()) == nullptr) {
    add_run(unit.slots()[0], unit.size());  // nearly always
    return;
  }
  for (const std::uint32_t slot : unit.slots()) {
    if (verdicts[slot] != kReply) {
      add_run(slot, 1);
    }
  }
}

void Rows::add_run(std::uint32_t first, std::uint32_t slots) {
  if (own_.empty() || first != own_.back().first + own_.back().slots) {
    own_.push_back({first, 0});
  }
  own_.back().slots += slots;
}

void Rows::arrange() {
  slots_.insert(slots_.end(), passed_.begin(), passed_.end());
  passed_.clear();
}

std::size_t Rows::unit_of(std::uint32_t row) const {
  const auto behind = std::upper_bound(parts_.begin(), parts_.end(), row, [](std::uint32_t wanted, Part const& part) {
    return wanted < part.first_decided;
  });
  return static_cast<std::size_t>(std::prev(behind) - parts_.begin());
}

}  // namespace catena::copy
