// SPDX-License-Identifier: Apache-2.0
#include "profile/ends_measure.hpp"

#include "io/sink.hpp"
#include "io/source.hpp"
#include "packet/memory/packet_pool.hpp"
#include "profile/median.hpp"

#include <chrono>
#include <memory>
#include <vector>

namespace catena::profile {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kPortFlows = 1024;
constexpr std::uint32_t kPortSlots = 16'384;  // as tuning.pool_slots is by default
constexpr int kPortWarmUps = 2;
constexpr int kPasses = 7;

double ns_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

/// Takes packets until the pool is empty, as rx does.
Result<std::vector<memory::Unit*>> receive_all(io::Source& source, memory::PacketPool& pool) {
  std::vector<memory::Unit*> units;
  std::uint64_t next_index = 0;
  for (;;) {
    memory::Unit* const unit = pool.acquire_unit();
    if (unit == nullptr) {
      return units;
    }
    bool starved = false;
    CATENA_RETURN_IF_ERROR(source.receive(pool, *unit, next_index, starved));
    if (unit->count == 0) {
      pool.release_unit(unit);
      return units;
    }
    units.push_back(unit);
  }
}

}  // namespace

Result<EndTimes> measure_ends(std::uint32_t packet_bytes) {
  io::ReplayConfig replay;
  replay.packet_bytes = {packet_bytes};
  replay.flows = kPortFlows;
  CATENA_ASSIGN_OR_RETURN(const auto source, io::make_replay(replay));
  CATENA_ASSIGN_OR_RETURN(const auto pool, memory::PacketPool::create(kPortSlots));
  const auto sink = io::make_null_sink();
  std::vector<double> rx;
  std::vector<double> tx;
  for (int pass = 0; pass < kPortWarmUps + kPasses; ++pass) {
    const Clock::time_point began = Clock::now();
    CATENA_ASSIGN_OR_RETURN(const std::vector<memory::Unit*> units, receive_all(*source, *pool));
    const double rx_ns = ns_since(began);
    double packets = 0;
    const Clock::time_point received = Clock::now();
    for (memory::Unit* const unit : units) {
      packets += unit->count;
      CATENA_RETURN_IF_ERROR(sink->send(*pool, *unit));
      pool->release_unit(unit);
    }
    const double tx_ns = ns_since(received);
    if (packets == 0) {
      return absl::ResourceExhaustedError("the packet pool has no room for a packet");
    }
    if (pass >= kPortWarmUps) {
      rx.push_back(rx_ns / packets);
      tx.push_back(tx_ns / packets);
    }
  }
  return EndTimes{median(std::move(rx)), median(std::move(tx))};
}

}  // namespace catena::profile
