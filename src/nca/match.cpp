// SPDX-License-Identifier: Apache-2.0
#include <catena/core/text.hpp>
#include <catena/nf/nf.hpp>
#include <catena/nf/text_file.hpp>

#include "catena_kernel_match.hpp"
#include "functions/match/aho_corasick.hpp"
#include "functions/match/device_state.hpp"
#include "functions/match/literal_matcher.hpp"
#include "functions/match/match.layout.hpp"
#include "functions/match/pattern_set.hpp"
#include "functions/match/rule_parser.hpp"
#include "functions/match/string_list.hpp"
#include "nca/function.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

// The kernel of the nids NF.
namespace catena::nca {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;
/// Work-items a packet. Buffers are large: fewer than the nids NF takes, which cares for the latency of small launches.
constexpr std::uint32_t kMatchLanes = 8;
constexpr std::uint32_t kMatchGroup = 64;

/// Distinct patterns, which matchers know, and the caller's numbers for each.
struct Patterns {
  match::PatternSet set;
  std::vector<std::vector<std::uint32_t>> numbers;  ///< by pattern
  std::vector<std::uint32_t> patterns;              ///< by number
  std::vector<nf::Refusal> refused;                 ///< rules

  void add(std::string bytes, bool nocase) {
    if (nocase) {
      match::fold_case(bytes);
    }
    const std::uint32_t pattern = set.add(bytes, nocase);
    numbers.resize(set.size());
    numbers[pattern].push_back(static_cast<std::uint32_t>(patterns.size()));
    patterns.push_back(pattern);
  }
};

Status check_count(std::size_t count) {
  if (count == 0 || count > NCA_MAX_PATTERNS) {
    return absl::InvalidArgumentError(concat(count, " patterns; a match takes 1 to ", std::uint32_t{NCA_MAX_PATTERNS}));
  }
  return absl::OkStatus();
}

Status add_array(nca_match_config const& config, Patterns& patterns) {
  CATENA_RETURN_IF_ERROR(check_count(config.pattern_count));
  for (std::size_t i = 0; i < config.pattern_count; ++i) {
    nca_pattern const& pattern = config.patterns[i];
    if (pattern.bytes == nullptr || pattern.length == 0 || pattern.length > NCA_MAX_PATTERN_BYTES ||
        (pattern.flags & ~std::uint32_t{NCA_NOCASE}) != 0) {
      return absl::InvalidArgumentError(concat("pattern ", i, ": ", pattern.length, " bytes, flags ", pattern.flags,
                                               "; a pattern has 1 to ", std::uint32_t{NCA_MAX_PATTERN_BYTES},
                                               " bytes, and NCA_NOCASE or no flag"));
    }
    patterns.add({static_cast<const char*>(pattern.bytes), pattern.length}, (pattern.flags & NCA_NOCASE) != 0);
  }
  return absl::OkStatus();
}

Status add_strings(std::string const& path, bool nocase, Patterns& patterns) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, nf::read_text_file(path, kMaxFileBytes));
  match::PatternSet checked;
  CATENA_RETURN_IF_ERROR(match::StringList::parse(text, path, nocase, checked).status());
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    patterns.add(std::string(rest.substr(0, end)), nocase);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return absl::OkStatus();
}

Status add_rules(std::string const& path, Patterns& patterns) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, nf::read_text_file(path, kMaxFileBytes));
  match::RuleFile file = match::parse_rules(text, path, match::Variables());
  if (file.error_count > 0) {
    return absl::InvalidArgumentError(file.errors.front());
  }
  patterns.refused = std::move(file.refused);
  for (match::Rule const& rule : file.rules) {
    for (match::Content const& content : rule.contents) {
      match::PatternSet& set = patterns.set;
      const std::uint32_t known = set.size();
      if (!content.negated && set.add(content.bytes, content.nocase) == known) {
        patterns.numbers.push_back({static_cast<std::uint32_t>(patterns.patterns.size())});
        patterns.patterns.push_back(known);
      }
    }
  }
  if (patterns.patterns.empty() && !patterns.refused.empty()) {
    nf::Refusal const& first = patterns.refused.front();
    return absl::InvalidArgumentError(concat(path, ":", first.line, ":", first.column,
                                             ": nothing is left to search for: ", patterns.refused.size(),
                                             " rules are refused (", nf::reasons_of(patterns.refused), ")"));
  }
  return absl::OkStatus();
}

/// Puts the matches of one packet, which begin at `first`, into the order of the API.
void finish_packet(std::vector<nca_match>& matches, std::size_t first) {
  if (matches.size() - first < 2) {
    return;
  }
  const auto begin = matches.begin() + static_cast<std::ptrdiff_t>(first);
  const auto key = [](nca_match const& match) { return std::pair(match.end, match.pattern); };
  std::sort(begin, matches.end(), [&](auto const& a, auto const& b) { return key(a) < key(b); });
  matches.erase(std::unique(begin, matches.end(), [&](auto const& a, auto const& b) { return key(a) == key(b); }),
                matches.end());
}

