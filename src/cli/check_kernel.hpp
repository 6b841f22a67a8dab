// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

#include "static_check/static_check.hpp"

/// What `catena check-kernel` and `catena check --kernels` share.
namespace catena::cli {

/// {"ok", "refused", "cautions"}.
nlohmann::ordered_json to_json(static_check::Report const& report);
/// What is refused to standard error; warnings, or that all is well with `name`, to standard output.
void print(static_check::Report const& report, std::string const& name);

}  // namespace catena::cli
