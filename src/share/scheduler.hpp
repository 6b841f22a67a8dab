// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "share/gpu_model.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Which NF gets which part of a GPU: the scheduler of "G-NET: Effective GPU Sharing in NFV Systems" (NSDI 2018),
/// section 5.3, and those that it is compared with in section 7.4.
///
/// Thread rule: schedule() is a pure function, any thread; a TrafficChange belongs to one thread at a time.
namespace catena::share {

/// `--share`.
enum class Mode : std::uint8_t {
  kScheduled,      ///< each NF as many SMs as it needs to be as fast as its chain
  kFair,           ///< all of them the same number
  kUncoordinated,  ///< each all of them, side by side
  kTemporal,       ///< each all of them, one NF after the other
};
std::string_view to_string(Mode mode);
/// Whether NFs have parts of their own, without a common SM.
constexpr bool is_apart(Mode mode) { return mode == Mode::kScheduled || mode == Mode::kFair; }
/// InvalidArgument: no mode has that name.
Result<Mode> parse_mode(std::string_view name);

/// `--parts`: what an NF's part of a GPU is made of.
enum class Parts : std::uint8_t {
  kGreen,   ///< SMs of its own, in green contexts
  kBlocks,  ///< so many work-groups at once, wherever they run
  kNone,    ///< nothing but the number of packets in its launches
};
std::string_view to_string(Parts parts);
/// InvalidArgument: no parts have that name.
Result<Parts> parse_parts(std::string_view name);

/// One NF of a chain on a GPU.
struct NfDemand {
  std::string name;
  NfCost cost;
  double packets_per_s = 0;       ///< what it achieves now; at least 1 is taken
  double latency_limit_ns = 1e6;  ///< of one launch: `latency_limit_us`
  std::vector<std::size_t>
      next{};  ///< positions of the NFs behind it, where the chain has branches; none: it is a last
  /// More packets a second than these do not come to it. None: that is not known, or some wait for it already.
  std::optional<double> needed_pps = std::nullopt;
  std::size_t chain = 0;  ///< of several: its NFs become faster together
};

struct GpuShape {
  std::uint32_t sms = 0;
  std::uint32_t step = 1;  ///< SMs come in multiples of it: 2 in green contexts of an H100
};

struct Schedule {
  std::vector<Share> shares;       ///< by position of the NF
  std::vector<double> wanted_pps;  ///< what each was given its share for; 0 where the mode does not ask
};

/// Parts of `gpu` for `nfs`, of one chain or several.
///
/// kScheduled: in rounds, each for `growth` more packets a second than the one before, from the slowest NF's on. A
/// round gives every last NF the SMs for that speed and every other one those for the sum of the NFs behind it, but
/// none more than it needs. Where there are none even for the first, rounds go down. Chains that have no SMs for the
/// next round, or what they need, stay where they are, and the others go on. If all have what they need, what is left
/// makes those faster that have least, for traffic to come. Parts are apart: their sum is no more than the GPU has. The
/// speed ends at `most_pps`. kFair: parts are apart and equal, but for multiples of the step. kUncoordinated and
/// kTemporal: everyone has all SMs. There every launch has as many packets as its limit lets it have.
///
/// Errors: InvalidArgument, with the NF's name: a cost that is negative or no number, `next` beyond the NFs or in a
/// loop; `growth` not in (0, 1). ResourceExhausted: more NFs than parts, or a latency limit, which is named, that no
/// part meets.
Result<Schedule> schedule(Mode mode, std::span<const NfDemand> nfs, GpuShape gpu, double growth = 0.1,
                          double most_pps = 1e9);

/// When to schedule anew: an NF's speed is more than 10 % away from what it was when that was done last, in two looks
/// in a row, so that a single burst changes nothing.
class TrafficChange {
 public:
  /// `packets_per_s`: of each NF now; as many at each look. The first look says yes.
  bool look(std::span<const double> packets_per_s);

 private:
  bool is_away(std::span<const double> packets_per_s) const;

  std::vector<double> scheduled_;  ///< speeds when look() said yes last
  bool was_away_ = false;
};

}  // namespace catena::share
