// SPDX-License-Identifier: Apache-2.0
#include "sa.hpp"

#include <catena/core/decimal.hpp>
#include <catena/core/text.hpp>

#include <absl/strings/ascii.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

namespace catena::ipsec {
namespace {

constexpr std::int64_t kFirstSpi = 256;  // RFC 4303 2.1: 0 is for local use, 1 .. 255 are reserved
constexpr std::int64_t kMaxU32 = 0xFFFFFFFF;
constexpr std::uint8_t kEcnBits = 0x03;
constexpr std::uint16_t kDontFragment = 0x4000;

std::optional<std::uint8_t> hex_digit(char c) {
  if (absl::ascii_isdigit(static_cast<unsigned char>(c))) {
    return static_cast<std::uint8_t>(c - '0');
  }
  const char lower = absl::ascii_tolower(static_cast<unsigned char>(c));
  if (lower >= 'a' && lower <= 'f') {
    return static_cast<std::uint8_t>(lower - 'a' + 10);
  }
  return std::nullopt;
}

/// Reads the hexadecimal text under `key` into `bytes`, whose size is one that the caller allows.
Status read_hex(nf::Config const& config, std::string_view key, std::string_view digits,
                std::span<std::uint8_t> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto high = hex_digit(digits[2 * i]);
    const auto low = hex_digit(digits[2 * i + 1]);
    if (!high || !low) {
      const std::size_t bad = high ? 2 * i + 1 : 2 * i;
      return config.error(key, concat("'", key, "' must be hexadecimal digits; character ", bad + 1, " is not one"));
    }
    bytes[i] = static_cast<std::uint8_t>(*high << 4 | *low);
  }
  return absl::OkStatus();
}

/// The digits under `key`, without a leading 0x.
Result<std::string> read_digits(nf::Config& config, std::string_view key) {
  Result<std::string> digits = config.string(key);
  if (digits.ok() && digits->rfind("0x", 0) == 0) {
    digits->erase(0, 2);
  }
  return digits;
}

Status read_encryption_key(nf::Config& config, Association& association) {
  constexpr std::size_t kKeyDigits = 2 * 16;
  constexpr std::size_t kSaltDigits = 2 * 4;
  constexpr std::string_view kKey = "encryption_key";
  CATENA_ASSIGN_OR_RETURN(const std::string text, read_digits(config, kKey));
  std::string_view key_digits = text;
  std::string salt_digits;
  std::string_view salt_key = kKey;
  if (text.size() == kKeyDigits + kSaltDigits && !config.has("salt")) {
    salt_digits = text.substr(kKeyDigits);
    key_digits = key_digits.substr(0, kKeyDigits);
  } else if (text.size() == kKeyDigits) {
    salt_key = "salt";
    CATENA_ASSIGN_OR_RETURN(salt_digits, read_digits(config, salt_key));
    if (salt_digits.size() != kSaltDigits) {
      return config.error(salt_key, concat("'salt' has ", salt_digits.size(),
                                           " hexadecimal digits; write 8, the 4 bytes of RFC 3686's nonce"));
    }
  } else {
    return config.error(kKey, concat("'encryption_key' has ", text.size(),
                                     " hexadecimal digits; write 32 (an AES-128 key) and 'salt' with 8, or 40 "
                                     "(key and salt together) without 'salt'; longer AES keys are not supported"));
  }
  CATENA_RETURN_IF_ERROR(read_hex(config, kKey, key_digits, association.encryption_key));
  return read_hex(config, salt_key, salt_digits, association.salt);
}

Status read_authentication_key(nf::Config& config, Association& association) {
  constexpr std::string_view kKey = "authentication_key";
  CATENA_ASSIGN_OR_RETURN(const std::string digits, read_digits(config, kKey));
  if (digits.size() != 2 * association.authentication_key.size()) {
    return config.error(kKey, concat("'authentication_key' has ", digits.size(),
                                     " hexadecimal digits; write 40, the 20 bytes of RFC 2404"));
  }
  return read_hex(config, kKey, digits, association.authentication_key);
}

Result<std::uint32_t> read_tunnel_end(nf::Config& config, std::string_view key) {
  CATENA_ASSIGN_OR_RETURN(const std::uint32_t address, config.ipv4_address(key));
  const std::uint32_t first_byte = address >> 24;
  if (first_byte == 0 || first_byte >= 224) {
    return config.error(key, concat("'", key, "' must be a unicast address: it is one end of the tunnel"));
  }
  return address;
}

Status read_policy(nf::Config& config, HeaderPolicy& policy) {
  CATENA_ASSIGN_OR_RETURN(const std::int64_t ttl, config.integer_or("ttl", policy.ttl, 1, 255));
  policy.ttl = static_cast<std::uint8_t>(ttl);
  CATENA_ASSIGN_OR_RETURN(const std::string dscp, config.string_or("dscp", "copy"));
  if (dscp != "copy") {
    const std::optional<std::uint64_t> value = parse_decimal(dscp, 63);
    if (!value) {
      return config.error(
          "dscp", concat("'dscp' is '", dscp, "'; write copy or a number from 0 to 63", leading_zeros_advice(dscp)));
    }
    policy.tos_keep = kEcnBits;  // RFC 4301 5.1.2.1: ECN is copied whatever the DSCP
    policy.tos_set = static_cast<std::uint8_t>(*value << 2);
  }
  CATENA_ASSIGN_OR_RETURN(const std::string df, config.one_of("df", {"copy", "set", "clear"}, "copy"));
  policy.df_keep = df == "copy" ? kDontFragment : 0;
  policy.df_set = df == "set" ? kDontFragment : 0;
  return absl::OkStatus();
}

Status read_udp(nf::Config& config, Association& association) {
  constexpr std::string_view kKey = "udp_encapsulation";
  if (!config.has(kKey)) {
    return absl::OkStatus();
  }
  CATENA_ASSIGN_OR_RETURN(nf::Config udp, config.section(kKey));
  constexpr std::int64_t kNatTraversalPort = 4500;
  CATENA_ASSIGN_OR_RETURN(const std::int64_t source, udp.integer_or("source_port", kNatTraversalPort, 1, 65535));
  CATENA_ASSIGN_OR_RETURN(const std::int64_t destination,
                          udp.integer_or("destination_port", kNatTraversalPort, 1, 65535));
  CATENA_RETURN_IF_ERROR(udp.finish());
  association.udp = UdpPorts{static_cast<std::uint16_t>(source), static_cast<std::uint16_t>(destination)};
  return absl::OkStatus();
}

Status read_sequence(nf::Config& config, Association& association) {
  CATENA_ASSIGN_OR_RETURN(association.extended_sequence, config.boolean_or("esn", false));
  const std::int64_t last = association.extended_sequence ? INT64_MAX : kMaxU32;
  CATENA_ASSIGN_OR_RETURN(const std::int64_t first, config.integer_or("first_sequence", 1, 1, last));
  association.first_sequence = static_cast<std::uint64_t>(first);
  association.soft_limit = association.sequence_end() / 4 * 3;
  if (config.has("soft_limit")) {
    CATENA_ASSIGN_OR_RETURN(const std::int64_t limit, config.integer("soft_limit", 1, last));
    association.soft_limit = static_cast<std::uint64_t>(limit);
  }
  CATENA_ASSIGN_OR_RETURN(association.anti_replay, config.boolean_or("anti_replay", true));
  if (association.extended_sequence && !association.anti_replay) {
    return config.error("anti_replay",
                        "'esn' needs the replay window, which tells the high half of a sequence number (RFC 4303 "
                        "section 3.4.3); write 'anti_replay: true', or leave 'esn' out");
  }
  if (!association.anti_replay && config.has("replay_window")) {
    return config.error("replay_window", "'anti_replay: false' has no replay window; leave one of the two out");
  }
  CATENA_ASSIGN_OR_RETURN(const std::int64_t window,
                          config.integer_or("replay_window", association.replay_window, ReplayWindow::kMinPackets,
                                            ReplayWindow::kMaxPackets));
  association.replay_window = static_cast<std::uint32_t>(window);
  return absl::OkStatus();
}

Result<Association> read_association(nf::Config& config) {
  Association association;
  CATENA_ASSIGN_OR_RETURN(const std::int64_t spi, config.integer("spi", kFirstSpi, kMaxU32));
  association.spi = static_cast<std::uint32_t>(spi);
  CATENA_ASSIGN_OR_RETURN(association.source, read_tunnel_end(config, "source"));
  CATENA_ASSIGN_OR_RETURN(association.destination, read_tunnel_end(config, "destination"));
  CATENA_RETURN_IF_ERROR(config.one_of("encryption", {"aes-128-ctr"}, "aes-128-ctr").status());
  CATENA_RETURN_IF_ERROR(config.one_of("authentication", {"hmac-sha1-96"}, "hmac-sha1-96").status());
  CATENA_RETURN_IF_ERROR(read_encryption_key(config, association));
  CATENA_RETURN_IF_ERROR(read_authentication_key(config, association));
  CATENA_ASSIGN_OR_RETURN(nf::Config selector, config.section_or_empty("selector"));
  CATENA_ASSIGN_OR_RETURN(association.selector, read_selector(selector));
  CATENA_RETURN_IF_ERROR(read_udp(config, association));
  CATENA_RETURN_IF_ERROR(read_policy(config, association.policy));
  CATENA_RETURN_IF_ERROR(read_sequence(config, association));
  CATENA_RETURN_IF_ERROR(config.finish());
  return association;
}

/// Refuses an association that clashes with an earlier one.
Status check_against(std::span<const Association> earlier, Association const& association, Direction direction,
                     nf::Config const& config) {
  for (std::size_t i = 0; i < earlier.size(); ++i) {
    if (earlier[i].spi == association.spi && earlier[i].destination == association.destination) {
      return config.error("spi", concat("association ", i + 1, " has the same spi ", association.spi,
                                        " and destination; every association needs its own"));
    }
    if (direction == Direction::kEncrypt && earlier[i].encryption_key == association.encryption_key &&
        earlier[i].salt == association.salt) {
      return config.error("encryption_key",
                          concat("association ", i + 1,
                                 " has the same encryption key and salt, so both would use one key stream twice "
                                 "(RFC 3686 section 2.1); give each its own"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

Result<std::vector<Association>> read_associations(nf::Config& file, Direction direction) {
  CATENA_ASSIGN_OR_RETURN(std::vector<nf::Config> entries, file.sections("associations"));
  if (entries.empty() || entries.size() > kMaxAssociations) {
    return file.error("associations",
                      concat("'associations' has ", entries.size(), " entries; allowed: 1 to ", kMaxAssociations));
  }
  std::vector<Association> associations;
  associations.reserve(entries.size());
  for (nf::Config& entry : entries) {
    CATENA_ASSIGN_OR_RETURN(Association association, read_association(entry));
    CATENA_RETURN_IF_ERROR(check_against(associations, association, direction, entry));
    associations.push_back(association);
  }
  CATENA_RETURN_IF_ERROR(file.finish());
  return associations;
}

Result<std::vector<Association>> load_associations(std::string const& path, Direction direction) {
  CATENA_ASSIGN_OR_RETURN(nf::Config file, nf::Config::load(path));
  return read_associations(file, direction);
}

}  // namespace catena::ipsec
