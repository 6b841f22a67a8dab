// SPDX-License-Identifier: Apache-2.0
#include <catena/core/counter.hpp>
#include "base/core/file_format.hpp"
#include "io/sink.hpp"

#include <spdlog/spdlog.h>
#include <catena/core/text.hpp>
#include <catena/core/time.hpp>
#include <catena/packet/fragments.hpp>

#include <array>
#include <bit>
#include <cstring>
#include <utility>

namespace catena::io {
namespace {

// Headers of a pcap file with nanosecond stamps, in the byte order of the writer (draft-ietf-opsawg-pcap, sections 4
// and 5). Written by hand: a memcpy for each packet instead of two locked fwrite calls.
struct FileHeader {
  std::uint32_t magic = kPcapNsMagic;
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

class PcapSink final : public Sink {
 public:
  explicit PcapSink(OutputFile file) : file_(std::move(file)), buffer_(kBufferBytes) {
    const FileHeader header;
    append(&header, sizeof header);
  }
  ~PcapSink() override {
    if (!finished_) {  // a run that ended early: keep what it did
      if (const Status status = finish(); !status.ok()) {
        spdlog::error("{}", status.ToString());
      }
    }
  }
  PcapSink(PcapSink const&) = delete;
  PcapSink& operator=(PcapSink const&) = delete;

  Status send(memory::PacketPool& pool, memory::Unit& unit) override {
    const packet::Batch batch = pool.batch(unit);
    for (std::uint32_t i = 0; i < batch.size() && failure_.ok(); ++i) {
      if (batch[i].verdict() != packet::Verdict::kDrop) {
        write_packet(batch[i], pool.missing(unit.slots()[i]));
      }
    }
    pool.release_slots(unit, 0, unit.count);
    if (file_.is_stream()) {  // its reader waits
      flush();
    }
    return failure_;
  }

  Status finish() override {
    if (!finished_) {
      finished_ = true;
      flush();
      failure_.Update(file_.close());
    }
    return failure_;
  }

  SinkCounts counts() const override { return {sent_, {{"df_set", df_set_}}, fragments_}; }
  std::string describe() const override { return concat("pcap ", file_.path()); }

 private:
  /// `missing`: bytes that the capture of rx lacks.
  void write_packet(packet::Packet const& packet, std::uint32_t missing) {
    const std::uint32_t frames = packet::leaves_in(packet);
    if (frames == 1) {
      write_frame(packet.arrival_ns(), packet.frame(), packet.length(), missing);
    } else if (frames == 0) {
      ++df_set_;
      return;
    } else {
      const packet::Fragments fragments(packet);
      for (std::uint32_t i = 0; i < frames; ++i) {
        std::array<std::uint8_t, packet::kSlotBytes> frame;
        write_frame(packet.arrival_ns(), frame.data(), fragments.write(i, frame.data()), 0);
      }
      fragments_ += frames;
    }
    sent_ += failure_.ok() ? 1 : 0;
  }

  void write_frame(std::uint64_t arrival_ns, const std::uint8_t* frame, std::uint32_t length, std::uint32_t missing) {
    if (used_ + sizeof(RecordHeader) + length > buffer_.size()) {
      flush();
      if (!failure_.ok()) {
        return;
      }
    }
    const RecordHeader header{static_cast<std::uint32_t>(arrival_ns / kNsPerSecond),
                              static_cast<std::uint32_t>(arrival_ns % kNsPerSecond), length, length + missing};
    append(&header, sizeof header);
    append(frame, length);
  }

  void append(const void* bytes, std::size_t count) {
    std::memcpy(buffer_.data() + used_, bytes, count);
    used_ += count;
  }

  void flush() {
    failure_.Update(file_.write(buffer_.data(), used_));
    used_ = 0;
  }

  OutputFile file_;
  std::vector<std::uint8_t> buffer_;
  std::size_t used_ = 0;
  Counter sent_;
  Counter df_set_;
  Counter fragments_;
  bool finished_ = false;
  Status failure_;
};

}  // namespace

Result<std::unique_ptr<Sink>> open_pcap_sink(std::string const& path) {
  CATENA_ASSIGN_OR_RETURN(OutputFile file, OutputFile::open(path, OutputBegin::kReplaced));
  CATENA_RETURN_IF_ERROR(file.start());
  return make_pcap_sink(std::move(file));
}

std::unique_ptr<Sink> make_pcap_sink(OutputFile file) { return std::make_unique<PcapSink>(std::move(file)); }

}  // namespace catena::io
