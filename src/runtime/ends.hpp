// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/run_options.hpp"
#include "io/sink.hpp"
#include "io/source.hpp"

#include <memory>
#include <string>

namespace catena::runtime {

/// PCI devices of `rx` and `tx` must be allowed when the EAL starts, and need its hugepages: it is started for them, in
/// front of everything else that may start it. Does nothing where there are none. Errors: as eal::start().
Status start_eal_for(chain::PortConfig const& rx, chain::PortConfig const& tx);

/// Where packets come from and go to.
struct Ends {
  std::unique_ptr<io::Source> source;
  std::unique_ptr<io::Sink> sink;  ///< null where `tx` is a capture, which is opened with the other outputs
};
/// Opens what `config` and `options` name. `pool` outlives it. Errors: as the sources' and sinks' makers.
Result<Ends> open_ends(chain::ChainConfig const& config, chain::RunOptions const& options, memory::PacketPool& pool);

/// "pcap office.pcap", for the report.
std::string describe(chain::PortConfig const& port);

}  // namespace catena::runtime
