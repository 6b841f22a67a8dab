// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include "core/socket_address.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// How many packets may wait in a chain, and where. Pure.
namespace catena::chain {

struct ChainConfig;

enum class FlowMode : std::uint8_t {
  kPool,          ///< as many as packet memory holds wait wherever they come to; rx waits when it is full
  kBackpressure,  ///< where too many wait for an NF, those in front of it pause, up to rx
  kVanilla,       ///< rings are bounded, and what does not fit into one is dropped there: what others do
};

/// `flow: {signals: ...}`: back-pressure between chains of several hosts.
struct FlowSignalsConfig {
  std::optional<SocketAddress> listen = std::nullopt;  ///< where chains ask that send what arrives at rx
  std::vector<SocketAddress> downstream = {};          ///< those that get what tx sends
  std::string key_file = {};                           ///< whole; its first word is what they all know, in hex
  std::string position = {};                           ///< file:line:column
};

/// `flow: {hook: ...}`: what is started when rx has to wait, and again when it no longer has.
struct FlowHookConfig {
  std::vector<std::string> command = {};  ///< a program and its arguments
  std::uint32_t period_ms = 1000;
  double paused = 0;  ///< part of a period that rx has to be paused for
  friend bool operator==(FlowHookConfig const&, FlowHookConfig const&) = default;
};

/// `flow:` of a chain file.
struct FlowConfig {
  FlowMode mode = FlowMode::kPool;
  double qt = 2.8;  ///< batches of an NF that may wait for it, where it does not say it itself
  std::uint32_t period_us = 5;
  std::string position = {};  ///< file:line:column; empty where the file does not say it
  std::optional<FlowSignalsConfig> signals = std::nullopt;
  std::optional<FlowHookConfig> hook = std::nullopt;
};

/// Below this many batches a ring has less than one beside that which is on the device, and the NF would wait for
/// packets while those in front of it pause (Simmer, section 4.2).
inline constexpr double kLeastSoundQt = 2;

/// Of the ring in front of an NF, in packets.
struct FlowLimits {
  std::uint32_t batch = 0;      ///< that the NF takes at once
  std::uint32_t slow_down = 0;  ///< with more than so many the ring is congested; in kVanilla it takes no more
  std::uint32_t fasten_up = 0;  ///< with so many or fewer it no longer is
  /// As many may wait where those in front of the NF have other ways to send; at least slow_down.
  std::uint32_t share = 0;
  /// As many may be in the NF's process, where it has one: those that it works on, and a batch that comes next. With
  /// more of them, pausing the NF would not stop it.
  std::uint32_t in_process = 0;
};

/// Where the file does not say how packets wait: with back-pressure if packet memory has room for that, else kPool.
void settle_flow(ChainConfig& chain, std::uint32_t unit_packets);

/// Where the file says how packets wait, and not how many slots there are: as many as may wait and be worked on, a
/// power of two, at least Tuning's default. To be called again where NFs or units turn out to be others.
void settle_slots(ChainConfig& chain, std::uint32_t unit_packets);

/// Of each NF; none in kPool. `unit_packets`: of the run, where the chain leaves it open. InvalidArgument, at `flow` or
/// `graph`, where packet memory is too small for them, or for the copies of a graph; the text says what to write.
Result<std::vector<FlowLimits>> flow_limits(ChainConfig const& chain, std::uint32_t unit_packets);

/// What a user should know of limits that are allowed and not wise, a line each.
std::vector<std::string> flow_warnings(ChainConfig const& chain);

}  // namespace catena::chain
