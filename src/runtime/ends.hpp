// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/run_options.hpp"
#include "io/sink.hpp"
#include "io/source.hpp"
#include "runtime/split.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace catena::runtime {

/// PCI devices of `rx` and `tx` must be allowed when the EAL starts, and need its hugepages: it is started for them, in
/// front of everything else that may start it. Does nothing where there are none. Errors: as eal::start().
Status start_eal_for(chain::PortConfig const& rx, chain::PortConfig const& tx);

/// Where packets come from and go to.
struct Ends {
  std::vector<std::unique_ptr<io::Source>> sources;  ///< one for each pool
  /// As many. Null where `tx` is a capture, which is opened with the other outputs.
  std::vector<std::unique_ptr<io::Sink>> sinks;
};
/// Whether each of `parts` shards may have a source with its part of the packets, and a sink. Nobody may see in which
/// order packets of several leave, and rx is artificial traffic; or ports that divide what arrives by themselves, if
/// NFs take it `by_packet`: what is known of flows, such as which one an ICMP error speaks of, ports do not look at.
/// Errors: as io::can_divide().
Result<bool> may_divide_ends(chain::ChainConfig const& config, chain::RunOptions const& options, bool by_packet,
                             std::uint32_t parts);

/// Opens what `config` and `options` name, ends for each of `pools`, which outlive them: of several, each has the
/// packets of the shard with its number by `division`; precondition: may_divide_ends(). Errors: as the sources' and
/// sinks' makers.
Result<Ends> open_ends(chain::ChainConfig const& config, chain::RunOptions const& options,
                       std::span<const std::shared_ptr<memory::PacketPool>> pools, Division division);

/// "pcap office.pcap", for the report.
std::string describe(chain::PortConfig const& port);

}  // namespace catena::runtime
