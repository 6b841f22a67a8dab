// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/outputs.hpp>

#include <memory>
#include <string>
#include <string_view>

/// Writes outputs of NFs in this process, for itself or for the process of an NF. Errors: as nf::Outputs.
namespace catena::nf {

/// Appends, and follows the name (NameWatch). `may_wait`: a FIFO is opened when it has a reader. Otherwise
/// FailedPrecondition for anything but a regular file or a device that accepts everything, such as /dev/null.
Result<std::unique_ptr<Output>> open_output_file(std::string const& path, bool may_wait);
Result<std::unique_ptr<Output>> connect_to_receiver(std::string const& receiver);
Result<KeptFile> open_kept_file(std::string const& folder, std::string const& name);

/// Whether `name` is valid for a kept file.
bool is_kept_name(std::string_view name);

}  // namespace catena::nf
