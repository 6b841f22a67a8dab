// SPDX-License-Identifier: Apache-2.0
#include "dataplane/io/source.hpp"

#include <pcap/pcap.h>
#include <catena/core/text.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace catena::dataplane {
namespace {

constexpr std::size_t kReadBufferBytes = 256 << 10;
/// One receive() looks at no more frames than this, however many of them are too long.
constexpr std::uint32_t kLooksPerPacket = 16;
constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
constexpr std::uint64_t kPassGapNs = 1000;

struct ClosePcap {
  void operator()(pcap_t* capture) const { pcap_close(capture); }
};

struct Capture {
  std::unique_ptr<char[]> buffer;  // used by the file until it is closed
  std::unique_ptr<pcap_t, ClosePcap> pcap;
};

Result<Capture> open_capture(std::string const& path) {
  std::FILE* file = std::fopen(path.c_str(), "rbe");
  if (file == nullptr) {
    return absl::NotFoundError(concat(path, ": cannot be opened: ", std::strerror(errno)));
  }
  Capture capture;
  capture.buffer = std::make_unique<char[]>(kReadBufferBytes);
  std::setvbuf(file, capture.buffer.get(), _IOFBF, kReadBufferBytes);
  char error[PCAP_ERRBUF_SIZE] = "";
  capture.pcap.reset(pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, error));
  if (!capture.pcap) {
    std::fclose(file);
    return absl::InvalidArgumentError(concat(path, ": not a pcap or pcapng capture: ", error));
  }
  const int link_type = pcap_datalink(capture.pcap.get());
  if (link_type != DLT_EN10MB) {
    const char* name = pcap_datalink_val_to_name(link_type);
    return absl::InvalidArgumentError(concat(path, ": captured with link type ", name != nullptr ? name : "unknown",
                                             " (", link_type, "): give a capture of Ethernet frames (EN10MB)"));
  }
  return capture;
}

class PcapSource final : public Source {
 public:
  PcapSource(std::string path, std::uint64_t loops, Capture capture)
      : path_(std::move(path)), loops_(loops), capture_(std::move(capture)) {}

  Status receive(PacketPool& pool, Unit& unit, std::uint64_t next_index, bool& starved) override {
    if (ended_) {
      return failure_;
    }
    const std::uint32_t room = pool.unit_packets();
    if (!pool.acquire_slots(unit, room)) {
      starved = true;
      return absl::OkStatus();
    }
    std::uint32_t filled = 0;
    for (std::uint32_t looks = 0; looks < kLooksPerPacket * room && filled < room && !ended_; ++looks) {
      pcap_pkthdr* header = nullptr;
      const u_char* bytes = nullptr;
      if (const int got = pcap_next_ex(capture_.pcap.get(), &header, &bytes); got != 1) {
        end_pass(got);
        continue;
      }
      ++seen_;
      ++frames_in_pass_;
      if (header->caplen > packet::kMaxFrameBytes) {
        ++too_long_;
        continue;
      }
      const std::uint32_t slot = unit.slots[filled];
      std::memcpy(pool.slot(slot) + packet::kSlotHeadroom, bytes, header->caplen);
      pool.set_arrived(slot, header->caplen, next_index + filled, arrival_ns(*header));
      ++filled;
    }
    if (filled < room) {
      pool.release_slots(unit, filled, room - filled);
    }
    unit.count = filled;
    return filled == 0 ? failure_ : absl::OkStatus();
  }

  bool finished() const override { return ended_ && failure_.ok(); }
  std::uint64_t seen() const override { return seen_; }
  std::vector<NamedCount> drops() const override { return {{"too_long", too_long_}}; }
  std::string describe() const override {
    return loops_ == 1 ? concat("pcap ", path_) : concat("pcap ", path_, ", ", loops_, " times");
  }

 private:
  /// When the frame arrived; further passes follow the first.
  std::uint64_t arrival_ns(pcap_pkthdr const& header) {
    // the capture was opened for nanoseconds: tv_usec holds them
    const std::uint64_t stamp = static_cast<std::uint64_t>(std::max<std::int64_t>(0, header.ts.tv_sec)) * kNsPerSecond +
                                static_cast<std::uint64_t>(std::max<std::int64_t>(0, header.ts.tv_usec));
    earliest_ns_ = std::min(earliest_ns_, stamp);
    latest_ns_ = std::max(latest_ns_, stamp);
    return stamp + passes_ * (latest_ns_ - earliest_ns_ + kPassGapNs);
  }

  /// After pcap_next_ex() gave no frame: starts the next pass, or ends.
  void end_pass(int got) {
    if (got != PCAP_ERROR_BREAK) {
      ended_ = true;
      failure_ = absl::DataLossError(
          concat(path_, ": frame ", frames_in_pass_ + 1, " cannot be read: ", pcap_geterr(capture_.pcap.get())));
      return;
    }
    ++passes_;
    if (passes_ == loops_ || frames_in_pass_ == 0) {
      ended_ = true;
      return;
    }
    frames_in_pass_ = 0;
    Result<Capture> again = open_capture(path_);
    if (again.ok()) {
      capture_ = std::move(again).value();
    } else {
      ended_ = true;
      failure_ = std::move(again).status();
    }
  }

  std::string path_;
  std::uint64_t loops_;
  Capture capture_;
  std::uint64_t passes_ = 0;
  std::uint64_t earliest_ns_ = UINT64_MAX;
  std::uint64_t latest_ns_ = 0;
  std::uint64_t frames_in_pass_ = 0;
  std::uint64_t seen_ = 0;
  std::uint64_t too_long_ = 0;
  bool ended_ = false;
  Status failure_;
};

}  // namespace

Result<std::unique_ptr<Source>> open_pcap_source(std::string const& path, std::uint64_t loops) {
  if (loops == 0) {
    return absl::InvalidArgumentError(concat(path, ": 0 loops: write 1 or more"));
  }
  CATENA_ASSIGN_OR_RETURN(Capture capture, open_capture(path));
  return std::make_unique<PcapSource>(path, loops, std::move(capture));
}

Result<std::vector<SampledFrame>> sample_capture(std::string const& path, std::size_t most) {
  CATENA_ASSIGN_OR_RETURN(const Capture capture, open_capture(path));
  std::vector<SampledFrame> frames;
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  for (std::size_t looks = 0; looks < most && pcap_next_ex(capture.pcap.get(), &header, &bytes) == 1; ++looks) {
    if (header->caplen <= packet::kMaxFrameBytes) {
      frames.push_back({header->caplen, packet::parse(bytes, header->caplen)});
    }
  }
  return frames;
}

}  // namespace catena::dataplane
