// SPDX-License-Identifier: Apache-2.0
#include "nids.hpp"

#include "device_state.hpp"
#include "rule_parser.hpp"
#include "set_expression.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/text_file.hpp>
#include <catena/packet/headers.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

extern const catena::kernel::SourceFile catena_kernel_nids[];
extern const unsigned catena_kernel_nids_count;

namespace catena::nids {
namespace {

enum DropReasonNumber : std::uint32_t { kRule = 0 };
constexpr std::array<nf::DropReason, 1> kDropReasons{{{"rule", "a drop rule matched, or a string of a drop list"}}};

constexpr std::array<nf::ConfigKey, 5> kConfig{{
    {"rules", "file", "", "rules, one a line; either this or `strings` is required"},
    {"strings", "file", "", "strings to look for, one a line; either this or `rules` is required"},
    {"variables", "mapping", "the usual ones, HOME_NET: any", "values of $NAME in rule headers; with `rules`"},
    {"nocase", "boolean", "false", "look for the strings without regard to case; with `strings`"},
    {"string_action", "alert | drop", "alert", "what to do with a packet that has a string; with `strings`"},
}};

constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;
/// Work-items per packet. On an H200 payloads of 1000 bytes take a kernel 42 us with 8 and 28 us with 16.
constexpr std::uint32_t kLanes = 16;
constexpr std::uint32_t kGroupSize = 64;
/// No row can have more matches: every payload byte ends at most one in each of two automata.
constexpr std::uint32_t kMaxMatches = 2 * 0xFFFF;

PacketHeader header_of(packet::Packet const& packet) {
  PacketHeader header;
  const std::uint8_t* l3 = packet.l3();
  header.source = packet::load_be32(l3 + 12);
  header.destination = packet::load_be32(l3 + 16);
  if (packet.is(packet::kPorts)) {
    header.has_ports = true;
    header.source_port = packet::load_be16(packet.l4());
    header.destination_port = packet::load_be16(packet.l4() + 2);
  }
  header.protocol = packet.is(packet::kTcp)    ? Protocol::kTcp
                    : packet.is(packet::kUdp)  ? Protocol::kUdp
                    : packet.is(packet::kIcmp) ? Protocol::kIcmp
                                               : Protocol::kIp;
  return header;
}

Result<Variables> read_variables(nf::Config& config) {
  CATENA_ASSIGN_OR_RETURN(nf::Config section, config.section_or_empty("variables"));
  std::vector<Variables::Definition> definitions;
  for (std::string const& name : section.keys()) {
    CATENA_ASSIGN_OR_RETURN(const std::vector<std::string> parts, section.strings(name));
    definitions.push_back(
        {name, parts.size() == 1 ? parts[0] : fmt::format("[{}]", fmt::join(parts, ",")), section.position(name)});
  }
  CATENA_RETURN_IF_ERROR(section.finish());
  auto variables = Variables::create(definitions);
  if (auto* failure = std::get_if<Variables::Failure>(&variables)) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", failure->position, failure->message));
  }
  return std::get<Variables>(std::move(variables));
}

/// "147 rules loaded, 3 refused: dsize 2, pcre 1" and what else an operator must know.
std::vector<std::string> report_of(RuleFile const& file, std::string const& path) {
  std::string line = fmt::format("{} rules loaded, {} refused", file.rules.size(), file.refused.size());
  std::string_view separator = ": ";
  for (auto const& [what, count] : file.refusal_counts()) {
    line += fmt::format("{}{} {}", separator, what, count);
    separator = ", ";
  }
  std::vector<std::string> report{std::move(line)};
  if (!file.refused.empty()) {
    Refusal const& first = file.refused.front();
    report.push_back(fmt::format("first refused: {}:{}:{}: {}", path, first.line, first.column, first.what));
  }
  const auto flows =
      std::count_if(file.rules.begin(), file.rules.end(), [](Rule const& rule) { return rule.has_flow; });
  if (flows > 0) {
    report.push_back(
        fmt::format("{} rules name flow, which is not evaluated: packets are looked at one by one", flows));
  }
  return report;
}

Result<std::unique_ptr<nf::Nf>> create_with_rules(std::string const& path, Variables const& variables) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, nf::read_text_file(path, kMaxFileBytes));
  RuleFile file = parse_rules(text, path, variables);
  if (file.error_count > 0) {
    std::string message = fmt::format("{}", fmt::join(file.errors, "\n"));
    if (file.error_count > file.errors.size()) {
      message += fmt::format("\n{}: {} more errors", path, file.error_count - file.errors.size());
    }
    return absl::InvalidArgumentError(message);
  }
  std::vector<std::string> report = report_of(file, path);
  PatternSet patterns;
  RuleSet rules{Evaluator(std::move(file.rules), patterns)};
  return Nids::create(std::move(patterns), std::move(rules), path, std::move(report));
}

