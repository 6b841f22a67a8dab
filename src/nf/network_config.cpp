// SPDX-License-Identifier: Apache-2.0
// The readers of Config for addresses, prefixes, MAC addresses and durations.
#include <catena/core/decimal.hpp>
#include <catena/core/ipv4.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/config.hpp>

#include <algorithm>
#include <array>
#include <optional>

namespace catena::nf {
namespace {

Result<packet::Ipv4Prefix> prefix_of(Config const& config, std::string_view key, std::string const& text) {
  const std::optional<packet::Ipv4Prefix> prefix = packet::Ipv4Prefix::parse(text);
  if (!prefix) {
    return config.error(key, concat("'", key, "' is '", text,
                                    "'; write an IPv4 address or prefix such as 10.0.0.0/8; IPv6 is not supported",
                                    leading_zeros_advice(text)));
  }
  if ((prefix->address & ~prefix->mask()) != 0) {
    return config.error(key, concat("'", key, "' is '", text, "', which has bits set after the prefix; write ",
                                    to_string(packet::Ipv4Prefix{prefix->address & prefix->mask(), prefix->length})));
  }
  return *prefix;
}

std::optional<std::uint8_t> hex_digit(char c) {
  if (c >= '0' && c <= '9') {
    return static_cast<std::uint8_t>(c - '0');
  }
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? std::optional(static_cast<std::uint8_t>(lower - 'a' + 10)) : std::nullopt;
}

/// "02:00:00:00:00:01"
std::optional<MacAddress> parse_mac(std::string_view text) {
  MacAddress mac{};
  if (text.size() != mac.size() * 3 - 1) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < mac.size(); ++i) {
    const auto high = hex_digit(text[3 * i]);
    const auto low = hex_digit(text[3 * i + 1]);
    if (!high || !low || (i > 0 && text[3 * i - 1] != ':')) {
      return std::nullopt;
    }
    mac[i] = static_cast<std::uint8_t>(*high << 4 | *low);
  }
  return mac;
}

struct TimeUnit {
  std::string_view name;
  std::int64_t milliseconds;
};
constexpr std::array<TimeUnit, 5> kTimeUnits{
    {{"ms", 1}, {"s", 1000}, {"min", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}}};

/// "250 ms", "5min"
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  constexpr std::uint64_t kMaxNumber = 1'000'000'000;
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::optional<std::uint64_t> number = parse_decimal(text.substr(0, digits), kMaxNumber);
  if (!number) {
    return std::nullopt;
  }
  text.remove_prefix(digits);
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const auto unit = std::ranges::find(kTimeUnits, text, &TimeUnit::name);
  return unit == kTimeUnits.end()
             ? std::nullopt
             : std::optional(std::chrono::milliseconds(static_cast<std::int64_t>(*number) * unit->milliseconds));
}

/// "5 min": in the largest unit that has no fraction.
std::string to_string(std::chrono::milliseconds duration) {
  const auto unit = std::find_if(kTimeUnits.rbegin(), kTimeUnits.rend(), [duration](TimeUnit const& each) {
    return duration.count() % each.milliseconds == 0 && duration.count() >= each.milliseconds;
  });
  return unit == kTimeUnits.rend() ? concat(duration.count(), " ms")
                                   : concat(duration.count() / unit->milliseconds, " ", unit->name);
}

}  // namespace

Result<std::uint32_t> Config::ipv4_address(std::string_view key) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, string(key));
  const std::optional<std::uint32_t> address = parse_ipv4_address(text);
  if (!address) {
    return error(
        key, concat("'", key, "' is '", text, "'; write an IPv4 address such as 203.0.113.10; IPv6 is not supported",
                    leading_zeros_advice(text)));
  }
  return *address;
}

Result<packet::Ipv4Prefix> Config::ipv4_prefix(std::string_view key) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, string(key));
  return prefix_of(*this, key, text);
}

Result<std::vector<packet::Ipv4Prefix>> Config::ipv4_prefixes(std::string_view key) {
  CATENA_ASSIGN_OR_RETURN(const std::vector<std::string> texts, strings(key));
  std::vector<packet::Ipv4Prefix> prefixes;
  for (std::string const& text : texts) {
    CATENA_ASSIGN_OR_RETURN(const packet::Ipv4Prefix prefix, prefix_of(*this, key, text));
    prefixes.push_back(prefix);
  }
  return prefixes;
}

Result<MacAddress> Config::mac_address(std::string_view key) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, string(key));
  const std::optional<MacAddress> mac = parse_mac(text);
  if (!mac) {
    return error(key, concat("'", key, "' is '", text, "'; write a MAC address as 02:00:00:00:00:01"));
  }
  return *mac;
}

Result<std::chrono::milliseconds> Config::duration_or(std::string_view key, std::chrono::milliseconds fallback,
                                                      std::chrono::milliseconds minimum,
                                                      std::chrono::milliseconds maximum) {
  if (!has(key)) {
    return fallback;
  }
  CATENA_ASSIGN_OR_RETURN(const std::string text, string(key));
  const std::optional<std::chrono::milliseconds> duration = parse_duration(text);
  if (!duration || *duration < minimum || *duration > maximum) {
    return error(key,
                 concat("'", key, "' is '", text, "'; allowed: a duration from ", to_string(minimum), " to ",
                        to_string(maximum), ", with ms, s, min, h or d after the number", leading_zeros_advice(text)));
  }
  return *duration;
}

}  // namespace catena::nf
