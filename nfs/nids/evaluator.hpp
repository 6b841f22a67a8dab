// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "functions/match/match_table.hpp"
#include "functions/match/pattern_set.hpp"
#include "functions/match/rule.hpp"

#include <catena/packet/flow_key.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace catena::nids {

/// Header values inspected by rules.
struct PacketHeader {
  match::Protocol protocol = match::Protocol::kIp;  ///< kIp: not TCP, UDP or ICMP
  packet::PacketFlow flow = {};
  std::uint8_t tcp_flags = 0;  ///< with kTcp
  std::uint8_t icmp_type = 0;  ///< with kIcmp, like the code
  std::uint8_t icmp_code = 0;
};

/// Converts the literal matches of one packet into its matching rules.
///
/// A rule matches if its header does and a choice of one occurrence per content satisfies all modifiers at once.
/// Contents refer only to the end of the previous one, so it suffices to carry, content by content, the set of possible
/// ends of the contents so far. Every step is one pass over two sorted lists, and no choice is tried twice. A rule
/// without contents and `isdataat` matches by its header and conditions alone. All other rules need a payload of at
/// least one byte, even if all their contents are negated (as in Suricata).
///
/// Not thread safe: match() uses memory of the object. A copy shares the immutable rules and has its own memory, for
/// use in another thread.
class Evaluator {
 public:
  /// Adds the contents of `rules` to `patterns`.
  Evaluator(std::vector<match::Rule> rules, match::PatternSet& patterns);

  /// False if no rule can match, regardless of the header.
  bool may_match(match::MatchTable const& matches) const;

  /// For each pattern, true if it can make a rule match. A packet without any such pattern matches only rules without
  /// contents, and its other matches are not needed.
  std::vector<bool> deciding_patterns() const;

  /// Appends the matching rules to `matched` (positions in rules()), unordered, each once. `payload_bytes`: length of
  /// the payload. Indexes `matches` if positions matter.
  void match(PacketHeader const& header, std::uint32_t payload_bytes, match::MatchTable& matches,
             std::vector<std::uint32_t>& matched);

  std::vector<match::Rule> const& rules() const { return tables_->rules; }
  /// True if a rule inspects the TCP flags, or the ICMP type and code.
  bool needs_tcp_flags() const { return tables_->needs_tcp_flags; }
  bool needs_icmp() const { return tables_->needs_icmp; }

 private:
  /// Immutable. Thread rule: any number of threads.
  struct Tables {
    std::vector<match::Rule> rules;
    bool needs_tcp_flags = false;
    bool needs_icmp = false;
    std::vector<std::uint32_t> content_patterns;              ///< pattern of every content, rule after rule
    std::vector<std::uint32_t> first_content;                 ///< of each rule, in content_patterns
    std::vector<std::vector<std::uint32_t>> rules_by_anchor;  ///< by pattern: rules to inspect at its occurrences
    std::vector<std::uint32_t> always;                        ///< rules without a required content
  };
  static Tables make_tables(std::vector<match::Rule> rules, match::PatternSet& patterns);
  bool matches(std::uint32_t rule, PacketHeader const& header, std::uint32_t payload_bytes, match::MatchTable& matches);
  bool contents_match(std::uint32_t rule, std::uint32_t payload_bytes, match::MatchTable& matches);

  std::shared_ptr<const Tables> tables_;
  std::vector<std::int32_t> ends_;  ///< possible ends of the contents so far, ascending
  std::vector<std::int32_t> next_ends_;
};

/// True if the header matches `rule`.
bool header_matches(match::Rule const& rule, PacketHeader const& packet);
/// True if the packet satisfies the conditions with a payload of `payload_bytes` bytes.
bool conditions_match(match::Conditions const& conditions, PacketHeader const& packet, std::uint32_t payload_bytes);

}  // namespace catena::nids
