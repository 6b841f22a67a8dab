// SPDX-License-Identifier: Apache-2.0
#include "dataplane/io/sink.hpp"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>
#include <catena/core/text.hpp>
#include <catena/packet/fragments.hpp>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

namespace catena::dataplane {
namespace {

// Headers of a pcap file with nanosecond stamps, in the byte order of the writer (draft-ietf-opsawg-pcap, sections 4
// and 5). Written by hand: a memcpy for each packet instead of two locked fwrite calls.
struct FileHeader {
  std::uint32_t magic = 0xA1B23C4D;
  std::uint16_t major_version = 2;
  std::uint16_t minor_version = 4;
  std::uint32_t reserved[2] = {0, 0};
  std::uint32_t snap_length = 65535;
  std::uint32_t link_type = 1;  // Ethernet
};
static_assert(sizeof(FileHeader) == 24);

struct RecordHeader {
  std::uint32_t seconds;
  std::uint32_t nanoseconds;
  std::uint32_t captured_length;
  std::uint32_t original_length;
};
static_assert(sizeof(RecordHeader) == 16);
static_assert(std::endian::native == std::endian::little, "the same packets give the same file on every machine");

constexpr std::size_t kBufferBytes = 1 << 20;
constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

class PcapSink final : public Sink {
 public:
  PcapSink(std::string path, int file) : path_(std::move(path)), file_(file), buffer_(kBufferBytes) {
    const FileHeader header;
    append(&header, sizeof header);
  }
  ~PcapSink() override {
    if (file_ >= 0) {  // a run that ended early: keep what it did
      if (const Status status = finish(); !status.ok()) {
        spdlog::error("{}", status.ToString());
      }
    }
  }
  PcapSink(PcapSink const&) = delete;
  PcapSink& operator=(PcapSink const&) = delete;

  Status send(PacketPool& pool, Unit& unit) override {
    const packet::Batch batch = pool.batch(unit);
    for (std::uint32_t i = 0; i < batch.size() && failure_.ok(); ++i) {
      if (batch[i].verdict() != packet::Verdict::kDrop) {
        write_packet(batch[i]);
      }
    }
    pool.release_slots(unit, 0, unit.count);
    return failure_;
  }

  Status finish() override {
    if (file_ >= 0) {
      flush();
      if (close(std::exchange(file_, -1)) != 0 && failure_.ok()) {
        fail("close");
      }
    }
    return failure_;
  }

  std::uint64_t sent() const override { return sent_; }
  std::vector<NamedCount> drops() const override { return {{"df_set", df_set_}}; }
  std::uint64_t fragments() const override { return fragments_; }
  std::string describe() const override { return concat("pcap ", path_); }

 private:
  void write_packet(packet::Packet const& packet) {
    const std::uint32_t frames = packet::leaves_in(packet);
    if (frames == 1) {
      write_frame(packet.index(), packet.frame(), packet.length());
    } else if (frames == 0) {
      ++df_set_;
      return;
    } else {
      const packet::Fragments fragments(packet);
      for (std::uint32_t i = 0; i < frames; ++i) {
        std::array<std::uint8_t, packet::kSlotBytes> frame;
        write_frame(packet.index(), frame.data(), fragments.write(i, frame.data()));
      }
      fragments_ += frames;
    }
    sent_ += failure_.ok() ? 1 : 0;
  }

  void write_frame(std::uint64_t index, const std::uint8_t* frame, std::uint32_t length) {
    if (used_ + sizeof(RecordHeader) + length > buffer_.size()) {
      flush();
      if (!failure_.ok()) {
        return;
      }
    }
    const RecordHeader header{static_cast<std::uint32_t>(index / kNsPerSecond),
                              static_cast<std::uint32_t>(index % kNsPerSecond), length, length};
    append(&header, sizeof header);
    append(frame, length);
  }

  void append(const void* bytes, std::size_t count) {
    std::memcpy(buffer_.data() + used_, bytes, count);
    used_ += count;
  }

  void flush() {
    std::size_t written = 0;
    while (written < used_ && failure_.ok()) {
      const ssize_t step = write(file_, buffer_.data() + written, used_ - written);
      if (step >= 0) {
        written += static_cast<std::size_t>(step);
      } else if (errno != EINTR) {
        fail("write");
      }
    }
    used_ = 0;
  }

  void fail(const char* call) {
    failure_ = absl::DataLossError(
        concat(path_, ": cannot be written, the file is incomplete: ", call, ": ", std::strerror(errno)));
  }

  std::string path_;
  int file_;
  std::vector<std::uint8_t> buffer_;
  std::size_t used_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t df_set_ = 0;
  std::uint64_t fragments_ = 0;
  Status failure_;
};

}  // namespace

Result<std::unique_ptr<Sink>> open_pcap_sink(std::string const& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) {
    const int error = errno;
    return absl::ErrnoToStatus(error, concat(path, ": cannot be created"));
  }
  return std::make_unique<PcapSink>(path, file);
}

}  // namespace catena::dataplane