class MatchFunction;

class MatchWorker final : public HostWorker {
 public:
  MatchWorker(MatchFunction const& function, match::LiteralMatcher matcher, std::uint32_t patterns)
      : function_(&function), matcher_(std::move(matcher)), found_(patterns) {}
  Status run(kernel::PackedPackets const& packets, FunctionResults& results) override;

 private:
  MatchFunction const* function_;
  match::LiteralMatcher matcher_;
  match::MatchTable found_;
};

class MatchFunction final : public Function {
 public:
  explicit MatchFunction(Patterns patterns)
      : patterns_(std::move(patterns)), suffixes_(match::suffix_links(patterns_.set.patterns())) {
    for (auto const& numbers : patterns_.numbers) {
      first_number_.push_back(static_cast<std::uint32_t>(numbers_.size()));
      numbers_.insert(numbers_.end(), numbers.begin(), numbers.end());
    }
    first_number_.push_back(static_cast<std::uint32_t>(numbers_.size()));
  }

  nca_kind kind() const override { return NCA_MATCH; }
  Result<FunctionKernel> kernel_side() const override;
  Result<std::unique_ptr<HostWorker>> host_worker() const override {
    CATENA_ASSIGN_OR_RETURN(match::LiteralMatcher matcher, match::LiteralMatcher::create(patterns_.set.patterns()));
    return std::make_unique<MatchWorker>(*this, std::move(matcher), patterns_.set.size());
  }
  Status collect(kernel::PackedLaunch& launch, std::size_t number, FunctionResults& results) const override;

  Patterns const& patterns() const { return patterns_; }
  /// Lists pattern `pattern`, which ends at `end`, under each of its numbers.
  void list(std::uint32_t packet, std::uint32_t pattern, std::uint32_t end, std::vector<nca_match>& matches) const {
    for (std::uint32_t i = first_number_[pattern]; i < first_number_[pattern + 1]; ++i) {
      matches.push_back({packet, end, numbers_[i]});
    }
  }

 private:
  /// Lists an entry of a device, the longest pattern that ends somewhere, with all others that end there.
  Status list_entry(std::uint32_t packet, std::uint32_t length, u32 entry, std::vector<nca_match>& matches) const;

  Patterns patterns_;
  std::vector<std::uint32_t> suffixes_;
  // Of patterns_.numbers, one behind another: they are looked up for every match, and near caches hold these.
  std::vector<std::uint32_t> numbers_;
  std::vector<std::uint32_t> first_number_;  ///< by pattern, and the end
};

Status MatchWorker::run(kernel::PackedPackets const& packets, FunctionResults& results) {
  for (std::uint32_t row = 0; row < packets.count(); ++row) {
    found_.clear();
    matcher_.scan(packets.bytes(row), found_);
    const std::size_t first = results.matches.size();
    for (match::MatchTable::Match const& match : found_.matches()) {
      function_->list(row, match.pattern, match.end, results.matches);
    }
    finish_packet(results.matches, first);
  }
  return absl::OkStatus();
}

Result<FunctionKernel> MatchFunction::kernel_side() const {
  const std::vector<bool> deciding(patterns_.set.size(), true);
  nf::StateBuilder state(sizeof(match::MatchState));
  std::array<match::DeviceAutomaton, 2> automata{};
  std::uint32_t count = 0;
  for (const bool nocase : {false, true}) {
    CATENA_ASSIGN_OR_RETURN(const match::Automaton automaton,
                            match::build_automaton(patterns_.set.patterns(), nocase, deciding));
    if (!automaton.next.empty()) {
      automata[count++] = match::add_automaton(state, automaton);
    }
  }
  FunctionKernel side;
  side.spec.source = catena_kernel_match();
  side.spec.name = count == 2 ? "match_two" : "match_one";
  side.plan.reads = packet::fields(packet::kPayload);
  side.plan.result_bytes = sizeof(match::MatchResult);
  side.spec.lanes = kMatchLanes;
  side.spec.group_size = kMatchGroup;
  side.spec.local_bytes = match::local_words(kMatchGroup, kMatchLanes) * static_cast<std::uint32_t>(sizeof(u32));
  side.spec.spill_factor = 4 * count;
  side.state = state.finish(match::MatchState{automata[0], automata[1]});
  return side;
}

Status MatchFunction::list_entry(std::uint32_t packet, std::uint32_t length, u32 entry,
                                 std::vector<nca_match>& matches) const {
  const std::uint32_t end = match::end_of(entry);
  if (match::pattern_of(entry) >= patterns_.set.size() || end > length) {
    return absl::InternalError(concat("the device lists pattern ", match::pattern_of(entry), " of ",
                                      patterns_.set.size(), " at byte ", end, " of ", length));
  }
  for (std::uint32_t pattern = match::pattern_of(entry); pattern != match::kNoSuffix; pattern = suffixes_[pattern]) {
    list(packet, pattern, end, matches);
  }
  return absl::OkStatus();
}

