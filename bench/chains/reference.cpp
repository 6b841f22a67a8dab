// SPDX-License-Identifier: Apache-2.0
#include "bench/chains/reference.hpp"

#include "pipeline/session.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/headers.hpp>

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>

namespace catena::bench {
namespace {

/// The load balancer's service, and what one of the NIDS's rules searches for; see chains.cpp and ids.rules.
constexpr std::uint32_t kServiceAddress = 0xAC10000A;  // 172.16.0.10
constexpr std::uint16_t kServicePort = 80;
constexpr std::string_view kMatchingText = "PASS SHELL22175!";

using SourceMaker = std::function<Result<std::unique_ptr<io::Source>>()>;

/// Runs a chain on the CPU and keeps everything that comes out.
Result<std::vector<Sample>> run_on_cpu(PaperChain const& chain, ChainText const& text, SourceMaker const& source,
                                       Workplace const& workplace) {
  CATENA_ASSIGN_OR_RETURN(chain::ChainConfig config,
                          chain::parse_chain(chain_text(chain, text), (workplace.data / "paper.yaml").string()));
  auto sink = std::make_unique<SampleSink>(1, std::numeric_limits<std::uint64_t>::max());
  SampleSink const& kept = *sink;
  runtime::RunOptions options;
  options.make_source = source;
  options.make_sink = [&sink]() -> Result<std::unique_ptr<io::Sink>> { return std::move(sink); };
  CATENA_ASSIGN_OR_RETURN(const auto made, runtime::Session::create(std::move(config), options, *workplace.registry));
  CATENA_RETURN_IF_ERROR(made->run());
  return kept.samples();
}

ChainText text_for(std::uint32_t frame_bytes, std::string sa_file) {
  ChainText text;
  text.frame_bytes = frame_bytes;
  text.sa_file = std::move(sa_file);
  return text;
}

std::vector<Frame> bytes_of(std::vector<Sample>&& samples) {
  std::vector<Frame> frames;
  for (Sample& sample : samples) {
    frames.push_back(std::move(sample.bytes));
  }
  return frames;
}

SourceMaker one_of_each_flow(std::uint32_t frame_bytes) {
  return [frame_bytes] { return io::make_generator({.packet_bytes = frame_bytes, .flows = kFlows, .count = kFlows}); };
}

/// Of an IPv4 header without options.
void set_header_checksum(std::uint8_t* l3) {
  packet::store_be16(l3 + 10, 0);
  packet::store_be16(l3 + 10, packet::checksum_finish(packet::checksum_add(l3, packet::kIpv4MinBytes)));
}

/// The same packet with the identification of packet `number` of a replay.
Frame numbered(Frame frame, std::uint64_t number) {
  std::uint8_t* l3 = frame.data() + packet::kEthernetBytes;
  const auto identification = static_cast<std::uint16_t>(number);
  packet::store_be16(l3 + 4, identification);
  set_header_checksum(l3);
  return frame;
}

/// Makes the checksums of a frame without options right.
void set_checksums(Frame& frame) {
  std::uint8_t* l3 = frame.data() + packet::kEthernetBytes;
  set_header_checksum(l3);
  const bool is_tcp = l3[9] == packet::kProtocolTcp;
  std::uint8_t* l4 = l3 + packet::kIpv4MinBytes;
  std::uint8_t* checksum = l4 + (is_tcp ? 16 : 6);
  packet::store_be16(checksum, 0);
  const std::uint32_t bytes = packet::load_be16(l3 + 2) - packet::kIpv4MinBytes;
  const std::uint64_t pseudo = packet::checksum_add(l3 + 12, 8) + l3[9] + bytes;
  packet::store_be16(checksum, packet::checksum_finish(pseudo + packet::checksum_add(l4, bytes)));
}

}  // namespace

Result<std::vector<Frame>> busy_frames(std::uint32_t frame_bytes, Workplace const& workplace) {
  CATENA_ASSIGN_OR_RETURN(std::vector<Frame> frames, clear_frames(frame_bytes, workplace));
  for (std::size_t flow = 0; flow < frames.size(); ++flow) {
    std::uint8_t* l3 = frames[flow].data() + packet::kEthernetBytes;
    std::uint8_t* l4 = l3 + packet::kIpv4MinBytes;
    if (flow % kServiceEvery == 0) {  // the generator's even flows are TCP
      packet::store_be32(l3 + 16, kServiceAddress);
      packet::store_be16(l4 + 2, kServicePort);
    } else if (flow % kMatchEvery == 1) {  // and its odd ones UDP
      std::memcpy(l4 + packet::kUdpBytes, kMatchingText.data(), kMatchingText.size());
    }
    set_checksums(frames[flow]);
  }
  return frames;
}

Result<std::vector<Frame>> clear_frames(std::uint32_t frame_bytes, Workplace const& workplace) {
  CATENA_ASSIGN_OR_RETURN(
      auto samples, run_on_cpu(empty_chain(), text_for(frame_bytes, {}), one_of_each_flow(frame_bytes), workplace));
  return bytes_of(std::move(samples));
}

Result<std::vector<Frame>> esp_frames(std::uint32_t frame_bytes, std::uint32_t replica, Workplace const& workplace) {
  CATENA_ASSIGN_OR_RETURN(std::string sa, write_sa(workplace.data, workplace.folder, spi_of(replica), 1));
  CATENA_ASSIGN_OR_RETURN(std::vector<Frame> frames, busy_frames(frame_bytes, workplace));
  const std::uint64_t count = frames.size();
  const auto source = [&frames, count] { return io::make_frame_replay(std::move(frames), 0, count); };
  CATENA_ASSIGN_OR_RETURN(auto samples,
                          run_on_cpu(encrypting_chain(), text_for(frame_bytes, std::move(sa)), source, workplace));
  return bytes_of(std::move(samples));
}

Result<std::vector<Sample>> reference_run(PaperChain const& chain, std::vector<Frame> const& frames, bool counted,
                                          std::uint64_t run, Workplace const& workplace) {
  const std::uint64_t first = run * io::kReplaySampleRun;
  const std::uint64_t before = first == 0 ? 0 : frames.size();
  std::vector<Frame> input;
  for (std::uint64_t number = 0; number < before; ++number) {
    input.push_back(frames[number]);
  }
  for (std::uint64_t number = first; number < first + io::kReplaySampleRun; ++number) {
    Frame const& frame = frames[number % frames.size()];
    input.push_back(counted ? numbered(frame, number) : frame);
  }
  // an association encrypts every packet: the number of packets before is the number of sequence numbers used
  CATENA_ASSIGN_OR_RETURN(std::string sa, write_sa(workplace.data, workplace.folder, spi_of(0),
                                                   static_cast<std::uint32_t>(first - before + 1)));
  const std::uint64_t count = input.size();
  const auto source = [&input, count] { return io::make_frame_replay(std::move(input), 0, count); };
  CATENA_ASSIGN_OR_RETURN(
      std::vector<Sample> samples,
      run_on_cpu(chain, text_for(static_cast<std::uint32_t>(frames.front().size()), std::move(sa)), source, workplace));
  samples.erase(samples.begin(),
                samples.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(before, samples.size())));
  for (Sample& sample : samples) {
    sample.index += first - before;
  }
  return samples;
}

