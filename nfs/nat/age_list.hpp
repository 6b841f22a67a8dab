// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "hash_index.hpp"

namespace catena::nat {

/// A list of elements in the order of their last use, linked by two of their members. Functions take the container of
/// the elements, which finds them by position. Not thread safe.
template <typename Element, std::uint32_t Element::*Older, std::uint32_t Element::*Newer>
struct AgeList {
  std::uint32_t oldest = HashIndex::kNone;
  std::uint32_t newest = HashIndex::kNone;

  /// Precondition: the element is in no list of these members.
  template <typename Elements>
  void append(Elements& elements, std::uint32_t position) {
    elements[position].*Older = newest;
    elements[position].*Newer = HashIndex::kNone;
    (newest == HashIndex::kNone ? oldest : elements[newest].*Newer) = position;
    newest = position;
  }
  /// Precondition: the element is in this list.
  template <typename Elements>
  void unlink(Elements& elements, std::uint32_t position) {
    Element const& element = elements[position];
    (element.*Older == HashIndex::kNone ? oldest : elements[element.*Older].*Newer) = element.*Newer;
    (element.*Newer == HashIndex::kNone ? newest : elements[element.*Newer].*Older) = element.*Older;
  }
};

}  // namespace catena::nat
