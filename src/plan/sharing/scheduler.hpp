// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/sharing/gpu_model.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The parts of a GPU for its NFs: the scheduler of "G-NET: Effective GPU Sharing in NFV Systems" (NSDI 2018), section
/// 5.3, and the alternatives of its comparison in section 7.4.
///
/// Thread rule: schedule() is a pure function, any thread; a TrafficChange belongs to one thread at a time.
namespace catena::share {

/// `--share`.
enum class Mode : std::uint8_t {
  kScheduled,      ///< the SMs that each NF needs to be as fast as its chain
  kFair,           ///< the same number of SMs for each NF
  kUncoordinated,  ///< all SMs for each NF, side by side
  kTemporal,       ///< all SMs for each NF, one NF after the other
};
std::string_view to_string(Mode mode);
/// Whether NFs have their own parts, without a common SM.
constexpr bool is_apart(Mode mode) { return mode == Mode::kScheduled || mode == Mode::kFair; }
/// InvalidArgument: no mode of this name.
Result<Mode> parse_mode(std::string_view name);

/// `--parts`: the kind of an NF's part of a GPU.
enum class Parts : std::uint8_t {
  kGreen,   ///< its own SMs, in green contexts
  kBlocks,  ///< a number of concurrent work-groups, on any SMs
  kNone,    ///< only the number of packets in its launches
};
std::string_view to_string(Parts parts);
/// InvalidArgument: no parts of this name.
Result<Parts> parse_parts(std::string_view name);

/// One NF of a chain on a GPU.
struct NfDemand {
  std::string name;
  NfCost cost;
  double packets_per_s = 0;         ///< current speed; at least 1 is assumed
  double latency_limit_ns = 1e6;    ///< per launch: `latency_limit_us`
  std::vector<std::size_t> next{};  ///< positions of its downstream NFs, in a chain with branches; empty: a last NF
  /// Upper bound of its incoming packets per second. Nullopt: unknown, or packets wait for it already.
  std::optional<double> needed_pps = std::nullopt;
  std::size_t chain = 0;  ///< of several: the NFs of one chain become faster together
};

struct GpuShape {
  std::uint32_t sms = 0;
  std::uint32_t step = 1;  ///< granularity of SMs: 2 in green contexts of an H100
};

struct Schedule {
  std::vector<Share> shares;       ///< by position of the NF
  std::vector<double> wanted_pps;  ///< the speed for which each got its share; 0 if not used by the mode
};

/// Parts of `gpu` for `nfs`, of one chain or several.
///
/// kScheduled: in rounds, each for `growth` more packets per second than the previous one, starting at the speed of the
/// slowest NF. A round gives every last NF the SMs for that speed, and every other NF the SMs for the sum of its
/// downstream NFs, but never more than it needs. If the SMs do not suffice for the first round, rounds go down. Chains
/// without SMs for the next round, or with all SMs that they need, keep their parts, and the others continue. If all
/// needs are met, the remaining SMs go to the slowest NFs, for future traffic. Parts are disjoint: their sum is at most
/// the GPU. The speed ends at `max_pps`. kFair: parts are disjoint and equal, except for multiples of the step.
/// kUncoordinated and kTemporal: every NF has all SMs. In these three modes every launch has as many packets as its
/// limit allows.
///
/// Errors: InvalidArgument, with the NF's name: a cost that is negative or not a number, `next` beyond the NFs or in a
/// loop; `growth` not in (0, 1). ResourceExhausted: more NFs than parts, or a latency limit, which is named, met by no
/// part.
Result<Schedule> schedule(Mode mode, std::span<const NfDemand> nfs, GpuShape gpu, double growth = 0.1,
                          double max_pps = 1e9);

/// When to schedule again: if an NF's speed is more than 10 % away from its speed at the last scheduling, in two
/// consecutive checks, so that a single burst has no effect.
class TrafficChange {
 public:
  /// `packets_per_s`: of each NF now; the same number in each call. The first call returns true.
  bool look(std::span<const double> packets_per_s);

 private:
  bool is_away(std::span<const double> packets_per_s) const;

  std::vector<double> scheduled_;  ///< speeds when look() last returned true
  bool was_away_ = false;
};

}  // namespace catena::share
