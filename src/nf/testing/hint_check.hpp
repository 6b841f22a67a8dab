// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/testing/harness.hpp>

#include <functional>
#include <string>
#include <vector>

/// Whether the hints of an NF are true: what its host steps read and write of packets that the hints do not name.
namespace catena::nf::testing {

/// An NF and traffic for it.
struct HintSubject {
  Descriptor const& descriptor;
  /// Makes the NF, each time the same one. Relative file names start in the folder, which is new and empty.
  std::function<Result<std::unique_ptr<Nf>>(std::string const& folder)> make;
  std::vector<Frame> const& frames;
};

/// A sentence for each lie: the step, the field, the hint that lacks it, and what is wrong where. Runs the NF `rounds`
/// times (1 to 4; see Poison) beside a twin that gets other values in every field that its hints do not name, on the
/// CPU (`device` null) or around the kernel. One that crashes with them ends the program. Errors: as run() of the
/// harness.
Result<std::vector<std::string>> find_lies(HintSubject const& subject, device::Device* device, std::uint32_t rounds = 4,
                                           RunOptions const& options = {});

}  // namespace catena::nf::testing
