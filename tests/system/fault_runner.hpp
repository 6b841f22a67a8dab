// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/testing/faulty_device.hpp"
#include "system/chain_runner.hpp"
#include "system/fault_nfs.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Runs chains on a device that fails, and holds what came out to what docs/failures.md promises.
namespace catena::testing {

/// How the device fails.
struct Fault {
  enum class Kind {
    kNone,
    kOnce,      ///< one call fails; the device is sound
    kLost,      ///< one call fails, and every call after it
    kHangs,     ///< no event becomes ready any more
    kBadSpill,  ///< an NF asks its spill area for what is not there
    kKilled,    ///< the server that has it is killed, `nth` times, and started again each time
    kEndless,   ///< a kernel never ends, which ends the server that has the device
  };
  Kind kind = Kind::kNone;
  device::testing::Call call = device::testing::Call::kReady;  ///< kOnce, kLost
  std::uint64_t nth = 1;                                       ///< the same, from when the fault is armed
  SpillRequests requests = SpillRequests::kRowThatIsNot;       ///< kBadSpill
};

/// How bytes cross the bus: by direct use, or on the shared buffer by one method wherever it can carry them.
enum class FieldMask {
  kDirect,
#define CATENA_METHOD(method, name, path) method,
  CATENA_TRANSFER_METHODS(CATENA_METHOD)
#undef CATENA_METHOD
};
std::string to_string(FieldMask field_mask);

struct FaultRun {
  std::vector<NfText> nfs;
  std::uint32_t gpu_mask = 0;
  FieldMask field_mask = FieldMask::kStaged;
  /// Which NF on the gpu fails, from 0.
  std::size_t failing = 0;
  Fault fault;
  std::uint64_t armed_after = 1500;  ///< packets that rx has seen when the device begins to fail
  std::uint32_t pool_slots = 512;
  std::uint32_t unit_packets = 64;
  std::uint32_t units_per_launch = 2;
  std::uint32_t launches_in_flight = 2;
  std::uint32_t workers = 1;
  /// How NFs share the device. Launches of an NF with a part have a unit at most: half of units_per_launch.
  std::optional<chain::SharingOptions> sharing = std::nullopt;
};

/// In words, for messages.
std::string to_string(Fault const& fault);
std::string to_string(FaultRun const& run);

struct SentFrame {
  std::uint64_t index;
  std::uint16_t port;
  packet::testing::Frame bytes;
};

struct FaultResult {
  Status status;
  std::vector<SentFrame> sent;
  runtime::Report report;
  std::optional<plan::Plan> plan;
  bool has_failed = false;  ///< the fault came about
  /// kKilled: whether NFs worked on the device again after it was back, each time.
  bool has_worked_after_return = false;
  /// The most packets of a launch, where NFs share the device.
  std::uint32_t max_launch_packets = 0;
  std::string quarantine;  ///< kKilled, kEndless: why the chain may not use its device any more
  std::uint64_t device_failed() const;
};

/// Frames that all differ: TCP and UDP with payloads of 0 to 300 bytes, some of 1,400, some that are not IPv4.
std::vector<packet::testing::Frame> unique_frames(std::size_t count, std::uint32_t seed);

/// Errors: what Chain::create() says. What run() says is in the result.
Result<FaultResult> run_with_fault(FaultRun const& run, std::vector<packet::testing::Frame> const& frames);
/// The same chain on the CPU.
Result<FaultResult> run_on_cpu(FaultRun const& run, std::vector<packet::testing::Frame> const& frames);

/// What a run has not kept of what is promised, or an empty text.
std::string broken_promise(FaultRun const& run, FaultResult const& result, FaultResult const& on_cpu,
                           std::size_t frames);

}  // namespace catena::testing
