// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstdint>
#include <memory>
#include <span>

#include "functions/lpm/port_numbers.hpp"

struct rte_fib;

namespace catena::lpm {

/// An rte_fib (DIR24_8), filled once. Lookups are safe from any thread; it must not outlive the EAL.
class Fib {
 public:
  /// `routes` sorted as by parse_routes(), the fastest order for rte_fib. `hops` made from them. ResourceExhausted if
  /// the EAL has too little memory, with the option for more; Internal for any other refusal of rte_fib. Starts the EAL
  /// if it is not running; Unavailable if it cannot start.
  static Result<Fib> create(std::span<const Route> routes, PortNumbers const& hops);

  /// The number of the next hop of each address (host order), kNoHop without a matching route. The arrays have `count`
  /// elements.
  void lookup(std::uint32_t* addresses, std::uint64_t* numbers, std::uint32_t count) const;

 private:
  struct Free {
    void operator()(rte_fib* fib) const;
  };
  explicit Fib(std::unique_ptr<rte_fib, Free> fib) : fib_(std::move(fib)) {}

  std::unique_ptr<rte_fib, Free> fib_;
};

}  // namespace catena::lpm
