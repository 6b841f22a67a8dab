// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/chains/chains.hpp"
#include "bench/chains/sample_sink.hpp"

#include "nf/registry.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

/// Expected output: that of a chain with all NFs on the CPU. The benchmark compares device output with it.
namespace catena::bench {

using Frame = std::vector<std::uint8_t>;

/// Sources of a reference's files.
struct Workplace {
  std::filesystem::path data;    ///< rules, routes, SAs
  std::filesystem::path folder;  ///< for SA files
  nf::Registry const* registry;
};

/// The SPI of copy `replica` of a chain.
constexpr std::uint32_t spi_of(std::uint32_t replica) { return 4096 + replica; }

/// The first packet of each of the kFlows flows of a replay, as made by the generator.
Result<std::vector<Frame>> clear_frames(std::uint32_t frame_bytes, Workplace const& workplace);
/// The same with work for a load balancer and a NIDS: in every kServiceEvery-th flow the frame is a segment of a
/// connection to the load balancer's service, and in every kMatchEvery-th it contains a string of the NIDS's rules.
inline constexpr std::uint32_t kServiceEvery = 8;
inline constexpr std::uint32_t kMatchEvery = 10;
Result<std::vector<Frame>> busy_frames(std::uint32_t frame_bytes, Workplace const& workplace);
/// busy_frames() in ESP, with the SA of copy `replica`.
Result<std::vector<Frame>> esp_frames(std::uint32_t frame_bytes, std::uint32_t replica, Workplace const& workplace);

/// Output packets [run * kReplaySampleRun, + kReplaySampleRun) of copy 0 of a chain. The input is the flows of `frames`
/// round-robin; if `counted`, packet i has IPv4 identification i. First, one packet of each flow passes through the
/// chain to create per-flow state; IPsec sequence numbers then have the values of a full run. Errors: as the chain's.
Result<std::vector<Sample>> reference_run(PaperChain const& chain, std::vector<Frame> const& frames, bool counted,
                                          std::uint64_t run, Workplace const& workplace);

/// Inputs and expected outputs of chain runs, each made once. Thread rule: one thread at a time.
class References {
 public:
  /// `sample_every`: as in the runs. `workplace` must outlive this.
  References(Workplace const& workplace, std::uint32_t sample_every)
      : workplace_(&workplace), sample_every_(sample_every) {}

  /// esp_frames() of `copies` copies or more, as requested earlier. Valid until the next call.
  Result<std::vector<std::vector<Frame>> const*> esp(std::uint32_t frame_bytes, std::uint32_t copies);
  /// Expected output of the chain for packets of `frame_bytes` without ESP: the first `runs` sampled runs or more, as
  /// requested earlier. Valid until the next call. Errors: as reference_run(); Internal if packets are missing.
  Result<std::vector<Sample> const*> samples(PaperChain const& chain, std::uint32_t frame_bytes, std::uint64_t runs);

 private:
  Workplace const* workplace_;
  std::uint32_t sample_every_;
  std::map<std::uint32_t, std::vector<std::vector<Frame>>> esp_;  ///< by frame size; per copy
  std::map<std::pair<std::string, std::uint32_t>, std::vector<Sample>> samples_;
};

}  // namespace catena::bench
