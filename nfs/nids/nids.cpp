// SPDX-License-Identifier: Apache-2.0
#include "nids.hpp"

#include "alert.hpp"
#include "catena_kernel_match.hpp"
#include "configure.hpp"
#include "functions/match/device_state.hpp"

#include <catena/core/escape.hpp>
#include <catena/core/text.hpp>
#include <catena/packet/headers.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

namespace catena::nids {
namespace {

enum DropReasonNumber : std::uint32_t { kRule = 0 };
constexpr std::array<nf::DropReason, 1> kDropReasons{{{"rule", "a drop rule matched, or a string of a drop list"}}};

/// Work-items per packet. On an H200 payloads of 1000 bytes take a kernel 42 us with 8 and 28 us with 16.
constexpr std::uint32_t kLanes = 16;
constexpr std::uint32_t kGroupSize = 64;
/// No row can have more matches: every payload byte ends at most one in each of two automata.
constexpr std::uint32_t kMaxMatches = 2 * 0xFFFF;

/// What the rules inspect. Fields that hints() does not name are not read.
PacketHeader header_of(packet::Packet const& packet, Evaluator const& evaluator) {
  PacketHeader header;
  header.flow = packet::flow_of(packet.frame(), packet.layers());
  header.protocol = packet.is(packet::kTcp)    ? match::Protocol::kTcp
                    : packet.is(packet::kUdp)  ? match::Protocol::kUdp
                    : packet.is(packet::kIcmp) ? match::Protocol::kIcmp
                                               : match::Protocol::kIp;
  if (evaluator.needs_tcp_flags() && header.protocol == match::Protocol::kTcp) {
    header.tcp_flags = packet.l4()[13];
  }
  if (evaluator.needs_icmp() && header.protocol == match::Protocol::kIcmp) {
    header.icmp_type = packet.l4()[0];
    header.icmp_code = packet.l4()[1];
  }
  return header;
}

}  // namespace

Result<std::unique_ptr<nf::Nf>> Nids::create(NidsFile file) {
  CATENA_ASSIGN_OR_RETURN(match::LiteralMatcher matcher, match::LiteralMatcher::create(file.patterns.patterns()));
  std::vector<std::uint32_t> suffixes = match::suffix_links(file.patterns.patterns());
  auto tables = std::make_shared<const Tables>(Tables{std::move(file), std::move(suffixes)});
  return std::unique_ptr<nf::Nf>(new Nids(std::move(tables), std::move(matcher)));
}

Nids::Nids(std::shared_ptr<const Tables> tables, match::LiteralMatcher matcher)
    : tables_(std::move(tables)), matcher_(std::move(matcher)), matches_(tables_->file.patterns.size()) {
  if (auto const* rules = std::get_if<RuleSet>(&tables_->file.what)) {
    evaluator_ = rules->evaluator;
  }
}

Result<std::unique_ptr<nf::Nf>> Nids::replicate(std::uint32_t /*shard*/) const {
  CATENA_ASSIGN_OR_RETURN(match::LiteralMatcher matcher, matcher_.replicate());
  return std::unique_ptr<nf::Nf>(new Nids(tables_, std::move(matcher)));
}

nf::Hints Nids::hints() const {
  using packet::fields;
  packet::FieldSet header = fields(packet::kIpv4Protocol, packet::kIpv4Src, packet::kIpv4Dst, packet::kL4Sport,
                                   packet::kL4Dport, packet::kMetaLayers);
  if (evaluator_) {
    header |= evaluator_->needs_tcp_flags() ? fields(packet::kTcpFlags) : packet::kNoFields;
    header |= evaluator_->needs_icmp() ? fields(packet::kIcmpHeader) : packet::kNoFields;
  }
  return {.cr = header | fields(packet::kPayload),
          .gr = fields(packet::kPayload),
          // the payload of packets whose list the device did not give back as the kernel makes it; plans bring it back
          // anyway, for whoever comes next
          .complete_reads = header | fields(packet::kPayload),
          .complete_writes = fields(packet::kMetaVerdict)};
}

void Nids::compute(packet::Batch const& batch, std::span<const std::byte>, std::span<std::byte> results) {
  auto rows = nf::array_of<match::MatchResult>(results);
  if (decisions_.size() < batch.size()) {
    decisions_.resize(batch.size());
  }
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    const packet::Packet packet = batch[i];
    matcher_.scan(packet.payload(), matches_);
    decide(packet, decisions_[i]);
    rows[i].count = match::kDecidedByCpu;
  }
}

