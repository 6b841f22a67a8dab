// SPDX-License-Identifier: Apache-2.0
#include "functions/lpm/dpdk/fib.hpp"

#include "io/eal/eal.hpp"

#include <rte_errno.h>
#include <rte_fib.h>
#include <rte_memory.h>
#include <catena/core/text.hpp>

#include <algorithm>
#include <atomic>

#include "functions/lpm/dir24_8.hpp"

namespace catena::lpm {
namespace {

constexpr int kMinRoutes = 64;  // rte_fib makes a pool of this size and takes no empty one

Status failure(std::string_view step, int error, std::size_t routes) {
  if (error == ENOMEM || error == ENOSPC) {
    return absl::ResourceExhaustedError(
        concat("rte_fib has no memory for ", routes, " routes (", step, "); start DPDK with more: -m MEGABYTES"));
  }
  return absl::InternalError(concat("rte_fib: ", step, ": ", rte_strerror(error)));
}

}  // namespace

void Fib::Free::operator()(rte_fib* fib) const { rte_fib_free(fib); }

Result<Fib> Fib::create(std::span<const Route> routes, PortNumbers const& hops) {
  CATENA_RETURN_IF_ERROR(eal::start());
  static std::atomic<std::uint32_t> instances{0};
  // two bytes an entry where they can number all next hops and groups: half the cache lines of four
  const std::size_t groups = std::max<std::size_t>(1, count_groups(routes));
  const bool narrow = std::max(groups, hops.ports().size()) <= entry_limit(16);
  rte_fib_conf config{};
  config.type = RTE_FIB_DIR24_8;
  config.default_nh = kNoHop;
  config.max_routes = std::max(kMinRoutes, static_cast<int>(routes.size()));
  config.dir24_8.nh_sz = narrow ? RTE_FIB_DIR24_8_2B : RTE_FIB_DIR24_8_4B;
  config.dir24_8.num_tbl8 = static_cast<std::uint32_t>(groups);
  const std::string name = concat("catena_rt_", instances.fetch_add(1));
  std::unique_ptr<rte_fib, Free> fib(rte_fib_create(name.c_str(), SOCKET_ID_ANY, &config));
  if (!fib) {
    return failure("rte_fib_create", rte_errno, routes.size());
  }
  for (Route const& route : routes) {
    if (const int rc = rte_fib_add(fib.get(), route.address, route.length, hops.number_of(route.port)); rc != 0) {
      return failure("rte_fib_add", -rc, routes.size());
    }
  }
  return Fib(std::move(fib));
}

void Fib::lookup(std::uint32_t* addresses, std::uint64_t* numbers, std::uint32_t count) const {
  rte_fib_lookup_bulk(fib_.get(), addresses, numbers, static_cast<int>(count));
}

}  // namespace catena::lpm
