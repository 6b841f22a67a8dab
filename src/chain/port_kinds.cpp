// SPDX-License-Identifier: Apache-2.0
#include "chain/port_kind.hpp"

#include "chain/shared_ports.hpp"

#include <catena/core/text.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace catena::chain {

extern const PortKind kPcapPort;
extern const PortKind kDpdkPort;
extern const PortKind kDevPort;
extern const PortKind kGeneratorPort;
extern const PortKind kReplayPort;

namespace {

constexpr std::array<PortKind const*, 6> kPortKinds{&kPcapPort,      &kDpdkPort,   &kDevPort,
                                                    &kGeneratorPort, &kReplayPort, &kNullPort};

/// rx or tx, where both work alike.
struct Side {
  std::string_view option;
  bool (PortKind::*has)() const;
  std::span<const Key> (*keys)(PortKind const& kind);
  Status (*parse)(PortKind const& kind, FileSection& section, PortConfig& port);
  std::string_view (*note)(PortKind const& kind);
  std::string_view (*elsewhere)(PortKind const& kind);
};
constexpr Side kRxSide{
    "--rx",
    &PortKind::is_for_rx,
    [](PortKind const& kind) { return kind.rx.keys; },
    [](PortKind const& kind, FileSection& section, PortConfig& port) { return kind.rx.parse(section, port); },
    [](PortKind const& kind) { return kind.rx.note; },
    [](PortKind const& kind) { return kind.rx.elsewhere; }};
constexpr Side kTxSide{
    "--tx",
    &PortKind::is_for_tx,
    [](PortKind const& kind) { return kind.tx.keys; },
    [](PortKind const& kind, FileSection& section, PortConfig& port) { return kind.tx.parse(section, port); },
    [](PortKind const& kind) { return kind.tx.note; },
    [](PortKind const&) { return std::string_view(); }};

std::vector<PortKind const*> kinds_of(Side const& side) {
  std::vector<PortKind const*> kinds;
  for (PortKind const* kind : kPortKinds) {
    if ((kind->*side.has)()) {
      kinds.push_back(kind);
    }
  }
  return kinds;
}

std::vector<Key> keys_of_kinds(Side const& side, std::span<const Key> common) {
  std::vector<Key> keys;
  for (PortKind const* kind : kinds_of(side)) {
    const std::span<const Key> own = side.keys(*kind);
    keys.insert(keys.end(), own.begin(), own.end());
  }
  keys.insert(keys.end(), common.begin(), common.end());
  return keys;
}

/// The storage of rx_alternatives() and tx_alternatives().
class Alternatives {
 public:
  explicit Alternatives(Side const& side) {
    for (PortKind const* kind : kinds_of(side)) {
      if (!side.keys(*kind).empty()) {
        texts_.push_back(concat(kind->name, ": ", kind->argument));
      }
    }
    views_.assign(texts_.begin(), texts_.end());
  }
  std::span<const std::string_view> views() const { return views_; }

