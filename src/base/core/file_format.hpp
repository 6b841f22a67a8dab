// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

/// Formats of files, known by their first bytes: captures, and files named by mistake.
namespace catena {

/// A compression of whole files.
struct Compression {
  std::string_view magic;
  std::string_view name;
  std::string_view tool;  ///< the program that decompresses
};
inline constexpr std::array<Compression, 3> kCompressions{{
    {"\x1f\x8b", "gzip", "gunzip"},
    {"\x28\xb5\x2f\xfd", "zstd", "unzstd"},
    {"\xfd\x37\x7a\x58\x5a", "xz", "unxz"},
}};

/// How a file that starts with `bytes` is compressed; null if it is not.
inline Compression const* compression_of(std::string_view bytes) {
  const auto found = std::ranges::find_if(
      kCompressions, [bytes](Compression const& compression) { return bytes.starts_with(compression.magic); });
  return found == kCompressions.end() ? nullptr : found;
}

/// Kinds of pcap files by their magic number, in the byte order of the writer.
struct PcapKind {
  std::uint32_t magic;
  bool has_nanoseconds;
  std::size_t record_bytes;  ///< of the header of a frame
};
inline constexpr std::uint32_t kPcapNsMagic = 0xA1B23C4D;
inline constexpr std::array<PcapKind, 3> kPcapKinds{{
    {0xA1B2C3D4, false, 16},
    {kPcapNsMagic, true, 16},
    {0xA1B2CD34, false, 24},  // patched libpcap of 1990s Linux distributions: more fields after the lengths
}};
/// Type of the first block of a pcapng file. A palindrome: the same in both byte orders.
inline constexpr std::uint32_t kPcapngMagic = 0x0A0D0D0A;

struct PcapFormat {
  PcapKind kind;
  bool is_swapped;  ///< the writer's byte order is not this machine's
};

/// The pcap format of a file that starts with `bytes`; nullopt: it has no such format.
inline std::optional<PcapFormat> pcap_format_of(std::string_view bytes) {
  std::uint32_t magic = 0;
  if (bytes.size() < sizeof magic) {
    return std::nullopt;
  }
  std::memcpy(&magic, bytes.data(), sizeof magic);
  for (PcapKind const& kind : kPcapKinds) {
    if (magic == kind.magic || __builtin_bswap32(magic) == kind.magic) {
      return PcapFormat{kind, magic != kind.magic};
    }
  }
  return std::nullopt;
}

/// Whether a file that starts with `bytes` is a pcapng file.
inline bool is_pcapng(std::string_view bytes) {
  return bytes.size() >= sizeof kPcapngMagic && std::memcmp(bytes.data(), &kPcapngMagic, sizeof kPcapngMagic) == 0;
}

/// Whether a file that starts with `bytes` is a capture: of any pcap format, or pcapng.
inline bool is_capture(std::string_view bytes) { return is_pcapng(bytes) || pcap_format_of(bytes).has_value(); }

}  // namespace catena
