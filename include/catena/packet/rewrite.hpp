// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/headers.hpp>

#include <cstdint>

/// Header fields and the checksums over them on plain bytes. Thread rule: pure functions, any thread.
namespace catena::packet {

inline constexpr std::uint32_t kIpChecksumAt = 10;
inline constexpr std::uint32_t kIpSourceAt = 12;
inline constexpr std::uint32_t kIpDestinationAt = 16;
inline constexpr std::uint32_t kTcpChecksumAt = 16;
inline constexpr std::uint32_t kUdpChecksumAt = 6;
inline constexpr std::uint32_t kIcmpChecksumAt = 2;
inline constexpr std::uint32_t kIcmpIdentifierAt = 4;

/// Writes fields in network order and accumulates the change for a checksum over them: the sum of ~m + m' of RFC 1624,
/// equation 3. A word of 32 bits counts as its value: 2^16 is 1 in the arithmetic of the checksum. At most 65,535
/// words.
class FieldWriter {
 public:
  void put16(std::uint8_t* at, std::uint16_t value) {
    change_ += std::uint64_t{static_cast<std::uint16_t>(~load_be16(at))} + value;
    store_be16(at, value);
  }
  void put32(std::uint8_t* at, std::uint32_t value) {
    change_ += std::uint64_t{~load_be32(at)} + value;
    store_be32(at, value);
  }

  /// Updates a checksum; a wrong one stays wrong by the same amount.
  void correct(std::uint8_t* checksum) const {
    store_be16(checksum, checksum_finish(change_ + static_cast<std::uint16_t>(~load_be16(checksum))));
  }
  /// Likewise for UDP, where 0 means no checksum (RFC 768).
  void correct_udp(std::uint8_t* checksum) const {
    if (load_be16(checksum) == 0) {
      return;
    }
    correct(checksum);
    if (load_be16(checksum) == 0) {
      store_be16(checksum, 0xFFFF);
    }
  }

 private:
  std::uint64_t change_ = 0;
};

/// Writes both addresses of the IPv4 header `ip` and corrects its checksum. Returns the writer for the transport
/// checksum, whose pseudo header contains the addresses.
inline FieldWriter write_addresses(std::uint8_t* ip, std::uint32_t source, std::uint32_t destination) {
  FieldWriter writer;
  writer.put32(ip + kIpSourceAt, source);
  writer.put32(ip + kIpDestinationAt, destination);
  writer.correct(ip + kIpChecksumAt);
  return writer;
}

}  // namespace catena::packet
