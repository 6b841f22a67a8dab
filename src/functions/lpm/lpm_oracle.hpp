// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>

namespace catena::lpm::testing {

/// Longest-prefix match by its definition: one table per length, longest first. The oracle of the tables of both CPU
/// and kernel; shares no code with either.
class LpmOracle {
 public:
  void add(std::uint32_t address, int length, std::uint16_t port) {
    tables_[static_cast<std::size_t>(length)][address] = port;
  }
  std::optional<std::uint16_t> find(std::uint32_t address) const {
    for (int length = 32; length >= 0; --length) {
      const std::uint32_t network = length == 0 ? 0 : address >> (32 - length) << (32 - length);
      auto const& table = tables_[static_cast<std::size_t>(length)];
      if (const auto entry = table.find(network); entry != table.end()) {
        return entry->second;
      }
    }
    return std::nullopt;
  }

 private:
  std::array<std::unordered_map<std::uint32_t, std::uint16_t>, 33> tables_;
};

}  // namespace catena::lpm::testing
