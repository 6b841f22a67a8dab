// SPDX-License-Identifier: Apache-2.0
#include "io/capture_reader.hpp"

#include "base/core/file_format.hpp"

#include <catena/core/escape.hpp>
#include <catena/core/text.hpp>
#include <catena/core/time.hpp>

#include <fmt/format.h>
#include <pcap/pcap.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace catena::io {
namespace {

constexpr std::size_t kReadBytes = 256 << 10;
constexpr std::size_t kEthernetBytes = 14;
/// No stamp is later: nanoseconds since 1970 fit into 63 bits.
constexpr std::uint64_t kMaxSeconds = 9'000'000'000;

/// Numbers of a file in its byte order.
struct ByteOrder {
  bool is_swapped = false;
  template <typename T>
  T read(std::span<const std::uint8_t> bytes, std::size_t offset) const {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    if (is_swapped) {
      if constexpr (sizeof(T) == 2) {
        value = __builtin_bswap16(value);
      } else {
        value = __builtin_bswap32(value);
      }
    }
    return value;
  }
  std::uint16_t u16(std::span<const std::uint8_t> bytes, std::size_t offset) const {
    return read<std::uint16_t>(bytes, offset);
  }
  std::uint32_t u32(std::span<const std::uint8_t> bytes, std::size_t offset) const {
    return read<std::uint32_t>(bytes, offset);
  }
};

std::uint16_t big_endian_16(const std::uint8_t* bytes) { return static_cast<std::uint16_t>(bytes[0] << 8 | bytes[1]); }

// ---- link types (LINKTYPE_ values of files)

/// Where a cooked header has what an Ethernet header needs.
struct CookedHeader {
  std::size_t bytes;
  std::size_t protocol;
  std::size_t address_length;        ///< offset of the length of the address
  std::size_t address_length_bytes;  ///< 1 or 2
  std::size_t address;
};

enum class Layout : std::uint8_t { kEthernet, kCooked };

struct LinkType {
  std::uint32_t number;
  Layout layout;
  CookedHeader cooked;
};

/// Supported link types.
constexpr LinkType kLinkTypes[] = {
    {1, Layout::kEthernet, {}},
    {113, Layout::kCooked, {16, 14, 4, 2, 6}},   // LINUX_SLL
    {276, Layout::kCooked, {20, 0, 11, 1, 12}},  // LINUX_SLL2
};

LinkType const* find_link_type(std::uint32_t number) {
  const auto* const found = std::ranges::find(kLinkTypes, number, &LinkType::number);
  return found == std::end(kLinkTypes) ? nullptr : found;
}

std::string unsupported_text(std::uint32_t link_type) {
  return concat("captured with link type ", link_type_text(link_type),
                ": give a capture of Ethernet frames (EN10MB) or a Linux cooked capture (LINUX_SLL, LINUX_SLL2)");
}

/// Replaces cooked headers. Owns the last frame that it has written.
class Uncooker {
 public:
  /// `frame` with an Ethernet header. A frame shorter than its cooked header is unchanged.
  std::span<const std::uint8_t> convert(CookedHeader const& header, std::span<const std::uint8_t> frame) {
    if (frame.size() < header.bytes) {
      return frame;
    }
    const std::size_t payload = frame.size() - header.bytes;
    frame_.assign(kEthernetBytes + payload, 0);
    const std::uint32_t length = header.address_length_bytes == 1 ? frame[header.address_length]
                                                                  : big_endian_16(frame.data() + header.address_length);
    constexpr std::size_t kMacBytes = 6;
    if (length == kMacBytes) {
      std::memcpy(frame_.data() + kMacBytes, frame.data() + header.address, kMacBytes);
    }
    constexpr std::uint16_t kFirstEtherType =
        0x0600;  // smaller numbers are Linux's own: such frames have a length field
    std::uint16_t type = big_endian_16(frame.data() + header.protocol);
    if (type < kFirstEtherType) {
      type = static_cast<std::uint16_t>(std::min<std::size_t>(payload, kFirstEtherType - 1));
    }
    frame_[2 * kMacBytes] = static_cast<std::uint8_t>(type >> 8);
    frame_[2 * kMacBytes + 1] = static_cast<std::uint8_t>(type);
    std::memcpy(frame_.data() + kEthernetBytes, frame.data() + header.bytes, payload);
    return frame_;
  }

