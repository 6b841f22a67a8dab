// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

/// Outputs of chains in which packets have no common order.
namespace catena::testing {

/// Every frame with its stamp.
inline std::vector<std::string> packets_of(std::string const& capture) {
  constexpr std::size_t kFileHeader = 24;
  constexpr std::size_t kPacketHeader = 16;
  std::vector<std::string> packets;
  for (std::size_t at = kFileHeader; at + kPacketHeader <= capture.size();) {
    std::uint32_t bytes = 0;
    std::memcpy(&bytes, &capture[at + 8], sizeof bytes);
    packets.push_back(capture.substr(at, kPacketHeader + bytes));
    at += kPacketHeader + bytes;
  }
  return packets;
}

template <typename T>
std::vector<T> sorted(std::vector<T> values) {
  std::ranges::sort(values);
  return values;
}

inline std::string sorted_lines(std::string const& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  std::string all;
  for (std::string const& line : sorted(std::move(lines))) {
    all += line + "\n";
  }
  return all;
}

}  // namespace catena::testing
