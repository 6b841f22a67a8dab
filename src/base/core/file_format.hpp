// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

/// Formats of files that users name by mistake, known by their first bytes.
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

/// Whether a file that starts with `bytes` is a capture: pcap in both orders of bytes, with microseconds or
/// nanoseconds, or pcapng.
inline bool is_capture(std::string_view bytes) {
  constexpr std::array<std::string_view, 5> kMagics{"\xd4\xc3\xb2\xa1", "\xa1\xb2\xc3\xd4", "\x4d\x3c\xb2\xa1",
                                                    "\xa1\xb2\x3c\x4d", "\x0a\x0d\x0d\x0a"};
  return std::ranges::any_of(kMagics, [bytes](std::string_view magic) { return bytes.starts_with(magic); });
}

}  // namespace catena