 private:
  std::vector<std::uint8_t> frame_;
};

/// What both formats share: the input, messages, and frames of every supported link type.
class FileReader : public CaptureReader {
 public:
  FileReader(CaptureInput input, std::string name) : input_(std::move(input)), name_(std::move(name)) {}
  std::uint64_t offset() const override { return input_.offset(); }
  /// start() of the format has succeeded.
  void set_open() { is_open_ = true; }

 protected:
  CaptureInput& input() { return input_; }
  /// `text` in a message about the file.
  Status invalid(std::string_view text) const {
    return absl::InvalidArgumentError(input_.error() != 0
                                          ? concat(name_, ": cannot be read: ", std::strerror(input_.error()))
                                          : concat(name_, ": ", text));
  }
  /// `text` in a message about the frame after the last one read; before the capture is open, about the file.
  Status damaged(std::string_view text) const {
    if (!is_open_) {
      return invalid(concat("not a pcap or pcapng capture: ", text));
    }
    return absl::DataLossError(concat(name_, ": frame ", frames_ + 1, " cannot be read: ",
                                      input_.error() != 0 ? std::string_view(std::strerror(input_.error())) : text));
  }
  Status cut(std::string_view where) const { return damaged(concat("the file ends inside ", where)); }

  CapturedFrame frame(LinkType const& type, std::span<const std::uint8_t> bytes, std::uint32_t original_length,
                      std::uint64_t stamp_ns) {
    ++frames_;
    const auto length = static_cast<std::uint32_t>(bytes.size());
    const std::uint32_t missing = std::max(original_length, length) - length;  // some writers swap both
    return {type.layout == Layout::kEthernet ? bytes : uncooker_.convert(type.cooked, bytes), stamp_ns, missing};
  }

 private:
  CaptureInput input_;
  std::string name_;
  std::uint64_t frames_ = 0;
  bool is_open_ = false;
  Uncooker uncooker_;
};

// ---- pcap

constexpr std::size_t kPcapHeaderBytes = 24;

class PcapReader final : public FileReader {
 public:
  PcapReader(CaptureInput input, std::string name, PcapFormat const& format)
      : FileReader(std::move(input), std::move(name)), kind_(format.kind), order_{format.is_swapped} {}

  Status start() {
    const auto header = input().peek(kPcapHeaderBytes);
    if (header.size() < kPcapHeaderBytes) {
      return invalid("not a pcap or pcapng capture: it ends inside its header");
    }
    constexpr std::uint16_t kMajorVersion = 2;
    const std::uint16_t major = order_.u16(header, 4);
    if (major != kMajorVersion) {
      return invalid(concat("not a pcap or pcapng capture: version ", major, " of the pcap format is unknown"));
    }
    minor_version_ = order_.u16(header, 6);
    constexpr std::uint32_t kLinkTypeMask = 0x03FFFFFF;  // the other bits tell how long the FCS is
    const std::uint32_t link_type = order_.u32(header, 20) & kLinkTypeMask;
    link_type_ = find_link_type(link_type);
    if (link_type_ == nullptr) {
      return invalid(unsupported_text(link_type));
    }
    input().consume(kPcapHeaderBytes);
    return absl::OkStatus();
  }

