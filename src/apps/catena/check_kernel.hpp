// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

#include "gpu/check/static_check.hpp"

/// Shared by `catena check-kernel` and `catena check --kernels`.
namespace catena::cli {

/// {"ok", "refused", "cautions"}.
nlohmann::ordered_json to_json(static_check::Report const& report);
/// Prints refusals to standard error, and warnings or the acceptance of `name` to standard output.
void print(static_check::Report const& report, std::string const& name);

}  // namespace catena::cli
