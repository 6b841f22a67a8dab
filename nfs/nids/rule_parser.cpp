// SPDX-License-Identifier: Apache-2.0
#include "rule_parser.hpp"

#include "pattern_set.hpp"
#include "rule_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

namespace catena::nids {
namespace {

constexpr std::array<std::string_view, 14> kOptions = {"msg",      "sid",   "rev",      "classtype", "reference",
                                                       "metadata", "flow",  "priority", "content",   "nocase",
                                                       "offset",   "depth", "distance", "within"};
/// Words of `flow` that a rule may have although they are not evaluated; the others ask for reassembly.
constexpr std::array<std::string_view, 8> kFlowWords = {"to_server",   "to_client",       "from_server", "from_client",
                                                        "established", "not_established", "stateless",   "no_stream"};
constexpr std::size_t kHeaderWords = 7;

template <std::size_t N>
bool one_of(std::array<std::string_view, N> const& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::optional<Protocol> protocol_of(std::string_view word) {
  if (word == "ip") {
    return Protocol::kIp;
  }
  if (word == "tcp" || word == "tcp-pkt") {
    return Protocol::kTcp;
  }
  if (word == "udp") {
    return Protocol::kUdp;
  }
  if (word == "icmp") {
    return Protocol::kIcmp;
  }
  return std::nullopt;
}

std::vector<Word> split_commas(Word list) {
  std::vector<Word> words;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t end = std::min(list.text.find(',', begin), list.text.size());
    std::string_view word = list.text.substr(begin, end - begin);
    std::size_t offset = list.offset + begin;
    while (!word.empty() && word.front() == ' ') {
      word.remove_prefix(1);
      ++offset;
    }
    while (!word.empty() && word.back() == ' ') {
      word.remove_suffix(1);
    }
    words.push_back({word, offset});
    if (end == list.text.size()) {
      return words;
    }
    begin = end + 1;
  }
}

/// The sets of all rules so far, so that equal ones are stored once.
class SetPool {
 public:
  SharedSet share(IntervalSet set) {
    const auto found = sets_.find(set);
    if (found != sets_.end()) {
      return found->second;
    }
    auto shared = std::make_shared<const IntervalSet>(set);
    sets_.emplace(std::move(set), shared);
    return shared;
  }

 private:
  std::map<IntervalSet, SharedSet> sets_;
};

/// Gives one rule its meaning. The first refusal or error is kept; after it every step returns at once.
class RuleReader {
 public:
  RuleReader(RuleText const& text, std::size_t length, Variables const& variables, SetPool& sets)
      : text_(text), length_(length), variables_(variables), sets_(sets) {}

  void read() {
    read_names();
    if (stopped()) {
      return;
    }
    read_header();
    for (Option const& option : text_.options) {
      if (stopped()) {
        return;
      }
      read_option(option);
    }
    finish_content();
    if (!sid_) {
      fail(length_ - 1, "the rule has no sid; write sid:NUMBER;");
    }
  }

  struct Refused {
    std::size_t offset;
    std::string what;
  };
  std::optional<TextError> const& error() const { return error_; }
  std::optional<Refused> const& refused() const { return refused_; }
  Rule& rule() { return rule_; }
  /// Offset of the value of `sid`.
  std::size_t sid_offset() const { return sid_->offset; }

 private:
  bool stopped() const { return error_ || refused_; }
  void fail(std::size_t offset, std::string message) {
    if (!stopped()) {
      error_ = TextError{offset, std::move(message)};
    }
  }
  void refuse(std::size_t offset, std::string what) {
    if (!stopped()) {
      refused_ = Refused{offset, std::move(what)};
    }
  }

  /// Whether everything that the rule names is in the subset; values are looked at later.
  void read_names() {
    std::vector<Word> const& header = text_.header;
    if (header.empty()) {
      fail(0, "expected an action: alert or drop");
      return;
    }
    if (header[0].text == "drop") {
      rule_.action = Action::kDrop;
    } else if (header[0].text != "alert") {
      refuse(header[0].offset, fmt::format("action {}", header[0].text));
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
      if (!one_of(kOptions, option.name.text)) {
        refuse(option.name.offset, std::string(option.name.text));
      }
    }
  }