  Result<std::optional<CapturedFrame>> next() override {
    input().consume(std::exchange(to_consume_, 0));
    const std::size_t header_bytes = kind_.record_bytes;
    const auto header = input().peek(header_bytes);
    if (header.empty() && input().error() == 0) {
      return std::nullopt;
    }
    if (header.size() < header_bytes) {
      return cut("its header");
    }
    std::uint32_t captured = order_.u32(header, 8);
    std::uint32_t original = order_.u32(header, 12);
    // version 2.2 and earlier have both lengths in the other order, 2.3 sometimes
    if (minor_version_ < 3 || (minor_version_ == 3 && captured > original)) {
      std::swap(captured, original);
    }
    if (captured > kMaxCapturedBytes) {
      return damaged(concat("its captured length of ", captured, " bytes exceeds ", kMaxCapturedBytes));
    }
    const std::uint64_t stamp = stamp_of(order_.u32(header, 0), order_.u32(header, 4));
    const auto record = input().peek(header_bytes + captured);
    if (record.size() < header_bytes + captured) {
      return cut("it");
    }
    to_consume_ = record.size();
    return frame(*link_type_, record.subspan(header_bytes), original, stamp);
  }

 private:
  /// Some writers put more than a second into the fraction, or less than nothing, so both parts are added.
  std::uint64_t stamp_of(std::uint32_t seconds, std::uint32_t fraction) const {
    const std::int64_t ns = std::int64_t{static_cast<std::int32_t>(fraction)} * (kind_.has_nanoseconds ? 1 : 1000);
    const std::int64_t whole = std::int64_t{seconds} * static_cast<std::int64_t>(kNsPerSecond) + ns;
    return static_cast<std::uint64_t>(std::max<std::int64_t>(whole, 0));
  }

  PcapKind kind_;
  ByteOrder order_;
  std::uint16_t minor_version_ = 4;
  LinkType const* link_type_ = nullptr;
  std::size_t to_consume_ = 0;  ///< the last frame, which the caller may still read
};

// ---- pcapng

constexpr std::uint32_t kByteOrderMagic = 0x1A2B3C4D;
constexpr std::size_t kBlockHeaderBytes = 8;   // type, total length
constexpr std::size_t kBlockTrailerBytes = 4;  // total length again
constexpr std::size_t kMaxInterfaces = 65'536;

struct Interface {
  std::uint32_t link_type = 0;
  std::uint32_t snapshot_length = 0;  ///< 0: no limit
  std::uint64_t units_per_second = 1'000'000;
  std::int64_t offset_seconds = 0;
};

class PcapngReader final : public FileReader {
 public:
  using FileReader::FileReader;

  /// Reads until the first interface is known, so that a file of another link type is refused at its start.
  Status start() {
    while (interfaces_.empty() && !pending_) {
      CATENA_ASSIGN_OR_RETURN(const bool more, next_block());
      if (!more) {
        return absl::OkStatus();  // no frame
      }
    }
    if (!interfaces_.empty() && find_link_type(interfaces_[0].link_type) == nullptr) {
      return invalid(unsupported_text(interfaces_[0].link_type));
    }
    return absl::OkStatus();
  }

  Result<std::optional<CapturedFrame>> next() override {
    while (!pending_) {
      CATENA_ASSIGN_OR_RETURN(const bool more, next_block());
      if (!more) {
        return std::nullopt;
      }
    }
    return std::exchange(pending_, std::nullopt);
  }

