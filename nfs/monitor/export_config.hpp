// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "exporter.hpp"

#include <catena/nf/config.hpp>

#include <memory>
#include <string>
#include <vector>

namespace catena::monitor {

/// A configured exporter with its name in the start report, "ipfix to udp 192.0.2.1:4739".
struct NamedExporter {
  std::string name;
  std::unique_ptr<Exporter> exporter;
};

/// Reads `export` and `observation_domain`; empty without `export`. InvalidArgument with position: an entry without
/// exactly one of `file` and `udp`, json over UDP, one file twice, a collector that is not HOST:PORT or does not
/// resolve.
Result<std::vector<NamedExporter>> read_exporters(nf::Config& config);
/// As nf::Descriptor::name_outputs. Errors: as read_exporters().
Status name_exports(nf::Config& config);

}  // namespace catena::monitor
