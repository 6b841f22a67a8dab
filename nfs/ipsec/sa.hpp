// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "functions/cipher/crypto.hpp"
#include "replay_window.hpp"
#include "selector.hpp"

#include <catena/core/status.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Security associations of an SA file.
namespace catena::ipsec {

enum class Direction { kEncrypt, kDecrypt };

struct UdpPorts {
  std::uint16_t source = 0;
  std::uint16_t destination = 0;
};

/// Parts of the inner header copied to the outer one (RFC 4301 section 5.1.2.1): outer = (inner & keep) | set.
struct HeaderPolicy {
  std::uint8_t tos_keep = 0xFF;
  std::uint8_t tos_set = 0;
  std::uint16_t df_keep = 0x4000;
  std::uint16_t df_set = 0;
  std::uint8_t ttl = 64;
};

/// One unidirectional tunnel. Addresses in host order.
struct Association {
  std::uint32_t spi = 0;
  std::uint32_t source = 0;       ///< outer
  std::uint32_t destination = 0;  ///< outer
  std::array<std::uint8_t, 16> encryption_key{};
  std::array<std::uint8_t, 4> salt{};
  std::array<std::uint8_t, 20> authentication_key{};
  Selector selector;
  std::optional<UdpPorts> udp;  ///< RFC 3948
  HeaderPolicy policy;
  /// Extended sequence numbers of 64 bits (RFC 4303 section 2.2.1).
  bool extended_sequence = false;
  std::uint64_t first_sequence = 1;
  /// From this number on new keys are due (RFC 4301 section 4.4.2.1, soft lifetime): a warning is logged, packets still
  /// pass.
  std::uint64_t soft_limit = 0;
  bool anti_replay = true;
  std::uint32_t replay_window = ReplayWindow::kMinPackets;  ///< numbers in the window of decryption

  /// The first disallowed number: numbers must not cycle (RFC 4303 section 3.3.3).
  std::uint64_t sequence_end() const { return extended_sequence ? UINT64_MAX : std::uint64_t{UINT32_MAX} + 1; }
};

inline cipher::Keys keys_of(Association const& association) {
  return {association.encryption_key, association.salt, association.authentication_key, association.extended_sequence};
}

/// Maximum number of associations in a file. They are searched in order for each packet.
inline constexpr std::size_t kMaxAssociations = 4096;

/// Reads the associations of an SA file (keys: see README.md), in file order, at least one. Key material never appears
/// in a message.
///
/// NotFound if the file cannot be read. InvalidArgument with file:line:column: unknown or missing key, a key of the
/// wrong length or not hexadecimal, a cipher or hash other than aes-128-ctr and hmac-sha1-96, a reserved SPI (RFC 4303
/// 2.1), a non-unicast outer address, two associations with the same SPI and destination, and, for encryption, two with
/// the same key and salt: they would encrypt different packets with the same key stream (RFC 3686 section 2.1).
Result<std::vector<Association>> load_associations(std::string const& path, Direction direction);

/// The same from a parsed mapping.
Result<std::vector<Association>> read_associations(nf::Config& file, Direction direction);

}  // namespace catena::ipsec
