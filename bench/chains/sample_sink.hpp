// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/sink.hpp"

#include <catena/core/counter.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace catena::bench {

/// A packet as sent by a chain.
struct Sample {
  std::uint64_t index = 0;  ///< number in arrival order
  packet::Verdict verdict = packet::Verdict::kPass;
  std::uint16_t port = 0;
  std::vector<std::uint8_t> bytes;  ///< empty if it was dropped
};

/// Counts and discards packets, but keeps the first `runs` sampled runs of a replay (is_replay_sample()).
class SampleSink final : public io::Sink {
 public:
  SampleSink(std::uint32_t sample_every, std::uint64_t runs) : every_(sample_every), runs_(runs) {}

  Status send(memory::PacketPool& pool, memory::Unit& unit) override;
  Status finish() override { return absl::OkStatus(); }
  io::SinkCounts counts() const override { return {sent_, {}}; }
  std::string describe() const override { return "null"; }

  /// In arrival order. Call after the run.
  std::vector<Sample> const& samples() const { return samples_; }

 private:
  bool keeps(std::uint64_t index) const;

  std::uint32_t every_;
  std::uint64_t runs_;
  Counter sent_;
  std::vector<Sample> samples_;
};

/// Result of comparing a chain's output with the expected one.
struct SampleCheck {
  std::uint64_t compared = 0;
  std::uint64_t different = 0;
  std::string first_difference;  ///< position and difference; empty if all are equal
};
/// Compares each sample of `actual` with the sample of the same index in `expected`. A sample missing from `expected`
/// counts as different.
SampleCheck compare(std::vector<Sample> const& actual, std::vector<Sample> const& expected);

}  // namespace catena::bench
