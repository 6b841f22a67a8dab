// SPDX-License-Identifier: Apache-2.0
#include "base/core/open_file.hpp"
#include "io/capture.hpp"
#include "io/output_file.hpp"
#include "io/source.hpp"

#include <catena/core/counter.hpp>
#include <catena/core/escape.hpp>
#include <catena/core/text.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace catena::io {
namespace {

/// One receive() inspects no more frames than this, however many of them are too long.
constexpr std::uint32_t kLooksPerPacket = 16;
constexpr std::uint64_t kPassGapNs = 1000;

class PcapSource final : public Source {
 public:
  PcapSource(std::string path, std::uint64_t loops, OpenedFile file, std::unique_ptr<CaptureReader> capture)
      : path_(std::move(path)),
        loops_(loops),
        file_(std::move(file.fd)),
        capture_(std::move(capture)),
        file_bytes_(static_cast<std::uint64_t>(file.status.st_size)) {}

  Status receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index, bool& starved) override {
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
      Result<std::optional<CapturedFrame>> frame = capture_->next();
      if (!frame.ok() || !frame->has_value()) {
        end_pass(std::move(frame).status());
        continue;
      }
      ++seen_;
      ++frames_in_pass_;
      const std::uint64_t index = next_index++;
      const std::span<const std::uint8_t> bytes = (*frame)->bytes;
      if (bytes.size() > packet::kMaxFrameBytes) {
        ++too_long_;
        continue;
      }
      const std::uint32_t slot = unit.slots()[filled];
      std::memcpy(pool.slot(slot) + packet::kSlotHeadroom, bytes.data(), bytes.size());
      pool.set_arrived(slot, static_cast<std::uint32_t>(bytes.size()), index, arrival_ns((*frame)->stamp_ns));
      pool.set_missing(slot, (*frame)->missing);
      ++filled;
    }
    if (filled < room) {
      pool.release_slots(unit, filled, room - filled);
    }
    unit.count = filled;
    show_part_done();
    return filled == 0 ? failure_ : absl::OkStatus();
  }

  bool finished() const override { return ended_ && failure_.ok(); }
  SourceCounts counts() const override { return {seen_, {{"too_long", too_long_}}}; }
  double part_done() const override { return part_done_.load(std::memory_order_relaxed); }
  std::string describe() const override {
    return loops_ == 1 ? concat("pcap ", path_) : concat("pcap ", path_, ", ", loops_, " times");
  }

 private:
  void show_part_done() {
    if (file_bytes_ > 0) {
      const double of_pass = std::min(1.0, static_cast<double>(capture_->offset()) / static_cast<double>(file_bytes_));
      const double passes = static_cast<double>(passes_) + (ended_ ? 0 : of_pass);
      part_done_.store(passes / static_cast<double>(loops_), std::memory_order_relaxed);
    }
  }

  /// When the frame arrived; further passes follow the first.
  std::uint64_t arrival_ns(std::uint64_t stamp) {
    earliest_ns_ = std::min(earliest_ns_, stamp);
    latest_ns_ = std::max(latest_ns_, stamp);
    return stamp + passes_ * (latest_ns_ - earliest_ns_ + kPassGapNs);
  }

  /// After the last frame, or if it cannot be read (`status`): starts the next pass, or ends.
  void end_pass(Status status) {
    if (!status.ok()) {
      ended_ = true;
      failure_ = std::move(status);
      return;
    }
    ++passes_;
    if (passes_ == loops_ || frames_in_pass_ == 0) {
      ended_ = true;
      return;
    }
    frames_in_pass_ = 0;
    Result<std::unique_ptr<CaptureReader>> again = open_capture(file_, path_);
    if (again.ok()) {
      capture_ = *std::move(again);
    } else {
      ended_ = true;
      failure_ = std::move(again).status();
    }
  }

  std::string path_;
  std::uint64_t loops_;
  FileDescriptor file_;
  std::unique_ptr<CaptureReader> capture_;  ///< reads file_
  std::uint64_t file_bytes_;
  std::uint64_t passes_ = 0;
  std::uint64_t earliest_ns_ = UINT64_MAX;
  std::uint64_t latest_ns_ = 0;
  std::uint64_t frames_in_pass_ = 0;
  std::atomic<double> part_done_{-1};
  Counter seen_;
  Counter too_long_;
  bool ended_ = false;
  Status failure_;
};

Result<OpenedFile> open_standard_input() {
  OpenedFile input{FileDescriptor(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0))};
  if (acts_for_another_user()) {
    return absl::PermissionDeniedError("standard input is the service's own");
  }
  return input.fd ? Result<OpenedFile>(std::move(input))
                  : absl::NotFoundError(concat("standard input: cannot be opened: ", std::strerror(errno)));
}

Result<OpenedFile> open_named(std::string const& path) {
  if (const std::string error = socket_error(path); !error.empty()) {
    return absl::InvalidArgumentError(error);
  }
  Result<OpenedFile> file = open_to_read(path, kAnyStream);
  return absl::IsInvalidArgument(file.status())
             ? absl::InvalidArgumentError(concat(escaped(path), ": not a pcap or pcapng capture: it is a folder"))
             : std::move(file);
}

}  // namespace

Result<std::unique_ptr<Source>> open_pcap_source(std::string const& path, std::uint64_t loops,
                                                 std::stop_token const& give_up) {
  if (loops == 0) {
    return absl::InvalidArgumentError(concat(escaped(path), ": 0 loops: write 1 or more"));
  }
  CATENA_ASSIGN_OR_RETURN(OpenedFile file, path == kStandardStream ? open_standard_input() : open_named(path));
  if (path != kStandardStream && file.is_regular()) {
    CATENA_ASSIGN_OR_RETURN(std::unique_ptr<CaptureReader> capture, open_capture(file.fd, path));
    return std::make_unique<PcapSource>(path, loops, std::move(file), std::move(capture));
  }
  return loops == 1
             ? open_stream_source(std::move(file.fd), path == kStandardStream ? "standard input" : path, give_up)
             : absl::InvalidArgumentError(concat(escaped(path), ": no regular file, so it is read only once: write 1"));
}

Result<std::vector<SampledFrame>> sample_capture(std::string const& path, std::size_t most) {
  CATENA_ASSIGN_OR_RETURN(const OpenedFile file, open_to_read(path, kRegularFile));
  CATENA_ASSIGN_OR_RETURN(const std::unique_ptr<CaptureReader> capture, open_capture(file.fd, path));
  std::vector<SampledFrame> frames;
  for (std::size_t looks = 0; looks < most; ++looks) {
    const Result<std::optional<CapturedFrame>> frame = capture->next();
    if (!frame.ok() || !frame->has_value()) {
      break;
    }
    const auto bytes = static_cast<std::uint32_t>((*frame)->bytes.size());
    if (bytes <= packet::kMaxFrameBytes) {
      frames.push_back({bytes, packet::parse((*frame)->bytes.data(), bytes)});
    }
  }
  return frames;
}

Status verify_capture(std::string const& path) {
  CATENA_ASSIGN_OR_RETURN(const OpenedFile file, open_to_read(path, kRegularFile));
  CATENA_ASSIGN_OR_RETURN(const std::unique_ptr<CaptureReader> capture, open_capture(file.fd, path));
  for (;;) {
    CATENA_ASSIGN_OR_RETURN(const std::optional<CapturedFrame> frame, capture->next());
    if (!frame) {
      return absl::OkStatus();
    }
  }
}

}  // namespace catena::io
