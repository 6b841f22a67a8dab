// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/config.hpp>
#include <catena/nf/nf.hpp>

#include <memory>
#include <span>

namespace catena::nids {

/// The keys that create_nids() takes.
std::span<const nf::ConfigKey> config_keys();

/// Makes the NF that `config` asks for. Errors: InvalidArgument with the position in the chain file or the rule file;
/// up to 20 lines, one for each wrong rule.
Result<std::unique_ptr<nf::Nf>> create_nids(nf::Config& config);

}  // namespace catena::nids
