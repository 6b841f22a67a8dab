// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/sharing/gpu_model.hpp"

#include <catena/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

/// The placement of the NFs of a chain on CPU and GPU with the highest throughput of the chain, as far as costs are
/// known. Times are in ns, per packet unless stated.
///
/// Thread rule: pure functions, any thread.
namespace catena::share {

/// The allowed places of an NF, and its costs there.
struct NfOptions {
  enum class Where : std::uint8_t { kCpu, kGpu, kEither };
  Where where = Where::kCpu;
  std::optional<double> cpu_ns = std::nullopt;  ///< nullopt: unknown
  std::optional<NfCost> gpu = std::nullopt;     ///< the same
  /// cpu_ns if the NF before it is on the GPU; nullopt: unknown, and assumed to be equal.
  std::optional<double> after_gpu_ns = std::nullopt;
  /// As gpu->cpu_ns_per_packet, but with adjacent NFs on the CPU, or without any; gpu->cpu_ns_per_packet is with
  /// adjacent NFs on the GPU. Nullopt: equal.
  std::optional<double> host_alone_ns = std::nullopt;
  double latency_limit_ns = 1e6;  ///< per launch: `latency_limit_us`
};

/// The hardware for a chain, and its use.
struct Machine {
  std::uint32_t workers = 1;             ///< threads on their own cores
  std::uint32_t shards = 1;              ///< of the chain: maximum number of workers on one NF
  std::uint32_t sms = 0;                 ///< of the GPU; 0: no GPU
  std::uint32_t launch_packets = 2048;   ///< per launch, at most
  std::uint32_t launches_in_flight = 3;  ///< of one NF in one shard
  std::uint32_t ends = 1;                ///< maximum number of workers on rx, and on tx
  double rx_ns = 0;                      ///< 0: unknown
  double tx_ns = 0;                      ///< the same
};

/// The moves of one NF on the GPU, by the plan of a placement.
struct NfMoves {
  double to_device_ns = 0;  ///< on the bus
  double to_host_ns = 0;
  double cpu_ns = 0;  ///< the CPU's work for it
};

/// One flag per NF, in chain order.
using OnGpu = std::vector<bool>;
/// The moves of each NF in a placement; 0 for NFs on the CPU. The moves of an NF depend on its neighbours.
using Price = std::function<Result<std::vector<NfMoves>>(OnGpu const&)>;

/// The throughput of a chain by a placement.
struct Estimate {
  enum class Limit : std::uint8_t {
    kUnknown,  ///< no known limit
    kWorkers,  ///< all work on the CPU, divided among the workers
    kNf,       ///< NF `nf` on the CPU, with at most one worker per shard of the chain
    kGpu,      ///< NF `nf` on the GPU with its SMs
    kBus,      ///< the transfers of all NFs in one direction
    kRx,       ///< rx, with at most `ends` workers
    kTx,       ///< tx, the same
    kLatency,  ///< does not fit: no launch of NF `nf` ends within its limit
    kSms,      ///< does not fit: the GPU has too few SMs
  };
  double packets_per_s = 0;  ///< infinite for kUnknown, 0 if the placement does not fit
  double without_ends = 0;   ///< the same without rx and tx as limits by themselves: placements are compared by it
  Limit limit = Limit::kUnknown;
  std::size_t nf = 0;
  std::vector<double> nf_ns;  ///< per packet of each NF at its place; 0: unknown, or it does not fit
  std::vector<Share> shares;  ///< of the GPU; no SMs for NFs on the CPU or with an unknown cost

  bool fits() const { return limit != Limit::kLatency && limit != Limit::kSms; }
};

/// The slowest of:
/// - the workers, with the work of rx, tx and all NFs on the CPU, and the host's work for NFs on the GPU: more for an
///   NF on the CPU with packets from the GPU, and more for an NF on the GPU the less it shares moves with adjacent NFs;
/// - one such NF, with at most `shards` workers;
/// - rx and tx, each with at most `ends` workers;
/// - each NF on the GPU with its SMs: parts are disjoint, every launch is as large as `launch_packets` and the latency
///   limit allow, `launches_in_flight` of each shard overlap, but kernels of one NF follow one another. The SMs go to
///   the slowest NF at each step. Kernel and overhead are those of NfCost; transfers are `moves`, with the host's part
///   as measured if that is more;
/// - the bus, in the direction that takes longer.
/// Unknown costs take no time. `moves` and `on_gpu`: one per NF.
Estimate estimate(std::span<const NfOptions> nfs, Machine const& machine, OnGpu const& on_gpu,
                  std::span<const NfMoves> moves);

/// The reason for the place of an NF.
enum class Reason : std::uint8_t {
  kFixed,      ///< its place is given
  kFaster,     ///< on the GPU: this makes the chain faster
  kNotFaster,  ///< on the CPU: on the GPU it would not make the chain faster
  kNoGpu,      ///< on the CPU: no GPU
  kNotKnown,   ///< on the CPU: its cost on one of them is unknown
  kLatency,    ///< on the CPU: no launch of it ends within its limit
  kFull,       ///< on the CPU: no room for it on the GPU besides the others
};

struct PartitionPlacement {
  OnGpu on_gpu;
  Estimate chosen;
  Estimate all_cpu;             ///< every NF with a choice is on the CPU
  Estimate all_gpu;             ///< every NF that may go to the GPU is on it
  std::vector<Reason> reasons;  ///< one per NF
  /// The throughput of the chain with this NF alone on the other side; nullopt if it has no choice.
  std::vector<std::optional<Estimate>> otherwise;
};

/// Maximum number of NFs with a choice for which every placement is tried.
inline constexpr std::size_t kMaxExhaustive = 10;

/// The placement with the highest throughput without rx and tx as limits: these are the same for all placements, and
/// would make all placements beyond them equal. Of equally fast ones, a placement with the fewest NFs on the GPU. An NF
/// goes to the GPU only if both its costs are known. Beyond kMaxExhaustive such NFs it is the better result of two
/// searches, from all of them on the CPU and from all on the GPU: each step moves the NF with the largest gain to the
/// other side, until no move gains. Errors: from `price`.
Result<PartitionPlacement> place(std::span<const NfOptions> nfs, Machine const& machine, Price const& price);

}  // namespace catena::share
