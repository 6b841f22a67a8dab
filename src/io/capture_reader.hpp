// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

/// Reading capture files: pcap (draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng). Our own reader, because
/// libpcap refuses files whose interfaces have different snapshot lengths, and cuts frames to the file's snapshot
/// length even if the file holds more of them.
namespace catena::io {

/// As read(2): reads up to `bytes` bytes, returns their number, 0 at the end, or -1 with errno.
using ReadBytes = std::function<ssize_t(void* to, std::size_t bytes)>;

/// An Ethernet frame of a capture.
struct CapturedFrame {
  std::span<const std::uint8_t> bytes;  ///< valid until the next call of next()
  std::uint64_t stamp_ns = 0;           ///< since 1970; 0 for earlier stamps and for frames without one
  std::uint32_t missing = 0;            ///< bytes of the frame that were not captured
};

/// Longest frame of a capture, the limit of libpcap and Wireshark, too.
inline constexpr std::uint32_t kMaxCapturedBytes = 262'144;
/// Longest pcapng block with a frame or an interface. Blocks of other types may be longer.
inline constexpr std::uint32_t kMaxBlockBytes = 16 << 20;

/// Buffered bytes of a capture file.
class CaptureInput {
 public:
  explicit CaptureInput(ReadBytes read) : read_(std::move(read)) {}
  /// The next `count` bytes, without consuming them. Fewer at the end of the file or after a failed read.
  std::span<const std::uint8_t> peek(std::size_t count);
  /// Consumes `count` of the peeked bytes.
  void consume(std::size_t count) { begin_ += count; }
  /// Skips `count` bytes. False if the file has fewer.
  bool skip(std::uint64_t count);
  /// Of the last failed read; 0: all succeeded.
  int error() const { return error_; }
  /// Bytes consumed since the start of the file.
  std::uint64_t offset() const { return offset_of_buffer_ + begin_; }

 private:
  ReadBytes read_;
  std::vector<std::uint8_t> buffer_;
  std::size_t begin_ = 0;  ///< of the bytes not consumed
  std::size_t end_ = 0;
  std::uint64_t offset_of_buffer_ = 0;
  bool is_at_end_ = false;
  int error_ = 0;
};

/// Reads the frames of one capture in order. Frames of Linux cooked captures (link types LINUX_SLL and LINUX_SLL2) get
/// an Ethernet header with the source address and EtherType of the cooked header and destination 00:00:00:00:00:00.
/// Thread rule: one thread at a time.
class CaptureReader {
 public:
  virtual ~CaptureReader() = default;
  /// Opens the capture that `read` delivers. `name` is for messages. InvalidArgument if it is no pcap or pcapng
  /// capture, or if the link type of a pcap file, or of the first pcapng interface, is not supported.
  static Result<std::unique_ptr<CaptureReader>> open(ReadBytes read, std::string name);
  /// The next frame, nullopt at the end. DataLoss if the file is damaged, ends inside a frame or cannot be read, or if
  /// the link type of the frame is not supported; no call follows.
  virtual Result<std::optional<CapturedFrame>> next() = 0;
  /// Bytes read so far, for progress.
  virtual std::uint64_t offset() const = 0;
};

/// Name of a link type (LINKTYPE_ value of a file) with its number, for messages.
std::string link_type_text(std::uint32_t link_type);

}  // namespace catena::io