Result<std::unique_ptr<nf::Nf>> create_with_strings(std::string const& path, bool nocase, packet::Verdict verdict) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, nf::read_text_file(path, kMaxFileBytes));
  PatternSet patterns;
  CATENA_ASSIGN_OR_RETURN(StringList list, StringList::parse(text, path, nocase, patterns));
  std::vector<std::string> report{fmt::format("{} strings loaded{}", list.size(), nocase ? ", nocase" : "")};
  return Nids::create(std::move(patterns), StringSet{std::move(list), verdict}, path, std::move(report));
}

Result<std::unique_ptr<nf::Nf>> create_nids(nf::Config& config) {
  const bool rules = config.has("rules");
  if (rules == config.has("strings")) {
    return config.error("", rules ? "'rules' and 'strings' exclude each other; use two NFs"
                                  : "missing key 'rules' (a rule file) or 'strings' (a list of strings)");
  }
  if (rules) {
    for (std::string_view key : {"nocase", "string_action"}) {
      if (config.has(key)) {
        return config.error(key, fmt::format("'{}' goes with 'strings'; rules say it themselves", key));
      }
    }
    CATENA_ASSIGN_OR_RETURN(const std::string path, config.path("rules"));
    CATENA_ASSIGN_OR_RETURN(const Variables variables, read_variables(config));
    CATENA_RETURN_IF_ERROR(config.finish());
    return create_with_rules(path, variables);
  }
  if (config.has("variables")) {
    return config.error("variables", "'variables' goes with 'rules'; strings have no addresses");
  }
  CATENA_ASSIGN_OR_RETURN(const std::string path, config.path("strings"));
  CATENA_ASSIGN_OR_RETURN(const bool nocase, config.boolean_or("nocase", false));
  CATENA_ASSIGN_OR_RETURN(const std::string action, config.one_of("string_action", {"alert", "drop"}, "alert"));
  CATENA_RETURN_IF_ERROR(config.finish());
  return create_with_strings(path, nocase, action == "drop" ? packet::Verdict::kDrop : packet::Verdict::kAlert);
}

}  // namespace

Result<std::unique_ptr<nf::Nf>> Nids::create(PatternSet patterns, std::variant<RuleSet, StringSet> what,
                                             std::string file, std::vector<std::string> report) {
  CATENA_ASSIGN_OR_RETURN(LiteralMatcher matcher, LiteralMatcher::create(patterns.patterns()));
  return std::unique_ptr<nf::Nf>(
      new Nids(std::move(patterns), std::move(what), std::move(file), std::move(report), std::move(matcher)));
}

Nids::Nids(PatternSet patterns, std::variant<RuleSet, StringSet> what, std::string file,
           std::vector<std::string> report, LiteralMatcher matcher)
    : patterns_(std::move(patterns)),
      suffixes_(suffix_links(patterns_.patterns())),
      what_(std::move(what)),
      file_(std::move(file)),
      report_(std::move(report)),
      matcher_(std::move(matcher)),
      matches_(patterns_.size()) {}

nf::Hints Nids::hints() const {
  using packet::fields;
  // complete() reads the header fields; the payload is read where matching is done.
  constexpr packet::FieldSet kHeader = fields(packet::kIpv4Protocol, packet::kIpv4Src, packet::kIpv4Dst,
                                              packet::kL4Sport, packet::kL4Dport, packet::kMetaLayers);
  return {.cr = kHeader | fields(packet::kPayload),
          .gr = fields(packet::kPayload),
          .complete_reads = kHeader,
          .complete_writes = fields(packet::kMetaVerdict)};
}

void Nids::compute(packet::Batch const& batch, std::span<const std::byte>, std::span<std::byte> results) {
  auto rows = nf::array_of<NidsResult>(results);
  if (decisions_.size() < batch.size()) {
    decisions_.resize(batch.size());
  }
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    const packet::Packet packet = batch[i];
    matcher_.scan(packet.payload(), matches_);
    decide(packet, decisions_[i]);
    rows[i].count = kDecidedByCpu;
  }
}

void Nids::complete(packet::Batch const& batch, std::span<const std::byte>, std::span<const std::byte> results,
                    nf::SpillView const* spill, std::uint32_t first_row, nf::Outcome& outcome) {
  const auto rows = nf::array_of<NidsResult>(results);
  // most packets have no match, and then most rule files no rule for them
  auto const* rules = std::get_if<RuleSet>(&what_);
  const bool passes_without_matches = rules == nullptr || !rules->evaluator.may_match(matches_);
  Decision decision;
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    if (rows[i].count == 0 && passes_without_matches) {
      continue;
    }
    const packet::Packet packet = batch[i];
    if (rows[i].count == kDecidedByCpu) {
      report(packet, decisions_[i], outcome);
      continue;
    }
    const auto spilled = spill == nullptr ? std::span<const std::byte>() : spill->row(first_row + i);
    if (!read_matches(rows[i], spilled, packet.layers().payload_length)) {
      // A device that returned something else than the kernel wrote: the packet is decided all the same.
      matches_.clear();
      matcher_.scan(packet.payload(), matches_);
    }
    decide(packet, decision);
    report(packet, decision, outcome);
  }
}