 private:
  /// Reads a block; a frame in it becomes pending_. False at the end of the file.
  Result<bool> next_block() {
    input().consume(std::exchange(to_consume_, 0));
    const auto header = input().peek(kBlockHeaderBytes + 4);
    if (header.empty() && input().error() == 0) {
      return false;
    }
    if (header.size() < kBlockHeaderBytes + 4) {
      return cut("the header of a block");
    }
    if (order_.u32(header, 0) == kPcapngMagic) {
      CATENA_RETURN_IF_ERROR(start_section(header));
    }
    const std::uint32_t type = order_.u32(header, 0);
    const std::uint32_t length = order_.u32(header, 4);
    constexpr std::uint32_t kMinBlockBytes = kBlockHeaderBytes + kBlockTrailerBytes;
    if (length < kMinBlockBytes || length % 4 != 0) {
      return damaged(concat("a block of ", length, " bytes"));
    }
    BlockType const* const known = find_block_type(type);
    if (known == nullptr) {
      if (!input().skip(length)) {
        return cut("a block");
      }
      return true;
    }
    if (length > kMaxBlockBytes) {
      return damaged(concat("a block of ", length, " bytes"));
    }
    const auto block = input().peek(length);
    if (block.size() < length) {
      return cut("a block");
    }
    if (order_.u32(block, length - kBlockTrailerBytes) != length) {
      return damaged("a block has different lengths at its start and at its end");
    }
    to_consume_ = length;
    const auto body = block.subspan(kBlockHeaderBytes, length - kMinBlockBytes);
    if (body.size() < known->fixed_bytes) {
      return damaged(concat("a block of ", length, " bytes is too short for its type"));
    }
    CATENA_RETURN_IF_ERROR((this->*known->read)(body));
    return true;
  }

  /// Byte order and version of a section. Its interfaces are numbered from 0.
  Status start_section(std::span<const std::uint8_t> header) {
    const ByteOrder native;
    if (native.u32(header, kBlockHeaderBytes) == kByteOrderMagic) {
      order_ = native;
    } else if (ByteOrder{true}.u32(header, kBlockHeaderBytes) == kByteOrderMagic) {
      order_ = {true};
    } else {
      return damaged("a section has no byte order");
    }
    interfaces_.clear();
    return absl::OkStatus();
  }

  Status read_section(std::span<const std::uint8_t> body) {
    const std::uint16_t major = order_.u16(body, 4);
    const std::uint16_t minor = order_.u16(body, 6);
    // 1.2 is written by some programs and has the format of 1.0
    return major == 1 && (minor == 0 || minor == 2)
               ? absl::OkStatus()
               : damaged(concat("version ", major, ".", minor, " of the pcapng format is unknown"));
  }

  Status read_interface(std::span<const std::uint8_t> body) {
    if (interfaces_.size() == kMaxInterfaces) {
      return damaged(concat("more than ", kMaxInterfaces, " interfaces"));
    }
    Interface found;
    found.link_type = order_.u16(body, 0);
    found.snapshot_length = order_.u32(body, 4);
    std::span<const std::uint8_t> options = body.subspan(8);
    while (options.size() >= 4) {
      const std::uint16_t code = order_.u16(options, 0);
      const std::size_t bytes = order_.u16(options, 2);
      const std::size_t padded = (bytes + 3) / 4 * 4;
      if (options.size() < 4 + bytes) {
        return damaged("an option of an interface is longer than its block");
      }
      CATENA_RETURN_IF_ERROR(read_option(code, options.subspan(4, bytes), found));
      constexpr std::uint16_t kEndOfOptions = 0;
      if (code == kEndOfOptions) {
        break;
      }
      options = options.subspan(std::min(options.size(), 4 + padded));
    }
    interfaces_.push_back(found);
    return absl::OkStatus();
  }

  Status read_option(std::uint16_t code, std::span<const std::uint8_t> value, Interface& interface) const {
    constexpr std::uint16_t kResolution = 9;  // if_tsresol
    constexpr std::uint16_t kOffset = 14;     // if_tsoffset
    if (code == kResolution && value.size() == 1) {
      constexpr std::uint8_t kPowerOfTwo = 0x80;
      const unsigned exponent = value[0] & ~kPowerOfTwo;
      const bool is_power_of_two = (value[0] & kPowerOfTwo) != 0;
      if (exponent > (is_power_of_two ? 63U : 19U)) {
        return damaged("an interface has stamps of a resolution that no 64 bits can hold");
      }
      std::uint64_t units = 1;
      for (unsigned i = 0; i < exponent; ++i) {
        units *= is_power_of_two ? 2 : 10;
      }
      interface.units_per_second = units;
    } else if (code == kOffset && value.size() == 8) {
      const bool is_little_endian = (std::endian::native == std::endian::little) != order_.is_swapped;
      const std::uint64_t low = order_.u32(value, is_little_endian ? 0 : 4);
      const std::uint64_t high = order_.u32(value, is_little_endian ? 4 : 0);
      interface.offset_seconds = static_cast<std::int64_t>(high << 32 | low);
    }
    return absl::OkStatus();
  }

