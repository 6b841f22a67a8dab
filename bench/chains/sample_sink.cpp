// SPDX-License-Identifier: Apache-2.0
#include "bench/chains/sample_sink.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <map>

namespace catena::bench {

bool SampleSink::keeps(std::uint64_t index) const {
  return io::is_replay_sample(index, every_) && index / io::kReplaySampleRun / every_ < runs_;
}

Status SampleSink::send(memory::PacketPool& pool, memory::Unit& unit) {
  const packet::Batch batch = pool.batch(unit);
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    sent_ += batch[i].verdict() != packet::Verdict::kDrop ? 1 : 0;
  }
  // most units have no sampled packet: runs are longer than what may be between two looks (a replay drops nothing,
  // so its numbers have no gaps)
  bool any = false;
  for (std::uint32_t i = 0; i < batch.size(); i += io::kReplaySampleRun) {
    any = any || keeps(batch[i].index());
  }
  any = any || (batch.size() > 0 && keeps(batch[batch.size() - 1].index()));
  for (std::uint32_t i = 0; any && i < batch.size(); ++i) {
    if (!keeps(batch[i].index())) {
      continue;
    }
    const packet::Packet packet = batch[i];
    Sample& sample = samples_.emplace_back(Sample{packet.index(), packet.verdict(), packet.port(), {}});
    if (packet.verdict() != packet::Verdict::kDrop) {
      sample.bytes.assign(packet.frame(), packet.frame() + packet.length());
    }
  }
  pool.release_slots(unit, 0, unit.count);
  return absl::OkStatus();
}

SampleCheck compare(std::vector<Sample> const& actual, std::vector<Sample> const& expected) {
  std::map<std::uint64_t, Sample const*> by_index;
  for (Sample const& sample : expected) {
    by_index[sample.index] = &sample;
  }
  SampleCheck check;
  for (Sample const& sample : actual) {
    const auto found = by_index.find(sample.index);
    std::string difference;
    if (found == by_index.end()) {
      difference = "there is nothing to compare it with";
    } else if (Sample const& other = *found->second; sample.verdict != other.verdict) {
      difference =
          concat("verdict ", static_cast<int>(sample.verdict), " instead of ", static_cast<int>(other.verdict));
    } else if (sample.port != other.port) {
      difference = concat("port ", sample.port, " instead of ", other.port);
    } else if (sample.bytes != other.bytes) {
      const auto [here, there] =
          std::mismatch(sample.bytes.begin(), sample.bytes.end(), other.bytes.begin(), other.bytes.end());
      difference = concat("byte ", here - sample.bytes.begin(), ", ", sample.bytes.size(), " bytes against ",
                          other.bytes.size());
    }
    ++check.compared;
    check.different += difference.empty() ? 0 : 1;
    if (!difference.empty() && check.first_difference.empty()) {
      check.first_difference = concat("packet ", sample.index, ": ", difference);
    }
  }
  return check;
}

}  // namespace catena::bench
