// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/config.hpp>
#include <catena/nf/nf.hpp>

#include <memory>
#include <span>

namespace catena::nids {

/// The configuration keys of create_nids().
std::span<const nf::ConfigKey> config_keys();

/// Creates the NF configured by `config`. Errors: InvalidArgument with the position in the chain file or the rule file;
/// up to 20 lines, one per wrong rule.
Result<std::unique_ptr<nf::Nf>> create_nids(nf::Config& config);

}  // namespace catena::nids
