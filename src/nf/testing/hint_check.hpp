// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/testing/harness.hpp>

#include <functional>
#include <string>
#include <vector>

/// Checks the hints of an NF against the packet fields that its host steps read and write.
namespace catena::nf::testing {

/// An NF and traffic for it.
struct HintSubject {
  Descriptor const& descriptor;
  /// Creates the NF, equal each time. Relative file names start in the folder, which is new and empty.
  std::function<Result<std::unique_ptr<Nf>>(std::string const& folder)> make;
  std::vector<Frame> const& frames;
};

/// One sentence per false hint: the step, the field, the hint without it, and the difference. Runs the NF `rounds`
/// times (1 to 4; see Poison) beside a twin that gets other values in every field without a hint, on the CPU (`device`
/// null) or around the kernel. An NF that crashes on these values ends the program. Errors: as run() of the harness.
Result<std::vector<std::string>> find_lies(HintSubject const& subject, device::Device* device, std::uint32_t rounds = 4,
                                           RunOptions const& options = {});

}  // namespace catena::nf::testing