 private:
  std::vector<std::string> texts_;
  std::vector<std::string_view> views_;
};

Result<PortConfig> read_section(FileSection& section, Side const& side) {
  PortConfig port;
  for (PortKind const* kind : kinds_of(side)) {
    const std::span<const Key> keys = side.keys(*kind);
    if (section.has(kind->name)) {
      port.kind = kind;
      port.position = section.config().position(std::string(kind->name));
      CATENA_RETURN_IF_ERROR(side.parse(*kind, section, port));
      continue;
    }
    for (std::size_t i = 1; i < keys.size(); ++i) {
      if (section.has(keys[i].name)) {
        const std::string_view advice = side.elsewhere(*kind);
        return section.config().error(keys[i].name, concat("'", keys[i].name, "' goes with '", kind->name, "' only",
                                                           advice.empty() ? "" : "; ", advice));
      }
    }
  }
  CATENA_RETURN_IF_ERROR(read_sharing(section, port));
  return port;
}

/// A kind as a value of an option: "pcap:FILE" or "generator"; empty: it is none.
std::string option_text(PortKind const& kind) {
  const bool is_word = kind.argument.empty() || kind.argument.starts_with('{');
  return kind.take_argument == nullptr ? std::string()
                                       : concat(kind.name, is_word ? "" : ":", is_word ? "" : kind.argument);
}

std::vector<std::string> option_texts(Side const& side, bool with_notes) {
  std::vector<std::string> texts;
  for (PortKind const* kind : kinds_of(side)) {
    if (std::string text = option_text(*kind); !text.empty()) {
      const std::string_view note = with_notes ? side.note(*kind) : std::string_view();
      texts.push_back(note.empty() ? std::move(text) : concat(text, " (", note, ")"));
    }
  }
  return texts;
}

Result<PortConfig> parse_option(std::string_view text, Side const& side) {
  for (PortKind const* kind : kinds_of(side)) {
    const std::string option = option_text(*kind);
    const std::size_t colon = option.find(':');
    const bool is_it = colon == std::string::npos
                           ? !option.empty() && text == option
                           : text.starts_with(option.substr(0, colon + 1)) && !text.ends_with(':');
    PortConfig port;
    port.kind = kind;
    if (is_it && kind->take_argument(text.substr(std::min(colon, text.size() - 1) + 1), port)) {
      return port;
    }
  }
  return absl::InvalidArgumentError(
      concat(side.option, " '", text, "'; allowed: ", fmt::format("{}", fmt::join(option_texts(side, false), ", "))));
}

/// "a, b or c"
std::string help_text(Side const& side) {
  const std::vector<std::string> texts = option_texts(side, true);
  return concat(fmt::format("{}", fmt::join(texts.begin(), texts.end() - 1, ", ")), " or ", texts.back());
}

}  // namespace

std::span<PortKind const* const> port_kinds() { return kPortKinds; }

std::vector<Key> rx_keys(std::span<const Key> common) { return keys_of_kinds(kRxSide, common); }
std::vector<Key> tx_keys(std::span<const Key> common) { return keys_of_kinds(kTxSide, common); }

std::span<const std::string_view> rx_alternatives() {
  static const Alternatives kAlternatives(kRxSide);
  return kAlternatives.views();
}
std::span<const std::string_view> tx_alternatives() {
  static const Alternatives kAlternatives(kTxSide);
  return kAlternatives.views();
}

Result<PortConfig> read_rx(FileSection& spec) {
  CATENA_ASSIGN_OR_RETURN(FileSection section, spec.section("rx"));
  CATENA_ASSIGN_OR_RETURN(PortConfig port, read_section(section, kRxSide));
  CATENA_RETURN_IF_ERROR(read_matches(section, port));
  return port;
}

Result<PortConfig> read_tx(FileSection& spec) {
  if (spec.config().is_null("tx")) {
    return PortConfig();
  }
  CATENA_ASSIGN_OR_RETURN(FileSection section, spec.section("tx"));
  return read_section(section, kTxSide);
}

Result<PortConfig> parse_rx_option(std::string_view text) { return parse_option(text, kRxSide); }
Result<PortConfig> parse_tx_option(std::string_view text) { return parse_option(text, kTxSide); }
std::string rx_option_help() { return help_text(kRxSide); }
std::string tx_option_help() { return help_text(kTxSide); }

std::optional<std::string_view> file_of_port_option(std::string_view text) {
  const std::size_t colon = text.find(':');
  for (PortKind const* kind : kPortKinds) {
    if (kind->names_file && colon != std::string_view::npos && text.substr(0, colon) == kind->name) {
      return text.substr(colon + 1);
    }
  }
  return std::nullopt;
}

Result<Sources> one_source(Result<std::unique_ptr<io::Source>> source) {
  CATENA_RETURN_IF_ERROR(source.status());
  Sources sources;
  sources.push_back(*std::move(source));
  return sources;
}

}  // namespace catena::chain
