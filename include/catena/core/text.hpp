// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>

namespace catena {

/// The arguments one after another, as fmt formats them. (Abseil's StrCat here does not take std::string_view.)
template <typename... Args>
std::string concat(Args const&... args) {
  std::string text;
  (fmt::format_to(std::back_inserter(text), "{}", args), ...);
  return text;
}

}  // namespace catena