  Status read_enhanced_packet(std::span<const std::uint8_t> body) { return read_packet(order_.u32(body, 0), body, 20); }
  /// Obsolete Packet Block: the number of its interface has 16 bits.
  Status read_old_packet(std::span<const std::uint8_t> body) { return read_packet(order_.u16(body, 0), body, 20); }

  Status read_packet(std::uint32_t number, std::span<const std::uint8_t> body, std::size_t data) {
    const std::uint64_t ticks = std::uint64_t{order_.u32(body, 4)} << 32 | order_.u32(body, 8);
    const std::uint32_t captured = order_.u32(body, 12);
    return add_frame(number, ticks, captured, order_.u32(body, 16), body.subspan(data));
  }

  /// Has neither a stamp nor a captured length of its own.
  Status read_simple_packet(std::span<const std::uint8_t> body) {
    const std::uint32_t original = order_.u32(body, 0);
    const auto data = body.subspan(4);
    std::uint32_t captured = std::min(original, static_cast<std::uint32_t>(data.size()));
    if (!interfaces_.empty() && interfaces_[0].snapshot_length != 0) {
      captured = std::min(captured, interfaces_[0].snapshot_length);
    }
    return add_frame(0, std::nullopt, captured, original, data);
  }

  Status add_frame(std::uint32_t number, std::optional<std::uint64_t> ticks, std::uint32_t captured,
                   std::uint32_t original, std::span<const std::uint8_t> data) {
    if (number >= interfaces_.size()) {
      return damaged(concat("it is of interface ", number, ", which the file does not describe"));
    }
    Interface const& interface = interfaces_[number];
    LinkType const* const type = find_link_type(interface.link_type);
    if (type == nullptr) {
      return damaged(concat("interface ", number, ": ", unsupported_text(interface.link_type)));
    }
    if (captured > data.size() || captured > kMaxCapturedBytes) {
      return damaged(concat("its captured length of ", captured, " bytes exceeds ",
                            captured > kMaxCapturedBytes ? concat(kMaxCapturedBytes) : std::string("its block")));
    }
    pending_ = frame(*type, data.first(captured), original, ticks ? stamp_of(*ticks, interface) : 0);
    return absl::OkStatus();
  }

  static std::uint64_t stamp_of(std::uint64_t ticks, Interface const& interface) {
    const std::uint64_t units = interface.units_per_second;
    const std::uint64_t seconds = std::min(ticks / units, kMaxSeconds);
    const auto fraction =
        static_cast<std::uint64_t>(static_cast<unsigned __int128>(ticks % units) * kNsPerSecond / units);
    const std::int64_t offset = std::clamp<std::int64_t>(
        interface.offset_seconds, -static_cast<std::int64_t>(kMaxSeconds), static_cast<std::int64_t>(kMaxSeconds));
    const std::int64_t whole = std::clamp<std::int64_t>(static_cast<std::int64_t>(seconds) + offset, -1,
                                                        static_cast<std::int64_t>(kMaxSeconds));
    return whole < 0 ? 0 : static_cast<std::uint64_t>(whole) * kNsPerSecond + fraction;
  }

  /// Blocks that are read; all others are skipped.
  struct BlockType {
    std::uint32_t type;
    std::size_t fixed_bytes;  ///< smallest body
    Status (PcapngReader::*read)(std::span<const std::uint8_t>);
  };
  static BlockType const* find_block_type(std::uint32_t type) {
    static constexpr BlockType kBlockTypes[] = {
        {kPcapngMagic, 16, &PcapngReader::read_section}, {1, 8, &PcapngReader::read_interface},
        {2, 20, &PcapngReader::read_old_packet},         {3, 4, &PcapngReader::read_simple_packet},
        {6, 20, &PcapngReader::read_enhanced_packet},
    };
    const auto* const found = std::ranges::find(kBlockTypes, type, &BlockType::type);
    return found == std::end(kBlockTypes) ? nullptr : found;
  }

