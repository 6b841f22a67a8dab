// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstdint>
#include <memory>
#include <span>

#include "functions/lpm/port_numbers.hpp"

struct rte_fib;

namespace catena::lpm {

/// An rte_fib (DIR24_8) filled once. Lookups are safe from any thread; it must not outlive the EAL.
class Fib {
 public:
  /// `routes` sorted as parse_routes() leaves them: rte_fib adds fastest in this order. `hops` made from them.
  /// ResourceExhausted if the EAL has too little memory, with the option that gives it more; Internal for any other
  /// refusal of rte_fib. Starts the EAL where it does not run; Unavailable where it cannot.
  static Result<Fib> create(std::span<const Route> routes, PortNumbers const& hops);

  /// For each address (host order) the number of its next hop, kNoHop where no route matches. The arrays have
  /// `count` elements.
  void lookup(std::uint32_t* addresses, std::uint64_t* numbers, std::uint32_t count) const;

 private:
  struct Free {
    void operator()(rte_fib* fib) const;
  };
  explicit Fib(std::unique_ptr<rte_fib, Free> fib) : fib_(std::move(fib)) {}

  std::unique_ptr<rte_fib, Free> fib_;
};

}  // namespace catena::lpm
