// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/shared_port.hpp"
#include "service/chain_set.hpp"
#include "service/quotas.hpp"

#include <string>
#include <vector>

namespace catena::service {

/// Facts of the service itself.
struct ServiceFacts {
  std::string version;
  std::uint64_t lost_audit_lines = 0;
  Quotas quotas = {};  ///< of the users of the chains
};

/// The counts of chains in the text format of Prometheus (0.0.4): every sample with the label `chain` besides its own,
/// nanoseconds as seconds (`catena_latency_ns` is the histogram `catena_latency_seconds`), catena_chain_state, which is
/// 1 for the current state of a chain, and the facts. Beyond the quota `metric_series` of the chain's user, samples are
/// left out and counted in catena_omitted_series; the states are never left out. Of shared ports, the counts outside of
/// any chain, with the label `port`.
std::string exposition(std::vector<ChainView> const& chains, std::vector<io::SharedPort> const& ports,
                       ServiceFacts const& service);

}  // namespace catena::service
