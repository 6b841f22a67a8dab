// SPDX-License-Identifier: Apache-2.0
#include "chain/flow_keys.hpp"

#include <catena/core/escape.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/text_file.hpp>

#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace catena::chain {
namespace {

constexpr std::size_t kMinKeyDigits = 32;
constexpr std::size_t kMaxKeyDigits = 128;
constexpr std::size_t kMaxKeyFileBytes = 4096;

Result<SocketAddress> read_address(FileSection& section, std::string_view key, std::string const& text) {
  Result<SocketAddress> address = parse_socket_address(text);
  if (!address.ok()) {
    return section.config().error(key,
                                  concat("'", key, "' is '", text, "'; ", std::string(address.status().message())));
  }
  if (address->is_any()) {
    return section.config().error(key, concat("'", key, "' is '", text,
                                              "'; write one address of a host, and one port: datagrams from others "
                                              "are ignored"));
  }
  return address;
}

Result<FlowSignalsConfig> read_signals(FileSection section) {
  FlowSignalsConfig signals;
  signals.position = section.config().position();
  if (section.has("listen")) {
    CATENA_ASSIGN_OR_RETURN(const std::string text, section.text("listen"));
    CATENA_ASSIGN_OR_RETURN(signals.listen, read_address(section, "listen", text));
  }
  if (section.has("downstream")) {
    CATENA_ASSIGN_OR_RETURN(const std::vector<std::string> texts, section.texts("downstream"));
    for (std::string const& text : texts) {
      CATENA_ASSIGN_OR_RETURN(SocketAddress address, read_address(section, "downstream", text));
      signals.downstream.push_back(std::move(address));
    }
  }
  if (signals.listen && std::ranges::find(signals.downstream, *signals.listen) != signals.downstream.end()) {
    return section.config().error("downstream",
                                  "'downstream' has the address of `listen`: a chain does not wait for "
                                  "itself; leave it out");
  }
  if (!signals.listen && signals.downstream.empty()) {
    return section.config().error(
        "", "'signals' names no chain; write `listen` for upstream chains, `downstream` for downstream ones");
  }
  CATENA_ASSIGN_OR_RETURN(signals.key_file, section.config().path("key"));
  CATENA_RETURN_IF_ERROR(read_signal_key(signals).status());
  return signals;
}

}  // namespace

Result<FlowConfig> read_flow(FileSection& spec) {
  FlowConfig flow;
  if (!spec.has("flow")) {
    return flow;
  }
  flow.position = spec.config().position("flow");
  CATENA_ASSIGN_OR_RETURN(FileSection section, spec.section("flow"));
  CATENA_RETURN_IF_ERROR(section.read_into(flow));
  if (flow.mode == FlowMode::kVanilla && section.has("signals")) {
    return section.config().error("signals", "'signals' goes with `mode: backpressure`: with vanilla no chain waits");
  }
  if (section.has("signals")) {
    CATENA_ASSIGN_OR_RETURN(FileSection signals, section.section("signals"));
    CATENA_ASSIGN_OR_RETURN(flow.signals, read_signals(std::move(signals)));
  }
  return flow;
}

Result<std::vector<std::uint8_t>> read_signal_key(FlowSignalsConfig const& config) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, nf::read_text_file(config.key_file, kMaxKeyFileBytes));
  nf::TextCursor cursor(text, config.key_file);
  const bool has_line = cursor.next_line();
  const std::string digits(has_line ? cursor.word() : std::string_view());
  const auto wrong = std::ranges::find_if_not(digits, absl::ascii_isxdigit);
  if (wrong != digits.end() || digits.size() % 2 != 0 || digits.size() < kMinKeyDigits ||
      digits.size() > kMaxKeyDigits) {
    return absl::InvalidArgumentError(concat(
        escaped(config.key_file), ":", std::max(cursor.line(), 1U), ":",
        (has_line ? cursor.column() : 1) + static_cast<std::uint32_t>(wrong - digits.begin()), ": the key has ",
        digits.size(), " characters", wrong == digits.end() ? "" : ", one of which is no hexadecimal digit", "; write ",
        kMinKeyDigits, " to ", kMaxKeyDigits, " hexadecimal digits, as `openssl rand -hex 32` makes them"));
  }
  const std::string bytes = absl::HexStringToBytes(digits);
  return std::vector<std::uint8_t>(bytes.begin(), bytes.end());
}

}  // namespace catena::chain
