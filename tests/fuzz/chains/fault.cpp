// SPDX-License-Identifier: Apache-2.0
#include "fuzz/chains/fault.hpp"

#include <catena/core/text.hpp>

#include <array>
#include <utility>

namespace catena::fuzz {
namespace {

using device::testing::Call;

/// The calls that launches make.
constexpr std::array<std::pair<Call, const char*>, 12> kCalls{{{Call::kAllocatePinned, "allocate pinned"},
                                                               {Call::kCreateCommandBuffer, "create command buffer"},
                                                               {Call::kFinalize, "finalize"},
                                                               {Call::kCopyToDevice, "copy to device"},
                                                               {Call::kCopyToHost, "copy to host"},
                                                               {Call::kCopyRowsToDevice, "copy rows to device"},
                                                               {Call::kCopyRowsToHost, "copy rows to host"},
                                                               {Call::kLaunch, "launch"},
                                                               {Call::kEnqueue, "enqueue"},
                                                               {Call::kRecord, "record"},
                                                               {Call::kFlush, "flush"},
                                                               {Call::kReady, "ready"}}};

std::string name_of(Call call) {
  for (auto const& [known, name] : kCalls) {
    if (known == call) {
      return name;
    }
  }
  return {};
}

}  // namespace

DeviceFault make_fault(Random& random) {
  const std::uint32_t kind = random.below(10);
  DeviceFault fault;
  fault.kind = kind < 6 ? DeviceFault::Kind::kOnce : kind < 9 ? DeviceFault::Kind::kLost : DeviceFault::Kind::kHangs;
  fault.call = random.chance(30) ? Call::kReady : random.pick(kCalls).first;
  fault.nth = random.between(1, random.chance(50) ? 4 : 40);
  return fault;
}

void arm(device::testing::FaultyDevice& device, DeviceFault const& fault) {
  switch (fault.kind) {
    case DeviceFault::Kind::kOnce:
      device.fail(fault.call, fault.nth, absl::InternalError("a call failed"));
      break;
    case DeviceFault::Kind::kLost:
      device.lose(fault.call, fault.nth, absl::UnavailableError("the device fell off the bus"));
      break;
    case DeviceFault::Kind::kHangs:
      device.hold_events_from(fault.nth);
      break;
  }
}

std::string to_string(DeviceFault const& fault) {
  switch (fault.kind) {
    case DeviceFault::Kind::kOnce:
      return concat("call ", fault.nth, " of '", name_of(fault.call), "' fails");
    case DeviceFault::Kind::kLost:
      return concat("it is lost at call ", fault.nth, " of '", name_of(fault.call), "'");
    case DeviceFault::Kind::kHangs:
      return concat("it hangs when it is asked for the ", fault.nth, ". time whether something is ready");
  }
  return {};
}

}  // namespace catena::fuzz
