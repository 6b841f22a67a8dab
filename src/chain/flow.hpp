// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include "base/core/socket_address.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Limits of the packets waiting in a chain. Pure.
namespace catena::chain {

struct ChainConfig;

enum class FlowMode : std::uint8_t {
  kPool,          ///< packets wait at any NF, up to the size of packet memory; rx waits when it is full
  kBackpressure,  ///< an NF with too many waiting packets pauses its upstream NFs, up to rx
  kVanilla,       ///< rings are bounded and drop packets beyond the bound, as in other frameworks
};

/// `flow: {signals: ...}`: back-pressure between chains of several hosts.
struct FlowSignalsConfig {
  std::optional<SocketAddress> listen = std::nullopt;  ///< address for requests of chains sending to rx
  std::vector<SocketAddress> downstream = {};          ///< chains receiving the packets of tx
  std::string key_file = {};                           ///< absolute path; its first word is the common key, in hex
  std::string position = {};                           ///< file:line:column
};

/// `flow:` of a chain file.
struct FlowConfig {
  FlowMode mode = FlowMode::kPool;
  double qt = 2.8;  ///< batches of an NF that may wait for it, unless the NF sets its own
  std::uint32_t period_us = 5;
  std::string position = {};  ///< file:line:column; empty if not set in the file
  std::optional<FlowSignalsConfig> signals = std::nullopt;
};

/// With fewer batches a ring holds less than one batch besides the batch on the device, and the NF would wait for
/// packets while its upstream NFs pause (Simmer, section 4.2).
inline constexpr double kLeastSoundQt = 2;

/// Limits of the input ring of an NF, in packets.
struct FlowLimits {
  std::uint32_t batch = 0;      ///< packets per batch of the NF
  std::uint32_t slow_down = 0;  ///< above this the ring is congested; in kVanilla it takes no more
  std::uint32_t fasten_up = 0;  ///< at or below this it is no longer congested
  /// Limit of waiting packets if the upstream NFs also send to other NFs; at least slow_down.
  std::uint32_t share = 0;
  /// Limit of packets in the NF's own process, if any: the batches in work, and the next batch. With more packets
  /// there, pausing the NF would not stop it.
  std::uint32_t in_process = 0;
};

/// The mode in the file; without `flow` back-pressure if packet memory is large enough, else kPool.
FlowMode flow_mode_of(ChainConfig const& chain, std::uint32_t unit_packets);

/// The slots of packet memory: as in the chain. But if `flow` is in the file and the number of slots is not: enough for
/// all packets waiting or in work with NFs and units as given, a power of two, at least Tuning's default.
std::uint32_t slots_of(ChainConfig const& chain, std::uint32_t unit_packets);

/// The limits of each NF; empty in kPool. `unit_packets`: of the run, if the chain leaves it open. InvalidArgument, at
/// `flow` or `graph`, if packet memory is too small for them, or for the copies of a graph; the message has the remedy.
Result<std::vector<FlowLimits>> flow_limits(ChainConfig const& chain, std::uint32_t unit_packets);

/// Warnings about limits that are allowed but unwise, one per line.
std::vector<std::string> flow_warnings(ChainConfig const& chain);

}  // namespace catena::chain
