// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "functions/lpm/lpm.layout.hpp"
#include "functions/lpm/port_numbers.hpp"

/// The kernel's lookup table. The CPU has its own: rte_fib, or range_table.hpp without DPDK.
namespace catena::lpm {

/// Number of /24 with longer prefixes; each needs a group of 256 entries. `routes` sorted as by parse_routes(). Pure.
std::size_t count_groups(std::span<const Route> routes);

/// Maximum next hops, and groups, in an entry of `bits` bits; one bit distinguishes the two.
constexpr std::size_t entry_limit(unsigned bits) { return (std::size_t{1} << (bits - 1)) - 1; }

template <typename Entry>
struct Dir24_8 {
  std::vector<Entry> tbl24;  ///< [1 << 24]
  std::vector<Entry> tbl8;   ///< [groups][256]
};

/// Builds the table. `routes` sorted as by parse_routes(); `hops` made from the same routes, its hops and
/// count_groups(routes) at most entry_limit(). Pure.
template <typename Entry>
Dir24_8<Entry> build_dir24_8(std::span<const Route> routes, PortNumbers const& hops);

extern template Dir24_8<u16> build_dir24_8(std::span<const Route> routes, PortNumbers const& hops);
extern template Dir24_8<u32> build_dir24_8(std::span<const Route> routes, PortNumbers const& hops);

}  // namespace catena::lpm
