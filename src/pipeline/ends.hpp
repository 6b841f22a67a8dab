// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/port_kind.hpp"
#include "io/sink.hpp"
#include "io/source.hpp"
#include "pipeline/run_options.hpp"
#include "pipeline/shard_map.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace catena::runtime {

/// Starts the EAL for the PCI devices of `rx` and `tx`, which must be allowed at its start and need hugepages. Call
/// before all other code that may start the EAL. Does nothing without PCI devices. Errors: as eal::start().
Status start_eal_for(chain::PortConfig const& rx, chain::PortConfig const& tx);

/// Source and sink of packets.
struct Ends {
  chain::Sources sources;  ///< one for each pool
  /// As many. Null if `tx` is a file, which is opened with the other outputs.
  std::vector<std::unique_ptr<io::Sink>> sinks;
};
/// Whether each of `parts` shards may have its own source, with its part of the packets, and sink. The order of packets
/// of different shards must be invisible, and rx must be artificial traffic, or ports that divide packets themselves.
/// With ports, all NFs must accept shards `by_packet`, since ports do not relate packets to a flow, for instance an
/// ICMP error to the flow in its quote. Errors: as io::can_divide().
Result<bool> may_divide_ends(chain::ChainConfig const& config, RunOptions const& options, bool by_packet,
                             std::uint32_t parts);

/// Opens the ports of `config` and `options` for each of `pools`, which outlive them. With several pools, each gets the
/// packets of the shard with its number by `shard_map`; precondition: may_divide_ends(). Errors: as the factories of
/// the sources and sinks.
Result<Ends> open_ends(chain::ChainConfig const& config, RunOptions const& options,
                       std::span<const std::shared_ptr<memory::PacketPool>> pools, ShardMap shard_map);

}  // namespace catena::runtime