Status MatchFunction::collect(kernel::PackedLaunch& launch, std::size_t number, FunctionResults& results) const {
  kernel::PackedPackets const& packets = launch.packets();
  const auto rows = nf::array_of<match::MatchResult>(launch.results(number));
  const bool any_fault = launch.faults(number).count != 0;
  const auto is_whole = [&](std::uint32_t row) { return !any_fault || !launch.faulted(number, row); };

  std::vector<kernel::PackedLaunch::SpillNeed> needs;
  for (std::uint32_t row = 0; row < rows.size(); ++row) {
    if (rows[row].count > 2 * std::uint32_t{packets.extent(row).length} && is_whole(row)) {
      return absl::InternalError(
          concat("the device found ", rows[row].count, " matches in ", packets.extent(row).length, " bytes"));
    }
    if (rows[row].count > match::kListedMatches && is_whole(row)) {
      needs.push_back({row, (rows[row].count - match::kListedMatches) * std::uint32_t{sizeof(u32)}});
    }
  }
  std::size_t fetched = 0;  // needs whose bytes the launch holds: [fetched - held, fetched)
  std::size_t held = 0;
  std::size_t next_need = 0;
  for (std::uint32_t row = 0; row < rows.size(); ++row) {
    match::MatchResult const& result = rows[row];
    if (!is_whole(row)) {
      ++results.out_of_bounds;
      continue;
    }
    if (result.count == 0) {
      continue;
    }
    std::span<const u32> spilled;
    if (result.count > match::kListedMatches) {
      if (next_need == fetched) {
        CATENA_ASSIGN_OR_RETURN(held, launch.fetch_spill(number, std::span(needs).subspan(fetched)));
        fetched += held;
      }
      spilled = nf::array_of<u32>(launch.spill(next_need - (fetched - held)));
      ++next_need;
    }
    const std::size_t first = results.matches.size();
    for (std::uint32_t i = 0; i < result.count; ++i) {
      const u32 entry = i < match::kListedMatches ? result.listed[i] : spilled[i - match::kListedMatches];
      CATENA_RETURN_IF_ERROR(list_entry(row, packets.extent(row).length, entry, results.matches));
    }
    finish_packet(results.matches, first);
  }
  return absl::OkStatus();
}

}  // namespace

Result<std::unique_ptr<Function>> make_match(nca_match_config const& config) {
  const int sources = (config.patterns != nullptr ? 1 : 0) + (config.strings_file != nullptr ? 1 : 0) +
                      (config.rules_file != nullptr ? 1 : 0);
  if (sources != 1 || (config.patterns != nullptr && config.pattern_count == 0)) {
    return absl::InvalidArgumentError("a match needs one of patterns, strings_file and rules_file");
  }
  if ((config.flags & ~std::uint32_t{NCA_NOCASE}) != 0 || (config.flags != 0 && config.strings_file == nullptr)) {
    return absl::InvalidArgumentError(
        concat("flags ", config.flags, ": NCA_NOCASE is the only one, and goes with strings_file"));
  }
  Patterns patterns;
  if (config.patterns != nullptr) {
    CATENA_RETURN_IF_ERROR(add_array(config, patterns));
  } else if (config.strings_file != nullptr) {
    CATENA_RETURN_IF_ERROR(add_strings(config.strings_file, config.flags != 0, patterns));
  } else {
    CATENA_RETURN_IF_ERROR(add_rules(config.rules_file, patterns));
  }
  CATENA_RETURN_IF_ERROR(check_count(patterns.patterns.size()));
  return std::make_unique<MatchFunction>(std::move(patterns));
}

Result<PatternView> pattern_of(Function const& function, std::uint32_t number) {
  auto const* match = dynamic_cast<MatchFunction const*>(&function);
  if (match == nullptr) {
    return absl::InvalidArgumentError("the function is no NCA_MATCH");
  }
  Patterns const& patterns = match->patterns();
  if (number >= patterns.patterns.size()) {
    return absl::InvalidArgumentError(concat("pattern ", number, " of ", patterns.patterns.size()));
  }
  match::Pattern const& pattern = patterns.set.patterns()[patterns.patterns[number]];
  return PatternView{pattern.bytes.data(), static_cast<std::uint32_t>(pattern.bytes.size()), pattern.nocase};
}

std::span<const nf::Refusal> refusals_of(Function const& function) {
  auto const* match = dynamic_cast<MatchFunction const*>(&function);
  return match == nullptr ? std::span<const nf::Refusal>() : match->patterns().refused;
}

}  // namespace catena::nca
