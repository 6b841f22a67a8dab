// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "functions/classify/linear_search.hpp"

namespace catena::classify::testing {

struct TraceLine {
  Tuple tuple;
  int rule;  ///< the expected match
};

/// The lines of a ClassBench trace with the expected rule of each: `source destination source-port destination-port
/// protocol rule`, addresses with dots. Empty if the file does not exist.
inline std::vector<TraceLine> read_trace(std::string const& path) {
  std::vector<TraceLine> lines;
  std::ifstream trace(path);
  for (std::string row; std::getline(trace, row);) {
    std::array<unsigned, 8> octets{};
    TraceLine line{};
    if (std::sscanf(row.c_str(), "%u.%u.%u.%u %u.%u.%u.%u %u %u %u %d", &octets[0], &octets[1], &octets[2], &octets[3],
                    &octets[4], &octets[5], &octets[6], &octets[7], &line.tuple.sport, &line.tuple.dport,
                    &line.tuple.protocol, &line.rule) != 12) {
      continue;  // the heading
    }
    for (std::size_t i = 0; i < 4; ++i) {
      line.tuple.src = line.tuple.src << 8 | octets[i];
      line.tuple.dst = line.tuple.dst << 8 | octets[4 + i];
    }
    lines.push_back(line);
  }
  return lines;
}

}  // namespace catena::classify::testing
