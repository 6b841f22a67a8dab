// SPDX-License-Identifier: Apache-2.0
#include "functions/lpm/range_table.hpp"

#include <catena/core/text.hpp>

#include <algorithm>

namespace catena::lpm {
namespace {

constexpr std::uint64_t kAddresses = std::uint64_t{1} << 32;

/// A prefix that holds the address where the walk over the routes is.
struct Open {
  std::uint64_t end;
  std::uint16_t port;
};

}  // namespace

Result<RangeTable> RangeTable::create(std::span<const Route> routes) {
  if (routes.size() > kMaxRoutes) {
    return absl::ResourceExhaustedError(concat(routes.size(), " routes; a table holds at most ", kMaxRoutes));
  }
  RangeTable table;
  table.first_.reserve(kBuckets + 1);
  table.starts_.reserve(2 * routes.size() + kBuckets);
  table.ports_.reserve(2 * routes.size() + kBuckets);
  // prefixes hold each other or have nothing in common, so those around an address end in the order of a stack
  std::vector<Open> open{{kAddresses, kNoPort}};
  const auto close_until = [&](std::uint64_t address) {
    while (open.back().end <= address && open.size() > 1) {
      const std::uint64_t end = open.back().end;
      open.pop_back();
      if (end < kAddresses) {
        table.add(static_cast<std::uint32_t>(end), open.back().port);
      }
    }
  };
  for (Route const& route : routes) {
    close_until(route.address);
    table.add(route.address, route.port);
    open.push_back({route.address + (kAddresses >> route.length), route.port});
  }
  close_until(kAddresses);
  table.open_buckets(kBuckets);
  table.first_.push_back(static_cast<std::uint32_t>(table.starts_.size()));
  table.starts_.shrink_to_fit();
  table.ports_.shrink_to_fit();
  return table;
}

/// Begins the buckets that are missing to `count`, each with the port that holds from the one before.
void RangeTable::open_buckets(std::uint32_t count) {
  const std::uint16_t port = ports_.empty() ? kNoPort : ports_.back();
  while (first_.size() < count) {
    first_.push_back(static_cast<std::uint32_t>(starts_.size()));
    starts_.push_back(0);
    ports_.push_back(port);
  }
}

/// From `address` on, which is at least that of the last call, packets go to `port`.
void RangeTable::add(std::uint32_t address, std::uint16_t port) {
  open_buckets((address >> kLowBits) + 1);
  const auto low = static_cast<std::uint16_t>(address & ((1U << kLowBits) - 1));
  if (starts_.back() == low) {
    ports_.back() = port;
  } else if (ports_.back() != port) {
    starts_.push_back(low);
    ports_.push_back(port);
  }
}

std::size_t RangeTable::bytes() const {
  return first_.capacity() * sizeof first_[0] + starts_.capacity() * sizeof starts_[0] +
         ports_.capacity() * sizeof ports_[0];
}

}  // namespace catena::lpm
