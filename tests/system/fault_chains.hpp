// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "system/fault_runner.hpp"

#include <vector>

/// What the tests of failing devices vary.
namespace catena::testing {

struct FaultChain {
  const char* name;
  std::vector<NfText> nfs;
  std::uint32_t gpu_mask;
};

/// Chains of two and three NFs on a device, in which later NFs need what earlier ones have written there. No NF with
/// state after one that may lose packets: its output would rightly be another one than on the CPU.
std::vector<FaultChain> const& fault_chains();

/// Every kind of fault.
std::vector<Fault> const& faults();

inline constexpr FieldMask kFieldMasks[] = {FieldMask::kDirect,
#define CATENA_METHOD(method, name, path) FieldMask::method,
                                            CATENA_TRANSFER_METHODS(CATENA_METHOD)
#undef CATENA_METHOD
};

/// A run of `chain` in which its NF number `failing` on the gpu fails.
FaultRun fault_run(FaultChain const& chain, FieldMask field_mask, std::size_t failing, Fault const& fault);

}  // namespace catena::testing
