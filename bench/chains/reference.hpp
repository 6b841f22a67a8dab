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

/// What comes out of a chain whose NFs all work on the CPU: with that the benchmark compares what devices make.
namespace catena::bench {

using Frame = std::vector<std::uint8_t>;

/// Where a reference takes its files from.
struct Workplace {
  std::filesystem::path data;    ///< rules, routes, associations
  std::filesystem::path folder;  ///< for files of associations
  nf::Registry const* registry;
};

/// The SPI of a chain's copy number `replica`.
constexpr std::uint32_t spi_of(std::uint32_t replica) { return 4096 + replica; }

/// The first packet of each of the kFlows flows of a replay, as the generator makes them.
Result<std::vector<Frame>> clear_frames(std::uint32_t frame_bytes, Workplace const& workplace);
/// The same with something for a load balancer and a NIDS to do: a frame of every kServiceEvery-th flow is a segment of
/// a connection to the load balancer's service, and one of every kMatchEvery-th holds a string of the NIDS's rules.
inline constexpr std::uint32_t kServiceEvery = 8;
inline constexpr std::uint32_t kMatchEvery = 10;
Result<std::vector<Frame>> busy_frames(std::uint32_t frame_bytes, Workplace const& workplace);
/// busy_frames() in ESP, with the association of copy number `replica`.
Result<std::vector<Frame>> esp_frames(std::uint32_t frame_bytes, std::uint32_t replica, Workplace const& workplace);

/// The packets [run * kReplaySampleRun, + kReplaySampleRun) of a chain's copy 0 whose input is the flows of `frames` in
/// turn, packet i with IPv4 identification i where `counted`. In front of them one packet of each flow goes through the
/// chain, so that state that a flow makes when it appears is there; sequence numbers of IPsec start where they are.
/// Errors: as the chain's.
Result<std::vector<Sample>> reference_run(PaperChain const& chain, std::vector<Frame> const& frames, bool counted,
                                          std::uint64_t run, Workplace const& workplace);

/// What runs of chains get and what must come out of them, each made once. One thread at a time.
class References {
 public:
  /// `sample_every`: as that of the runs. `workplace` must outlive this.
  References(Workplace const& workplace, std::uint32_t sample_every)
      : workplace_(&workplace), sample_every_(sample_every) {}

  /// esp_frames() of each of `copies` copies, and of those that were asked for before. Good until the next call.
  Result<std::vector<std::vector<Frame>> const*> esp(std::uint32_t frame_bytes, std::uint32_t copies);
  /// What leaves the chain of packets that have `frame_bytes` without ESP: `runs` sampled runs, the first ones, and
  /// those that were asked for before. Good until the next call. Errors: as reference_run(); Internal where packets are
  /// missing.
  Result<std::vector<Sample> const*> samples(PaperChain const& chain, std::uint32_t frame_bytes, std::uint64_t runs);

 private:
  Workplace const* workplace_;
  std::uint32_t sample_every_;
  std::map<std::uint32_t, std::vector<std::vector<Frame>>> esp_;  ///< by frame size; for each copy
  std::map<std::pair<std::string, std::uint32_t>, std::vector<Sample>> samples_;
};

}  // namespace catena::bench