Result<std::vector<std::vector<Frame>> const*> References::esp(std::uint32_t frame_bytes, std::uint32_t copies) {
  std::vector<std::vector<Frame>>& made = esp_[frame_bytes];
  while (made.size() < copies) {
    CATENA_ASSIGN_OR_RETURN(auto frames, esp_frames(frame_bytes, static_cast<std::uint32_t>(made.size()), *workplace_));
    made.push_back(std::move(frames));
  }
  return &made;
}

Result<std::vector<Sample> const*> References::samples(PaperChain const& chain, std::uint32_t frame_bytes,
                                                       std::uint64_t runs) {
  std::vector<Sample>& samples = samples_[{chain.name, frame_bytes}];
  std::vector<Frame> frames;
  while (samples.size() / io::kReplaySampleRun < runs) {
    const std::uint64_t run = samples.size() / io::kReplaySampleRun * sample_every_;
    if (frames.empty() && chain.esp_input) {
      CATENA_ASSIGN_OR_RETURN(const auto* const copies, esp(frame_bytes, 1));
      frames = copies->front();
    } else if (frames.empty()) {
      CATENA_ASSIGN_OR_RETURN(frames, clear_frames(frame_bytes, *workplace_));
    }
    CATENA_ASSIGN_OR_RETURN(auto more, reference_run(chain, frames, !chain.esp_input, run, *workplace_));
    if (more.size() != io::kReplaySampleRun) {
      return absl::InternalError(concat("the chain on the CPU gave ", more.size(), " packets to compare with"));
    }
    std::move(more.begin(), more.end(), std::back_inserter(samples));
  }
  return &samples;
}

}  // namespace catena::bench