  void read_header() {
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

  SharedSet read_set(SetKind kind, Word word) {
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

  void read_option(Option const& option) {
    const std::string_view name = option.name.text;
    if (name == "nocase") {
      if (option.value) {
        fail(option.value->offset, "nocase takes no value");
      }
      if (Content* content = content_for(option, "nocase")) {
        content->nocase = true;
      }
      return;
    }
    if (!option.value || option.value->text.empty()) {
      fail(option.name.offset, fmt::format("{0} needs a value: {0}:VALUE;", name));
      return;
    }
    const Word value = *option.value;
    if (name == "content") {
      read_content(value);
    } else if (name == "offset") {
      read_modifier(option, 0, [](Content& content, std::int32_t bytes) { content.offset = bytes; });
    } else if (name == "depth") {
      read_modifier(option, 1, [](Content& content, std::int32_t bytes) { content.depth = bytes; });
    } else if (name == "distance") {
      read_modifier(option, -kMaxContentRange, [](Content& content, std::int32_t bytes) { content.distance = bytes; });
    } else if (name == "within") {
      read_modifier(option, 1, [](Content& content, std::int32_t bytes) { content.within = bytes; });
    } else if (name == "flow") {
      read_flow(value);
    } else if (name == "reference") {
      const std::size_t comma = value.text.find(',');
      if (comma == 0 || comma == std::string_view::npos || comma + 1 == value.text.size()) {
        fail(value.offset, "reference takes TYPE,VALUE");
      }
    } else if (name == "msg") {
      once(option);
      auto text = read_quoted(value, /*hex=*/false);
      if (auto* problem = std::get_if<TextError>(&text)) {
        fail(problem->offset, std::move(problem->message));
      }
    } else if (name == "sid") {
      once(option);
      if (const auto number = read_number(value, 1, UINT32_MAX)) {
        sid_ = Sid{value.offset};
        rule_.sid = static_cast<std::uint32_t>(*number);
      }
    } else if (name == "rev") {
      once(option);
      read_number(value, 0, UINT32_MAX);
    } else if (name == "priority") {
      once(option);
      read_number(value, 1, 255);
    } else if (name == "classtype") {
      once(option);
    }
  }

  /// Options that a rule has once.
  void once(Option const& option) {
    if (!seen_.insert(option.name.text).second) {
      fail(option.name.offset, fmt::format("the rule has {} already", option.name.text));
    }
  }

  std::optional<std::int64_t> read_number(Word value, std::int64_t minimum, std::int64_t maximum) {
    std::int64_t number = 0;
    const char* end = value.text.data() + value.text.size();
    const auto [stop, problem] = std::from_chars(value.text.data(), end, number);
    if (problem != std::errc{} || stop != end || number < minimum || number > maximum) {
      fail(value.offset, fmt::format("'{}' is no number from {} to {}", value.text, minimum, maximum));
      return std::nullopt;
    }
    return number;
  }

  void read_flow(Word value) {
    rule_.has_flow = true;
    for (Word const& word : split_commas(value)) {
      if (word.text == "only_stream" || word.text == "only_frag" || word.text == "no_frag") {
        refuse(word.offset, fmt::format("flow {}", word.text));
      } else if (!one_of(kFlowWords, word.text)) {
        fail(word.offset, fmt::format("'{}' is no flow option; known are {}", word.text, fmt::join(kFlowWords, ", ")));
      }
    }
  }

  void read_content(Word value) {
    finish_content();
    Content content;
    if (value.text.front() == '!') {
      content.negated = true;
      std::size_t skip = 1;
      while (skip < value.text.size() && value.text[skip] == ' ') {
        ++skip;
      }
      value = {value.text.substr(skip), value.offset + skip};
    }
    auto bytes = read_quoted(value, /*hex=*/true);
    if (auto* problem = std::get_if<TextError>(&bytes)) {
      fail(problem->offset, std::move(problem->message));
      return;
    }
    content.bytes = std::get<std::string>(std::move(bytes));
    if (content.bytes.empty() || content.bytes.size() > kMaxContentBytes) {
      fail(value.offset,
           fmt::format("a content has 1 to {} bytes, this has {}", kMaxContentBytes, content.bytes.size()));
      return;
    }
    rule_.contents.push_back(std::move(content));
    modifiers_.clear();
  }

  /// The content that a modifier belongs to: the last one before it.
  Content* content_for(Option const& option, std::string_view name) {
    if (rule_.contents.empty()) {
      fail(option.name.offset, fmt::format("{} needs a content before it", name));
      return nullptr;
    }
    if (!modifiers_.emplace(name, option.name.offset).second) {
      fail(option.name.offset, fmt::format("the content has {} already", name));
      return nullptr;
    }
    return &rule_.contents.back();
  }

  template <typename Set>
  void read_modifier(Option const& option, std::int32_t minimum, Set set) {
    Content* content = content_for(option, option.name.text);
    const auto number = read_number(*option.value, minimum, kMaxContentRange);
    if (content != nullptr && number) {
      set(*content, static_cast<std::int32_t>(*number));
    }
  }

  /// Checks the modifiers of the last content together: they may stand in any order.
  void finish_content() {
    if (stopped() || rule_.contents.empty()) {
      return;
    }
    Content& content = rule_.contents.back();
    const auto offset_of = [&](std::string_view name) { return modifiers_.find(name)->second; };
    for (std::string_view relative : {"distance", "within"}) {
      for (std::string_view absolute : {"offset", "depth"}) {
        if (modifiers_.count(relative) != 0 && modifiers_.count(absolute) != 0) {
          fail(offset_of(relative), fmt::format("{} and {} contradict each other on one content", relative, absolute));
        }
      }
    }
    content.relative = modifiers_.count("distance") != 0 || modifiers_.count("within") != 0;
    const auto length = static_cast<std::int32_t>(content.bytes.size());
    for (std::string_view name : {"depth", "within"}) {
      std::optional<std::int32_t> const& limit = name == "depth" ? content.depth : content.within;
      if (limit && *limit < length) {
        fail(offset_of(name), fmt::format("{} {} leaves no room for a content of {} bytes", name, *limit, length));
      }
    }
    if (content.nocase) {
      fold_case(content.bytes);
    }
  }

  struct Sid {
    std::size_t offset;
  };
  RuleText const& text_;
  std::size_t length_;
  Variables const& variables_;
  SetPool& sets_;
  Rule rule_;
  std::optional<Sid> sid_;
  std::set<std::string_view> seen_;
  std::map<std::string_view, std::size_t> modifiers_;  ///< of the last content, with their offsets
  std::optional<TextError> error_;
  std::optional<Refused> refused_;
};

}  // namespace

std::vector<std::pair<std::string, std::size_t>> RuleFile::refusal_counts() const {
  std::map<std::string, std::size_t> counts;
  for (Refusal const& refusal : refused) {
    ++counts[refusal.what];
  }
  std::vector<std::pair<std::string, std::size_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](auto const& a, auto const& b) { return a.second > b.second; });
  return sorted;
}

RuleFile parse_rules(std::string_view text, std::string const& file, Variables const& variables) {
  RuleFile result;
  SetPool sets;
  std::unordered_map<std::uint32_t, std::uint32_t> lines_of_sids;
  for (RuleLine const& line : split_rules(text)) {
    const auto add_error = [&](TextError const& error) {
      ++result.error_count;
      if (result.errors.size() < kMaxErrors) {
        const auto [number, column] = line.position(error.offset);
        result.errors.push_back(fmt::format("{}:{}:{}: {}", file, number, column, error.message));
      }
    };
    const auto parts = read_rule(line.text());
    if (const auto* error = std::get_if<TextError>(&parts)) {
      add_error(*error);
      continue;
    }
    RuleReader reader(std::get<RuleText>(parts), line.text().size(), variables, sets);
    reader.read();
    if (reader.refused()) {
      const auto [number, column] = line.position(reader.refused()->offset);
      result.refused.push_back({number, column, reader.refused()->what});
      continue;
    }
    if (reader.error()) {
      add_error(*reader.error());
      continue;
    }
    const auto [known, added] = lines_of_sids.emplace(reader.rule().sid, line.position(reader.sid_offset()).line);
    if (!added) {
      add_error({reader.sid_offset(), fmt::format("sid {} is taken by the rule in line {}; each rule needs its own",
                                                  reader.rule().sid, known->second)});
      continue;
    }
    result.rules.push_back(std::move(reader.rule()));
  }
  return result;
}

}  // namespace catena::nids
