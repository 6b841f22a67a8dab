// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/chains/judge.hpp"

#include <string>

/// What docs/failures.md promises of a chain whose device fails.
namespace catena::fuzz {

/// What a run with `variant.fault` has not kept of it; empty if it kept everything. `expected`: the run on the CPU.
/// `frames`: what both read, of which no two have the same stamp.
/// What is lost with a device is missed by the NFs after it: packets are compared as far as no state of theirs tells.
std::string broken_promise(RunOutput const& run, RunOutput const& expected, FuzzChain const& chain,
                           std::vector<CapturedFrame> const& frames, Variant const& variant);

}  // namespace catena::fuzz