void Nids::complete(nf::Completion const& completion) {
  packet::Batch const& batch = completion.batch();
  nf::Outcome& outcome = completion.outcome();
  const auto rows = completion.results<match::MatchResult>();
  // most packets have no match, and then most rule files no rule for them
  const bool passes_without_matches = !evaluator_ || !evaluator_->may_match(matches_);
  Decision decision;
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    if (rows[i].count == 0 && passes_without_matches) {
      continue;
    }
    const packet::Packet packet = batch[i];
    if (!completion.from_device()) {
      report(packet, decisions_[i], outcome);
      continue;
    }
    if (!read_matches(rows[i], completion.spill(i), packet.layers().payload_length)) {
      // A device that returned something else than the kernel wrote: the packet is decided all the same.
      matches_.clear();
      matcher_.scan(packet.payload(), matches_);
    }
    decide(packet, decision);
    report(packet, decision, outcome);
  }
}

bool Nids::read_matches(match::MatchResult const& result, std::span<const std::byte> spilled,
                        std::uint32_t payload_bytes) {
  const auto rest = nf::array_of<u32>(spilled);
  if (result.count > match::kListedMatches && rest.size() < result.count - match::kListedMatches) {
    return false;
  }
  for (std::uint32_t i = 0; i < result.count; ++i) {
    const u32 entry = i < match::kListedMatches ? result.listed[i] : rest[i - match::kListedMatches];
    if (match::pattern_of(entry) >= tables_->file.patterns.size() || match::end_of(entry) > payload_bytes) {
      return false;
    }
    for (std::uint32_t pattern = match::pattern_of(entry); pattern != match::kNoSuffix;
         pattern = tables_->suffixes[pattern]) {
      matches_.add(pattern, match::end_of(entry));
    }
  }
  return true;
}

void Nids::decide(packet::Packet const& packet, Decision& decision) {
  decision.verdict = packet::Verdict::kPass;
  decision.matches.clear();
  decision.occurrences = 0;
  if (StringSet const* set = strings()) {
    decision.occurrences = set->list.match(matches_, decision.matches);
    std::sort(decision.matches.begin(), decision.matches.end());
    if (!decision.matches.empty()) {
      decision.verdict = set->verdict;
    }
  } else {
    Evaluator& evaluator = *evaluator_;
    matched_rules_.clear();
    if (evaluator.may_match(matches_)) {
      evaluator.match(header_of(packet, evaluator), packet.layers().payload_length, matches_, matched_rules_);
    }
    std::vector<match::Rule> const& all = evaluator.rules();
    for (std::uint32_t number : matched_rules_) {
      const auto verdict =
          all[number].action == match::Action::kDrop ? packet::Verdict::kDrop : packet::Verdict::kAlert;
      decision.verdict = std::max(decision.verdict, verdict);
    }
    std::sort(matched_rules_.begin(), matched_rules_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(all[a].sid, all[a].labels.generator) < std::pair(all[b].sid, all[b].labels.generator);
    });
    decision.matches.assign(matched_rules_.begin(), matched_rules_.end());
  }
  matches_.clear();
}

void Nids::report(packet::Packet const& packet, Decision const& decision, nf::Outcome& outcome) {
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
    outcome.record(packet, decision.verdict, drop ? std::int32_t{kRule} : -1, record_fields(decision));
  }
  if (keeps_alerts_) {
    for (std::uint32_t match : decision.matches) {
      alerts_.push_back({packet.index(), alert_text(match)});
    }
  }
}

