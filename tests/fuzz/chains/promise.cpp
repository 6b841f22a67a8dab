// SPDX-License-Identifier: Apache-2.0
#include "fuzz/chains/promise.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <sstream>
#include <unordered_map>

namespace catena::fuzz {
namespace {

constexpr std::string_view kLost = "device_failed";
constexpr std::size_t kFileHeader = 24;

std::uint64_t lost_at(runtime::NfReport const& nf) {
  std::uint64_t sum = 0;
  for (io::NamedCount const& drop : nf.packets.drops) {
    sum += drop.name == kLost ? drop.count : 0;
  }
  return sum;
}

/// Of a packet in a capture that tx wrote: which of those that came it is, and its frames with their headers.
struct SentPacket {
  std::size_t number;
  std::string frames;
};

/// Packets are known by their stamps, of which no two are the same; they need not rise.
std::vector<SentPacket> packets_of(std::string const& capture, std::vector<CapturedFrame> const& frames) {
  struct Header {
    std::uint32_t seconds;
    std::uint32_t nanoseconds;
    std::uint32_t bytes;
    std::uint32_t on_wire;
  };
  constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
  std::unordered_map<std::uint64_t, std::size_t> number_of;
  for (CapturedFrame const& frame : frames) {
    number_of.emplace(frame.stamp_ns, number_of.size());
  }
  std::vector<SentPacket> packets;
  for (std::size_t at = kFileHeader; at + sizeof(Header) <= capture.size();) {
    Header header{};
    std::memcpy(&header, capture.data() + at, sizeof header);
    const std::size_t number = number_of.at(header.seconds * kNsPerSecond + header.nanoseconds);
    const std::size_t bytes = sizeof header + header.bytes;
    if (packets.empty() || packets.back().number != number) {
      packets.push_back({number, {}});
    }
    packets.back().frames += capture.substr(at, bytes);
    at += bytes;
  }
  return packets;
}

/// The first packet that came too late or, if there is an `expected`, that is not what the CPU made of it.
std::string wrong_packet(std::vector<SentPacket> const& sent, std::map<std::size_t, std::string> const* expected) {
  std::optional<std::size_t> last;
  for (SentPacket const& packet : sent) {
    if (last && packet.number <= *last) {
      return concat("packet ", packet.number, " came after packet ", *last);
    }
    last = packet.number;
    if (expected == nullptr) {
      continue;
    }
    const auto found = expected->find(packet.number);
    if (found == expected->end()) {
      return concat("packet ", packet.number, " was sent, which the CPU drops");
    }
    if (packet.frames != found->second) {
      return concat("packet ", packet.number, " has other bytes than on the CPU");
    }
  }
  return {};
}

/// The first line that the CPU did not write, or not there; what was lost aside.
std::string wrong_record(std::string const& records, std::string const& expected) {
  std::istringstream actual_lines(records);
  std::istringstream expected_lines(expected);
  std::string actual;
  std::string line;
  while (std::getline(actual_lines, actual)) {
    if (actual.find(kLost) != std::string::npos) {
      continue;
    }
    do {
      if (!std::getline(expected_lines, line)) {
        return concat("the CPU has no record ", actual);
      }
    } while (line != actual);
  }
  return {};
}

/// Whether what this NF makes of a packet depends on those before it.
bool remembers(FuzzNf const& nf) {
  const bool limits_answers = nf.type == "router" && nf.config.find("address:") != std::string::npos;
  return nf.type == "nat" || nf.type == "lb" || nf.type == "ipsec" || limits_answers;
}

/// Whether packets can be compared that are lost at NF `first` and after it.
bool can_compare(FuzzChain const& chain, std::size_t first) {
  // the window of a decrypting one is moved after the device
  const bool has_window = chain.nfs[first].config.find("decrypt") != std::string::npos;
  return !has_window &&
         std::none_of(chain.nfs.begin() + static_cast<std::ptrdiff_t>(first) + 1, chain.nfs.end(), remembers);
}

std::uint64_t max_lost(Variant const& variant) {
  // where the device is sound what was in one launch, else what was in the chain
  return variant.fault->kind == DeviceFault::Kind::kOnce
             ? std::uint64_t{variant.tuning.units_per_launch} * variant.tuning.unit_packets
             : variant.tuning.pool_slots;
}

/// All NFs of the chain leave the device together, or none.
std::string wrong_place(RunOutput const& run, FuzzChain const& chain, std::uint32_t gpu_mask) {
  std::vector<runtime::NfReport> const& nfs = run.report.nfs;
  const bool has_failed =
      std::any_of(nfs.begin(), nfs.end(), [](runtime::NfReport const& nf) { return !nf.device.error.empty(); });
  for (std::size_t i = 0; i < chain.nfs.size(); ++i) {
    const std::string_view place = (gpu_mask >> i & 1U) == 0 ? "cpu" : has_failed ? "gpu -> cpu" : "gpu";
    if (nfs[i].placement != place) {
      return concat("NF ", nfs[i].name, " is on ", nfs[i].placement, ", not ", std::string(place));
    }
    if (nfs[i].device.kernel_faults != 0) {
      return concat("NF ", nfs[i].name, ": its kernel reached out of bounds ", nfs[i].device.kernel_faults, " times");
    }
  }
  return {};
}

bool is_out_of_slots(Status const& status) {
  return absl::IsResourceExhausted(status) &&
         status.message().find("slots of the packet pool") != std::string_view::npos;
}

}  // namespace

std::string broken_promise(RunOutput const& run, RunOutput const& expected, FuzzChain const& chain,
                           std::vector<CapturedFrame> const& frames, Variant const& variant) {
  runtime::Report const& report = run.report;
  const bool is_sound = variant.fault->kind == DeviceFault::Kind::kOnce;
  if (!run.status.ok() && (is_sound || !is_out_of_slots(run.status))) {
    return concat("the run failed: ", run.status.ToString());
  }
  if (!report.accounted()) {
    return concat("not balanced: ", report.rx.seen, " seen, ", report.tx.sent, " sent, ", report.dropped(), " dropped");
  }
  if (is_sound && report.rx.slots_in_use != 0) {
    return concat(report.rx.slots_in_use, " slots did not come back");
  }
  if (std::string wrong = wrong_place(run, chain, variant.gpu_mask); !wrong.empty()) {
    return wrong;
  }
  std::uint64_t lost = 0;
  std::size_t first = chain.nfs.size();
  for (std::size_t i = chain.nfs.size(); i-- > 0;) {
    if (const std::uint64_t here = lost_at(report.nfs[i]); here > 0) {
      lost += here;
      first = i;
    }
  }
  if (lost > max_lost(variant)) {
    return concat(lost, " packets were lost with the device, not ", max_lost(variant), " at most");
  }
  if (lost == 0 && run.status.ok()) {
    return difference(run, expected, true);
  }
  for (std::size_t i = 0; i < first && run.status.ok(); ++i) {
    if (std::string wrong = nf_difference(report.nfs[i], expected.report.nfs[i]); !wrong.empty()) {
      return wrong;
    }
  }
  if (lost > 0 && !can_compare(chain, first)) {
    return wrong_packet(packets_of(run.capture, frames), nullptr);
  }
  std::map<std::size_t, std::string> on_cpu;
  for (SentPacket& packet : packets_of(expected.capture, frames)) {
    on_cpu[packet.number] = std::move(packet.frames);
  }
  if (std::string wrong = wrong_packet(packets_of(run.capture, frames), &on_cpu); !wrong.empty()) {
    return wrong;
  }
  return wrong_record(run.records, expected.records);
}

}  // namespace catena::fuzz
