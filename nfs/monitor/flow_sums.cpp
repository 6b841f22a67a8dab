// SPDX-License-Identifier: Apache-2.0
#include "flow_sums.hpp"

#include <algorithm>

namespace catena::monitor {
namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFF;
// Headers are fetched so many packets before they are read.
constexpr std::uint32_t kAhead = 32;

bool is_first(FlowResult const& result) { return result.distance == 0 || result.others != 0; }

}  // namespace

SummedBatch const& FlowSums::add_up(packet::Batch const& batch, std::span<const FlowResult> results) {
  summed_.stamps_ns.resize(batch.size());
  summed_.sum_of_packet.resize(batch.size());
  summed_.sums.clear();
  before_.fill(kNone);
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    if (i + kAhead < batch.size() && is_first(results[i + kAhead])) {
      __builtin_prefetch(batch[i + kAhead].l3());
    }
    summed_.stamps_ns[i] = batch[i].arrival_ns();
    summed_.sum_of_packet[i] = sum_for(batch, results[i], i);
  }
  return summed_;
}

/// The number of the sum that packet `i` is in now.
std::uint32_t FlowSums::sum_for(packet::Batch const& batch, FlowResult const& result, std::uint32_t i) {
  if (is_first(result)) {
    return begin_sum(batch, result, i);
  }
  if (result.distance <= i) {
    const std::uint32_t number = summed_.sum_of_packet[i - result.distance];
    add_packet(result, i, number);
    return number;
  }
  std::uint32_t& number = before_[result.distance - i];
  if (number == kNone) {
    number = begin_sum(batch, result, i);
  } else {
    add_packet(result, i, number);
  }
  return number;
}

std::uint32_t FlowSums::begin_sum(packet::Batch const& batch, FlowResult const& result, std::uint32_t i) {
  const auto number = static_cast<std::uint32_t>(summed_.sums.size());
  const std::uint32_t last = i + result.distance;
  if (!is_first(result) || last >= batch.size()) {
    summed_.sums.push_back(sum_of(observe(batch[i]), i));
    return number;
  }
  const packet::Packet packet = batch[i];
  summed_.sums.push_back({.key = key_of(packet),
                          .packets = std::uint64_t{result.others} + 1,
                          .bytes = result.bytes,
                          .first_ns = packet.arrival_ns(),
                          .last_ns = packet.arrival_ns(),
                          .first = i,
                          .last = last,
                          .tcp_flags = result.tcp_flags,
                          .tos = packet.l3()[1]});
  return number;
}

void FlowSums::add_packet(FlowResult const& result, std::uint32_t i, std::uint32_t number) {
  FlowSum& sum = summed_.sums[number];
  sum.first_ns = std::min(sum.first_ns, summed_.stamps_ns[i]);
  sum.last_ns = std::max(sum.last_ns, summed_.stamps_ns[i]);
  if (i > sum.last) {  // not in what the kernel added up
    ++sum.packets;
    sum.bytes += result.bytes;
    sum.tcp_flags |= result.tcp_flags;
    sum.last = i;
  }
}

}  // namespace catena::monitor
