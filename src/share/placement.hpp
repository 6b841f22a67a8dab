// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "share/gpu_model.hpp"

#include <catena/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

/// Which NFs of a chain run on the CPU and which on the GPU: the placement by which the chain achieves most packets a
/// second, as far as costs are known. Times are in ns, of one packet where nothing else is said.
///
/// Thread rule: pure functions, any thread.
namespace catena::share {

/// Where an NF may run, and what it costs there.
struct NfOptions {
  enum class Where : std::uint8_t { kCpu, kGpu, kEither };
  Where where = Where::kCpu;
  std::optional<double> cpu_ns = std::nullopt;  ///< none: not known
  std::optional<NfCost> gpu = std::nullopt;     ///< the same
  /// cpu_ns where the NF before it is on the GPU; none: not known, and taken to be as much.
  std::optional<double> after_gpu_ns = std::nullopt;
  /// gpu->cpu_ns_per_packet, which is with NFs beside it that are on the GPU, too: where those are on the CPU, or there
  /// are none. None: as much.
  std::optional<double> host_alone_ns = std::nullopt;
  double latency_limit_ns = 1e6;  ///< of a launch: `latency_limit_us`
};

/// What a chain runs on, and how.
struct Machine {
  std::uint32_t workers = 1;             ///< threads on cores of their own
  std::uint32_t shards = 1;              ///< of the chain: workers that one NF can have
  std::uint32_t sms = 0;                 ///< of the GPU; 0: there is none
  std::uint32_t launch_packets = 2048;   ///< at most
  std::uint32_t launches_in_flight = 3;  ///< of one NF in one shard
  std::uint32_t ends = 1;                ///< workers that rx can have, and tx
  double rx_ns = 0;                      ///< 0: not known
  double tx_ns = 0;                      ///< the same
};

/// What one NF on the GPU moves by the plan of a placement.
struct NfMoves {
  double to_device_ns = 0;  ///< on the bus
  double to_host_ns = 0;
  double cpu_ns = 0;  ///< what the CPU does for it
};

/// One flag an NF, in chain order.
using OnGpu = std::vector<bool>;
/// The moves of each NF in a placement; none of those on the CPU. What an NF moves depends on its neighbours.
using Price = std::function<Result<std::vector<NfMoves>>(OnGpu const&)>;

/// What a chain achieves by a placement.
struct Estimate {
  enum class Limit : std::uint8_t {
    kUnknown,  ///< nothing that is known
    kWorkers,  ///< all work on the CPU, divided among the workers
    kNf,       ///< NF `nf` on the CPU, which has no more workers than the chain has shards
    kGpu,      ///< NF `nf` on the GPU with its SMs
    kBus,      ///< the transfers of all NFs in one direction
    kRx,       ///< what brings packets, which has a worker for each end
    kTx,       ///< what sends them, the same
    kLatency,  ///< does not fit: no launch of NF `nf` ends within its limit
    kSms,      ///< does not fit: the GPU has not so many SMs
  };
  double packets_per_s = 0;  ///< infinite for kUnknown, 0 where the placement does not fit
  double without_ends = 0;   ///< the same if neither rx nor tx limited it by itself: by this placements are compared
  Limit limit = Limit::kUnknown;
  std::size_t nf = 0;
  std::vector<double> nf_ns;  ///< that each NF takes for a packet where it is; 0: not known, or it does not fit
  std::vector<Share> shares;  ///< of the GPU; no SMs for NFs on the CPU and for those whose cost is not known

  bool fits() const { return limit != Limit::kLatency && limit != Limit::kSms; }
};

/// The slowest of:
/// - the workers, with what the ends and all NFs on the CPU take and what the host does for those on the GPU: more for
///   an NF on the CPU that gets packets from the GPU, and for one on the GPU the less it shares moves with NFs beside
///   it;
/// - one such NF, that `shards` workers can work on;
/// - rx and tx, each of which `ends` workers can work on;
/// - each NF on the GPU with its SMs: parts are apart, every launch is as large as `launch_packets` and the latency
///   limit let it be, `launches_in_flight` of each shard overlap, but kernels of one NF follow one another. The SMs
///   go to whichever NF is the slowest. Kernel and overhead are those of NfCost; transfers are `moves`, the host's part
///   of them what was measured where that is more;
/// - the bus, in the direction that takes longer.
/// What is not known takes no time. `moves` and `on_gpu`: one an NF.
Estimate estimate(std::span<const NfOptions> nfs, Machine const& machine, OnGpu const& on_gpu,
                  std::span<const NfMoves> moves);

/// Why an NF is where it is.
enum class Reason : std::uint8_t {
  kFixed,      ///< nobody asked
  kFaster,     ///< on the GPU: so the chain is faster
  kNotFaster,  ///< on the CPU: with it on the GPU the chain would not be faster
  kNoGpu,      ///< on the CPU: there is none
  kNotKnown,   ///< on the CPU: what it costs on one of them is not known
  kLatency,    ///< on the CPU: no launch of it ends within its limit
  kFull,       ///< on the CPU: the GPU has no room for it beside the others
};

struct Placement {
  OnGpu on_gpu;
  Estimate chosen;
  Estimate all_cpu;             ///< every NF that may be on either is on the CPU
  Estimate all_gpu;             ///< each of those that may go to the GPU is there
  std::vector<Reason> reasons;  ///< one an NF
  /// What the chain would achieve with this NF alone on the other side. None where that is no question.
  std::vector<std::optional<Estimate>> otherwise;
};

/// NFs that may be on either side, up to which every placement is looked at.
inline constexpr std::size_t kMaxExhaustive = 10;

/// The placement by which the chain achieves most packets a second, were rx and tx no limit: that is the same wherever
/// NFs are, and would make all placements beyond it alike. Of those as fast, one with the fewest NFs on the GPU. An NF
/// goes to the GPU only where both its costs are known. Beyond kMaxExhaustive such NFs it is the better of two that are
/// found step by step, from all of them on the CPU and from all on the GPU: each step takes the NF to the other side
/// whose change gains most, until none gains. Errors: those of `price`.
Result<Placement> place(std::span<const NfOptions> nfs, Machine const& machine, Price const& price);

}  // namespace catena::share
