// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "flow_sums.hpp"
#include "monitor.hpp"

#include <catena/core/testing/scratch_folder.hpp>
#include <catena/nf/testing/harness.hpp>

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Shared by the tests of this NF.
namespace catena::monitor {

inline constexpr std::uint64_t kTestSecond = 1'000'000'000;

std::ostream& operator<<(std::ostream& out, FlowRecord const& record);

std::ostream& operator<<(std::ostream& out, FlowSum const& sum);

/// Stores the received records and their times.
class RecordingSink final : public RecordSink {
 public:
  void add(FlowRecord const& record, std::uint64_t clock_ns) override {
    records.push_back(record);
    clocks.push_back(clock_ns);
  }
  void second_passed(std::uint64_t clock_ns) override { seconds.push_back(clock_ns); }

  std::vector<FlowRecord> records;
  std::vector<std::uint64_t> clocks;
  std::vector<std::uint64_t> seconds;
};

namespace testing {

using catena::ScratchFolder;

/// Addresses in host order.
constexpr packet::Ipv4FlowKey key(std::uint32_t source, std::uint32_t destination, std::uint16_t source_port,
                                  std::uint16_t destination_port, std::uint8_t protocol) {
  return packet::Ipv4FlowKey::of(packet::FlowKey::of_v4(source, destination, source_port, destination_port, protocol));
}

/// Removes flows.jsonl and flows.ipfix, to which monitors append.
void remove_flows(ScratchFolder const& folder);

/// Runs a monitor with this configuration over the frames, on the CPU or on a device; relative file names start in
/// `folder`, after remove_flows(). Expects no dropped or changed packet and, with a device, kernel execution.
nf::testing::RunResult run(std::string_view yaml, std::vector<nf::testing::Frame> const& frames,
                           ScratchFolder const& folder, nf::testing::RunOptions const& options = {},
                           device::Device* device = nullptr);

/// Traffic of many flows with pauses, decreasing stamps, several protocols, and truncated frames.
struct Traffic {
  explicit Traffic(std::size_t packets, std::uint32_t seed = 11);
  std::vector<nf::testing::Frame> frames;
  std::vector<std::uint64_t> arrivals_ns;
};

/// The kernel's expected results for the packets of a launch, as defined by FlowResult.
std::vector<FlowResult> results_of(std::span<const Observation> launch);
/// The expected SummedBatch for the packets of a batch that begins in row `first_row` of its launch.
SummedBatch summed(std::span<const Observation> batch, std::uint32_t first_row = 0);

std::uint64_t statistic(nf::testing::RunResult const& result, std::string_view name);

/// A UDP socket on the loopback interface, on a port chosen by the system.
class Receiver {
 public:
  /// Listens on `port`, or on a free one.
  explicit Receiver(std::uint16_t port = 0);
  ~Receiver();
  Receiver(Receiver const&) = delete;
  Receiver& operator=(Receiver const&) = delete;
  std::uint16_t port() const { return port_; }
  /// The received datagrams, each of at most 65,535 bytes.
  std::vector<std::vector<std::uint8_t>> take() const;

 private:
  int socket_;
  std::uint16_t port_;
};

}  // namespace testing
}  // namespace catena::monitor
