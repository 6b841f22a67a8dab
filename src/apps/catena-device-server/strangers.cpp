// SPDX-License-Identifier: Apache-2.0
#include "apps/catena-device-server/strangers.hpp"

#include "gpu/check/static_check.hpp"
#include "gpu/copy/launch_plan.hpp"
#include "gpu/launch/adapt.hpp"
#include "gpu/program/program.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <optional>

namespace catena::device_server {
namespace {

/// The check trusts the last files of a source by their number.
bool has_sdk(device::ProgramSource const& source) {
  const device::ProgramSource sdk = program::with_sdk({});
  return source.files.size() > sdk.files.size() &&
         std::equal(sdk.files.rbegin(), sdk.files.rend(), source.files.rbegin());
}

}  // namespace

Result<device::LaunchForm> judge(device::ProgramSource const& source) {
  if (const std::optional<device::LaunchForm> own = copy::form_of_own(source)) {
    return *own;
  }
  if (!has_sdk(source)) {
    return absl::PermissionDeniedError("a kernel came without the headers of this version");
  }
  CATENA_ASSIGN_OR_RETURN(const static_check::Report report, static_check::check_kernel(source));
  if (report.ok()) {
    return kernel::kLaunchForm;
  }
  return absl::InvalidArgumentError(
      concat(report.refused.front().text(), "; a shared device server does not run such a kernel",
             report.refused.size() == 1 ? "" : concat(" (", report.refused.size(), " findings in all)")));
}

}  // namespace catena::device_server
