// SPDX-License-Identifier: Apache-2.0
#include "functions/match/rule_reader.hpp"

#include "functions/match/rule_values.hpp"

#include <catena/nf/config.hpp>

#include <absl/strings/match.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>

namespace catena::match {
namespace {

constexpr std::array<std::string_view, 27> kOptions = {
    "msg",      "sid",    "rev",   "classtype", "reference", "metadata", "flow",     "priority",     "content",
    "nocase",   "offset", "depth", "distance",  "within",    "dsize",    "isdataat", "fast_pattern", "startswith",
    "endswith", "flags",  "itype", "icode",     "tcp.flags", "gid",      "target",   "tag",          "prefilter"};
/// Options whose first word is one of a list, and which neither match a packet nor change a verdict.
struct Annotation {
  std::string_view name;
  std::array<std::string_view, 2> words;
};
constexpr std::array<Annotation, 2> kAnnotations{{
    {"target", {"src_ip", "dest_ip"}},
    {"tag", {"session", "host"}},
}};
/// Words of `flow` that a rule may have although they are not evaluated; the others ask for reassembly.
constexpr std::array<std::string_view, 8> kFlowWords = {"to_server",   "to_client",       "from_server", "from_client",
                                                        "established", "not_established", "stateless",   "no_stream"};
constexpr std::size_t kHeaderWords = 7;
/// From here on ports are those of clients. Where a rule's server has ports below alone, its header tells direction.
constexpr std::uint32_t kFirstClientPort = 32768;
constexpr std::uint32_t kMaxByte = 0xFF;

constexpr std::array<std::string_view, 2> kActions = {"alert", "drop"};

/// "pcre", or "contnet (did you mean content?)": a word that is no option of the subset.
std::string unknown_word(std::string_view word, std::span<const std::string_view> known) {
  const std::string near = nf::misspelt(word, {known.begin(), known.end()});
  return near.empty() ? std::string(word) : fmt::format("{} (did you mean {}?)", word, near);
}

/// The word of `words` that `word` is, in capitals or not; else `word`.
std::string_view canonical(std::span<const std::string_view> words, std::string_view word) {
  const auto found = std::ranges::find_if(words, [word](std::string_view known) {
    return absl::EqualsIgnoreCase({known.data(), known.size()}, {word.data(), word.size()});
  });
  return found == words.end() ? word : *found;
}

template <std::size_t N>
bool one_of(std::array<std::string_view, N> const& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

constexpr std::array<std::string_view, 5> kProtocolWords = {"ip", "tcp", "tcp-pkt", "udp", "icmp"};
constexpr std::array<Protocol, kProtocolWords.size()> kProtocols = {Protocol::kIp, Protocol::kTcp, Protocol::kTcp,
                                                                    Protocol::kUdp, Protocol::kIcmp};

std::optional<Protocol> protocol_of(std::string_view word) {
  const auto* const found = std::ranges::find(kProtocolWords, canonical(kProtocolWords, word));
  return found == kProtocolWords.end()
             ? std::nullopt
             : std::optional(kProtocols[static_cast<std::size_t>(found - kProtocolWords.begin())]);
}

}  // namespace

SharedSet SetPool::share(IntervalSet set) {
  const auto found = sets_.find(set);
  if (found != sets_.end()) {
    return found->second;
  }
  auto shared = std::make_shared<const IntervalSet>(set);
  sets_.emplace(std::move(set), shared);
  return shared;
}

void RuleReader::fail(std::size_t offset, std::string message) {
  if (!stopped()) {
    error_ = TextError{offset, std::move(message)};
  }
}

void RuleReader::refuse(std::size_t offset, std::string what) {
  if (!stopped()) {
    refused_ = Refused{offset, std::move(what)};
  }
}

void RuleReader::read() {
  read_names();
  if (stopped()) {
    return;
  }
  read_header();
  for (Option const& option : text_.options) {
    if (stopped()) {
      return;
    }
    read_option({{canonical(kOptions, option.name.text), option.name.offset}, option.value});
  }
  finish_content();
  if (!sid_) {
    fail(length_ - 1, "the rule has no sid; write sid:NUMBER;");
  }
  refuse_blind_drop();
}

/// Whether everything that the rule names is in the subset; values are inspected later.
void RuleReader::read_names() {
  std::vector<Word> const& header = text_.header;
  if (header.empty()) {
    fail(0, "expected an action: alert or drop");
    return;
  }
  if (const std::string_view action = canonical(kActions, header[0].text); action == "drop") {
    rule_.action = Action::kDrop;
  } else if (action != "alert") {
    refuse(header[0].offset, fmt::format("action {}", unknown_word(header[0].text, kActions)));
  }
  if (header.size() > 1) {
    if (const auto protocol = protocol_of(header[1].text)) {
      rule_.protocol = *protocol;
    } else {
      refuse(header[1].offset, fmt::format("protocol {}", header[1].text));
    }
  }
  if (header.size() > 4 && header[4].text == "=>") {
    refuse(header[4].offset, "direction =>");
  }
  for (Option const& option : text_.options) {
    if (!one_of(kOptions, canonical(kOptions, option.name.text))) {
      refuse(option.name.offset, unknown_word(option.name.text, kOptions));
    }
  }
}

void RuleReader::read_header() {
  std::vector<Word> const& header = text_.header;
  if (header.size() != kHeaderWords) {
    fail(header.front().offset,
         fmt::format("the header has {} words; write: action protocol source ports -> destination ports",
                     header.size()));
    return;
  }
  rule_.source = read_set(SetKind::kAddress, header[2]);
  rule_.source_ports = read_set(SetKind::kPort, header[3]);
  rule_.both_directions = header[4].text == "<>";
  if (!rule_.both_directions && header[4].text != "->") {
    fail(header[4].offset, fmt::format("'{}' is no direction; write -> or <>", header[4].text));
  }
  rule_.destination = read_set(SetKind::kAddress, header[5]);
  rule_.destination_ports = read_set(SetKind::kPort, header[6]);
  for (std::size_t word : {3U, 6U}) {
    SharedSet const& ports = word == 3 ? rule_.source_ports : rule_.destination_ports;
    if (!stopped() && rule_.protocol == Protocol::kIcmp && !ports->is_all(kMaxPort)) {
      fail(header[word].offset, "icmp has no ports; write any");
    }
  }
}

SharedSet RuleReader::read_set(SetKind kind, Word word) {
  if (stopped()) {
    return nullptr;
  }
  SetResult result = parse_set(kind, word.text, variables_);
  if (auto* problem = std::get_if<SetError>(&result)) {
    if (problem->unsupported.empty()) {
      fail(word.offset + problem->offset, std::move(problem->message));
    } else {
      refuse(word.offset + problem->offset, std::move(problem->unsupported));
    }
    return nullptr;
  }
  return sets_.share(std::get<IntervalSet>(std::move(result)));
}

void RuleReader::read_option(Option const& option) {
  if (read_content_option(option)) {
    return;
  }
  const std::string_view name = option.name.text;
  if (name == "prefilter" && !option.value) {  // a hint, as fast_pattern is
    return;
  }
  if (!option.value || option.value->text.empty()) {
    fail(option.name.offset, fmt::format("{0} needs a value: {0}:VALUE;", name));
    return;
  }
  constexpr std::array<std::string_view, 7> kOnce = {"msg", "gid", "sid", "rev", "priority", "classtype", "dsize"};
  if (one_of(kOnce, name)) {
    once(option);
  }
  read_value(name, *option.value);
}

void RuleReader::read_value(std::string_view name, Word value) {
  if (name == "flow") {
    read_flow(value);
  } else if (name == "dsize") {
    narrow(rule_.conditions.payload_bytes, value, kMaxPayloadBytes);
  } else if (name == "itype") {
    narrow(rule_.conditions.icmp_type, value, kMaxByte);
  } else if (name == "icode") {
    narrow(rule_.conditions.icmp_code, value, kMaxByte);
  } else if (name == "flags" || name == "tcp.flags") {
    if (const auto flags = take(read_tcp_flags(value))) {
      rule_.conditions.tcp_flags.push_back(*flags);
    }
  } else if (name == "reference") {
    const std::size_t comma = value.text.find(',');
    if (comma == 0 || comma == std::string_view::npos || comma + 1 == value.text.size()) {
      fail(value.offset, "reference takes TYPE,VALUE");
    }
  } else if (const auto* annotation = std::ranges::find(kAnnotations, name, &Annotation::name);
             annotation != kAnnotations.end()) {
    if (Word const word = split_commas(value).front(); !one_of(annotation->words, word.text)) {
      fail(word.offset,
           fmt::format("'{}' is no value of {}; write {}", word.text, name, fmt::join(annotation->words, " or ")));
    }
  } else if (name == "msg") {
    rule_.labels.message = take(read_quoted(value, /*hex=*/false)).value_or("");
  } else if (name == "sid") {
    sid_ = Sid{value.offset};
    rule_.sid = read_uint(value, 1, UINT32_MAX);
  } else if (name == "rev") {
    rule_.labels.revision = read_uint(value, 0, UINT32_MAX);
  } else if (name == "gid") {
    rule_.labels.generator = read_uint(value, 1, UINT32_MAX);
  } else if (name == "priority") {
    rule_.labels.priority = read_uint(value, 1, 255);
  } else if (name == "classtype") {
    rule_.labels.classtype = value.text;
  }
}

/// A number that fits 32 bits; 0 where it is wrong, which is kept as the error.
std::uint32_t RuleReader::read_uint(Word value, std::uint32_t minimum, std::uint32_t maximum) {
  return static_cast<std::uint32_t>(take(read_number(value, minimum, maximum)).value_or(0));
}

/// Options that a rule has once.
void RuleReader::once(Option const& option) {
  if (!seen_.insert(option.name.text).second) {
    fail(option.name.offset, fmt::format("the rule has {} already", option.name.text));
  }
}

/// Asks, besides what `condition` asks, for the numbers that `value` names.
void RuleReader::narrow(SharedSet& condition, Word value, std::uint32_t maximum) {
  if (const auto set = take(read_number_set(value, maximum))) {
    narrow(condition, *set, maximum);
  }
}

void RuleReader::narrow(SharedSet& condition, IntervalSet const& set, std::uint32_t maximum) {
  condition = sets_.share(condition == nullptr ? set : condition->without(set.complement(maximum), maximum));
}

void RuleReader::read_flow(Word value) {
  rule_.has_flow = true;
  for (Word word : split_commas(value)) {
    word.text = canonical(kFlowWords, word.text);
    if (word.text == "only_stream" || word.text == "only_frag" || word.text == "no_frag") {
      refuse(word.offset, fmt::format("flow {}", word.text));
    } else if (!one_of(kFlowWords, word.text)) {
      fail(word.offset, fmt::format("'{}' is no flow option; known are {}", word.text, fmt::join(kFlowWords, ", ")));
    } else if (word.text != "established" && word.text != "stateless" && word.text != "no_stream") {
      flow_words_.push_back(word);
    }
  }
}

/// `flow` is not evaluated. To an alert that does little harm; a drop would hit packets that the rule does not mean. It
/// is taken where the header tells the direction: by ports of the server that clients do not use.
void RuleReader::refuse_blind_drop() {
  if (stopped() || rule_.action != Action::kDrop) {
    return;
  }
  for (Word const& word : flow_words_) {
    const bool to_client = word.text == "to_client" || word.text == "from_server";
    SharedSet const& server_ports = to_client ? rule_.source_ports : rule_.destination_ports;
    if (word.text == "not_established" || rule_.both_directions ||
        server_ports->intervals().back().last >= kFirstClientPort) {
      refuse(word.offset, fmt::format("drop with flow {}", word.text));
    }
  }
}

}  // namespace catena::match
