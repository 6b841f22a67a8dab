// SPDX-License-Identifier: Apache-2.0
#include <catena/core/text.hpp>
#include <catena/nf/nf.hpp>
#include <catena/packet/headers.hpp>

#include "catena_kernel_nca_route.hpp"
#include "functions/lpm/dir24_8.hpp"
#include "functions/lpm/lpm.layout.hpp"
#include "functions/lpm/port_numbers.hpp"
#include "functions/lpm/range_table.hpp"
#include "functions/lpm/route_file.hpp"
#include "nca/function.hpp"
#include "nca/route.layout.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

namespace catena::nca {
namespace {

/// Networks of 256 addresses with longer prefixes that the kernel's table may hold: 1 GiB.
constexpr std::size_t kMaxGroups = std::size_t{1} << 20;

void list(std::uint32_t packet, std::uint16_t next_hop, FunctionResults& results) {
  results.next_hops.push_back({packet, next_hop});
}

class RouteWorker final : public HostWorker {
 public:
  explicit RouteWorker(lpm::RangeTable const& table) : table_(&table) {}
  Status run(kernel::PackedPackets const& packets, FunctionResults& results) override {
    for (std::uint32_t row = 0; row < packets.count(); ++row) {
      packet::Layers const& layers = packets.layers(row);
      if ((layers.flags & packet::kIpv4) == 0) {
        continue;
      }
      if (const auto next_hop = table_->find(packet::load_be32(packets.bytes(row).data() + layers.l3 + 16))) {
        list(row, *next_hop, results);
      }
    }
    return absl::OkStatus();
  }

 private:
  lpm::RangeTable const* table_;
};

class RouteFunction final : public Function {
 public:
  explicit RouteFunction(std::vector<lpm::Route> routes) : routes_(std::move(routes)), next_hops_(routes_) {}

  nca_kind kind() const override { return NCA_ROUTE; }
  bool reads_headers() const override { return true; }
  Result<std::unique_ptr<HostWorker>> host_worker() const override {
    const std::lock_guard lock(mutex_);
    if (!table_) {
      CATENA_ASSIGN_OR_RETURN(lpm::RangeTable table, lpm::RangeTable::create(routes_));
      table_ = std::make_unique<lpm::RangeTable>(std::move(table));
    }
    return std::make_unique<RouteWorker>(*table_);
  }

  Result<FunctionKernel> kernel_side() const override {
    FunctionKernel side;
    side.spec.source = catena_kernel_nca_route();
    side.spec.name = "nca_route";
    side.plan.reads = packet::fields(packet::kIpv4Dst);
    side.plan.result_bytes = sizeof(RouteResult);
    const std::size_t groups = lpm::count_groups(routes_);
    if (groups > kMaxGroups) {
      return absl::ResourceExhaustedError(concat("prefixes longer than /24 in ", groups, " networks; a device takes ",
                                                 kMaxGroups, ", \"cpu\" any number"));
    }
    nf::StateBuilder state(sizeof(lpm::LookupState));
    lpm::LookupState header{};
    const auto add = [&state]<typename Entry>(lpm::Dir24_8<Entry> const& table) {
      return lpm::LookupTable<Entry>{state.add(std::span(table.tbl24)), state.add(std::span(table.tbl8))};
    };
    // 2 bytes an entry where that is enough, as the router NF has them
    header.is_wide = std::max(groups, next_hops_.ports().size()) > lpm::entry_limit(16) ? 1 : 0;
    if (header.is_wide != 0) {
      header.wide = add(lpm::build_dir24_8<u32>(routes_, next_hops_));
    } else {
      header.narrow = add(lpm::build_dir24_8<u16>(routes_, next_hops_));
    }
    side.state = state.finish(header);
    return side;
  }

  Status collect(kernel::PackedLaunch& launch, std::size_t number, FunctionResults& results) const override {
    const auto rows = nf::array_of<RouteResult>(launch.results(number));
    for (std::uint32_t row = 0; row < rows.size(); ++row) {
      if (!has_result(launch, number, row, results)) {
        continue;
      }
      if (rows[row].hop >= next_hops_.ports().size()) {
        return absl::InternalError(
            concat("the device found next hop ", rows[row].hop, " of ", next_hops_.ports().size()));
      }
      if (rows[row].hop != lpm::kNoHop) {
        list(row, next_hops_.ports()[rows[row].hop], results);
      }
    }
    return absl::OkStatus();
  }

 private:
  std::vector<lpm::Route> routes_;
  lpm::PortNumbers next_hops_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<lpm::RangeTable> table_;  ///< streams on the host share it
};

Result<std::vector<lpm::Route>> routes_of(nca_route_config const& config) {
  if (config.prefix_count > lpm::RangeTable::kMaxRoutes) {
    return absl::InvalidArgumentError(
        concat(config.prefix_count, " prefixes; a table takes 1 to ", lpm::RangeTable::kMaxRoutes));
  }
  std::vector<lpm::Route> routes;
  for (std::size_t i = 0; i < config.prefix_count; ++i) {
    nca_prefix const& prefix = config.prefixes[i];
    const std::uint32_t mask =
        prefix.length == 0 ? 0 : ~std::uint32_t{0} << (32U - std::uint32_t{std::min<std::uint8_t>(32, prefix.length)});
    if (prefix.length > 32 || (prefix.address & ~mask) != 0 || prefix.next_hop > lpm::kMaxPort) {
      return absl::InvalidArgumentError(
          concat("prefix ", i, ": /", +prefix.length, " to ", prefix.next_hop,
                 "; a prefix has at most 32 bits, no bits set after them, and a next hop of "
                 "at most ",
                 lpm::kMaxPort));
    }
    routes.push_back({prefix.address, static_cast<std::uint32_t>(i), prefix.next_hop, prefix.length});
  }
  const auto key = [](lpm::Route const& route) { return std::pair(route.address, route.length); };
  std::sort(routes.begin(), routes.end(), [&](auto const& a, auto const& b) { return key(a) < key(b); });
  const auto twice =
      std::adjacent_find(routes.begin(), routes.end(), [&](auto const& a, auto const& b) { return key(a) == key(b); });
  if (twice != routes.end()) {
    return absl::InvalidArgumentError(concat("prefixes ", twice->line, " and ", (twice + 1)->line, " are the same"));
  }
  return routes;
}

}  // namespace

Result<std::unique_ptr<Function>> make_route(nca_route_config const& config) {
  if ((config.prefixes != nullptr) == (config.routes_file != nullptr) ||
      (config.prefixes != nullptr && config.prefix_count == 0)) {
    return absl::InvalidArgumentError("routes need one of prefixes and routes_file");
  }
  CATENA_ASSIGN_OR_RETURN(std::vector<lpm::Route> routes,
                          config.routes_file != nullptr ? lpm::load_routes(config.routes_file) : routes_of(config));
  return std::make_unique<RouteFunction>(std::move(routes));
}

}  // namespace catena::nca