bool Nids::read_matches(NidsResult const& result, std::span<const std::byte> spilled, std::uint32_t payload_bytes) {
  const auto rest = nf::array_of<u32>(spilled);
  if (result.count > kListedMatches && rest.size() < result.count - kListedMatches) {
    return false;
  }
  for (std::uint32_t i = 0; i < result.count; ++i) {
    const u32 entry = i < kListedMatches ? result.listed[i] : rest[i - kListedMatches];
    if (pattern_of(entry) >= patterns_.size() || end_of(entry) > payload_bytes) {
      return false;
    }
    for (std::uint32_t pattern = pattern_of(entry); pattern != kNoSuffix; pattern = suffixes_[pattern]) {
      matches_.add(pattern, end_of(entry));
    }
  }
  return true;
}

void Nids::decide(packet::Packet const& packet, Decision& decision) {
  decision.verdict = packet::Verdict::kPass;
  decision.matches.clear();
  decision.occurrences = 0;
  if (auto* strings = std::get_if<StringSet>(&what_)) {
    decision.occurrences = strings->list.match(matches_, decision.matches);
    if (!decision.matches.empty()) {
      decision.verdict = strings->verdict;
    }
  } else {
    Evaluator& evaluator = std::get<RuleSet>(what_).evaluator;
    matched_rules_.clear();
    if (evaluator.may_match(matches_)) {
      evaluator.match(header_of(packet), packet.layers().payload_length, matches_, matched_rules_);
    }
    for (std::uint32_t number : matched_rules_) {
      Rule const& rule = evaluator.rules()[number];
      decision.matches.push_back(rule.sid);
      const auto verdict = rule.action == Action::kDrop ? packet::Verdict::kDrop : packet::Verdict::kAlert;
      decision.verdict = std::max(decision.verdict, verdict);
    }
  }
  matches_.clear();
  std::sort(decision.matches.begin(), decision.matches.end());
}

void Nids::report(packet::Packet const& packet, Decision const& decision, nf::Outcome& outcome) const {
  if (decision.verdict == packet::Verdict::kPass) {
    return;
  }
  const bool drop = decision.verdict == packet::Verdict::kDrop;
  if (drop) {
    outcome.drop(packet, kRule);
  } else {
    outcome.alert(packet);
  }
  if (outcome.recording()) {
    std::string fields = fmt::format("\"matches\":[{}]", fmt::join(decision.matches, ","));
    if (std::holds_alternative<StringSet>(what_)) {
      fields += fmt::format(",\"occurrences\":{}", decision.occurrences);
    }
    outcome.record(packet, decision.verdict, drop ? std::int32_t{kRule} : -1, std::move(fields));
  }
}

Result<nf::KernelSide> Nids::kernel_side() const {
  auto const* rules = std::get_if<RuleSet>(&what_);
  const std::vector<bool> deciding =
      rules != nullptr ? rules->evaluator.deciding_patterns() : std::vector<bool>(patterns_.size(), true);
  nf::StateBuilder state(sizeof(NidsState));
  std::array<NidsAutomaton, 2> automata{};
  std::uint32_t count = 0;
  for (const bool nocase : {false, true}) {
    const auto automaton = build_automaton(patterns_.patterns(), nocase, deciding);
    if (!automaton.ok()) {
      return absl::InvalidArgumentError(concat(file_, ": ", std::string(automaton.status().message())));
    }
    if (!automaton->next.empty()) {
      automata[count++] = add_automaton(state, *automaton);
    }
  }

  nf::KernelSide side;
  side.spec.source = {catena_kernel_nids, catena_kernel_nids_count};
  side.spec.kernel = count == 2 ? "nids_two" : "nids_one";
  side.spec.reads = hints().gr;
  side.spec.writes = hints().gw;
  side.spec.result_bytes = sizeof(NidsResult);
  side.spec.policy = {.lanes = kLanes,
                      .group_size = kGroupSize,
                      .local_bytes = local_words(kGroupSize, kLanes) * static_cast<std::uint32_t>(sizeof(u32)),
                      .spill_factor = 4 * count};
  side.state = state.finish(NidsState{automata[0], automata[1]});
  return side;
}

void Nids::spill_requests(std::span<const std::byte> results, std::vector<nf::SpillRequest>& requests) const {
  const auto rows = nf::array_of<NidsResult>(results);
  for (std::uint32_t row = 0; row < rows.size(); ++row) {
    if (rows[row].count > kListedMatches && rows[row].count <= kMaxMatches) {
      requests.push_back({row, (rows[row].count - kListedMatches) * static_cast<std::uint32_t>(sizeof(u32))});
    }
  }
}

}  // namespace catena::nids

catena::nf::Descriptor const& catena_nf_nids() {
  static const catena::nf::Descriptor kDescriptor{
      .type = "nids",
      .help = "intrusion detection: Snort/Suricata rules or strings, packet by packet",
      .needs = catena::packet::kIpv4,
      .drop_reasons = catena::nids::kDropReasons,
      .config = catena::nids::kConfig,
      .aux_bytes = 0,
      .result_bytes = sizeof(catena::nids::NidsResult),
      .has_kernel = true,
      .create = catena::nids::create_nids,
  };
  return kDescriptor;
}