  ByteOrder order_;
  std::vector<Interface> interfaces_;  ///< of the section
  std::optional<CapturedFrame> pending_;
  std::size_t to_consume_ = 0;  ///< the last block, whose frame the caller may still read
};

template <typename Reader>
Result<std::unique_ptr<CaptureReader>> started(std::unique_ptr<Reader> reader) {
  CATENA_RETURN_IF_ERROR(reader->start());
  reader->set_open();
  return reader;
}

}  // namespace

std::span<const std::uint8_t> CaptureInput::peek(std::size_t count) {
  if (end_ - begin_ < count && !is_at_end_) {
    std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
              buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
    offset_of_buffer_ += begin_;
    end_ -= begin_;
    begin_ = 0;
    if (buffer_.size() < count) {
      buffer_.resize(std::max(count, kReadBytes));
    }
    while (end_ < count && !is_at_end_) {
      const ssize_t got = read_(buffer_.data() + end_, buffer_.size() - end_);
      if (got < 0 && errno == EINTR) {
        continue;
      }
      error_ = got < 0 ? errno : 0;
      is_at_end_ = got <= 0;
      end_ += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
    }
  }
  return std::span(buffer_).subspan(begin_, std::min(count, end_ - begin_));
}

bool CaptureInput::skip(std::uint64_t count) {
  while (count > 0) {
    const std::size_t part = peek(static_cast<std::size_t>(std::min<std::uint64_t>(count, kReadBytes))).size();
    if (part == 0) {
      return false;
    }
    consume(part);
    count -= part;
  }
  return true;
}

Result<std::unique_ptr<CaptureReader>> CaptureReader::open(ReadBytes read, std::string name) {
  name = escaped(name);  // all messages begin with it
  CaptureInput input(std::move(read));
  const auto bytes = input.peek(sizeof kPcapngMagic);
  const std::string_view magic(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (input.error() != 0) {
    return absl::InvalidArgumentError(concat(name, ": cannot be read: ", std::strerror(input.error())));
  }
  if (is_pcapng(magic)) {
    return started(std::make_unique<PcapngReader>(std::move(input), std::move(name)));
  }
  if (const std::optional<PcapFormat> format = pcap_format_of(magic)) {
    return started(std::make_unique<PcapReader>(std::move(input), std::move(name), *format));
  }
  constexpr std::size_t kMagicBytes = 8;
  const auto first = input.peek(kMagicBytes);
  Compression const* const compression = compression_of({reinterpret_cast<const char*>(first.data()), first.size()});
  return absl::InvalidArgumentError(
      concat(name, ": not a pcap or pcapng capture: ",
             compression == nullptr
                 ? "its first bytes are of no such file"
                 : concat("it is compressed by ", compression->name, "; decompress it: ", compression->tool, " FILE")));
}

std::string link_type_text(std::uint32_t link_type) {
  // libpcap knows names by its DLT_ values, which differ from LINKTYPE_ values for a few types of IP packets
  struct Other {
    std::uint32_t link_type;
    const char* name;
  };
  static constexpr Other kOthers[] = {
      {101, "RAW"}, {100, "ATM_RFC1483"}, {104, "C_HDLC"}, {106, "ATM_CLIP"}, {50, "PPP_SERIAL"}};
  const auto* const other = std::ranges::find(kOthers, link_type, &Other::link_type);
  const char* name = other != std::end(kOthers) ? other->name : pcap_datalink_val_to_name(static_cast<int>(link_type));
  return concat(name != nullptr ? name : "unknown", " (", link_type, ")");
}

}  // namespace catena::io