std::string Nids::record_fields(Decision const& decision) const {
  if (!evaluator_) {
    return fmt::format(R"("matches":[{}],"occurrences":{})", fmt::join(decision.matches, ","), decision.occurrences);
  }
  std::vector<std::uint32_t> sids;
  std::vector<std::uint32_t> gids;
  for (std::uint32_t number : decision.matches) {
    match::Rule const& rule = evaluator_->rules()[number];
    sids.push_back(rule.sid);
    gids.push_back(rule.labels.generator);
  }
  const bool is_usual =
      std::ranges::all_of(gids, [](std::uint32_t gid) { return gid == match::RuleLabels().generator; });
  return fmt::format(R"("matches":[{}]{})", fmt::join(sids, ","),
                     is_usual ? "" : fmt::format(R"(,"gids":[{}])", fmt::join(gids, ",")));
}

std::string Nids::alert_text(std::uint32_t match) const {
  NidsFile const& file = tables_->file;
  if (StringSet const* set = strings()) {
    return alert_of_string(match, file.patterns.patterns()[set->list.pattern(match)].bytes,
                           set->verdict == packet::Verdict::kDrop);
  }
  return alert_of_rule(evaluator_->rules()[match], file.classes);
}

Result<nf::KernelSide> Nids::kernel_side() const {
  NidsFile const& file = tables_->file;
  const std::vector<bool> deciding =
      evaluator_ ? evaluator_->deciding_patterns() : std::vector<bool>(file.patterns.size(), true);
  nf::StateBuilder state(sizeof(match::MatchState));
  std::array<match::DeviceAutomaton, 2> automata{};
  std::uint32_t count = 0;
  for (const bool nocase : {false, true}) {
    const auto automaton = match::build_automaton(file.patterns.patterns(), nocase, deciding);
    if (!automaton.ok()) {
      return absl::InvalidArgumentError(concat(escaped(file.path), ": ", std::string(automaton.status().message())));
    }
    if (!automaton->next.empty()) {
      automata[count++] = match::add_automaton(state, *automaton);
    }
  }

  nf::KernelSide side;
  side.spec.source = catena_kernel_match();
  side.spec.name = count == 2 ? "match_two" : "match_one";
  side.spec.lanes = kLanes;
  side.spec.group_size = kGroupSize;
  side.spec.local_bytes = match::local_words(kGroupSize, kLanes) * static_cast<std::uint32_t>(sizeof(u32));
  side.spec.spill_factor = 4 * count;
  side.state = state.finish(match::MatchState{automata[0], automata[1]});
  return side;
}

void Nids::spill_requests(std::span<const std::byte> results, std::vector<nf::SpillRequest>& requests) const {
  const auto rows = nf::array_of<match::MatchResult>(results);
  for (std::uint32_t row = 0; row < rows.size(); ++row) {
    if (rows[row].count > match::kListedMatches && rows[row].count <= kMaxMatches) {
      requests.push_back({row, (rows[row].count - match::kListedMatches) * static_cast<std::uint32_t>(sizeof(u32))});
    }
  }
}

}  // namespace catena::nids

catena::nf::Descriptor const& catena_nf_nids() {
  static const catena::nf::Descriptor kDescriptor{
      .type = "nids",
      .help = "intrusion detection: Snort/Suricata rules or strings, packet by packet",
      .needs = catena::packet::kIpv4,
      .is_inspector = true,
      .drop_reasons = catena::nids::kDropReasons,
      .config = catena::nids::config_keys(),
      .aux_bytes = 0,
      .result_bytes = sizeof(catena::match::MatchResult),
      .has_kernel = true,
      .sharding = catena::nf::Sharding::kPacket,
      .create = catena::nids::create_nids,
  };
  return kDescriptor;
}
