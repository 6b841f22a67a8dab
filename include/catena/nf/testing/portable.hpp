// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/nf/nf.hpp>
#include <catena/nf/portable.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace catena::nf::testing {

inline std::vector<std::byte> saved(Nf const& nf) {
  StateWriter state;
  dynamic_cast<Portable const&>(nf).save(state);
  return state.bytes();
}

inline Status load(Nf& nf, std::span<const std::byte> bytes) {
  StateReader state(bytes);
  return dynamic_cast<Portable&>(nf).load(state);
}

/// Moves the state of `before` to `after` as between processes.
inline Status carry_over(Nf const& before, Nf& after) { return load(after, saved(before)); }

/// Expects that load() refuses a truncated state, wherever it is cut, and that a modified state does no harm. `look` is
/// called with each NF afterwards. `make` creates the NF for load().
inline void expect_damage_does_no_harm(Nf const& before, std::function<std::unique_ptr<Nf>()> const& make,
                                       std::function<void(std::unique_ptr<Nf>)> const& look) {
  constexpr std::size_t kCuts = 300;
  constexpr int kChanges = 300;
  const std::vector<std::byte> whole = saved(before);
  const std::unique_ptr<Nf> same = make();
  ASSERT_EQ(load(*same, whole), absl::OkStatus());
  ASSERT_EQ(saved(*same), whole) << "it says what it was told";
  const std::unique_ptr<Nf> longer = make();
  std::vector<std::byte> more = whole;
  more.push_back(std::byte{0});
  EXPECT_TRUE(absl::IsDataLoss(load(*longer, more)));
  std::mt19937 random(1);  // NOLINT: the same bytes each time
  for (std::size_t i = 0; i < kCuts; ++i) {
    const std::size_t size = whole.size() <= kCuts ? i : random() % whole.size();
    if (size >= whole.size()) {
      break;
    }
    std::unique_ptr<Nf> nf = make();
    EXPECT_FALSE(load(*nf, std::span(whole).first(size)).ok()) << "cut off after " << size << " of " << whole.size();
    look(std::move(nf));
  }
  for (int i = 0; i < kChanges; ++i) {
    std::vector<std::byte> changed = whole;
    for (std::size_t change = 0; change <= random() % 3; ++change) {
      changed[random() % changed.size()] = static_cast<std::byte>(random());
    }
    std::unique_ptr<Nf> nf = make();
    load(*nf, changed).IgnoreError();
    look(std::move(nf));
  }
}

}  // namespace catena::nf::testing
