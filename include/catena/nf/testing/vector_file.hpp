// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace catena::nf::testing {

/// A published test vector: bytes by the names of their lines.
using Vector = std::map<std::string, std::vector<std::uint8_t>>;

/// The groups of `NAME = hex` lines of a vector file; each starts with the line `first`. Lines "Len" and "COUNT", whose
/// values are no bytes, and all other lines are ignored. Empty if the file cannot be read.
std::vector<Vector> read_vectors(std::string const& path, std::string_view first);

}  // namespace catena::nf::testing
