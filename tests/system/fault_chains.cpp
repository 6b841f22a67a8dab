// SPDX-License-Identifier: Apache-2.0
#include "system/fault_chains.hpp"

namespace catena::testing {

using device::testing::Call;

std::vector<FaultChain> const& fault_chains() {
  static const NfText kOne{"one", "mix", "salt: 3"};
  static const NfText kTwo{"two", "mix", "salt: 11"};
  static const NfText kThree{"three", "mix", "salt: 129"};
  static const NfText kScan{"scan", "scan", ""};
  static const NfText kRouter{"rt", "router", "routes: routes.txt"};
  static const NfText kEncrypt{"vpn", "ipsec", "direction: encrypt, sa: sa-all.yaml"};
  static const std::vector<FaultChain> kChains{
      {"mix_scan", {kOne, kScan}, 0b11},
      {"mix_mix", {kOne, kTwo}, 0b11},
      {"scan_mix_scan", {kScan, kOne, {"again", "scan", ""}}, 0b111},
      {"mix_mix_mix", {kOne, kTwo, kThree}, 0b111},
      {"encrypt_scan_router", {kEncrypt, kScan, kRouter}, 0b111},
      {"mix_cpu_mix", {kOne, kTwo, kThree, kScan}, 0b1101},
  };
  return kChains;
}

std::vector<Fault> const& faults() {
  static const std::vector<Fault> kFaults = [] {
    std::vector<Fault> faults;
    for (const Call call : {Call::kAllocatePinned, Call::kCreateCommandBuffer, Call::kFinalize, Call::kCopyToDevice,
                            Call::kCopyToHost, Call::kCopyRowsToDevice, Call::kCopyRowsToHost, Call::kLaunch,
                            Call::kEnqueue, Call::kRecord, Call::kFlush, Call::kReady}) {
      faults.push_back({Fault::Kind::kOnce, call, 1});
    }
    faults.push_back({Fault::Kind::kOnce, Call::kLaunch, 2});
    faults.push_back({Fault::Kind::kOnce, Call::kReady, 5});
    for (const Call call : {Call::kCopyToDevice, Call::kLaunch, Call::kRecord, Call::kReady}) {
      faults.push_back({Fault::Kind::kLost, call, 2});
    }
    faults.push_back({Fault::Kind::kHangs});
    for (const SpillRequests requests :
         {SpillRequests::kRowThatIsNot, SpillRequests::kTooManyBytes, SpillRequests::kOutOfOrder}) {
      faults.push_back({Fault::Kind::kBadSpill, Call::kReady, 1, requests});
    }
    return faults;
  }();
  return kFaults;
}

FaultRun fault_run(FaultChain const& chain, FieldMask field_mask, std::size_t failing, Fault const& fault) {
  FaultRun run;
  run.nfs = chain.nfs;
  run.gpu_mask = chain.gpu_mask;
  run.field_mask = field_mask;
  run.failing = failing;
  run.fault = fault;
  return run;
}

}  // namespace catena::testing
