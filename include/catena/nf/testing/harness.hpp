// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>
#include <catena/packet/testing/frames.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace catena::device {
class Device;
}

namespace catena::nf {
class Instance;
}

/// Runs one NF over frames on the CPU or on a device, without a data path, for tests of NFs.
namespace catena::nf::testing {

// Frames are what tests of NFs are written in: their names are here, too.
using packet::testing::answer_to;
using packet::testing::destination_of;
using packet::testing::destination_port_of;
using packet::testing::ends_after;
using packet::testing::fragment_of;
using packet::testing::Frame;
using packet::testing::has_right_checksums;
using packet::testing::in_two;
using packet::testing::internet_checksum;
using packet::testing::kAck;
using packet::testing::kFin;
using packet::testing::kL3;
using packet::testing::kL4;
using packet::testing::kPsh;
using packet::testing::kRst;
using packet::testing::kSyn;
using packet::testing::make_arp_request;
using packet::testing::make_datagram;
using packet::testing::make_echo;
using packet::testing::make_error;
using packet::testing::make_frame;
using packet::testing::make_icmp;
using packet::testing::make_segment;
using packet::testing::quote_of;
using packet::testing::source_of;
using packet::testing::source_port_of;
using packet::testing::with_checksums;
using packet::testing::with_ends;
using packet::testing::with_fragment;
using packet::testing::with_header_checksum;
using packet::testing::with_options;
using packet::testing::with_tos;
using packet::testing::with_vlan;

/// The result for one frame.
struct PacketResult {
  Frame frame;  ///< after the NF
  packet::Verdict verdict = packet::Verdict::kPass;
  std::uint16_t port = 0;
  bool operator==(PacketResult const&) const = default;
};

/// Counters of the framework, as in a chain's report.
struct RunCounters {
  std::uint64_t in = 0;              ///< live packets that reached the NF
  std::uint64_t processed = 0;       ///< of `in`: given to the NF
  std::uint64_t unsupported = 0;     ///< of `in`: packets that it cannot inspect
  std::uint64_t link_local = 0;      ///< of `in`: control frames that it does not inspect
  std::uint64_t kernel_faults = 0;   ///< accesses out of bounds
  std::uint64_t device_packets = 0;  ///< processed on the device
  std::uint64_t bytes_to_device = 0;
};

struct RunResult {
  std::vector<PacketResult> packets;                         ///< one per input frame, in order
  std::vector<std::string> records;                          ///< record lines in the format of `--record`
  std::vector<std::pair<std::string, std::uint64_t>> drops;  ///< every reason with its count
  RunCounters counters;
  std::uint64_t alerts = 0;
  std::vector<Statistic> statistics;
  std::uint64_t dropped(std::string_view reason) const;
};

struct RunOptions {
  std::uint32_t unit_size = 64;                ///< packets per unit
  std::vector<std::uint32_t> unit_sizes = {};  ///< instead: sizes of the units, used in turn and repeated; 0 is allowed
  std::uint32_t units_per_launch = 4;          ///< devices only
  std::optional<OnUnsupported> on_unsupported = {};  ///< nullopt: the descriptor's default
  LinkLocal link_local = LinkLocal::kPass;
  bool records = true;
  std::function<bool(std::size_t)> dropped_before = {};  ///< whether an earlier NF dropped frame i; empty: no drops
  std::vector<std::uint64_t> arrivals_ns = {};           ///< by frame; empty: 1 us apart, from 0
};

/// `yaml`: the NF's config mapping. `folder`: base of relative file names.
Result<std::unique_ptr<Nf>> make_nf(Descriptor const& descriptor, std::string_view yaml,
                                    std::string const& folder = ".");
/// `yaml`, in block style, with `key: 20000` added if it does not set `key`, the number of entries of a table. Creating
/// a table of the default size takes longer than most tests.
std::string with_room(std::string_view yaml, std::string_view key);

/// Processes `frames` with a fresh instance of the NF, on the CPU if `device` is null, else on the device.
/// Frames longer than packet::kMaxFrameBytes are an error.
Result<RunResult> run(Descriptor const& descriptor, std::unique_ptr<Nf> nf, std::vector<Frame> const& frames,
                      device::Device* device = nullptr, RunOptions const& options = {});

/// An NF on the CPU, run batch by batch as in a chain; for benchmarks, and for tests with actions between batches.
class CpuNf {
 public:
  /// `records`: whether it writes record lines, without a reader.
  CpuNf(Descriptor const& descriptor, std::unique_ptr<Nf> nf, bool records = false);
  ~CpuNf();
  CpuNf(CpuNf const&) = delete;
  CpuNf& operator=(CpuNf const&) = delete;

  void process(packet::Batch const& unit);
  std::uint64_t drops() const;  ///< for any reason
  std::uint64_t dropped(std::string_view reason) const;
  std::uint64_t alerts() const;
  Nf& nf();

 private:
  std::unique_ptr<Instance> instance_;
};

/// The devices for tests: the first OpenCL device and the first CUDA GPU, as far as present. Opened once.
std::vector<device::Device*> const& devices();
/// For messages; "CPU" for null.
std::string name_of(device::Device const* device);

/// The frames of a capture file (pcap or pcapng, Ethernet), without frames longer than `limit`.
Result<std::vector<Frame>> read_capture(std::string const& path, std::uint32_t limit = packet::kMaxFrameBytes);

}  // namespace catena::nf::testing
